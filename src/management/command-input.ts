// Reads what an operator wrote: accounts, keys, amounts, switches. What cannot be read is told in a sentence.

import { parseTextId } from '../base/ids.ts'
import type { Nanos } from '../base/money/money.ts'
import { nanos, parseUsd } from '../base/money/money.ts'
import { digestsOf, parseKey } from '../identity/key-format.ts'
import type { AccountView } from '../store/ledger/books-reader.ts'
import type { OperatorParts } from './command.ts'
import { OperatorError } from './operator-error.ts'

const REFERENCE_CHARS_MAX = 200
const ROWS_DEFAULT = 50
const ROWS_MAX = 1_000

type Finding = Pick<OperatorParts, 'reader' | 'books' | 'pepper'>

/** A key is named by itself or by its id. */
export function keyIdOf(parts: Finding, given: unknown): number {
  const id = findKeyId(parts, given)
  if (id === undefined) throw new OperatorError('There is no such key. Name it by itself (wk-…) or its id (key_…).')
  return id
}

function findKeyId({ reader, books, pepper }: Finding, given: unknown): number | undefined {
  const text = typeof given === 'string' ? given : ''
  const key = parseKey(text)
  if (key !== undefined) return reader.findKeyOfAny(digestsOf(key, pepper))?.row.id
  const id = parseTextId('key', text)
  return id === undefined || books.key(id) === undefined ? undefined : id
}

/** An account is named by its id, by one of its keys, or, if it is one of the operator's own, by its name. */
export function accountOf(parts: Finding, given: unknown): AccountView {
  const text = typeof given === 'string' ? given : ''
  const own = ['revenue', 'promo', 'shortfall', 'clearing'].indexOf(text) + 1
  const keyId = findKeyId(parts, text)
  const keyAccount = keyId === undefined ? undefined : Number(parts.books.key(keyId)!.account_id)
  const id = own > 0 ? own : (keyAccount ?? parseTextId('acc', text))
  const account = id === undefined ? undefined : parts.books.account(id)
  if (account !== undefined) return account
  throw new OperatorError('There is no such account. Name it by its id (acc_…) or by one of its keys (wk-…, key_…).')
}

/** What a budget may be of: a key by its name, an account by its id. */
export function scopeOf(parts: Finding, given: unknown): number {
  const text = typeof given === 'string' ? given : ''
  return text.startsWith('acc_') ? Number(accountOf(parts, text).id) : keyIdOf(parts, text)
}

/** An amount of money, zero allowed. */
export function usdOf(given: unknown, name: string): Nanos {
  const amount = parseUsd(String(given ?? ''))
  if (amount !== undefined) return amount
  throw new OperatorError(
    `${name} must be US dollars such as 5 or 0.25: at most 999999999, with at most nine decimals, and not negative.`,
  )
}

export function positiveUsdOf(given: unknown, name: string): Nanos {
  const amount = usdOf(given, name)
  if (amount === 0n) throw new OperatorError(`${name} must be more than 0.`)
  return amount
}

/** With a sign, as in +5 or -0.25. */
export function signedUsdOf(given: unknown, name: string): Nanos {
  const text = String(given ?? '')
  const amount = positiveUsdOf(text.replace(/^[+-]/, ''), name)
  return text.startsWith('-') ? nanos(-amount) : amount
}

export function switchOf(given: unknown, name: string): boolean | undefined {
  if (given === undefined) return undefined
  if (given === 'on' || given === 'off') return given === 'on'
  throw new OperatorError(`${name} must be on or off.`)
}

export function textOf(given: unknown, name: string, charsMax = REFERENCE_CHARS_MAX): string | undefined {
  if (given === undefined) return undefined
  const text = String(given)
  if (text.length > 0 && text.length <= charsMax && !/\p{Cc}/u.test(text)) return text
  throw new OperatorError(`${name} must have 1 to ${charsMax} characters, none of them a control character.`)
}

export function wholeNumberOf(given: unknown, name: string, range: { otherwise?: number; max: number }): number {
  const text = String(given ?? range.otherwise ?? '')
  const value = Number(text)
  if (/^\d{1,15}$/.test(text) && value >= 1 && value <= range.max) return value
  throw new OperatorError(`${name} must be a whole number from 1 to ${range.max}.`)
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `30m`, `24h`, `7d`; 0 needs no unit. */
export function durationOf(given: unknown, name: string, maxMs: number): number {
  const [, count, unit = 's'] = /^(0|\d{1,9}(?=[smhd]))([smhd])?$/.exec(String(given)) ?? []
  const ms = count === undefined ? Number.NaN : Number(count) * UNITS_MS[unit]!
  if (ms <= maxMs) return ms
  const most = maxMs / UNITS_MS.d!
  throw new OperatorError(`${name} must be a time such as 90s, 30m, 24h or 7d, and at most ${most} days.`)
}

const TIME_MS_MAX = Date.UTC(2100, 0)

/** A day, a time, or so long from now; null for none, undefined where nothing was given. */
export function momentOf(given: unknown, name: string, nowMs: number): number | null | undefined {
  if (given === undefined || given === 'none') return given === undefined ? undefined : null
  const text = String(given)
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  const isDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text)
  const ms = days !== undefined ? nowMs + Number(days) * UNITS_MS.d! : isDate ? Date.parse(text) : Number.NaN
  if (ms > nowMs && ms < TIME_MS_MAX) return ms
  const ways = 'a day such as 2027-01-31 (UTC), a time such as 2027-01-31T12:00Z, a number of days as 90d, or none'
  throw new OperatorError(`${name} must lie ahead: ${ways}.`)
}

export const rowsOf = (given: unknown): number =>
  wholeNumberOf(given, '--limit', { otherwise: ROWS_DEFAULT, max: ROWS_MAX })

export function callIdOf(given: unknown): number {
  const id = parseTextId('req', String(given ?? ''))
  if (id === undefined) throw new OperatorError('Name the call by its id (req_…), as x-request-id tells it.')
  return id
}

/** What to say of a tier that does not exist. */
export async function unknownTier({ desk }: Pick<OperatorParts, 'desk'>, tier: string): Promise<OperatorError> {
  const { rows } = await desk.ask('tiers', { scope: null, filters: {}, sort: 'name', descending: false, limit: 50 })
  return new OperatorError(`There is no tier "${tier}". Tiers: ${rows.map(({ name }) => name).join(', ')}.`)
}
