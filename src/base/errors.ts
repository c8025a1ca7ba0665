// The table of all errors that a caller can get. docs/reference/errors.md is generated from it.
//
// A row has a stable code, a status, a kind (each dialect derives its own error type from it), and a text for the
// caller. `retry` says whether the same request may succeed later; official SDKs read it from `x-should-retry`.
// The detail of a Refusal goes to the log only.

import { bounds } from './bounds.ts'
import type { Hint, HintData } from './hints.ts'

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
  token_invalid: [401, 'authentication', false, 'This needs a valid session token (/api/auth) or service token.'],
  sign_in_failed: [401, 'authentication', false, 'The address, the password or the code is wrong.'],
  code_needed: [401, 'authentication', false, 'Signing in also needs a code of your authenticator app.'],
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
  model_malformed: [400, 'invalid_request', false, 'The model must be named as <model> or <provider>/<model>.'],
  model_ambiguous: [400, 'invalid_request', false, 'This name means models of several makers. Name the provider, too.'],
  idempotency_key_invalid: [400, 'invalid_request', false, 'Idempotency-Key must be 1 to 255 visible characters.'],
  explain_invalid: [400, 'invalid_request', false, 'X-Weir-Explain may only be "dry", and only on a call.'],
  translation_loses: [
    400,
    'invalid_request',
    false,
    'A translation for the provider would lose a part of this request, and this call or key forbids that.',
  ],
  service_unpriced: [400, 'invalid_request', false, 'The request uses a feature that has no price here.'],
  call_unserved: [400, 'invalid_request', false, 'This model does not support calls of this kind.'],
  media_refused: [400, 'invalid_request', false, 'A media URL of this request may not be fetched.'],
  media_unreachable: [400, 'invalid_request', false, 'A media URL of this request could not be fetched.'],
  modality_unsupported: [400, 'invalid_request', false, 'This model does not accept some content of the request.'],
  thread_unsupported: [400, 'invalid_request', false, 'This model keeps no threads. Send the whole conversation.'],
  response_unfit: [400, 'invalid_request', false, 'This response is not in a state that allows this request.'],
  files_too_many: [400, 'invalid_request', false, 'This account has as many files as it may have. Delete some first.'],
  password_weak: [400, 'invalid_request', false, 'This password is not accepted.'],
  invitation_invalid: [400, 'invalid_request', false, 'This invitation is unknown, used, revoked or expired.'],
  code_unusable: [400, 'invalid_request', false, 'This code is unknown, redeemed, voided or expired.'],
  socket_expired: [
    400,
    'invalid_request',
    false,
    'This WebSocket has reached its limit of 60 minutes. Open a new one.',
  ],
  socket_streams_too_many: [
    400,
    'invalid_request',
    false,
    'This WebSocket has too many different values of stream_id.',
  ],
  body_in_pieces: [
    400,
    'invalid_request',
    false,
    'The request body arrives in too many small chunks. Send larger ones.',
  ],
  encoding_invalid: [400, 'invalid_request', false, 'The request body does not match its Content-Encoding.'],
  balance_too_low: [402, 'payment', false, 'The balance does not cover what this call may cost.'],
  budget_too_low: [402, 'payment', false, 'A budget does not cover what this call may cost.'],
  model_forbidden: [403, 'permission', false, 'This key may not use this model.'],
  address_forbidden: [403, 'permission', false, 'This key may not be used from this address.'],
  endpoint_forbidden: [403, 'permission', false, 'This key may not be used for calls of this kind.'],
  account_frozen: [
    403,
    'permission',
    false,
    'This account is frozen, so its calls are refused. Ask the operator of the gateway.',
  ],
  role_too_low: [403, 'permission', false, 'Your role does not allow this. Ask an admin or a manager of the account.'],
  setup_needed: [403, 'permission', false, 'This gateway has no owner yet: use its set-up token, or weir setup.'],
  setup_refused: [403, 'permission', false, 'This set-up token is unknown, used or expired. See: weir setup.'],
  password_wrong: [403, 'permission', false, 'The current password ("currentPassword") is missing or wrong.'],
  origin_refused: [403, 'permission', false, 'Requests from another site (Origin) are refused here.'],
  registration_closed: [403, 'permission', false, 'Registration is closed here. Ask an admin for an invitation.'],
  provider_unknown: [404, 'not_found', false, 'There is no such provider.'],
  model_unknown: [404, 'not_found', false, 'There is no such model.'],
  response_unknown: [404, 'not_found', false, 'There is no such response.'],
  file_unknown: [404, 'not_found', false, 'There is no such file.'],
  reference_unknown: [404, 'not_found', false, 'The request names an item that this account did not create here.'],
  thread_unknown: [404, 'not_found', false, 'There is no such thread. Send the whole conversation.'],
  task_unknown: [404, 'not_found', false, 'There is no such task.'],
  resource_unknown: [404, 'not_found', false, 'Nothing with this id or name exists, or you may not see it.'],
  path_unknown: [404, 'not_found', false, 'This path does not exist. /docs lists all paths.'],
  method_not_allowed: [405, 'method', false, 'This path does not accept this method. See the Allow header.'],
  body_too_slow: [408, 'timeout', true, 'The request body did not arrive in time.'],
  idempotency_running: [409, 'conflict', false, 'A call with this Idempotency-Key is still running.'],
  idempotency_not_kept: [
    409,
    'conflict',
    false,
    'A call with this Idempotency-Key was answered, but its answer was not stored.',
  ],
  name_taken: [409, 'conflict', false, 'This name is taken. Choose another one.'],
  state_unfit: [409, 'conflict', false, 'The current state does not allow this.'],
  managed_by_file: [409, 'conflict', false, 'The configuration file of this gateway describes this.'],
  last_owner: [409, 'conflict', false, 'There must be an owner. Make somebody else an owner first.'],
  posted_before: [
    409,
    'conflict',
    false,
    'This reference was already used for another amount, account or call, or the call was already refunded. Nothing was booked.',
  ],
  version_stale: [412, 'conflict', false, 'This was changed after the version that If-Match names. Read it again.'],
  body_too_large: [413, 'too_large', false, 'The request body is too large.'],
  content_type_unsupported: [415, 'invalid_request', false, 'This path does not accept this Content-Type.'],
  encoding_unsupported: [415, 'invalid_request', false, 'Content-Encoding may be gzip, deflate, br or zstd.'],
  encoding_refused: [415, 'invalid_request', false, 'The body may not be compressed here. Leave Content-Encoding out.'],
  idempotency_mismatch: [422, 'invalid_request', false, 'This Idempotency-Key was used for another request.'],
  upgrade_refused: [426, 'invalid_request', false, 'This path does not speak WebSocket.'],
  tasks_too_many: [429, 'rate_limit', true, 'This account has too many running tasks.'],
  explained_too_often: [429, 'rate_limit', true, 'Too many explain requests this minute.'],
  qpm_exceeded: [429, 'rate_limit', true, 'Too many calls this minute.'],
  rpd_exceeded: [429, 'rate_limit', true, 'Too many calls in a day.'],
  tpm_exceeded: [429, 'rate_limit', true, 'Too many tokens this minute.'],
  tpd_exceeded: [429, 'rate_limit', true, 'Too many tokens in a day.'],
  concurrency_exceeded: [429, 'rate_limit', true, 'Too many calls at the same time.'],
  tried_too_often: [429, 'rate_limit', true, 'Too many tries. Wait as long as Retry-After says, then try again.'],
  head_too_large: [431, 'too_large', false, 'The request head is too large.'],
  gateway_fault: [500, 'internal', true, 'An internal error of the gateway.'],
  settle_failed: [500, 'internal', false, 'The gateway could not write this call to its ledger.'],
  upstream_unusable: [502, 'upstream', true, 'No upstream gave a usable answer. The log of the gateway says why.'],
  upstream_failed: [502, 'upstream', true, 'The upstream broke off its answer.'],
  answer_too_large: [502, 'upstream', false, 'The answer is larger than this gateway accepts.'],
  no_channel: [503, 'overloaded', true, 'No channel of the gateway can serve this call at the moment.'],
  upstream_rate_limited: [503, 'overloaded', true, 'The provider is rate limiting this gateway.'],
  upstream_overloaded: [503, 'overloaded', true, 'The provider is overloaded at the moment.'],
  price_unknown: [503, 'internal', false, 'The price of this model is not known, so it is not served.'],
  overloaded: [503, 'overloaded', true, 'The gateway is overloaded.'],
  storage_away: [503, 'overloaded', true, 'The database of the gateway does not answer at the moment.'],
  storage_full: [503, 'overloaded', true, 'There is no room left to store a new call.'],
  draining: [503, 'overloaded', true, 'The gateway is shutting down.'],
  upstream_too_slow: [504, 'timeout', true, 'The upstream did not answer in time.'],
  upstream_refused: [400, 'invalid_request', false, 'The upstream refused the request.'],
} as const satisfies Record<string, readonly [number, ErrorKind, boolean, string]>

