// Whatever a caller can be told is a row here. docs/errors.md is generated from it.
//
// A row has a stable code, a status, a kind (from which each dialect makes its own type) and a text for the caller.
// `retry` says whether the same request may succeed later: official SDKs are told by `x-should-retry`.
// The detail given to a Refusal goes to the log only.

import { bounds } from './bounds.ts'

export type ErrorKind =
  | 'invalid_request'
  | 'authentication'
  | 'permission'
  | 'not_found'
  | 'method'
  | 'conflict'
  | 'too_large'
  | 'payment'
  | 'rate_limit'
  | 'timeout'
  | 'overloaded'
  | 'upstream'
  | 'internal'

export interface ErrorRow {
  readonly status: number
  readonly kind: ErrorKind
  readonly retry: boolean
  readonly message: string
}

const rows = {
  key_missing: [401, 'authentication', false, 'No API key was sent. Send it as "Authorization: Bearer wk-…".'],
  key_invalid: [401, 'authentication', false, 'This API key is not valid.'],
  token_invalid: [401, 'authentication', false, 'This needs a valid management token (JWT). See /api/auth/sign-in.'],
  sign_in_failed: [401, 'authentication', false, 'The address, the password or the code is wrong.'],
  code_needed: [401, 'authentication', false, 'Signing in needs a code of your authenticator, too.'],
  session_over: [401, 'authentication', false, 'This session is over. Sign in again.'],
  json_invalid: [400, 'invalid_request', false, 'The request body is not valid JSON.'],
  json_too_deep: [400, 'invalid_request', false, 'The request body is nested too deeply.'],
  json_too_many: [400, 'invalid_request', false, 'The request body holds too many values.'],
  body_not_object: [400, 'invalid_request', false, 'The request body must be a JSON object.'],
  form_invalid: [400, 'invalid_request', false, 'The request body is not a valid multipart form.'],
  field_duplicate: [400, 'invalid_request', false, 'A field of the request is given twice; give it once.'],
  field_unknown: [400, 'invalid_request', false, 'Unknown field or query parameter.'],
  field_missing: [400, 'invalid_request', false, 'A required field of the request is missing.'],
  field_invalid: [400, 'invalid_request', false, 'A field or query parameter has a wrong type or value.'],
  model_malformed: [400, 'invalid_request', false, 'The model must be named as <provider>/<model>.'],
  idempotency_key_invalid: [400, 'invalid_request', false, 'Idempotency-Key must be 1 to 255 visible characters.'],
  explain_invalid: [400, 'invalid_request', false, 'X-Weir-Explain may be "dry", with a call.'],
  translation_loses: [400, 'invalid_request', false, 'This upstream cannot be told all of the request.'],
  service_unpriced: [400, 'invalid_request', false, 'The request asks for something whose price here is not known.'],
  call_unserved: [400, 'invalid_request', false, 'This model does not answer calls of this kind.'],
  media_refused: [400, 'invalid_request', false, 'Media that this request names may not be fetched.'],
  media_unreachable: [400, 'invalid_request', false, 'Media that this request names could not be fetched.'],
  modality_unsupported: [400, 'invalid_request', false, 'This model does not read everything that the request holds.'],
  thread_unsupported: [400, 'invalid_request', false, 'This model keeps no threads. Send the whole conversation.'],
  response_unfit: [400, 'invalid_request', false, 'This cannot be done with this response.'],
  files_too_many: [400, 'invalid_request', false, 'This account has as many files as it may have. Delete some first.'],
  password_weak: [400, 'invalid_request', false, 'This password is not accepted.'],
  invitation_invalid: [400, 'invalid_request', false, 'This invitation is unknown, used, revoked or expired.'],
  code_unusable: [400, 'invalid_request', false, 'This code is not known, was redeemed or taken back, or has expired.'],
  body_in_pieces: [400, 'invalid_request', false, 'The request body comes in too many small pieces. Send larger ones.'],
  encoding_invalid: [400, 'invalid_request', false, 'The request body does not match its Content-Encoding.'],
  balance_too_low: [402, 'payment', false, 'The balance does not cover what this call may cost.'],
  budget_too_low: [402, 'payment', false, 'A budget does not cover what this call may cost.'],
  model_forbidden: [403, 'permission', false, 'This key may not use this model.'],
  address_forbidden: [403, 'permission', false, 'This key may not be used from this address.'],
  endpoint_forbidden: [403, 'permission', false, 'This key may not be used for calls of this kind.'],
  account_frozen: [403, 'permission', false, 'This account is frozen until its books have been checked.'],
  role_too_low: [403, 'permission', false, 'Your role does not allow this. Ask an admin or a manager of the account.'],
  setup_needed: [403, 'permission', false, 'This gateway has no owner yet: use its set-up token, or weir setup.'],
  setup_refused: [403, 'permission', false, 'This set-up token is unknown, used or expired. See: weir setup.'],
  password_wrong: [403, 'permission', false, 'The present password ("currentPassword") is missing or wrong.'],
  origin_refused: [403, 'permission', false, 'Requests from another site (Origin) are refused here.'],
  registration_closed: [403, 'permission', false, 'Registration is closed here. Ask an admin for an invitation.'],
  provider_unknown: [404, 'not_found', false, 'There is no such provider.'],
  model_unknown: [404, 'not_found', false, 'There is no such model.'],
  response_unknown: [404, 'not_found', false, 'There is no such response.'],
  file_unknown: [404, 'not_found', false, 'There is no such file.'],
  reference_unknown: [404, 'not_found', false, 'The request names something that this account has not made here.'],
  thread_unknown: [404, 'not_found', false, 'There is no such thread. Send the whole conversation.'],
  task_unknown: [404, 'not_found', false, 'There is no such task.'],
  resource_unknown: [404, 'not_found', false, 'Nothing with this id or name exists where you may look.'],
  path_unknown: [404, 'not_found', false, 'This path does not exist. /docs lists all paths.'],
  method_not_allowed: [405, 'method', false, 'This path does not take this method, but those of the Allow header.'],
  body_too_slow: [408, 'timeout', true, 'The request body did not arrive in time.'],
  idempotency_running: [409, 'conflict', false, 'A call with this Idempotency-Key is still running.'],
  idempotency_not_kept: [409, 'conflict', false, 'The answer to this Idempotency-Key was given and is not kept.'],
  name_taken: [409, 'conflict', false, 'This name is taken. Choose another one.'],
  state_unfit: [409, 'conflict', false, 'The present state does not allow this.'],
  last_owner: [409, 'conflict', false, 'There must be an owner. Make somebody else an owner first.'],
  posted_before: [409, 'conflict', false, 'This was posted before with other values. Nothing was changed.'],
  version_stale: [412, 'conflict', false, 'This was changed after the version that If-Match names. Read it again.'],
  body_too_large: [413, 'too_large', false, 'The request body is too large.'],
  content_type_unsupported: [415, 'invalid_request', false, 'The request body has another type than this path takes.'],
  encoding_unsupported: [415, 'invalid_request', false, 'Content-Encoding may be gzip, deflate, br or zstd.'],
  encoding_refused: [415, 'invalid_request', false, 'The body may not be compressed here. Leave Content-Encoding out.'],
  idempotency_mismatch: [422, 'invalid_request', false, 'This Idempotency-Key was used for another request.'],
  upgrade_refused: [426, 'invalid_request', false, 'This path does not speak WebSocket.'],
  tasks_too_many: [429, 'rate_limit', true, 'This account has too many tasks under way.'],
  explained_too_often: [429, 'rate_limit', true, 'Too many calls were explained this minute.'],
  qpm_exceeded: [429, 'rate_limit', true, 'Too many calls this minute.'],
  rpd_exceeded: [429, 'rate_limit', true, 'Too many calls in a day.'],
  tpm_exceeded: [429, 'rate_limit', true, 'Too many tokens this minute.'],
  tpd_exceeded: [429, 'rate_limit', true, 'Too many tokens in a day.'],
  concurrency_exceeded: [429, 'rate_limit', true, 'Too many calls at the same time.'],
  tried_too_often: [429, 'rate_limit', true, 'Too many tries. Wait as long as Retry-After says, then try again.'],
  head_too_large: [431, 'too_large', false, 'The request head is too large.'],
  gateway_fault: [500, 'internal', true, 'The gateway made a mistake.'],
  settle_failed: [500, 'internal', false, 'The gateway could not write this call to its ledger.'],
  upstream_unusable: [502, 'upstream', true, 'No upstream gave a usable answer.'],
  upstream_failed: [502, 'upstream', true, 'The upstream broke off its answer.'],
  answer_too_large: [502, 'upstream', false, 'The answer is larger than this gateway takes.'],
  no_channel: [503, 'overloaded', true, 'No channel of this provider can take the call.'],
  upstream_rate_limited: [503, 'overloaded', true, 'The provider limits our calls at the moment.'],
  upstream_overloaded: [503, 'overloaded', true, 'The provider is overloaded at the moment.'],
  price_unknown: [503, 'internal', false, 'The price of this model is not known, so it is not served.'],
  overloaded: [503, 'overloaded', true, 'The gateway is at its limit.'],
  storage_away: [503, 'overloaded', true, 'The ledger does not answer at the moment.'],
  storage_full: [503, 'overloaded', true, 'There is no room left to write down a new call.'],
  draining: [503, 'overloaded', true, 'The gateway is shutting down.'],
  upstream_too_slow: [504, 'timeout', true, 'The upstream did not answer in time.'],
  upstream_refused: [400, 'invalid_request', false, 'The upstream refused the request.'],
} as const satisfies Record<string, readonly [number, ErrorKind, boolean, string]>

