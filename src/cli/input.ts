// Converts the arguments of commands into the fields of requests: `on`, `none`, lists, days, durations. The endpoint
// checks the values.

import { resolve } from 'node:path'
import { bounds } from '../base/bounds.ts'
import type { CommandFields } from './connect.ts'
import { Problem, UsageProblem } from './problem.ts'
import type { Send } from './send.ts'

const NONE = 'none'
const DAY_MS = 86_400_000

/** A value of an option; undefined: the option was not used. */
type Given = unknown

export const text = (given: Given): string => (typeof given === 'string' ? given : String(given ?? ''))

export const ON_OFF: readonly string[] = ['on', 'off']

/** `on` or `off`. */
export function parseSwitch(given: Given, name: string): boolean | undefined {
  if (given === undefined) return undefined
  if (ON_OFF.includes(text(given))) return given === 'on'
  throw new UsageProblem(`${name} must be on or off.`)
}

/** A number; null for `none`. */
export function parseNumber(given: Given, name: string): number | null | undefined {
  if (given === undefined || given === NONE) return given === undefined ? undefined : null
  if (/^\d{1,15}$/.test(text(given))) return Number(given)
  throw new UsageProblem(
    /^\d+$/.test(text(given)) ? `${name} is too large.` : `${name} must be a whole number, not negative.`,
  )
}

/** The words of a list that is separated by commas. */
export const splitList = (given: Given): readonly string[] =>
  text(given)
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')

/** A list without repetitions; null for `none` and for an empty list. */
export function parseList(given: Given): readonly string[] | null | undefined {
  if (given === undefined) return undefined
  const words = given === NONE ? [] : [...new Set(splitList(given))]
  return words.length === 0 ? null : words
}

export const orNone = (given: Given): unknown => (given === NONE ? null : given)

const UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** `90s`, `30m`, `24h`, `7d`; 0 needs no unit. */
export function parseSeconds(given: Given, name: string): number | undefined {
  if (given === undefined) return undefined
  const [, count, unit = 's'] = /^(0|\d{1,9}(?=[smhd]))([smhd])?$/.exec(text(given)) ?? []
  if (count !== undefined) return Number(count) * UNITS_SECONDS[unit]!
  throw new UsageProblem(`${name} must be a duration such as 90s, 30m, 24h or 7d.`)
}

const OVERLAP_DAYS_MAX = bounds.keyOverlapMsMax / DAY_MS

/** How long the old text of a key or a service token stays valid. */
export function parseOverlap(given: Given): number | undefined {
  const seconds = parseSeconds(given, '--overlap')
  if (seconds === undefined || seconds * 1_000 <= bounds.keyOverlapMsMax) return seconds
  throw new UsageProblem(`--overlap must be at most ${OVERLAP_DAYS_MAX}d.`)
}

/** A day, a time, or a number of days from now; null for `none`. */
export function parseMoment(given: Given, name: string): string | null | undefined {
  if (given === undefined || given === NONE) return given === undefined ? undefined : null
  const [, days] = /^(\d{1,5})d$/.exec(text(given)) ?? []
  return days === undefined
    ? parseTime(given, `${name} must be`, 'a number of days such as 90d, or none')
    : daysAhead(days)
}

/** A number of days, at least one. */
export function parseDays(given: Given, name: string, max: number): number | undefined {
  if (given === undefined) return undefined
  if (/^[1-9]\d{0,4}$/.test(text(given)) && Number(given) <= max) return Number(given)
  throw new UsageProblem(`${name} must be a number of days, from 1 to ${max}.`)
}

export const daysAhead = (days: number | string): string => new Date(Date.now() + Number(days) * DAY_MS).toISOString()

const DAY = /^\d{4}-\d\d-\d\d$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z$/

/** Undefined for a day that its month does not have, such as February 31. Date.parse takes it for a later one. */
function isoOf(given: Given, form: RegExp): string | undefined {
  const ms = form.test(text(given)) ? Date.parse(text(given)) : Number.NaN
  const iso = Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
  return iso?.startsWith(text(given).slice(0, 10)) ? iso : undefined
}

/** The midnight in UTC at which a day begins. */
export function parseDay(given: Given, name: string): string {
  const iso = isoOf(given, DAY)
  if (iso !== undefined) return iso
  throw new UsageProblem(`${name} must be a day such as 2027-01-31 (UTC).`)
}

