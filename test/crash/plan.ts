// What each call of the crash harness does, decided by a seed and the number of the call. Caller and upstream compute the
// same plan, so that only the tag of the call has to travel between them.

/** The sequence depends on the seed alone. */
export function buildRandom(seed: number): () => number {
  let state = seed >>> 0
  return function next() {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
}

/** Tokens as the upstream reports them: `input` includes what was cached. */
export interface Counts {
  readonly input: number
  readonly cached: number
  readonly output: number
}

export interface CallPlan {
  /** Sent as the field `user`, so that the record of the gateway and the upstream have it. */
  readonly tag: string
  /** Which of the harness's keys pays. */
  readonly key: number
  readonly stream: boolean
  readonly outputMax: number
  readonly pieces: readonly string[]
  readonly usage: Counts
  /** Before the first byte of the answer, and between its pieces. */
  readonly firstMs: number
  readonly pieceMs: number
  /** The caller gives up after this long. */
  readonly leavesMs?: number
  /** The caller gives up when the first content has come, however slow the machine is. */
  readonly leavesAtContent?: boolean
  /** The upstream refuses every attempt. */
  readonly fails: boolean
  /** Sent with an idempotency key, and again until it is answered. */
  readonly named: boolean
}

/** Most calls share the first account, so that they compete; then one with a budget, one that a run empties, and one that
 * lives by payments. */
export const credits = ['500', '200', '0.02', '0.0002'] as const
export const poorKey = 3
/** Budgets by key: half of a large run exhausts this one. */
export const budgets: Readonly<Record<number, string>> = { 1: '0.3' }

/** How many calls in a thousand have each property. */
export interface Shares {
  readonly stream: number
  /** By key. */
  readonly keys: readonly number[]
  /** The provider ignores the cap of the call. */
  readonly excess: number
  /** The same for the key that lives by payments, where the excess is the operator's loss. */
  readonly poorExcess: number
  /** Among streams: with pauses between the pieces. */
  readonly slow: number
  /** Among streams: past its first checkpoint, if the gateway lives that long. */
  readonly long: number
  /** Among the calls of the keys with little money. */
  readonly sliced: number
  /** The caller gives up. */
  readonly leaves: number
  readonly fails: number
  readonly named: number
}

export const generalShares: Shares = {
  stream: 500,
  keys: [650, 200, 70, 80],
  excess: 20,
  poorExcess: 200,
  slow: 300,
  long: 20,
  sliced: 400,
  leaves: 120,
  fails: 30,
  named: 80,
}

function keyOfMille(mille: number, shares: readonly number[]): number {
  let bound = 0
  return shares.findIndex(share => mille < (bound += share))
}

const TAG = /^c(\d+)$/
export const tagOf = (call: number): string => `c${call}`

export function planOfTag(seed: number, tag: string, shares?: Shares): CallPlan | undefined {
  const call = TAG.exec(tag)?.[1]
  return call === undefined ? undefined : planCall(seed, Number(call), shares)
}

/** Many small pieces: what a checkpoint may charge for them is far below the hold. */
const LONG_PIECES: readonly string[] = Array.from({ length: 40 }, () => 'w ')

/** An answer of several slices: 400 tokens, of which a poor account can pay some. */
const SLICED_PIECES: readonly string[] = Array.from({ length: 80 }, () => 'wordwordwordwordword')
const SLICED_TOKENS = 400

export function planCall(seed: number, call: number, shares: Shares = generalShares): CallPlan {
  const next = buildRandom(Math.imul(seed, 0x01000193) ^ Math.imul(call, 0x9e3779b1))
  const below = (bound: number): number => Math.floor(next() * bound)
  const chance = (mille: number): boolean => below(1_000) < mille
  const stream = chance(shares.stream)
  const shortOutputMax = 16 + below(48)
  const input = 5 + below(60)
  const key = keyOfMille(below(1_000), shares.keys)
  const shortOutput = chance(key === poorKey ? shares.poorExcess : shares.excess)
    ? shortOutputMax * 100
    : 1 + below(shortOutputMax)
  const slow = stream && chance(shares.slow)
  const long = stream && chance(shares.long)
  const shortPieces = Array.from({ length: 1 + below(8) }, (_, index) => `word${call}-${index} `)
  const sliced = key >= 2 && chance(shares.sliced)
  const pieces = sliced ? SLICED_PIECES : long ? LONG_PIECES : shortPieces
  const outputMax = sliced ? 2_000 : shortOutputMax
  const output = sliced ? SLICED_TOKENS : shortOutput
  return {
    tag: tagOf(call),
    key,
    stream,
    outputMax,
    pieces,
    usage: { input, cached: chance(300) ? below(input) : 0, output },
    firstMs: chance(300) ? below(30) : 0,
    pieceMs: long ? 80 : slow ? 5 + below(60) : 0,
    ...(chance(shares.leaves) && !long && (slow ? { leavesAtContent: true } : { leavesMs: below(60) })),
    fails: chance(shares.fails),
    named: chance(shares.named),
  }
}
