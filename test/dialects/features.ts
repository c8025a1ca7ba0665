// What every client must be able to do on every upstream dialect: the columns of the matrix. A feature throws where it
// does not work; what the gateway said it lost is looked up by the caller of it.

import { expect } from 'bun:test'
import { answer, errorMidStream, fail } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Client, Fault, Reply, Session, Way, Wish } from './clients/client.ts'
import { ways } from './clients/client.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf } from './upstreams.ts'

/** One client at one upstream. */
export interface Ground {
  readonly harness: Harness
  readonly client: Client
  readonly upstream: Dialect
  readonly session: Session
}

export type Feature = (ground: Ground) => Promise<void>

export const lastSent = ({ harness }: Ground): string => Buffer.from(harness.upstream.requests.at(-1)!.body).toString()

const hi = 'Hello, dear river'

/** As the fake upstream counts: a word is a token. */
function expectEcho(reply: Reply): void {
  expect(reply).toMatchObject({ text: hi, thoughts: '', calls: [], finish: 'stop' })
  expect(reply.usage).toMatchObject({ input: 3, output: 3, cached: 0 })
}

async function text({ session, upstream }: Ground): Promise<void> {
  expectEcho(await session.ask('plain', { model: modelOf(upstream), turns: [session.user(hi)] }))
}

async function stream({ session, upstream }: Ground): Promise<void> {
  for (const way of ['stream', 'helper'] as const) {
    expectEcho(await session.ask(way, { model: modelOf(upstream), turns: [session.user(hi)] }))
  }
}

const mapFor = (city: string): string => `Please use map {"city":"${city}"}`

async function tools({ session, upstream }: Ground): Promise<void> {
  for (const way of ways) {
    const turns = [session.user(mapFor('Paris'))]
    const reply = await session.ask(way, { model: modelOf(upstream), turns, tools: ['map', 'clock'] })
    expect(reply).toMatchObject({ text: '', calls: [{ name: 'map', given: { city: 'Paris' } }], finish: 'calls' })
    expect(reply.calls).toHaveLength(1)
  }
}

async function parallelTools({ session, upstream }: Ground): Promise<void> {
  for (const way of ways) {
    const turns = [session.user('Please use map {"city":"Paris"} and use clock {"city":"Rome"}')]
    const { calls, finish } = await session.ask(way, { model: modelOf(upstream), turns, tools: ['map', 'clock'] })
    expect(calls.map(({ name, given }) => ({ name, given }))).toEqual([
      { name: 'map', given: { city: 'Paris' } },
      { name: 'clock', given: { city: 'Rome' } },
    ])
    expect(finish).toBe('calls')
    if (calls[0]!.id !== '') expect(calls[0]!.id).not.toBe(calls[1]!.id)
  }
}

/** The ways in which the client's own turns hold all that the next call needs. */
const remembering = ({ client }: Ground): readonly Way[] => (client.helperForgets ? ['plain', 'stream'] : ways)

/** Calls, results, and what is said then. */
export async function loop(ground: Ground, way: Way, more: Partial<Wish> & { said?: string }) {
  const { session, upstream } = ground
  const { said = 'use map {"city":"Paris"} and use clock', ...wishes } = more
  const wish = { model: modelOf(upstream), tools: ['map', 'clock'], ...wishes }
  const first = [...(more.turns ?? []), session.user(said)]
  const called = await session.ask(way, { ...wish, turns: first })
  const results = called.calls.map(({ id, name }) => ({ id, name, text: `${name} says sunny` }))
  const turns = [...first, ...called.turns, ...session.results(results)]
  const answered = await session.ask(way, { ...wish, turns })
  return { called, answered, turns: [...turns, ...answered.turns] }
}

async function toolResults(ground: Ground): Promise<void> {
  for (const way of remembering(ground)) {
    const { called, answered } = await loop(ground, way, {})
    expect(called.calls).toHaveLength(2)
    expect(answered).toMatchObject({ text: 'use map {"city":"Paris"} and use clock', calls: [], finish: 'stop' })
    const sent = lastSent(ground)
    for (const said of ['map says sunny', 'clock says sunny', 'Paris']) expect(sent).toContain(said)
  }
}