export type ErrorCode = keyof typeof rows

export const errorRows: Readonly<Record<ErrorCode, ErrorRow>> = Object.fromEntries(
  Object.entries(rows).map(([code, [status, kind, retry, message]]) => [code, { status, kind, retry, message }]),
) as Record<ErrorCode, ErrorRow>

/** The error of an upstream that refused a request. Secrets are already removed from its texts. */
export interface UpstreamError {
  readonly status: number
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly param?: string
  /** The wait that the upstream wrote into its error: a duration or a date. Never sent to a caller. */
  readonly retryAfter?: string
  /** Further fields of the error for programs: `error.details`, an object in Anthropic's dialect and a list in Gemini's. */
  readonly details?: Readonly<Record<string, unknown>> | readonly unknown[]
  /** The request is longer than the model's context. Set only in errors of another dialect than the caller's. */
  readonly overflow?: true
}

/** What is left of a limit, for the headers of an answer. */
export interface QuotaReport {
  readonly resource: 'requests' | 'tokens' | 'concurrency'
  readonly limit: number
  readonly remaining: number
  /** The time until the whole limit is available again. */
  readonly resetMs: number
}

export interface RefusalExtras {
  readonly retryAfterMs?: number
  /** The field at fault, for the dialects that have a property for it. */
  readonly param?: string
  /** Added to the text of the row. Must not contain a secret, or anything about a channel or another caller. */
  readonly hint?: Hint
  /** Further headers of the answer, such as Allow. */
  readonly headers?: Readonly<Record<string, string>>
  /** What is left of the limits that applied to the call. */
  readonly quotas?: readonly QuotaReport[]
  readonly upstream?: UpstreamError
  /**
   * The outcome for billing, where the code alone would mean that the upstream failed: a bound of the gateway ended the
   * answer, or the upstream blames the request.
   */
  readonly outcome?: 'over_bound' | 'refused'
}

