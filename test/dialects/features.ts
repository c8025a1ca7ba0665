// The features that every client must have on every upstream dialect: the columns of the matrix. A feature throws if it
// does not work; its caller reads the reported losses.

import { expect } from 'bun:test'
import { answer, errorMidStream, fail } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { AskOptions, Client, Fault, Reply, Session, Way } from './clients/client.ts'
import { ways } from './clients/client.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf } from './upstreams.ts'

/** One client and one upstream. */
export interface FeatureContext {
  readonly harness: Harness
  readonly client: Client
  readonly upstream: Dialect
  readonly session: Session
}

export type Feature = (context: FeatureContext) => Promise<void>

export const lastSent = ({ harness }: FeatureContext): string =>
  Buffer.from(harness.upstream.requests.at(-1)!.body).toString()

const hi = 'Hello, dear river'

/** The fake upstream counts a word as a token. */
function expectEcho(reply: Reply): void {
  expect(reply).toMatchObject({ text: hi, thoughts: '', calls: [], finish: 'stop' })
  expect(reply.usage).toMatchObject({ input: 3, output: 3, cached: 0 })
}

async function text({ session, upstream }: FeatureContext): Promise<void> {
  expectEcho(await session.ask('plain', { model: modelOf(upstream), turns: [session.user(hi)] }))
}

async function stream({ session, upstream }: FeatureContext): Promise<void> {
  for (const way of ['stream', 'helper'] as const) {
    expectEcho(await session.ask(way, { model: modelOf(upstream), turns: [session.user(hi)] }))
  }
}

const mapFor = (city: string): string => `Please use map {"city":"${city}"}`

async function tools({ session, upstream }: FeatureContext): Promise<void> {
  for (const way of ways) {
    const turns = [session.user(mapFor('Paris'))]
    const reply = await session.ask(way, { model: modelOf(upstream), turns, tools: ['map', 'clock'] })
    expect(reply).toMatchObject({ text: '', calls: [{ name: 'map', input: { city: 'Paris' } }], finish: 'calls' })
    expect(reply.calls).toHaveLength(1)
  }
}

async function parallelTools({ session, upstream }: FeatureContext): Promise<void> {
  for (const way of ways) {
    const turns = [session.user('Please use map {"city":"Paris"} and use clock {"city":"Rome"}')]
    const { calls, finish } = await session.ask(way, { model: modelOf(upstream), turns, tools: ['map', 'clock'] })
    expect(calls.map(({ name, input }) => ({ name, input }))).toEqual([
      { name: 'map', input: { city: 'Paris' } },
      { name: 'clock', input: { city: 'Rome' } },
    ])
    expect(finish).toBe('calls')
    if (calls[0]!.id !== '') expect(calls[0]!.id).not.toBe(calls[1]!.id)
  }
}

/** The ways in which the turns of the client contain all that the next call needs. */
const completeWays = ({ client }: FeatureContext): readonly Way[] =>
  client.helperDropsThoughts ? ['plain', 'stream'] : ways

/** Runs a tool loop: tool calls, their results, and the final answer. */
export async function loop(context: FeatureContext, way: Way, more: Partial<AskOptions> & { prompt?: string }) {
  const { session, upstream } = context
  const { prompt = 'use map {"city":"Paris"} and use clock', ...rest } = more
  const options = { model: modelOf(upstream), tools: ['map', 'clock'], ...rest }
  const first = [...(more.turns ?? []), session.user(prompt)]
  const called = await session.ask(way, { ...options, turns: first })
  const results = called.calls.map(({ id, name }) => ({ id, name, text: `${name} says sunny` }))
  const turns = [...first, ...called.turns, ...session.results(results)]
  const answered = await session.ask(way, { ...options, turns })
  return { called, answered, turns: [...turns, ...answered.turns] }
}

async function toolResults(context: FeatureContext): Promise<void> {
  for (const way of completeWays(context)) {
    const { called, answered } = await loop(context, way, {})
    expect(called.calls).toHaveLength(2)
    expect(answered).toMatchObject({ text: 'use map {"city":"Paris"} and use clock', calls: [], finish: 'stop' })
    const sent = lastSent(context)
    for (const prompt of ['map says sunny', 'clock says sunny', 'Paris']) expect(sent).toContain(prompt)
  }
}