/** A day or a time in UTC. */
export function parseTime(given: Given, subject: string, others = ''): string {
  const iso = isoOf(given, DAY) ?? isoOf(given, TIME)
  if (iso !== undefined) return iso
  const rest = others === '' ? ' or a time such as 2027-01-31T12:00Z' : `, a time such as 2027-01-31T12:00Z, ${others}`
  throw new UsageProblem(`${subject} a day such as 2027-01-31 (UTC)${rest}.`)
}

/** Two options of which only one may be used: true, false, or undefined if neither was used. */
export function parseEither(input: CommandFields, yes: string, no: string): boolean | undefined {
  if (input[yes] === true && input[no] === true) throw new UsageProblem(`Use either --${yes} or --${no}, not both.`)
  return input[yes] === true ? true : input[no] === true ? false : undefined
}

/** Refuses a change without any option. */
export function requireChange(body: CommandFields, options: readonly string[]): CommandFields {
  if (Object.values(body).some(value => value !== undefined)) return body
  throw new UsageProblem(`Nothing to change. Options: ${options.map(name => `--${name}`).join(', ')}.`)
}

export const UNKNOWN_KEY = 'Unknown key. Use the key itself (wk-…) or its id (key_…).'
export const UNKNOWN_ACCOUNT = 'Unknown account. Use its id (acc_…) or one of its keys (wk-…, key_…).'
export const UNKNOWN_USER = 'There is no person with this email address or id. See: weir users list'
export const UNKNOWN_TOKEN = 'There is no service token with this name or id. See: weir tokens list'
export const UNKNOWN_CALL = 'There is no record of this call: it is still running, or it does not exist.'

/** The id of a key, from the key itself or its id. */
export async function findKey(send: Send, given: Given): Promise<string> {
  if (/^key_/.test(text(given))) return text(given)
  if (!/^wk-/.test(text(given))) throw new Problem(UNKNOWN_KEY)
  return text((await send('POST', '/api/web/keys/find', { key: given })).id)
}

/** The id of an account, from its id, one of its keys, or the name of one of the operator's own accounts. */
export async function findAccount(send: Send, given: Given): Promise<string> {
  if (/^acc_/.test(text(given))) return text(given)
  if (/^(wk-|key_)/.test(text(given))) {
    return text((await send.get(`/api/web/keys/${await findKey(send, given)}`)).account)
  }
  const { own } = await send.get('/api/web/ledger/trial-balance')
  const found = (own as readonly CommandFields[]).find(({ name }) => name === given)
  if (found !== undefined) return text(found.account)
  throw new Problem(UNKNOWN_ACCOUNT)
}

/** The id of a person, from the id or the email address. */
export async function findUser(send: Send, given: Given): Promise<string> {
  if (/^usr_/.test(text(given))) return text(given)
  const email = text(given).trim().toLowerCase()
  const { data } = await send.get('/api/web/users', { email, sort: 'email' })
  const found = (data as readonly CommandFields[]).find(user => user.email === email)
  if (found !== undefined) return text(found.id)
  throw new Problem(UNKNOWN_USER)
}

/** The id of a service token, from the id or the name. A revoked token is found by its id only. */
export async function findServiceToken(send: Send, given: Given): Promise<string> {
  if (/^tok_/.test(text(given))) return text(given)
  const { data } = await send.get('/api/web/service-tokens', { name: given })
  const found = (data as readonly CommandFields[]).filter(({ name, state }) => name === given && state !== 'revoked')
  if (found.length === 1) return text(found[0]!.id)
  if (found.length === 0) throw new Problem(UNKNOWN_TOKEN)
  throw new Problem(`Several service tokens have this name. Use the id: ${found.map(({ id }) => id).join(', ')}.`)
}

export const optionally = async <T>(given: Given, find: (given: Given) => Promise<T>): Promise<T | undefined> =>
  given === undefined ? undefined : await find(given)

/** Returns an absolute path, because the gateway has another working directory. */
export function resolveFolder(path: unknown, usage: string): string {
  if (typeof path !== 'string' || path === '') throw new UsageProblem(`The folder is missing. Usage: weir ${usage}`)
  return resolve(path)
}