/** One grey pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

async function image({ session, upstream }: Ground): Promise<void> {
  const turns = [session.user('What is this?', { picture: pixel })]
  const bytes = Buffer.from(pixel, 'base64').length
  for (const way of ways) {
    const { text } = await session.ask(way, { model: modelOf(upstream, 'see'), turns })
    expect(text).toBe(`I see 1: image/png of ${bytes} bytes`)
  }
}

async function structuredOutput({ session, upstream }: Ground): Promise<void> {
  for (const way of ways) {
    const wish = { model: modelOf(upstream, 'json'), turns: [session.user(hi)], schema: true }
    const { text, calls } = await session.ask(way, wish)
    expect(JSON.parse(text)).toEqual({ echo: hi })
    expect(calls).toEqual([])
  }
}

async function thinking(ground: Ground): Promise<void> {
  const { session, upstream } = ground
  const model = modelOf(upstream, 'think')
  for (const way of remembering(ground)) {
    const reply = await session.ask(way, { model, turns: [session.user(hi)], thinking: true })
    expect(reply).toMatchObject({ text: hi, thoughts: 'Let me think about it.', finish: 'stop' })
    // Five words of thought, which are part of the output.
    expect(reply.usage).toMatchObject({ input: 3, output: 8 })
    if (reply.usage.reasoning !== undefined) expect(reply.usage.reasoning).toBe(5)
    const { called, answered } = await loop(ground, way, { model, thinking: true })
    expect(called.thoughts).toBe('Let me think about it.')
    expect(answered.text).toStartWith('state kept: ')
  }
}

const marks: Readonly<Record<Dialect, string | undefined>> = {
  'openai-chat': '"prompt_cache_breakpoint"',
  'openai-responses': '"prompt_cache_breakpoint"',
  'anthropic-messages': '"cache_control"',
  'gemini': undefined,
  'ark': undefined,
}

async function cache(ground: Ground): Promise<void> {
  const { session, upstream, harness } = ground
  for (const way of ways) {
    harness.upstream.plan(answer('Done', { usage: { input: 100, cached: 60, output: 40, reasoning: 10 } }))
    const turns = [session.user(hi, { marked: true })]
    const { usage } = await session.ask(way, { model: modelOf(upstream), turns })
    expect(usage).toMatchObject({ input: 100, cached: 60, output: 40 })
    if (usage.reasoning !== undefined) expect(usage.reasoning).toBe(10)
    const mark = marks[upstream]
    const asked = canMark(ground) && mark !== undefined && ground.client.dialect !== upstream
    if (asked) expect(lastSent(ground)).toContain(mark)
  }
}

/** Whether the client has a place for marks at all. */
const canMark = ({ session }: Ground): boolean =>
  JSON.stringify(session.user('x', { marked: true })) !== JSON.stringify(session.user('x'))

export async function faultIn(ground: Ground, way: Way, wish: Partial<Wish> = {}): Promise<Fault> {
  const { session, upstream } = ground
  try {
    await session.ask(way, { model: modelOf(upstream), turns: [session.user(hi)], ...wish })
  } catch (error) {
    return session.fault(error)
  }
  throw new Error(`nothing was raised, ${way}`)
}

/** The upstream's answer, and what becomes of it: its own words pass only where the caller is to blame. */
const overloaded = 503
const failures: readonly (readonly [script: () => Script, status: number, says: string])[] = [
  [() => fail(400), 400, 'The upstream answers 400.'],
  [() => fail(401), 502, ''],
  [() => fail(500), 502, ''],
  [() => fail(429), overloaded, ''],
]

/** What the gateway refuses by itself. */
async function ownRefusals(ground: Ground): Promise<void> {
  const { client, harness } = ground
  const by = (key: string, wish?: Partial<Wish>): Promise<Fault> =>
    faultIn({ ...ground, session: client.connect(harness.url, key) }, 'plain', wish)
  const key = await harness.key()
  const large = [ground.session.user('x'.repeat(300_000))]
  expectFault(client, await by(`wk-${'x'.repeat(36)}`), { status: 401, says: 'not valid' })
  expectFault(client, await by(await harness.key({ credit: '0' })), { status: 402, says: 'balance' })
  expectFault(client, await by(key, { model: modelOf(ground.upstream, 'nothing') }), { status: 404, says: 'no such' })
  expectFault(client, await by(key, { turns: large }), { status: 413, says: 'too' })
  const limited = await harness.key({ qpm: 1 })
  const session = client.connect(harness.url, limited)
  await session.ask('plain', { model: modelOf(ground.upstream), turns: [session.user(hi)] })
  expectFault(client, await by(limited), { status: 429, says: '' })
}

async function errors(ground: Ground): Promise<void> {
  const { client, harness } = ground
  await ownRefusals(ground)
  for (const way of ways) {
    for (const [script, status, says] of failures) {
      harness.upstream.plan(script())
      expectFault(client, await faultIn(ground, way), { status, says })
    }
    if (way === 'plain') continue
    harness.upstream.plan(errorMidStream(['He', 'llo']))
    const { message } = await faultIn(ground, way)
    expect(message).not.toBe('')
  }
}

export function expectFault(client: Client, fault: Fault, { status, says }: { status: number; says: string }): void {
  const told = status === overloaded && client.dialect === 'anthropic-messages' ? 529 : status
  expect(fault).toMatchObject({ status: told, kind: client.raises(told) })
  expect(fault.message).toContain(says)
  expect(fault.message.length).toBeGreaterThan(10)
  if (client.tellsRequestId) expect(fault.requestId).toStartWith('req_')
}

async function abort({ session, upstream, harness }: Ground): Promise<void> {
  const leaving = new AbortController()
  const received = harness.upstream.nextRequest()
  const wish = { model: modelOf(upstream, 'slow'), turns: [session.user(hi)], signal: leaving.signal }
  const asked = session.ask('stream', { ...wish, heard: () => leaving.abort() })
  await asked.then(
    () => expect.unreachable('the answer came whole'),
    () => {},
  )
  await (await received).closed
  await harness.idle()
  await until(() => harness.openHolds() === 0, 'no hold is open')
}

/** By the names that the matrix has for them. */
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
