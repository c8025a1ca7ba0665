// Thousands of calls of every kind against upstreams that do anything they like, by callers that leave whenever they
// like; and what must be true when all of it is over.

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
import { until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { LeaseWatch, OpenLeases } from './open-leases.ts'
import { watchLeases } from './open-leases.ts'
import type { Shores } from './shores.ts'
import { startShores } from './shores.ts'

const KEYS = 8
const CALLERS = 64
const CREDIT_NANOS = 1e9
/** So few that time gives hardly any of them back: one in ten seconds. */
const TOKENS_A_DAY = 8_640
const WITHIN_MS = 200

export interface Storm {
  readonly seed: number
  readonly calls: number
}

export interface Calm {
  readonly statuses: ReadonlyMap<number, number>
  readonly outcomes: ReadonlyMap<string, number>
  /** What should not be, in words. */
  readonly wrongs: readonly string[]
  readonly open: OpenLeases
  /** The same after a drain in the middle of it all. */
  readonly drained: OpenLeases
  readonly holds: number
}

/** A script of its own for each request. */
function whims(upstream: FakeUpstream, chance: () => number): { asked: number } {
  const seen = { asked: 0 }
  const pieces = ['One ', 'two ', 'three ', 'four ']
  const slowly = scripted(function* steps(request) {
    for (const step of streamed(pieces).steps(request)) {
      yield step
      yield wait(chance() * 12)
    }
  })
  const good = [answer('Hello'), answer('Hello there'), streamed(pieces), slowly, slowly]
  const late = scripted(function* steps(request) {
    yield wait(chance() * 40)
    yield* answer('At last').steps(request)
  })
  const refusing = [fail(500), fail(503), fail(429, { retryAfter: '0' }), fail(400), fail(404), fail(529)]
  const broken = [resetAfterRequest(), garbage(), silence(), truncatedStream(), resetMidStream(), errorMidStream()]
  const all: readonly Script[] = [...good, ...good, ...good, late, late, late, ...refusing, ...broken]
  upstream.decideBy(at => {
    if (at === 'accept') return chance() < 0.01 ? startAt('accept', script(close)) : undefined
    if (at !== 'request') return undefined
    seen.asked++
    return all[Math.floor(chance() * all.length)]
  })
  return seen
}

const models = ['near/echo', 'far/echo', 'smart', 'fair', 'smart', 'fair', 'narrow', 'none/none']

interface Ask {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

function anyAsk(key: string, chance: () => number): Ask {
  const pick = <T>(some: readonly T[]): T => some[Math.floor(chance() * some.length)]!
  const isRepeated = chance() < 0.15
  const model = isRepeated ? 'smart' : pick(models)
  const stream = chance() < 0.5
  const content = `Question ${Math.floor(chance() * (isRepeated ? 2 : 50))}`
  const headers: Record<string, string> = { 'content-type': 'application/json', 'authorization': `Bearer ${key}` }
  if (isRepeated) headers['idempotency-key'] = `${content.slice(-1)}-${stream}`
  if (chance() < 0.05) headers['x-weir-explain'] = 'dry'
  const messages = [{ role: 'user', content }]
  const talk = { model, messages, stream, max_tokens: 40 }
  const kind = chance()
  if (kind < 0.02) return { path: '/v1/chat/completions', headers, body: '{' }
  if (kind < 0.05) return { path: '/v1/messages/count_tokens', headers, body: JSON.stringify({ model, messages }) }
  if (kind < 0.25) return { path: '/v1/messages', headers, body: JSON.stringify(talk) }
  if (kind < 0.4) {
    const background = chance() < 0.5
    const asked = { model, input: content, stream, background, max_output_tokens: 40 }
    return { path: '/v1/responses', headers, body: JSON.stringify(asked) }
  }
  return { path: '/v1/chat/completions', headers, body: JSON.stringify(talk) }
}

/** Its status; 0 for a caller that has left. */
async function call(shores: Shores, { path, headers, body }: Ask, chance: () => number): Promise<number> {
  if (chance() < 0.3) {
    const caller = openRaw(shores.url, post(path, headers, body))
    const leavesMs = chance() < 0.3 ? chance() * 5 : chance() * 80
    await Promise.race([caller.closed, Bun.sleep(leavesMs)])
    caller.leave()
    await caller.closed
    return 0
  }
  const response = await fetch(`${shores.url}${path}`, { method: 'POST', headers, body })
  await response.text().catch(() => {})
  return response.status
}

async function start(chance: () => number): Promise<Shores> {
  const shores = await startShores({
    nearKeys: 'n1,n2,n3',
    farKeys: 'f1,f2',
    farFile: { can: { billsWhenLeft: true } },
    env: { LOG_LEVEL: 'error', WEIR_CHECKPOINT_SECONDS: '0' },
    world: {
      random: chance,
      attemptTimes: { firstContentMs: WITHIN_MS, wholeMs: WITHIN_MS, betweenChunksMs: WITHIN_MS },
      silence: { headMs: 30, heartbeatMs: 20 },
      pause: ms => Bun.sleep(ms / 20),
    },
  })
  await shores.name('smart', 'near/echo then far/echo')
  await shores.name('fair', 'near/echo far/echo', 'least_busy')
  await shores.name('narrow', 'far/echo')
  await shores.weir('channels set', { channel: channelId('near', 'n1'), concurrency: '2' })
  for (const key of ['f1', 'f2'])
    await shores.weir('channels set', { channel: channelId('far', key), concurrency: '3' })
  await shores.weir('limits set', { resource: 'concurrency', amount: '12', per: 'key' })
  await shores.weir('limits set', { resource: 'tokens', amount: `${TOKENS_A_DAY}/day`, per: 'key' })
  return shores
}

export async function runStorm({ seed, calls }: Storm): Promise<Calm> {
  const chance = chanceOf(seed)
  const watch = watchLeases()
  const shores = await start(chance)
  try {
    return await stormOn(shores, { watch, calls, chance })
  } finally {
    await shores.stop()
    watch.end()
  }
}

interface Running {
  readonly watch: LeaseWatch
  readonly calls: number
  readonly chance: () => number
}

async function stormOn(shores: Shores, { watch, calls, chance }: Running): Promise<Calm> {
  const seen = [whims(shores.near, chance), whims(shores.far, chance)]
  const keys: string[] = []
  for (let at = 0; at < KEYS; at++) keys.push(await shores.key({ credit: String(CREDIT_NANOS / 1e9), qpm: 100_000 }))
  const poor = await shores.key({ credit: '0', qpm: 100_000 })
  const anyKey = (): string => (chance() < 0.02 ? poor : keys[Math.floor(chance() * KEYS)]!)
  const statuses = new Map<number, number>()
  let left = calls
  const sinceMs = performance.now()
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (left-- > 0) {
        const status = await call(shores, anyAsk(anyKey(), chance), chance)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
  )
  await until(() => shores.gateway.activeCalls === 0 && shores.openHolds() === 0, 'all are over')
  const open = watch.read()
  const seconds = Math.ceil((performance.now() - sinceMs) / 1_000)
  const records = shores.records()
  const wrongs = [...recordsWrong(records), ...(await booksWrong(shores, { keys, records, seconds }))]
  const asked = seen.reduce((sum, one) => sum + one.asked, 0)
  const attempts = records.reduce((sum, one) => sum + Number(one.attempts), 0)
  if (asked > attempts) wrongs.push(`${asked} requests upstream of ${attempts} attempts`)
  wrongs.push(...shores.logs.slice(0, 5))
  const outcomes = new Map<string, number>()
  for (const { outcome } of records) outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1)
  const drained = await drainAmid(shores, { watch, ask: () => anyAsk(anyKey(), chance), chance })
  return { statuses, outcomes, wrongs, open, drained, holds: shores.openHolds() }
}

interface Amid extends Pick<Running, 'watch' | 'chance'> {
  ask(): Ask
}

/** Stops while calls wait in line, pause before they are tried again, wait for content and are read. */
async function drainAmid(shores: Shores, { watch, ask, chance }: Amid): Promise<OpenLeases> {
  const callers = Array.from({ length: 2 * CALLERS }, () => call(shores, ask(), chance).catch(() => 0))
  await Bun.sleep(20)
  await shores.gateway.drain()
  await Promise.all(callers)
  return watch.read()
}

type Row = Readonly<Record<string, unknown>>

/** Nanos a token, in and out. */
const rates: Readonly<Record<string, readonly [number, number]>> = { near: [1_000, 2_000], far: [10_000, 20_000] }

/** Each is of the provider whose channel answered, at its price, within what was held, after at most three attempts. */
function recordsWrong(records: readonly Row[]): string[] {
  const wrongs: string[] = []
  const versions = new Map<unknown, unknown>()
  for (const row of records) {
    const of = `${String(row.outcome)} ${String(row.provider)} ${String(row.channel)}`
    const wrong = (what: string): void => void wrongs.push(`${what}: ${of} ${JSON.stringify(row)}`)
    const [input, output] = rates[String(row.provider)] ?? [0, 0]
    if (row.cost !== input * Number(row.input_tokens) + output * Number(row.output_tokens)) wrong('cost')
    if (row.channel !== null && !String(row.channel).startsWith(String(row.provider))) wrong('channel')
    if (Number(row.cost) > Number(row.held) || row.shortfall !== 0) wrong('hold')
    if (Number(row.attempts) > 3) wrong('attempts')
    if (row.outcome === 'completed' && row.went_hash === null) wrong('hash')
    if (row.provider === null) continue
    const version = versions.get(row.provider) ?? row.price_version
    versions.set(row.provider, version)
    if (row.price_version !== version) wrong('price version')
  }
  return wrongs
}

interface Books {
  readonly keys: readonly string[]
  readonly records: readonly Row[]
  readonly seconds: number
}

/** What is left of the credit and of the day's tokens is what the records leave of it. */
async function booksWrong(shores: Shores, { keys, records, seconds }: Books): Promise<string[]> {
  const wrongs: string[] = []
  for (const key of keys) {
    const { id } = await shores.weir('keys show', { key })
    const own = records.filter(({ key_id }) => textId('key', Number(key_id)) === id)
    const sum = (name: string): number => own.reduce((all, row) => all + Number(row[name]), 0)
    const { balance, held } = await shores.balance(key)
    const spent = CREDIT_NANOS - Math.round(Number(balance) * 1e9)
    const cost = sum('cost')
    if (spent !== cost || Number(held) !== 0) wrongs.push(`${id}: spent ${spent}, held ${held}, cost ${cost}`)
    const used = sum('input_tokens') + sum('output_tokens')
    const taken = TOKENS_A_DAY - (await remainingOf(shores, key))
    // What time has paid of one call, another may not get back.
    if (Math.abs(taken - used) > 3 + seconds / 5) wrongs.push(`${id}: ${taken} tokens are taken, ${used} were used`)
  }
  return wrongs
}

async function remainingOf(shores: Shores, key: string): Promise<number> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'x-weir-explain': 'dry' }
  const body = JSON.stringify({ model: 'near/echo', messages: [{ role: 'user', content: 'Hi' }] })
  const response = await fetch(`${shores.url}/v1/chat/completions`, { method: 'POST', headers, body })
  const { limits } = (await response.json()) as { limits: { resource: string; span: string; remaining: number }[] }
  return limits.find(({ resource }) => resource === 'tokens')!.remaining
}
