// Tests the verdicts on upstream errors.

import { describe, expect, test } from 'bun:test'
import type { AttemptVerdict } from './attempts.ts'
import { isOverloadError, judgeError, judgeStatus } from './attempts.ts'

test.each([
  [[401, 402, 403, 407], 'credential_bad'],
  [[429], 'rate_limited'],
  [[408, 425, 500, 501, 502, 503, 504, 520, 529, 599], 'broken'],
  [[100, 101, 301, 302, 304, 307], 'broken'],
  [[400, 404, 405, 406, 409, 410, 413, 415, 418, 422, 431, 451], 'caller_at_fault'],
] as const)('the verdict on the statuses %p is %s', (statuses, verdict) => {
  for (const status of statuses) expect([status, judgeStatus(status)]).toEqual([status, verdict])
})

describe('the verdict on an upstream error', () => {
  test.each<[AttemptVerdict, number, { code?: string; type?: string; message?: string }]>([
    ['rate_limited', 429, { code: 'rate_limit_exceeded', type: 'requests' }],
    ['quota_spent', 429, { code: 'insufficient_quota', type: 'insufficient_quota' }],
    ['quota_spent', 429, { type: 'exceeded_current_quota_error' }],
    ['quota_spent', 400, { code: 'billing_hard_limit_reached' }],
    ['quota_spent', 400, { type: 'invalid_request_error', message: 'Your credit balance is too low to go on.' }],
    ['quota_spent', 402, { type: 'billing_error' }],
    ['quota_spent', 402, { message: 'Insufficient Balance' }],
    ['quota_spent', 402, {}],
    ['quota_spent', 403, { code: 'AccountOverdueError' }],
    ['quota_spent', 400, { code: 'Arrearage' }],
    ['rate_limited', 429, { type: 'RESOURCE_EXHAUSTED' }],
    ['rate_limited', 400, { type: 'ThrottlingException' }],
    ['rate_limited', 403, { code: 'RateLimitExceeded.EndpointRPMExceeded' }],
    ['credential_bad', 401, { code: 'invalid_api_key' }],
    ['credential_bad', 401, { code: 'insufficient_quota' }],
    ['credential_bad', 407, {}],
    ['credential_bad', 400, { type: 'INVALID_ARGUMENT', code: 'API_KEY_INVALID', message: 'API key not valid.' }],
    ['credential_bad', 400, { message: 'Please pass a valid API key' }],
    ['credential_bad', 403, { type: 'UnrecognizedClientException' }],
    ['forbidden', 403, { type: 'permission_error' }],
    ['forbidden', 403, { type: 'PERMISSION_DENIED', message: 'You do not have permission to access the File abc.' }],
    ['forbidden', 403, { message: 'Your chosen model requires moderation and your input was flagged.' }],
    ['not_here', 429, { code: 'rate_limit_exceeded', message: 'Request too large for x on tokens per min' }],
    ['not_here', 403, { code: 'model_not_found', message: 'Project does not have access to model x' }],
    ['not_here', 404, { code: 'model_not_found', type: 'invalid_request_error' }],
    ['not_here', 404, { type: 'not_found_error', message: 'model: claude-x' }],
    ['not_here', 404, { type: 'NOT_FOUND', message: 'models/gemini-x is not found for API version v1beta' }],
    ['not_here', 404, { code: 'InvalidEndpointOrModel.NotFound' }],
    ['not_here', 404, { code: 'DeploymentNotFound' }],
    ['caller_at_fault', 404, { message: 'No such file.' }],
    ['caller_at_fault', 400, { type: 'invalid_request_error', message: 'Unknown field.' }],
    ['caller_at_fault', 422, {}],
    ['caller_at_fault', 413, { type: 'request_too_large' }],
    ['broken', 500, { code: 'insufficient_quota' }],
    ['broken', 529, { type: 'overloaded_error' }],
    ['broken', 302, {}],
    // A message may quote the caller's text, but does not begin with it.
    ['caller_at_fault', 400, { message: "Invalid value 'your credit balance is too low'" }],
    ['caller_at_fault', 400, { message: 'field: insufficient balance' }],
  ])('is %s for status %p and %o', (verdict, status, error) => {
    expect(judgeError({ status, message: 'No.', ...error })).toBe(verdict)
  })

  test('is broken for a 403 without an error in the dialect of the upstream, because a proxy in between has sent it', () => {
    expect(judgeError({ status: 403, message: 'The upstream answered with status 403.' }, false)).toBe('broken')
  })

  test('recognizes overload', () => {
    for (const status of [503, 529]) expect(isOverloadError({ status })).toBe(true)
    expect(isOverloadError({ status: 500, type: 'overloaded_error' })).toBe(true)
    expect(isOverloadError({ status: 500, code: 'internal' })).toBe(false)
  })
})
