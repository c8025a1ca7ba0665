// What an attempt came to, and whether another may follow. Pure: channels and attempts come as plain data.

import type { UpstreamWords } from '../base/errors.ts'

export interface Tried {
  readonly channelId: string
  /** `<provider>/<model>`, where the same channel may be tried with another. */
  readonly model?: string | undefined
  readonly verdict: Verdict
}

/** What an attempt came to. Only `next` verdicts may be followed by another attempt. */
export type Verdict =
  | 'answered'
  | 'caller_at_fault' // the upstream refused the caller's own request: another channel would too
  | 'credential_bad'
  | 'forbidden' // by the credential's rights or by what was asked for, which cannot be told from one refusal
  | 'rate_limited'
  | 'quota_spent' // nothing is left to be had for this credential until somebody pays, or for long
  | 'not_here' // this channel does not have the model; another may
  | 'broken'
  | 'too_slow'

const FINAL: ReadonlySet<Verdict> = new Set(['answered', 'caller_at_fault'])

/** The next channel in order, or undefined when trying on is useless or not allowed. */
export function nextChannel<Channel extends { readonly id: string }>(
  channels: readonly Channel[],
  tried: readonly Tried[],
  attemptsMax: number,
): Channel | undefined {
  if (tried.length >= attemptsMax) return undefined
  if (tried.some(attempt => FINAL.has(attempt.verdict))) return undefined
  return channels.find(channel => !tried.some(attempt => attempt.channelId === channel.id))
}

const TRANSIENT = new Set([408, 425, 500, 502, 503, 504, 529])

/** What a refusing status says of the channel. A status that blames the request is the caller's. */
export function judgeStatus(status: number): Verdict {
  if (status === 401 || status === 402 || status === 403 || status === 407) return 'credential_bad'
  if (status === 429) return 'rate_limited'
  if (TRANSIENT.has(status) || status >= 500 || status < 400) return 'broken'
  return 'caller_at_fault'
}

/** Codes and types of errors that say more than their status, in lower case; with `*` also what begins so. */
const CODES: readonly (readonly [Verdict, readonly string[]])[] = [
  ['quota_spent', ['insufficient_quota', 'billing_*', 'exceeded_current_quota*', 'insufficient_balance', 'arrearage']],
  ['quota_spent', ['accountoverdue*', 'servicequotaexceeded*', 'insufficient_credits']],
  ['not_here', ['model_not_found', 'model_not_available', 'modelnotopen', 'deploymentnotfound']],
  ['not_here', ['invalidendpointormodel*', 'unsupported_model', 'model_not_supported']],
  ['rate_limited', ['rate_limit*', 'ratelimit*', 'resource_exhausted', 'throttling*', 'toomanyrequests*']],
  ['credential_bad', ['invalid_api_key', 'api_key_invalid', 'authentication_error', 'invalid_authentication*']],
  ['credential_bad', ['unauthenticated', 'account_deactivated', 'unrecognizedclient*', 'expiredtoken*']],
  ['credential_bad', ['invalidsignature*', 'missingauthentication*']],
]

/** More in one call than the credential may have in a minute: it is always refused, and others are not. */
const TOO_LARGE = 'request too large for '

/** The same of sentences. Only how they begin counts: further on they may repeat what the caller wrote. */
const SENTENCES: readonly (readonly [Verdict, readonly string[]])[] = [
  ['quota_spent', ['your credit balance is too low', 'insufficient balance', 'insufficient credits']],
  ['not_here', ['model: ', 'models/', 'the model `', "you don't have access to the model"]],
  ['credential_bad', ['api key not valid', 'invalid api key', 'incorrect api key']],
]

/**
 * The same, by what the upstream said, too. A 403 is about the credential only if it says so: a caller can provoke one
 * by asking for what the credential must not do, and would switch it off for all others.
 */
export function judgeRefusal({ status, code, type, message }: UpstreamWords, isSaid = true): Verdict {
  const byStatus = judgeStatus(status)
  if (byStatus === 'broken' || status === 401 || status === 407) return byStatus
  if (status === 429 && message.toLowerCase().startsWith(TOO_LARGE)) return 'not_here'
  const said = byCode(code) ?? byCode(type) ?? bySentence(message)
  if (said === 'not_here' && status !== 403 && status !== 404 && status !== 400) return byStatus
  if (said !== undefined) return said
  if (status === 402) return 'quota_spent'
  // A page of some guard before the upstream, and not the upstream's own refusal.
  if (status === 403) return isSaid ? 'forbidden' : 'broken'
  return byStatus
}

