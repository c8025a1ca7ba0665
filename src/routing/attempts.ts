// Judges how an attempt ended, from the status and the error of the upstream. Pure functions on plain data.

import type { UpstreamError } from '../base/errors.ts'

export interface TriedChannel {
  readonly channelId: string
  /** `<provider>/<model>`. Set where the same channel may be tried again with another model. */
  readonly model?: string | undefined
  readonly verdict: AttemptVerdict
}

/** How an attempt ended. After `answered` and `caller_at_fault` there is no further attempt. */
export type AttemptVerdict =
  | 'answered'
  | 'caller_at_fault' // the upstream blames the request; every other channel would refuse it as well
  | 'credential_bad'
  | 'forbidden' // 403: the credential or the request is at fault; one refusal does not show which
  | 'rate_limited'
  | 'quota_spent' // the credential's funds or long-term quota are used up
  | 'not_here' // this channel does not serve the model; another may
  | 'broken'
  | 'too_slow'

const TRANSIENT = new Set([408, 425, 500, 502, 503, 504, 529])

/** The verdict on an error status alone. Statuses that blame the request give `caller_at_fault`. */
export function judgeStatus(status: number): AttemptVerdict {
  if (status === 401 || status === 402 || status === 403 || status === 407) return 'credential_bad'
  if (status === 429) return 'rate_limited'
  if (TRANSIENT.has(status) || status >= 500 || status < 400) return 'broken'
  return 'caller_at_fault'
}

/** Error codes and types that are more precise than the status, in lower case. `*` at the end matches any suffix. */
const CODES: readonly (readonly [AttemptVerdict, readonly string[]])[] = [
  ['quota_spent', ['insufficient_quota', 'billing_*', 'exceeded_current_quota*', 'insufficient_balance', 'arrearage']],
  ['quota_spent', ['accountoverdue*', 'servicequotaexceeded*', 'insufficient_credits']],
  ['not_here', ['model_not_found', 'model_not_available', 'modelnotopen', 'deploymentnotfound']],
  ['not_here', ['invalidendpointormodel*', 'unsupported_model', 'model_not_supported']],
  ['rate_limited', ['rate_limit*', 'ratelimit*', 'resource_exhausted', 'throttling*', 'toomanyrequests*']],
  ['credential_bad', ['invalid_api_key', 'api_key_invalid', 'authentication_error', 'invalid_authentication*']],
  ['credential_bad', ['unauthenticated', 'account_deactivated', 'unrecognizedclient*', 'expiredtoken*']],
  ['credential_bad', ['invalidsignature*', 'missingauthentication*']],
]

/** The call needs more tokens than the credential may use in a minute. Waiting does not help; another channel may. */
const TOO_LARGE = 'request too large for '

/** The same by the start of the error message. Only the start counts: the rest may quote the caller's own text. */
const MESSAGE_STARTS: readonly (readonly [AttemptVerdict, readonly string[]])[] = [
  ['quota_spent', ['your credit balance is too low', 'insufficient balance', 'insufficient credits']],
  ['not_here', ['model: ', 'models/', 'the model `', "you don't have access to the model"]],
  ['credential_bad', ['api key not valid', 'please pass a valid api key', 'invalid api key', 'incorrect api key']],
]

/**
 * The verdict on an error status together with the error body. A 403 is `credential_bad` only if the body says so:
 * otherwise a caller could provoke 403s with forbidden requests and switch the credential off for everybody.
 * `isReadable`: the body is an error in the upstream's dialect.
 */
export function judgeError({ status, code, type, message }: UpstreamError, isReadable = true): AttemptVerdict {
  const byStatus = judgeStatus(status)
  if (byStatus === 'broken' || status === 401 || status === 407) return byStatus
  if (status === 429 && message.toLowerCase().startsWith(TOO_LARGE)) return 'not_here'
  const byBody = verdictOfCode(code) ?? verdictOfCode(type) ?? verdictOfMessage(message)
  if (byBody === 'not_here' && status !== 403 && status !== 404 && status !== 400) return byStatus
  if (byBody !== undefined) return byBody
  if (status === 402) return 'quota_spent'
  // An unreadable body comes from a proxy or firewall in front of the upstream, not from the upstream.
  if (status === 403) return isReadable ? 'forbidden' : 'broken'
  return byStatus
}

function verdictOfCode(code: string | undefined): AttemptVerdict | undefined {
  if (code === undefined) return undefined
  return CODES.find(([, patterns]) => matchesAny(patterns, code))?.[0]
}

function matchesAny(patterns: readonly string[], code: string): boolean {
  const lower = code.toLowerCase()
  return patterns.some(pattern => (pattern.endsWith('*') ? lower.startsWith(pattern.slice(0, -1)) : lower === pattern))
}

function verdictOfMessage(message: string): AttemptVerdict | undefined {
  const start = message.slice(0, 64).toLowerCase()
  return MESSAGE_STARTS.find(([, starts]) => starts.some(known => start.startsWith(known)))?.[0]
}

/** The codecs give this status to an error that names none. */
const DEFAULT_STATUS = 502

/** The HTTP status that an upstream uses for these error codes and types; `*` as above. */
const STATUSES: readonly (readonly [status: number, patterns: readonly string[]])[] = [
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
 * The status of an error that came inside a 200 answer, as a stream event or in the body: the status that the upstream
 * would have sent if the error had been its whole answer.
 */
export function inferStatus({ status, code, type }: UpstreamError): number {
  if (status !== DEFAULT_STATUS) return status
  const find = (name: string | undefined): number | undefined =>
    name === undefined ? undefined : STATUSES.find(([, patterns]) => matchesAny(patterns, name))?.[0]
  return find(code) ?? find(type) ?? status
}

/** 4xx statuses that do not blame the request but the credential, its funds or the moment. */
const NOT_BLAMING: ReadonlySet<number> = new Set([401, 402, 408, 409, 429])

/** Error types and codes that blame the request, in lower case. `*` at the end matches any suffix. */
const BLAMING: readonly string[] = [
  'invalid_request*',
  'invalid_argument',
  'bad_request*',
  'badrequest*',
  'invalidparameter*',
  'invalid_prompt',
  'tool_use_failed',
  'tool_call_*',
  'json_validate_failed',
  'context_length_exceeded',
  'string_above_max_length',
  'content_filter*',
  'content_policy*',
  'safety*',
  'data_inspection_failed',
  'sensitivecontent*',
  'moderation*',
  'external_connector_error',
  'mcp_*',
  'http_error',
  'unsupported_*',
  'invalid_image*',
  'image_*',
]

/**
 * Whether an error in the middle of an answer is the fault of the request, or of a tool that the request names. An
 * error that does not say so counts as a failure of the upstream.
 */
export function blamesRequest({ status, type, code, message }: UpstreamError): boolean {
  if (verdictOfCode(code) ?? verdictOfCode(type) ?? verdictOfMessage(message)) return false
  if (status >= 400 && status < 500) return !NOT_BLAMING.has(status)
  return [type, code].some(name => name !== undefined && matchesAny(BLAMING, name))
}

const OVERLOADED_CODES = new Set(['overloaded_error', 'server_is_overloaded', 'slow_down', 'unavailable'])

/** Whether the upstream says that it is overloaded, so that fewer calls at a time would get more done. */
export function isOverloadError({ status, code, type }: Pick<UpstreamError, 'status' | 'code' | 'type'>): boolean {
  if (status === 503 || status === 529) return true
  const has = (name: string | undefined): boolean => name !== undefined && OVERLOADED_CODES.has(name.toLowerCase())
  return has(code) || has(type)
}
