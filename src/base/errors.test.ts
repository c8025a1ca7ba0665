// Tests the table of errors, and the error that a dialect writes.

import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from './errors.ts'
import { buildErrorReply, errorRows, Refusal } from './errors.ts'
import { hintOf } from './hints.ts'

const rows = Object.entries(errorRows) as [ErrorCode, (typeof errorRows)[ErrorCode]][]

/** The status of each error. */
const statuses: Readonly<Record<number, readonly ErrorCode[]>> = {
  400: [
    ...(['json_invalid', 'json_too_deep', 'body_not_object', 'encoding_invalid', 'body_in_pieces'] as const),
    ...(['field_duplicate', 'field_missing', 'field_invalid', 'model_malformed', 'model_ambiguous'] as const),
    'service_unpriced',
  ],
  401: ['key_missing', 'key_invalid', 'token_invalid'],
  402: ['balance_too_low'],
  404: ['provider_unknown', 'model_unknown', 'path_unknown'],
  405: ['method_not_allowed'],
  408: ['body_too_slow'],
  413: ['body_too_large'],
  415: ['content_type_unsupported', 'encoding_unsupported', 'encoding_refused'],
  426: ['upgrade_refused'],
  429: ['qpm_exceeded'],
  431: ['head_too_large'],
  500: ['gateway_fault', 'settle_failed'],
  502: ['upstream_unusable', 'upstream_failed'],
  503: ['no_channel', 'upstream_rate_limited', 'price_unknown', 'overloaded', 'storage_away', 'draining'],
  504: ['upstream_too_slow'],
}

describe('the table of errors', () => {
  test.each(Object.entries(statuses))('has the status %s for its codes', (status, codes) => {
    for (const code of codes) expect([code, errorRows[code].status]).toEqual([code, Number(status)])
  })

  test('has an error status and a sentence of its own in every row', () => {
    const messages = new Set<string>()
    for (const [code, { status, message }] of rows) {
      expect([code, status >= 400 && status <= 599]).toEqual([code, true])
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
      expect(message).toMatch(/^[A-Z].*\.$/)
      messages.add(message)
    }
    expect(messages.size).toBe(rows.length)
  })

  test('has no retries for errors of the caller, and the kind authentication for all 401', () => {
    for (const [code, { status, retry, kind }] of rows) {
      if ([400, 401, 402, 404, 405, 413, 415, 426, 431].includes(status)) expect([code, retry]).toEqual([code, false])
      expect([code, kind === 'authentication']).toEqual([code, status === 401])
    }
  })
})

describe('buildErrorReply', () => {
  test('does not show the detail, which is for the log, to the caller', () => {
    const refusal = new Refusal('key_invalid', 'key 7 of account 3 is revoked')
    expect(refusal.message).toContain('account 3')
    expect(JSON.stringify(buildErrorReply(refusal, 'req_1'))).not.toContain('account 3')
  })

  test('adds the hint to the text, and passes on param and wait', () => {
    const refusal = new Refusal('qpm_exceeded', '', { hint: hintOf('starting'), param: 'model', retryAfterMs: 7 })
    expect(buildErrorReply(refusal, 'req_1')).toEqual({
      code: 'qpm_exceeded',
      status: 429,
      kind: 'rate_limit',
      message: `${errorRows.qpm_exceeded.message} The gateway is starting.`,
      requestId: 'req_1',
      param: 'model',
      retryAfterMs: 7,
    })
  })

  test.each([
    [400, 'invalid_request'],
    [404, 'not_found'],
    [413, 'too_large'],
    [422, 'invalid_request'],
  ] as const)('keeps the message of an upstream error %p, with the kind %s', (status, kind) => {
    const upstream = { status, message: 'I do not like it.' }
    const reply = buildErrorReply(new Refusal('upstream_refused', '', { upstream }), 'req_1')
    expect(reply).toMatchObject({ status, kind, message: upstream.message, upstream })
  })
})
