// Thousands of calls of every kind against upstreams that answer at random, by callers that leave at random; and what
// must be true when all calls have ended.

import { textId } from '../../src/base/ids.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import {
  answer,
  errorMidStream,
  fail,
  garbage,
  resetAfterRequest,
  resetMidStream,
  silence,
  streamed,
  truncatedStream,
} from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { close, script, scripted, startAt, wait } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { openRaw } from '../forwarding/caller.ts'
import { chanceOf } from '../support/chance.ts'
import { HUNG_MS, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { LeaseWatch, OpenLeases } from './open-leases.ts'
import { noLeases, watchLeases } from './open-leases.ts'
import type { TwoUpstreams } from './two-upstreams.ts'
import { startTwoUpstreams } from './two-upstreams.ts'

const KEYS = 8
/** Less than the time in which a test hangs, so that the test can say what was not released. */
const RELEASED_MS = HUNG_MS / 3
const CALLERS = 64
const CREDIT_NANOS = 1e9
/** So few that time refills hardly any of them: one in ten seconds. */
const TOKENS_A_DAY = 8_640
const REFILLED_PER_SECOND = TOKENS_A_DAY / 86_400
/** The most calls that one key has at the same time. */
const CONCURRENCY = 12
/** How long an attempt may take, unless answers need longer on this machine. */
const WITHIN_MS = 200

export interface Storm {
  readonly seed: number
  readonly calls: number
}

export interface StormResult {
  readonly statuses: ReadonlyMap<number, number>
  readonly outcomes: ReadonlyMap<string, number>
  /** Violations, as text. */
  readonly wrongs: readonly string[]
  readonly open: OpenLeases
  /** The same after a drain in the middle of the calls. */
  readonly drained: OpenLeases
  readonly holds: number
}

/** Answers each request with a random script. */
function answerAtRandom(upstream: FakeUpstream, chance: () => number): { received: number } {
  const counter = { received: 0 }
  const pieces = ['One ', 'two ', 'three ', 'four ']
  const slowly = scripted(function* steps(request) {
    for (const step of streamed(pieces).steps(request)) {
      yield step
      yield wait(chance() * 12)
    }
  })
  const good = [answer('Hello'), answer('Hello there'), streamed(pieces), slowly, slowly]
  const delayed = scripted(function* steps(request) {
    yield wait(chance() * 40)
    yield* answer('At last').steps(request)
  })
  const refusing = [fail(500), fail(503), fail(429, { retryAfter: '0' }), fail(400), fail(404), fail(529)]
  const broken = [resetAfterRequest(), garbage(), silence(), truncatedStream(), resetMidStream(), errorMidStream()]
  const scripts: readonly Script[] = [...good, ...good, ...good, delayed, delayed, delayed, ...refusing, ...broken]
  upstream.decideBy(at => {
    if (at === 'accept') return chance() < 0.01 ? startAt('accept', script(close)) : undefined
    if (at !== 'request') return undefined
    counter.received++
    return scripts[Math.floor(chance() * scripts.length)]
  })
  return counter
}

const models = ['near/echo', 'far/echo', 'smart', 'fair', 'smart', 'fair', 'narrow', 'none/none']

interface RandomCall {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

function randomCall(key: string, chance: () => number): RandomCall {
  const pick = <T>(some: readonly T[]): T => some[Math.floor(chance() * some.length)]!
  const isRepeated = chance() < 0.15
  const model = isRepeated ? 'smart' : pick(models)
  const stream = chance() < 0.5
  const content = `Question ${Math.floor(chance() * (isRepeated ? 2 : 50))}`
  const headers: Record<string, string> = { 'content-type': 'application/json', 'authorization': `Bearer ${key}` }
  if (isRepeated) headers['idempotency-key'] = `${content.slice(-1)}-${stream}`
  if (chance() < 0.05) headers['x-weir-explain'] = 'dry'
  const messages = [{ role: 'user', content }]
  const chatBody = { model, messages, stream, max_tokens: 40 }
  const kind = chance()
  if (kind < 0.02) return { path: '/v1/chat/completions', headers, body: '{' }
  if (kind < 0.05) return { path: '/v1/messages/count_tokens', headers, body: JSON.stringify({ model, messages }) }
  if (kind < 0.25) return { path: '/v1/messages', headers, body: JSON.stringify(chatBody) }
  if (kind < 0.4) {
    const background = chance() < 0.5
    const responsesBody = { model, input: content, stream, background, max_output_tokens: 40 }
    return { path: '/v1/responses', headers, body: JSON.stringify(responsesBody) }
  }
  return { path: '/v1/chat/completions', headers, body: JSON.stringify(chatBody) }
}

/** The status of the call; 0 for a caller that has left. */
async function call(
  upstreams: TwoUpstreams,
  { path, headers, body }: RandomCall,
  chance: () => number,
): Promise<number> {
  if (chance() < 0.3) {
    const caller = openRaw(upstreams.url, post(path, headers, body))
    const leavesMs = chance() < 0.3 ? chance() * 5 : chance() * 80
    await Promise.race([caller.closed, Bun.sleep(leavesMs)])
    caller.leave()
    await caller.closed
    return 0
  }
  const response = await fetch(`${upstreams.url}${path}`, { method: 'POST', headers, body })
  await response.text().catch(() => {})
  return response.status
}

/** How long answers take on this machine when as many callers call at once as in the storm. */
async function measureAnswers(upstreams: TwoUpstreams): Promise<number> {
  const key = await upstreams.key({ qpm: 100_000 })
  const sinceMs = performance.now()
  await Promise.all(Array.from({ length: CALLERS }, async () => (await upstreams.call(key, 'near/echo')).text()))
  return performance.now() - sinceMs
}

async function start(chance: () => number): Promise<TwoUpstreams> {
  const attemptTimes = { firstContentMs: HUNG_MS, wholeMs: HUNG_MS, betweenChunksMs: HUNG_MS }
  const upstreams = await startTwoUpstreams({
    nearKeys: 'n1,n2,n3',
    farKeys: 'f1,f2',
    farFile: { can: { billsWhenLeft: true } },
    env: { LOG_LEVEL: 'error', WEIR_CHECKPOINT_SECONDS: '0' },
    world: {
      random: chance,
      attemptTimes,
      silence: { headMs: 30, heartbeatMs: 20 },
      pause: ms => Bun.sleep(ms / 20),
    },
  })
  // Silence is given up soon. But on a slow machine an answer must not be taken for silence.
  const withinMs = Math.max(WITHIN_MS, 2 * (await measureAnswers(upstreams)))
  Object.assign(attemptTimes, { firstContentMs: withinMs, wholeMs: withinMs, betweenChunksMs: withinMs })
  await upstreams.setRoute('smart', 'near/echo then far/echo')
  await upstreams.setRoute('fair', 'near/echo far/echo', 'least_busy')
  await upstreams.setRoute('narrow', 'far/echo')
  await upstreams.weir('channels set', { channel: channelId('near', 'n1'), concurrency: '2' })
  for (const key of ['f1', 'f2'])
    await upstreams.weir('channels set', { channel: channelId('far', key), concurrency: '3' })
  await upstreams.weir('limits set', { resource: 'concurrency', amount: String(CONCURRENCY), per: 'key' })
  await upstreams.weir('limits set', { resource: 'tokens', amount: `${TOKENS_A_DAY}/day`, per: 'key' })
  return upstreams
}

export async function runStorm({ seed, calls }: Storm): Promise<StormResult> {
  const chance = chanceOf(seed)
  const watch = watchLeases()
  const upstreams = await start(chance)
  try {
    return await stormOn(upstreams, { watch, calls, chance })
  } finally {
    await upstreams.stop()
    watch.end()
  }
}

interface Running {
  readonly watch: LeaseWatch
  readonly calls: number
  readonly chance: () => number
}

async function stormOn(upstreams: TwoUpstreams, { watch, calls, chance }: Running): Promise<StormResult> {
  const recordedBefore = upstreams.recordCount()
  const counters = [answerAtRandom(upstreams.near, chance), answerAtRandom(upstreams.far, chance)]
  const keys: string[] = []
  for (let at = 0; at < KEYS; at++) keys.push(await upstreams.key({ credit: String(CREDIT_NANOS / 1e9), qpm: 100_000 }))
  const penniless = await upstreams.key({ credit: '0', qpm: 100_000 })
  const anyKey = (): string => (chance() < 0.02 ? penniless : keys[Math.floor(chance() * KEYS)]!)
  const statuses = new Map<number, number>()
  let left = calls
  const sinceMs = performance.now()
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (left-- > 0) {
        const status = await call(upstreams, randomCall(anyKey(), chance), chance)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
  )
  await until(() => upstreams.gateway.activeCalls === 0 && upstreams.openHolds() === 0, 'all calls have ended')
  const open = await readReleased(watch)
  const seconds = Math.ceil((performance.now() - sinceMs) / 1_000)
  const records = upstreams.records().slice(recordedBefore)
  const wrongs = [...recordFaults(records), ...(await balanceFaults(upstreams, { keys, records, seconds }))]
  const received = counters.reduce((sum, one) => sum + one.received, 0)
  const attempts = records.reduce((sum, one) => sum + Number(one.attempts), 0)
  if (received > attempts) wrongs.push(`${received} requests upstream of ${attempts} attempts`)
  wrongs.push(...upstreams.logs.slice(0, 5))
  const outcomes = new Map<string, number>()
  for (const { outcome } of records) outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1)
  const drained = await drainMidway(upstreams, { watch, ask: () => randomCall(anyKey(), chance), chance })
  return { statuses, outcomes, wrongs, open, drained, holds: upstreams.openHolds() }
}

interface DrainOptions extends Pick<Running, 'watch' | 'chance'> {
  ask(): RandomCall
}

/** Drains while calls wait in queues, pause before a retry, wait for content and are read. */
async function drainMidway(upstreams: TwoUpstreams, { watch, ask, chance }: DrainOptions): Promise<OpenLeases> {
  const callers = Array.from({ length: 2 * CALLERS }, () => call(upstreams, ask(), chance).catch(() => 0))
  await Bun.sleep(20)
  await upstreams.gateway.drain()
  await Promise.all(callers)
  return await readReleased(watch)
}

/**
 * What is still taken. Token counts and dry runs are no active calls; one whose caller has left may end a moment later, so
 * this waits for them. What is lost is never released, and is returned.
 */
async function readReleased(watch: LeaseWatch): Promise<OpenLeases> {
  await until(() => Bun.deepEquals(watch.read(), noLeases), 'everything is released', RELEASED_MS).catch(() => {})
  return watch.read()
}

type Row = Readonly<Record<string, unknown>>

/** Nano-dollars per token, in and out. */
const rates: Readonly<Record<string, readonly [number, number]>> = { near: [1_000, 2_000], far: [10_000, 20_000] }

/**
 * Each record has the provider whose channel answered, its price, a cost within the hold, and at most three attempts.
 */
function recordFaults(records: readonly Row[]): string[] {
  const wrongs: string[] = []
  const versions = new Map<unknown, unknown>()
  for (const row of records) {
    const summary = `${String(row.outcome)} ${String(row.provider)} ${String(row.channel)}`
    const report = (what: string): void => void wrongs.push(`${what}: ${summary} ${JSON.stringify(row)}`)
    const [input, output] = rates[String(row.provider)] ?? [0, 0]
    if (row.cost !== input * Number(row.input_tokens) + output * Number(row.output_tokens)) report('cost')
    if (row.channel !== null && !String(row.channel).startsWith(String(row.provider))) report('channel')
    if (Number(row.cost) > Number(row.held) || row.shortfall !== 0) report('hold')
    if (Number(row.attempts) > 3) report('attempts')
    if (row.outcome === 'completed' && row.went_hash === null) report('hash')
    if (row.provider === null) continue
    const version = versions.get(row.provider) ?? row.price_version
    versions.set(row.provider, version)
    if (row.price_version !== version) report('price version')
  }
  return wrongs
}

interface Books {
  readonly keys: readonly string[]
  readonly records: readonly Row[]
  readonly seconds: number
}

/** The credit and the day's tokens that are left are what the records leave of them. */
async function balanceFaults(upstreams: TwoUpstreams, { keys, records, seconds }: Books): Promise<string[]> {
  const wrongs: string[] = []
  for (const key of keys) {
    const { id } = await upstreams.weir('keys show', { key })
    const ownRecords = records.filter(({ key_id }) => textId('key', Number(key_id)) === id)
    const sum = (name: string): number => ownRecords.reduce((all, row) => all + Number(row[name]), 0)
    const { balance, held } = await upstreams.balance(key)
    const spent = CREDIT_NANOS - Math.round(Number(balance) * 1e9)
    const cost = sum('cost')
    if (spent !== cost || Number(held) !== 0) wrongs.push(`${id}: spent ${spent}, held ${held}, cost ${cost}`)
    const used = sum('input_tokens') + sum('output_tokens')
    const counted = TOKENS_A_DAY - (await remainingOf(upstreams, key))
    // A call does not get back what time has refilled while it ran; on a busy machine calls run for long.
    const lostToTime = seconds * CONCURRENCY * REFILLED_PER_SECOND
    if (Math.abs(counted - used) > 3 + lostToTime) wrongs.push(`${id}: ${counted} tokens are taken, ${used} were used`)
  }
  return wrongs
}

async function remainingOf(shores: TwoUpstreams, key: string): Promise<number> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'x-weir-explain': 'dry' }
  const body = JSON.stringify({ model: 'near/echo', messages: [{ role: 'user', content: 'Hi' }] })
  const response = await fetch(`${shores.url}/v1/chat/completions`, { method: 'POST', headers, body })
  const { limits } = (await response.json()) as { limits: { resource: string; span: string; remaining: number }[] }
  return limits.find(({ resource }) => resource === 'tokens')!.remaining
}