export type ErrorCode = keyof typeof rows

export const errorRows: Readonly<Record<ErrorCode, ErrorRow>> = Object.fromEntries(
  Object.entries(rows).map(([code, [status, kind, retry, message]]) => [code, { status, kind, retry, message }]),
) as Record<ErrorCode, ErrorRow>

/** What an upstream said of a request that it refused, with its secrets already scrubbed. */
export interface UpstreamWords {
  readonly status: number
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly param?: string
  /** How long it asks to be left alone, as it wrote it into its error: a span or a date. Never told to a caller. */
  readonly retryAfter?: string
  /** What else its error says, for programs: in Anthropic's dialect `error.details`. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** What is left of a limit, as a caller is told. */
export interface ToldQuota {
  readonly resource: 'requests' | 'tokens' | 'concurrency'
  readonly limit: number
  readonly remaining: number
  /** Until all of it is there again. */
  readonly resetMs: number
}

export interface RefusalExtras {
  readonly retryAfterMs?: number
  /** The field at fault; dialects that have a place for it show it. */
  readonly param?: string
  /** Added to the row's text. Never holds anything of another caller, of a channel, or a secret. */
  readonly hint?: string
  /** Further headers of the answer, such as Allow. */
  readonly headers?: Readonly<Record<string, string>>
  /** What is left of the limits that it met. */
  readonly quotas?: readonly ToldQuota[]
  readonly upstream?: UpstreamWords
  /**
   * What it is for the bill, where its code would say that the upstream failed: a bound of ours ended an answer that
   * was under way, or the upstream blames the request.
   */
  readonly ending?: 'over_bound' | 'refused'
}

/** An error we meant. Everything else that is thrown is a gateway_fault. */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly extras: RefusalExtras