function byCode(code: string | undefined): Verdict | undefined {
  if (code === undefined) return undefined
  return CODES.find(([, words]) => isAmong(words, code))?.[0]
}

function isAmong(words: readonly string[], code: string): boolean {
  const said = code.toLowerCase()
  return words.some(word => (word.endsWith('*') ? said.startsWith(word.slice(0, -1)) : said === word))
}

function bySentence(message: string): Verdict | undefined {
  const said = message.slice(0, 64).toLowerCase()
  return SENTENCES.find(([, begins]) => begins.some(begin => said.startsWith(begin)))?.[0]
}

/** What readers give an error that names no status. */
const UNNAMED = 502

/** The status that errors of these codes and types have where they are answers of their own; `*` as above. */
const STATUSES: readonly (readonly [status: number, words: readonly string[]])[] = [
  [404, ['model_not_found', 'not_found*', 'invalidendpointormodel*', 'modelnotopen', 'notfound*']],
  [402, ['billing_*', 'insufficient_balance', 'insufficient_credits', 'payment_required']],
  [429, ['insufficient_quota', 'exceeded_current_quota*', 'rate_limit*', 'ratelimit*', 'resource_exhausted']],
  [429, ['throttling*', 'toomanyrequests*', 'too_many_requests*', 'servicequotaexceeded*', 'quota_exceeded*']],
  [529, ['overloaded_error']],
  [503, ['overloaded', 'server_is_overloaded', 'slow_down', 'unavailable', 'serveroverloaded*']],
  [503, ['service_unavailable*']],
  [503, ['serviceunavailable*', 'engine_overloaded*', 'model_overloaded*', 'insufficient_system_resource']],
  [403, ['accountoverdue*', 'arrearage']],
  [413, ['request_too_large']],
  [400, ['invalid_request*', 'invalid_argument', 'invalid_prompt', 'invalidparameter*', 'badrequest', 'bad_request']],
  [400, ['context_length_exceeded', 'failed_precondition', 'validationexception']],
  [504, ['timeout_error', 'deadline_exceeded', 'timeout']],
]

/**
 * The status that an error would have had as an answer of its own: of one that came as an event, or in the body of an
 * answer that says 200.
 */
export function statusSaid({ status, code, type }: UpstreamWords): number {
  if (status !== UNNAMED) return status
  const of = (word: string | undefined): number | undefined =>
    word === undefined ? undefined : STATUSES.find(([, words]) => isAmong(words, word))?.[0]
  return of(code) ?? of(type) ?? status
}

/** Of the statuses from 400 to 499 those that are about the credential, its funds, or the moment. */
const UNBLAMING: ReadonlySet<number> = new Set([401, 402, 408, 409, 429])

/** Types and codes of errors that blame the request, in lower case; with `*` also what begins so. */
const BLAMING: readonly string[] = [
  ...['invalid_request*', 'invalid_argument', 'bad_request*', 'badrequest*', 'invalidparameter*', 'invalid_prompt'],
  ...['tool_use_failed', 'tool_call_*', 'json_validate_failed', 'context_length_exceeded', 'string_above_max_length'],
  ...['content_filter*', 'content_policy*', 'safety*', 'data_inspection_failed', 'sensitivecontent*', 'moderation*'],
  ...['external_connector_error', 'mcp_*', 'http_error', 'unsupported_*', 'invalid_image*', 'image_*'],
]

/**
 * Whether an error in the midst of an answer is about what was asked for, or about a tool that was to be used for it,
 * and not a failure of the upstream's own. One that says neither is the upstream's.
 */
export function blamesRequest({ status, type, code, message }: UpstreamWords): boolean {
  if (byCode(code) ?? byCode(type) ?? bySentence(message)) return false
  if (status >= 400 && status < 500) return !UNBLAMING.has(status)
  return [type, code].some(said => said !== undefined && isAmong(BLAMING, said))
}

const OVERLOADED_CODES = new Set(['overloaded_error', 'server_is_overloaded', 'slow_down', 'unavailable'])

/** It has too much to do, so that fewer calls at a time would get more done. */
export function saysOverloaded({ status, code, type }: Pick<UpstreamWords, 'status' | 'code' | 'type'>): boolean {
  if (status === 503 || status === 529) return true
  const has = (word: string | undefined): boolean => word !== undefined && OVERLOADED_CODES.has(word.toLowerCase())
  return has(code) || has(type)
}
