import { words } from '../words.ts'

/** Why a call failed, by the error of its record (src/base/errors.ts). Further codes are in reasons.ts. */
export const callErrorWords = words('callErrors', {
  json_invalid: 'The request body is not valid JSON.',
  field_unknown: 'The request has an unknown field.',
  field_missing: 'A required field of the request is missing.',
  field_invalid: 'A field of the request has a wrong type or value.',
  translation_loses:
    'A translation for the provider would lose a part of the request, and the call or the key forbids that.',
  media_refused: 'A media URL of the request may not be fetched.',
  media_unreachable: 'A media URL of the request could not be fetched.',
  balance_too_low: 'The balance does not cover what the call may cost.',
  budget_too_low: 'A budget does not cover what the call may cost.',
  address_forbidden: 'The key may not be used from this address.',
  endpoint_forbidden: 'The key may not be used for calls of this kind.',
  account_frozen: 'The account is frozen, so its calls are refused.',
  body_too_large: 'The request body is too large.',
  qpm_exceeded: 'Too many calls in this minute.',
  rpd_exceeded: 'Too many calls in a day.',
  tpm_exceeded: 'Too many tokens in this minute.',
  tpd_exceeded: 'Too many tokens in a day.',
  concurrency_exceeded: 'Too many calls at the same time.',
  gateway_fault: 'An internal error of the gateway.',
  upstream_unusable: 'No upstream gave a usable answer.',
  upstream_failed: 'The upstream broke off its answer.',
  upstream_refused: 'The upstream refused the request.',
  upstream_too_slow: 'The upstream did not answer in time.',
  upstream_rate_limited: 'The provider is rate limiting this gateway.',
  upstream_overloaded: 'The provider was overloaded.',
  answer_too_large: 'The answer is larger than this gateway accepts.',
  overloaded: 'The gateway was overloaded.',
  draining: 'The gateway was shutting down.',
})
