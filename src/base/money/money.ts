// Money is integer nano-USD in a bigint, and is rounded in one place: bill().

import { assert } from '../assert.ts'
import type { Brand } from '../brand.ts'

export type Nanos = Brand<bigint, 'Nanos'>
export type NanosPerMillion = Brand<bigint, 'NanosPerMillion'>

const INT64_MAX = 2n ** 63n - 1n
const NANOS_PER_USD = 1_000_000_000n

export function nanos(value: bigint): Nanos {
  assert(value >= -INT64_MAX && value <= INT64_MAX, 'money fits in 64 bits')
  return value as Nanos
}

export const noMoney = nanos(0n)

/** Reads a decimal string of USD exactly. Undefined for anything else, or for more than nine decimals. */
export function parseUsd(text: string): Nanos | undefined {
  const match = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text)
  if (!match) return undefined
  return nanos(BigInt(match[1]!) * NANOS_PER_USD + BigInt((match[2] ?? '').padEnd(9, '0')))
}

/** Writes USD with at least two decimals and no trailing zeros beyond them. */
export const formatUsd = (amount: Nanos | NanosPerMillion): string => decimal(amount, 9)

/** From an amount as the store has it: nano-dollars as a bigint, or as its digits. */
export const usdText = (amount: bigint | string): string => formatUsd(nanos(BigInt(amount)))

/** Writes `perMille` thousandths of an amount in USD, exactly. */
export const formatShare = (amount: Nanos | NanosPerMillion, perMille: bigint): string => decimal(amount * perMille, 12)

function decimal(value: bigint, decimals: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  const [whole, fraction] = [digits.slice(0, -decimals), digits.slice(-decimals)]
  return `${value < 0n ? '-' : ''}${whole}.${fraction.slice(0, 2)}${fraction.slice(2).replace(/0+$/, '')}`
}

/** Converts the price of one item (a request, a search) to a rate per million. */
export function rateOfEach(amount: Nanos): NanosPerMillion {
  return (amount * 1_000_000n) as NanosPerMillion
}

/** One line of a bill: a count, and the rate for a million. */
export interface BillLine {
  readonly count: number
  readonly rate: NanosPerMillion
}

export const BILLION = 1_000_000_000n

/** A billion dollars. A higher bill comes from nonsense input, and must still fit into the ledger that refuses it. */
const BILL_MAX = BILLION * NANOS_PER_USD

/** Multiplies first and rounds up once, so that a bill never depends on the order of its lines. */
export function bill(lines: readonly BillLine[], perMille = 1000n): Nanos {
  let sum = 0n
  for (const { count, rate } of lines) if (count !== 0) sum += BigInt(count) * rate
  const amount = (sum * perMille + BILLION - 1n) / BILLION
  return nanos(amount < BILL_MAX ? amount : BILL_MAX)
}

/** The only multiplier with which the lines have this amount, if there is one. */
export function findMultiplier(lines: readonly BillLine[], amount: bigint): bigint | 'several' | undefined {
  const fits = (multiplier: bigint): boolean => bill(lines, multiplier) === amount
  let sum = 0n
  for (const { count, rate } of lines) sum += BigInt(count) * rate
  if (sum === 0n) return amount === 0n ? 'several' : undefined
  const largest = (amount * BILLION) / sum
  // A charge of zero says nothing about the multiplier.
  if (largest === 0n || !fits(largest)) return undefined
  return fits(largest - 1n) ? 'several' : largest
}
