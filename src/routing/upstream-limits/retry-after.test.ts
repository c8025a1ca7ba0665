// Tests how retry times and limits are read, with values that real upstreams have sent.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../../base/bounds.ts'
import { readUpstreamLimits } from './headers.ts'
import { readRetryAfter } from './retry-after.ts'

const NOW = Date.UTC(2026, 10, 15, 12, 0, 0)
const HOUR_MS = 3_600_000
const httpDate = (ms: number): string => new Date(ms).toUTCString()
const from = (headers: Readonly<Record<string, string>>) => (name: string) => headers[name] ?? null

const usable: readonly (readonly [string, number])[] = [
  ['1', 1_000],
  ['30', 30_000],
  [' 7 ', 7_000],
  ['0.5', 500],
  ['007', 7_000],
  ['3600', HOUR_MS],
  ['3601', HOUR_MS],
  ['31536000', HOUR_MS],
  ['999999999', HOUR_MS],
  [String((NOW + 20_000) / 1_000), 20_000],
  ['20s', 20_000],
  ['1.5s', 1_500],
  ['6m0s', 360_000],
  ['1h2m3s', HOUR_MS],
  ['20ms', 20],
  ['1m0.25s', 60_250],
  ['2d', HOUR_MS],
  [httpDate(NOW + 5_000), 5_000],
  [httpDate(NOW + 365 * 24 * HOUR_MS), HOUR_MS],
  ['Sunday, 15-Nov-26 12:00:09 GMT', 9_000],
  ['2026-11-15T12:00:03Z', 3_000],
]

const unusable: readonly string[] = [
  ...['', ' ', '0', '0.0', '-1', '-30', '+5', 'soon', 'NaN', 'Infinity', '1e9', '0x10', '1,5', '10 seconds'],
  ...['1 s', 's', '5m5', '--', 'null', 'undefined', '1;2', '\u0660\u0661', '9'.repeat(30)],
  ...['1s'.repeat(20), '1s1s1q'],
  ...[httpDate(NOW), httpDate(NOW - 60_000), '1970-01-01T00:00:00Z'],
  ...['Mon, 99 Foo 2026 99:99:99 GMT', '2026-13-45T99:99'],
]

describe('Retry-After', () => {
  test.each([...usable])('%p means %p ms', (text, ms) => {
    expect(readRetryAfter(from({ 'retry-after': text }), NOW)).toBe(ms)
  })

  test.each([...unusable])('%p is ignored', text => {
    expect(readRetryAfter(from({ 'retry-after': text }), NOW)).toBeUndefined()
  })

  test('in milliseconds comes first, if it is usable', () => {
    expect(readRetryAfter(from({ 'retry-after-ms': '250', 'retry-after': '9' }), NOW)).toBe(250)
    expect(readRetryAfter(from({ 'retry-after-ms': 'x', 'retry-after': '9' }), NOW)).toBe(9_000)
    expect(readRetryAfter(from({ 'retry-after-ms': '99999999999' }), NOW)).toBe(HOUR_MS)
    expect(readRetryAfter(from({}), NOW)).toBeUndefined()
  })

  test.each([-600_000, 600_000, -HOUR_MS * 9_999])(
    'means the same when the clock of the gateway is off by %p ms',
    offsetMs => {
      const headers = { 'date': httpDate(NOW), 'retry-after': httpDate(NOW + 8_000) }
      expect(readRetryAfter(from(headers), NOW + offsetMs)).toBe(8_000)
      expect(readRetryAfter(from({ 'retry-after': '8' }), NOW + offsetMs)).toBe(8_000)
      // Without the upstream's own clock the wait is never more than an hour.
      const withoutDate = readRetryAfter(from({ 'retry-after': httpDate(NOW + 8_000) }), NOW + offsetMs)
      expect(withoutDate ?? 1).toBeWithin(0, HOUR_MS + 1)
    },
  )

  test('with any text is ignored or within an hour', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9smhdGMT:, .-]{1,20}$/), fc.date().map(String))
    fc.assert(
      fc.property(text, text, fc.integer(), (after, date, now) => {
        const ms = readRetryAfter(from({ 'retry-after': after, date }), now)
        if (ms !== undefined) expect(ms > 0 && ms <= bounds.channelPauseMsMax).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the limits that upstreams report', () => {
  test.each<[string, Record<string, string>, unknown]>([
    ['no headers', {}, undefined],
    ['no remaining amount', { 'x-ratelimit-limit-requests': '60' }, undefined],
    [
      'requests and tokens',
      {
        'x-ratelimit-limit-requests': '60',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '6m0s',
        'x-ratelimit-limit-tokens': '150000',
        'x-ratelimit-remaining-tokens': '149984',
        'x-ratelimit-reset-tokens': '12ms',
      },
      [
        { resource: 'requests', limit: 60, remaining: 0, resetMs: 360_000 },
        { resource: 'tokens', limit: 150_000, remaining: 149_984, resetMs: 12 },
      ],
    ],
    [
      'dates, by the clock of the upstream',
      {
        'date': httpDate(NOW - 5_000),
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': '1',
        'anthropic-ratelimit-requests-reset': new Date(NOW + 5_000).toISOString(),
        'anthropic-ratelimit-input-tokens-remaining': '7',
        'anthropic-ratelimit-tokens-remaining': '3',
      },
      [
        { resource: 'requests', limit: 50, remaining: 1, resetMs: 10_000 },
        { resource: 'tokens', remaining: 3 },
      ],
    ],
    [
      'a reset in seconds',
      { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '2.5' },
      [{ resource: 'tokens', remaining: 0, resetMs: 2_500 }],
    ],
    [
      'invalid values',
      {
        'x-ratelimit-limit-requests': '1e400',
        'x-ratelimit-remaining-requests': '-5',
        'x-ratelimit-remaining-tokens': '5',
        'x-ratelimit-limit-tokens': '0',
        'x-ratelimit-reset-tokens': 'never',
      },
      [{ resource: 'tokens', remaining: 5 }],
    ],
  ])('are read: %s', (_, headers, limits) => {
    expect(readUpstreamLimits(from(headers)) as unknown).toEqual(limits)
  })

  test('have a date without the clock of the upstream compared with the clock of the gateway, if it is given', () => {
    const headers = {
      'anthropic-ratelimit-requests-remaining': '0',
      'anthropic-ratelimit-requests-reset': new Date(NOW + 5_000).toISOString(),
    }
    expect(readUpstreamLimits(from(headers))).toEqual([{ resource: 'requests', remaining: 0 }])
    expect(readUpstreamLimits(from(headers), NOW)).toEqual([{ resource: 'requests', remaining: 0, resetMs: 5_000 }])
  })
})