/** An error that the gateway returns on purpose. Everything else that is thrown becomes a gateway_fault. */
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

/** For a mistake in a management request that only a sentence can explain. `param`: the field at fault. */
export const refusal = (code: ErrorCode, hint: Hint, param?: string): Refusal =>
  new Refusal(code, hint.text, { hint, ...(param !== undefined && { param }) })

/** An error with everything that a dialect needs to write it. */
export interface ErrorReply {
  readonly code: ErrorCode
  readonly status: number
  readonly kind: ErrorKind
  readonly message: string
  readonly requestId: string
  readonly param?: string
  /** Only in errors of the management interface, which have the dialect of OpenAI. */
  readonly hint?: HintData
  readonly upstream?: UpstreamError
  readonly retryAfterMs?: number
}

/** SDKs wait as long as Retry-After says, so the value is bounded. */
export const RETRY_AFTER_MS_MAX = bounds.retryAfterSecondsMax * 1_000

export function buildErrorReply(refusal: Refusal, requestId: string): ErrorReply {
  const row = errorRows[refusal.code]
  const { hint, param, upstream, retryAfterMs } = refusal.extras
  const message = upstream?.message ?? row.message
  return {
    code: refusal.code,
    status: upstream?.status ?? row.status,
    kind: upstream?.status === 404 ? 'not_found' : upstream?.status === 413 ? 'too_large' : row.kind,
    message: hint === undefined ? message : `${message} ${hint.text}`,
    requestId,
    ...(param !== undefined && { param }),
    ...(upstream !== undefined && { upstream }),
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) }),
  }
}
