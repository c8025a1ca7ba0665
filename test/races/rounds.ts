// Many callers at once and not enough for all, directly at the ledger: a real file, the real writer thread. Each round
// returns what went wrong as text; afterwards the ledger itself is checked by the rules of the crash tests.

import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildIdMinter } from '../../src/base/ids.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import type { HoldInput, HoldResult, RecordRow } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { readBooks, readOverdrawn } from '../crash/books.ts'
import { judgeBooks } from '../crash/laws.ts'
import { buildRandom } from '../crash/plan.ts'

export interface RoundsOptions {
  readonly rounds: number
  readonly seed: number
  readonly races?: readonly RaceName[]
}

interface RaceContext {
  readonly writer: Pick<Writer, 'run'>
  readonly callers: number
  mintId(): number
  below(bound: number): number
  /** The accounts that are overdrawn at this moment. */
  overdrawn(): string[]
}

interface Key {
  readonly id: number
  readonly accountId: number
}

/** Returns an error of the ledger as a result, which no race expects. */
const asResult = (fault: Error): never => ({ done: fault.message }) as never

type Race = (context: RaceContext) => Promise<string[]>

const CALLERS = 500
const REDEEMERS = 200

/** Runs each race so often, on one file, and returns the violations. */
export async function runRounds({ rounds, seed, races: named }: RoundsOptions): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-races-'))
  const path = join(folder, 'weir.db')
  const random = buildRandom(seed)
  let lost = ''
  // On a slow machine no hold is refused because the queue is too old.
  const [writer] = await Writer.open(
    { path, ballastBytes: 0 },
    detail => (lost = detail),
    () => 0,
  )
  const context: RaceContext = {
    writer: { run: ((...job: Parameters<Writer['run']>) => writer.run(...job).catch(asResult)) as Writer['run'] },
    callers: CALLERS,
    mintId: buildIdMinter(Date.now),
    below: bound => Math.floor(random() * bound),
    overdrawn: () => readOverdrawn(path).map(id => `${id} is overdrawn`),
  }
  const violations: string[] = []
  try {
    for (let round = 1; round <= rounds && violations.length === 0; round++) {
      for (const name of named ?? raceNames) {
        for (const violation of await races[name](context)) violations.push(`${name}, round ${round}: ${violation}`)
      }
    }
    violations.push(...judgeBooks(readBooks(path, { call: 0, seq: 0 })))
    if (lost !== '') violations.push(`the ledger's thread was lost: ${lost}`)
    return violations
  } finally {
    await writer.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Money for exactly so many calls. */
async function fundsRace(context: RaceContext): Promise<string[]> {
  const { amount, enough } = drawAmounts(context)
  const key = await createKey(context, amount * BigInt(enough) + BigInt(context.below(Number(amount))))
  return await holdAtOnce({ context, key, amount, enough, refusal: 'balance_too_low' })
}

const budgetRace = (scope: 'id' | 'accountId'): Race =>
  async function race(context) {
    const { amount, enough } = drawAmounts(context)
    const key = await createKey(context, 2n * amount * BigInt(context.callers))
    const cap = `${amount * BigInt(enough) + BigInt(context.below(Number(amount)))}` as const
    for (const span of ['total', 'day', 'month'] as const) {
      await context.writer.run('setBudget', { scopeId: key[scope], span, cap }, { actor: 'test' })
    }
    return await holdAtOnce({ context, key, amount, enough, refusal: 'budget_too_low' })
  }

/** One code that all callers know. */
async function codeRace(context: RaceContext): Promise<string[]> {
  const worth = BigInt(1 + context.below(1_000_000))
  const id = context.mintId()
  const digest = createHash('sha256').update(`code ${id}`).digest('hex')
  const digests = [digest]
  const batch = { pepper: 'aabbccdd', batch: 'race', amount: `${worth}`, author: 'race', expiresMs: null } as const
  await context.writer.run('createCodes', { ...batch, codes: [{ id, digest }] }, { actor: 'test' })
  const keys = await inTurn(20, () => createKey(context, 0n))
  const results = await atOnce(REDEEMERS, index =>
    context.writer.run('redeemCode', { digests, accountId: keys[index % keys.length]!.accountId }, { actor: 'test' }),
  )
  return [...expectCount(results, 'redeemed', 1), ...expectCount(results, 'code_used', REDEEMERS - 1)]
}

/** One idempotency key for the same call: one call runs, and the others learn that it is running or finished. */
async function nameRace(context: RaceContext): Promise<string[]> {
  const amount = 1_000n
  const key = await createKey(context, amount * BigInt(2 * context.callers))
  const fingerprint = createHash('sha256').update(`body ${key.id}`).digest('hex')
  const idempotency = { name: 'once', fingerprint }
  const ids = Array.from({ length: context.callers }, () => context.mintId())
  const results = await atOnce(context.callers, async index => {
    const held = await hold(context, key, { callId: ids[index]!, amount, idempotency })
    if (held.done === 'held') {
      await context.writer.run('settle', { ...ended(key, ids[index]!, 700n), idempotency: { sealed: null } })
    }
    return held
  })
  const later = await hold(context, key, { callId: context.mintId(), amount, idempotency })
  return [
    ...expectCount(results, 'held', 1),
    ...expectCount(results, ['running', 'finished'], context.callers - 1),
    ...expectCount([later], 'finished', 1),
  ]
}

/** Settles are repeated, as after a lost answer: many times at once, and once more at the end. */
async function repeatRace(context: RaceContext): Promise<string[]> {
  const amount = BigInt(1_000 + context.below(100_000))
  const key = await createKey(context, amount * 100n)
  const ids = Array.from({ length: 50 }, () => context.mintId())
  await Promise.all(ids.map(callId => hold(context, key, { callId, amount })))
  const settle = (callId: number) => context.writer.run('settle', ended(key, callId, amount / 2n))
  const first = (await atOnce(10, () => Promise.all(ids.map(settle)))).flat()
  const repeated = await Promise.all(ids.map(settle))
  const topUp = { kind: 'top_up', accountId: key.accountId, amount: '5', author: 'race' } as const
  const posted = await atOnce(20, () =>
    context.writer.run('post', { ...topUp, ref: context.mintId(), reference: `invoice ${key.id}` }, { actor: 'test' }),
  )
  return [
    ...expectCount(first, 'settled', ids.length),
    ...expectCount(first, 'exists', 9 * ids.length),
    ...expectCount(repeated, 'exists', ids.length),
    ...expectCount(posted, 'posted', 1),
    ...expectCount(posted, 'exists', 19),
  ]
}

export const races = {
  'funds': fundsRace,
  "a key's budget": budgetRace('id'),
  "an account's budget": budgetRace('accountId'),
  'one code': codeRace,
  'one idempotency key': nameRace,
  'repeated settles': repeatRace,
} as const satisfies Record<string, Race>

export type RaceName = keyof typeof races
export const raceNames = Object.keys(races) as RaceName[]

interface HoldRace {
  readonly context: RaceContext
  readonly key: Key
  readonly amount: bigint
  readonly enough: number
  readonly refusal: HoldResult['done']
}

/** All callers ask for a hold, as many get one as are covered, and released holds are available to as many others. */
async function holdAtOnce({ context, key, amount, enough, refusal }: HoldRace): Promise<string[]> {
  const { callers, writer } = context
  const holdAll = async (): Promise<readonly [first: readonly HoldResult[], admitted: number[]]> => {
    const ids = Array.from({ length: callers }, () => context.mintId())
    const results = await Promise.all(ids.map(callId => hold(context, key, { callId, amount })))
    return [results, ids.filter((_, index) => results[index]!.done === 'held')]
  }
  const [first, admitted] = await holdAll()
  const overdrawn = context.overdrawn()
  const freed = 1 + context.below(enough)
  const leaving = admitted.splice(0, freed).map(callId => writer.run('settle', ended(key, callId, 0n)))
  const [second, admittedLater] = await holdAll()
  overdrawn.push(...context.overdrawn())
  const rest = [...admitted, ...admittedLater]
  const costs = rest.map(() => BigInt(context.below(Number(amount) + 1)))
  const settles = rest.map((callId, index) => writer.run('settle', ended(key, callId, costs[index]!)))
  await Promise.all([...leaving, ...settles])
  return [
    ...overdrawn,
    ...expectCount(first, 'held', enough),
    ...expectCount(first, refusal, callers - enough),
    ...expectCount(second, 'held', freed),
    ...expectCount(second, refusal, callers - freed),
  ]
}

function drawAmounts(context: RaceContext): { amount: bigint; enough: number } {
  return { amount: BigInt(1_000 + context.below(1_000_000)), enough: 1 + context.below(context.callers - 1) }
}

async function createKey({ writer, mintId }: RaceContext, credit: bigint): Promise<Key> {
  const [accountId, creditRef, id] = [mintId(), mintId(), mintId()]
  const digest = createHash('sha256').update(`key ${id}`).digest('hex')
  const named = { existing: false, pepper: 'aabbccdd', suffix: '', name: 'race', tier: 'pro', qpm: null }
  await writer.run('createKey', { ...named, id, accountId, creditRef, digest, credit: `${credit}` }, { actor: 'test' })
  return { id, accountId }
}

type HoldRequest = Pick<HoldInput, 'callId' | 'idempotency'> & { readonly amount: bigint }

function hold({ writer }: RaceContext, key: Key, { amount, ...request }: HoldRequest): Promise<HoldResult> {
  const text: MoneyText = `${amount}`
  const owner = { kind: 'call', accountId: key.accountId, keyId: key.id, draft } as const
  return writer.run('hold', { ...owner, ...request, amount: text, wants: text })
}

const draft = {
  dialect: 'openai-chat',
  provider: 'race',
  model: 'race',
  streamed: false,
  priceVersion: null,
  endUser: null,
  tags: null,
}

function ended(key: Key, callId: number, cost: bigint): { record: RecordRow; cost: MoneyText } {
  const usage = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  const emptyFields = {
    channel: null,
    error: null,
    lines: null,
    attempts: null,
    timings: null,
    firstContentMs: null,
    durationMs: 0,
  }
  const judged = { status: 200, outcome: 'completed', rule: 'race', usageSource: 'reported' }
  const record = { ...draft, ...usage, ...emptyFields, ...judged, callId, keyId: key.id, accountId: key.accountId }
  return { record, cost: `${cost}` }
}

const atOnce = <Result>(count: number, run: (index: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => run(index)))

async function inTurn<Result>(count: number, run: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  while (results.length < count) results.push(await run())
  return results
}

function expectCount(results: readonly { done: string }[], done: string | readonly string[], count: number): string[] {
  const wanted = typeof done === 'string' ? [done] : done
  const actual = results.filter(result => wanted.includes(result.done)).length
  return actual === count ? [] : [`${actual} instead of ${count} were ${wanted.join(' or ')}`]
}
