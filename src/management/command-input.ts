// Parses the input of operator commands: accounts, keys, amounts, switches. Invalid input throws an OperatorError with
// one sentence for the operator.

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

type LookupParts = Pick<OperatorParts, 'reader' | 'books' | 'pepper'>

/** Accepts the text of a key or its id. */
export function resolveKeyId(parts: LookupParts, input: unknown): number {
  const id = findKeyId(parts, input)
  if (id === undefined) throw new OperatorError('Unknown key. Use the key itself (wk-…) or its id (key_…).')
  return id
}

function findKeyId({ reader, books, pepper }: LookupParts, input: unknown): number | undefined {
  const text = typeof input === 'string' ? input : ''
  const key = parseKey(text)
  if (key !== undefined) return reader.findKeyOfAny(digestsOf(key, pepper))?.row.id
  const id = parseTextId('key', text)
  return id === undefined || books.key(id) === undefined ? undefined : id
}

/** Accepts the id of an account, one of its keys, or the name of one of the operator's own accounts. */
export function resolveAccount(parts: LookupParts, input: unknown): AccountView {
  const text = typeof input === 'string' ? input : ''
  const systemId = ['revenue', 'promo', 'shortfall', 'clearing'].indexOf(text) + 1
  const keyId = findKeyId(parts, text)
  const keyAccount = keyId === undefined ? undefined : parts.books.key(keyId)!.accountId
  const id = systemId > 0 ? systemId : (keyAccount ?? parseTextId('acc', text))
  const account = id === undefined ? undefined : parts.books.account(id)
  if (account !== undefined) return account
  throw new OperatorError('Unknown account. Use its id (acc_…) or one of its keys (wk-…, key_…).')
}

/** Parses the owner of a budget: a key (wk-…, key_…) or an account (acc_…). */
export function resolveBudgetOwner(parts: LookupParts, input: unknown): number {
  const text = typeof input === 'string' ? input : ''
  return text.startsWith('acc_') ? Number(resolveAccount(parts, text).id) : resolveKeyId(parts, text)
}

/** Parses an amount of money; zero is allowed. */
export function parseUsdAmount(input: unknown, name: string): Nanos {
  const amount = parseUsd(String(input ?? ''))
  if (amount !== undefined) return amount
  throw new OperatorError(
    `${name} must be US dollars such as 5 or 0.25: at most 999999999, with at most nine decimals, and not negative.`,
  )
}

export function parsePositiveUsd(input: unknown, name: string): Nanos {
  const amount = parseUsdAmount(input, name)
  if (amount === 0n) throw new OperatorError(`${name} must be more than 0.`)
  return amount
}

/** Parses an amount with an optional sign, as in +5 or -0.25. */
export function parseSignedUsd(input: unknown, name: string): Nanos {
  const text = String(input ?? '')
  const amount = parsePositiveUsd(text.replace(/^[+-]/, ''), name)
  return text.startsWith('-') ? nanos(-amount) : amount
}

export function parseSwitch(input: unknown, name: string): boolean | undefined {
  if (input === undefined) return undefined
  if (input === 'on' || input === 'off') return input === 'on'
  throw new OperatorError(`${name} must be on or off.`)
}

export function parseTextOption(input: unknown, name: string, charsMax = REFERENCE_CHARS_MAX): string | undefined {
  if (input === undefined) return undefined
  const text = String(input)
  if (text.length > 0 && text.length <= charsMax && !/\p{Cc}/u.test(text)) return text
  throw new OperatorError(`${name} must have 1 to ${charsMax} characters, none of them a control character.`)
}

export function parseWholeNumber(input: unknown, name: string, range: { otherwise?: number; max: number }): number {
  const text = String(input ?? range.otherwise ?? '')
  const value = Number(text)
  if (/^\d{1,15}$/.test(text) && value >= 1 && value <= range.max) return value
  throw new OperatorError(`${name} must be a whole number from 1 to ${range.max}.`)
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `30m`, `24h`, `7d`; 0 needs no unit. */
export function parseDuration(input: unknown, name: string, maxMs: number): number {
  const [, count, unit = 's'] = /^(0|\d{1,9}(?=[smhd]))([smhd])?$/.exec(String(input)) ?? []
  const ms = count === undefined ? Number.NaN : Number(count) * UNITS_MS[unit]!
  if (ms <= maxMs) return ms
  const daysMax = maxMs / UNITS_MS.d!
  throw new OperatorError(`${name} must be a duration such as 90s, 30m, 24h or 7d, and at most ${daysMax} days.`)
}

const TIME_MS_MAX = Date.UTC(2100, 0)

/** Parses a day, a time, or a number of days from now. Null: none. Undefined: no input. */
export function parseMoment(input: unknown, name: string, nowMs: number): number | null | undefined {
  if (input === undefined || input === 'none') return input === undefined ? undefined : null
  const text = String(input)
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  const isDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text)
  const ms = days !== undefined ? nowMs + Number(days) * UNITS_MS.d! : isDate ? Date.parse(text) : Number.NaN
  if (ms > nowMs && ms < TIME_MS_MAX) return ms
  const forms =
    'a day such as 2027-01-31 (UTC), a time such as 2027-01-31T12:00Z, a number of days such as 90d, or none'
  throw new OperatorError(`${name} must be in the future: ${forms}.`)
}

export const parseRowLimit = (input: unknown): number =>
  parseWholeNumber(input, '--limit', { otherwise: ROWS_DEFAULT, max: ROWS_MAX })

export function parseCallId(input: unknown): number {
  const id = parseTextId('req', String(input ?? ''))
  if (id === undefined)
    throw new OperatorError('Use the id of the call (req_…), which callers get in the header x-request-id.')
  return id
}

/** The error for an unknown tier. It lists the tiers. */
export async function unknownTierError(
  { queryWorker }: Pick<OperatorParts, 'queryWorker'>,
  tier: string,
): Promise<OperatorError> {
  const { rows } = await queryWorker.query('tiers', {
    scope: null,
    filters: {},
    sort: 'name',
    descending: false,
    limit: 50,
  })
  return new OperatorError(`Unknown tier "${tier}". Tiers: ${rows.map(({ name }) => name).join(', ')}.`)
}