  constructor(code: ErrorCode, detail: string, extras: RefusalExtras = {}) {
    super(`${code}: ${detail}`)
    this.name = 'Refusal'
    this.code = code
    this.extras = extras
  }
}

/** A bound of ours ends an answer. `hint` says which, for the caller. */
export const beyondBound = (hint: string): Refusal => new Refusal('answer_too_large', hint, { hint })

/** An error as a dialect gets it to write. */
export interface SpokenError {
  readonly code: ErrorCode
  readonly status: number
  readonly kind: ErrorKind
  readonly message: string
  readonly requestId: string
  readonly param?: string
  readonly upstream?: UpstreamWords
  readonly retryAfterMs?: number
}

/** Programs sleep as long as they are told. */
export const RETRY_AFTER_MS_MAX = bounds.retryAfterSecondsMax * 1_000

export function speakRefusal(refusal: Refusal, requestId: string): SpokenError {
  const row = errorRows[refusal.code]
  const { hint, param, upstream, retryAfterMs } = refusal.extras
  const words = upstream?.message ?? row.message
  const said = hint === undefined ? words : `${words} ${hint}`
  return {
    code: refusal.code,
    status: upstream?.status ?? row.status,
    kind: upstream?.status === 404 ? 'not_found' : upstream?.status === 413 ? 'too_large' : row.kind,
    message: said,
    requestId,
    ...(param !== undefined && { param }),
    ...(upstream !== undefined && { upstream }),
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) }),
  }
}