/** One grey pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

async function image({ session, upstream }: FeatureContext): Promise<void> {
  const turns = [session.user('What is this?', { picture: pixel })]
  const bytes = Buffer.from(pixel, 'base64').length
  for (const way of ways) {
    const { text } = await session.ask(way, { model: modelOf(upstream, 'see'), turns })
    expect(text).toBe(`I see 1: image/png of ${bytes} bytes`)
  }
}

async function structuredOutput({ session, upstream }: FeatureContext): Promise<void> {
  for (const way of ways) {
    const options = { model: modelOf(upstream, 'json'), turns: [session.user(hi)], schema: true }
    const { text, calls } = await session.ask(way, options)
    expect(JSON.parse(text)).toEqual({ echo: hi })
    expect(calls).toEqual([])
  }
}

async function thinking(context: FeatureContext): Promise<void> {
  const { session, upstream } = context
  const model = modelOf(upstream, 'think')
  for (const way of completeWays(context)) {
    const reply = await session.ask(way, { model, turns: [session.user(hi)], thinking: true })
    expect(reply).toMatchObject({ text: hi, thoughts: 'Let me think about it.', finish: 'stop' })
    // Five words of thought are part of the output tokens.
    expect(reply.usage).toMatchObject({ input: 3, output: 8 })
    if (reply.usage.reasoning !== undefined) expect(reply.usage.reasoning).toBe(5)
    const { called, answered } = await loop(context, way, { model, thinking: true })
    expect(called.thoughts).toBe('Let me think about it.')
    expect(answered.text).toStartWith('state kept: ')
  }
}

const cacheMarks: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': '"prompt_cache_breakpoint"',
  'openai-responses': '"prompt_cache_breakpoint"',
  'anthropic-messages': '"cache_control"',
  'gemini': undefined,
  'ark': undefined,
}

async function cache(context: FeatureContext): Promise<void> {
  const { session, upstream, harness } = context
  for (const way of ways) {
    harness.upstream.plan(answer('Done', { usage: { input: 100, cached: 60, output: 40, reasoning: 10 } }))
    const turns = [session.user(hi, { marked: true })]
    const { usage } = await session.ask(way, { model: modelOf(upstream), turns })
    expect(usage).toMatchObject({ input: 100, cached: 60, output: 40 })
    if (usage.reasoning !== undefined) expect(usage.reasoning).toBe(10)
    const mark = cacheMarks[upstream]
    const isMarked = canMark(context) && mark !== undefined && context.client.dialect !== upstream
    if (isMarked) expect(lastSent(context)).toContain(mark)
  }
}

/** Whether the dialect of the client has cache marks. */
const canMark = ({ session }: FeatureContext): boolean =>
  JSON.stringify(session.user('x', { marked: true })) !== JSON.stringify(session.user('x'))

export async function faultIn(context: FeatureContext, way: Way, options: Partial<AskOptions> = {}): Promise<Fault> {
  const { session, upstream } = context
  try {
    await session.ask(way, { model: modelOf(upstream), turns: [session.user(hi)], ...options })
  } catch (error) {
    return session.fault(error)
  }
  throw new Error(`nothing was raised, ${way}`)
}

/** The script of the upstream, the status for the caller, and a part of its message: the message of the upstream passes
 * only for errors of the caller. */
const overloaded = 503
const failures: readonly (readonly [script: () => Script, status: number, says: string])[] = [
  [() => fail(400), 400, 'The upstream answers 400.'],
  [() => fail(401), 502, ''],
  [() => fail(500), 502, ''],
  [() => fail(429), overloaded, ''],
]

/** Refusals of the gateway itself. */
async function ownRefusals(context: FeatureContext): Promise<void> {
  const { client, harness } = context
  const faultFor = (key: string, options?: Partial<AskOptions>): Promise<Fault> =>
    faultIn({ ...context, session: client.connect(harness.url, key) }, 'plain', options)
  const key = await harness.key()
  const large = [context.session.user('x'.repeat(300_000))]
  expectFault(client, await faultFor(`wk-${'x'.repeat(36)}`), { status: 401, says: 'not valid' })
  expectFault(client, await faultFor(await harness.key({ credit: '0' })), { status: 402, says: 'balance' })
  expectFault(client, await faultFor(key, { model: modelOf(context.upstream, 'nothing') }), {
    status: 404,
    says: 'no such',
  })
  expectFault(client, await faultFor(key, { turns: large }), { status: 413, says: 'too' })
  const limited = await harness.key({ qpm: 1 })
  const session = client.connect(harness.url, limited)
  await session.ask('plain', { model: modelOf(context.upstream), turns: [session.user(hi)] })
  expectFault(client, await faultFor(limited), { status: 429, says: '' })
}

async function errors(context: FeatureContext): Promise<void> {
  const { client, harness } = context
  await ownRefusals(context)
  for (const way of ways) {
    for (const [script, status, says] of failures) {
      harness.upstream.plan(script())
      expectFault(client, await faultIn(context, way), { status, says })
    }
    if (way === 'plain') continue
    harness.upstream.plan(errorMidStream(['He', 'llo']))
    const { message } = await faultIn(context, way)
    expect(message).not.toBe('')
  }
}

export function expectFault(client: Client, fault: Fault, { status, says }: { status: number; says: string }): void {
  const expectedStatus = status === overloaded && client.dialect === 'anthropic-messages' ? 529 : status
  expect(fault).toMatchObject({ status: expectedStatus, kind: client.raises(expectedStatus) })
  expect(fault.message).toContain(says)
  expect(fault.message.length).toBeGreaterThan(10)
  if (client.hasRequestId) expect(fault.requestId).toStartWith('req_')
}

async function abort({ session, upstream, harness }: FeatureContext): Promise<void> {
  const abortController = new AbortController()
  const received = harness.upstream.nextRequest()
  const options = { model: modelOf(upstream, 'slow'), turns: [session.user(hi)], signal: abortController.signal }
  const isMarked = session.ask('stream', { ...options, onContent: () => abortController.abort() })
  await isMarked.then(
    () => expect.unreachable('the answer came whole'),
    () => {},
  )
  await (await received).closed
  await harness.idle()
  await until(() => harness.openHolds() === 0, 'no hold is open')
  expect(harness.lastRecord()).toMatchObject({ outcome: 'client_left' })
}

/** By their names in the matrix. */
export const features = {
  'text': text,
  'stream': stream,
  'tools': tools,
  'parallel tools': parallelTools,
  'tool results': toolResults,
  'image': image,
  'structured output': structuredOutput,
  'thinking': thinking,
  'cache': cache,
  'errors': errors,
  'abort': abort,
} as const satisfies Record<string, Feature>

export type FeatureName = keyof typeof features
export const featureNames = Object.keys(features) as readonly FeatureName[]
