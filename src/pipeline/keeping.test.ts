// What becomes of an idempotency key when its call is over, and what is in the memory of a call until then.

import { describe, expect, test } from 'bun:test'
import { Seal } from '../base/seal.ts'
import { Secret } from '../base/secret.ts'
import type { Ending, Exchange } from './exchange.ts'
import { readClaim } from './idempotency.ts'
import { buildKeeping } from './keeping.ts'
import { Recorder } from './recorder.ts'

const bytes = (text: string): Buffer => Buffer.from(text)
const claimAt = (path: string, name = 'n', body = 'b') =>
  readClaim({ path, header: asked => (asked === 'idempotency-key' ? name : undefined) }, bytes(body))!

describe('a fingerprint', () => {
  test('is of the path and of the body', () => {
    const { fingerprint } = claimAt('/v1/a').key
    expect(claimAt('/v1/a').key.fingerprint).toBe(fingerprint)
    expect(claimAt('/v1/b').key.fingerprint).not.toBe(fingerprint)
    expect(claimAt('/v1/a', 'n', 'c').key.fingerprint).not.toBe(fingerprint)
  })
})

describe('a recorder', () => {
  test('begun anew knows nothing of what did not fit before', () => {
    const recorder = new Recorder({ bytes: bytes('asked'), truncated: false }, 4)
    recorder.begin('text/plain')
    recorder.take(bytes('too long'))
    expect([recorder.answer.toString(), recorder.overflowed]).toEqual(['too ', true])
    recorder.begin('application/json')
    recorder.take(bytes('{}'))
    expect([recorder.answer.toString(), recorder.overflowed, recorder.contentType]).toEqual([
      '{}',
      false,
      'application/json',
    ])
  })
})

describe('the key of a call', () => {
  const keeping = buildKeeping({ seal: new Seal(new Secret('s'.repeat(43))), bodies: { keep: () => {} } })

  function endOf(outcome: Ending['outcome'], { stream = false, content = false, long = false } = {}): string {
    const recorder = new Recorder({ bytes: bytes(''), truncated: false }, 4)
    recorder.take(bytes(long ? 'too long' : 'ok'))
    const told = { callId: 7, claim: claimAt('/v1/a'), recorder, call: { stream }, meter: { content } }
    const { idempotency } = keeping.claimEnd(told as unknown as Exchange, { outcome, status: 200 })
    if (typeof idempotency !== 'object') return String(idempotency)
    return idempotency.sealed === null ? 'taken' : 'kept'
  }

  test.each([
    ['completed', {}, 'kept'],
    ['completed', { long: true }, 'taken'],
    ['upstream_failed', {}, 'release'],
    ['upstream_failed', { stream: true }, 'release'],
    ['upstream_failed', { content: true }, 'release'],
    ['upstream_failed', { stream: true, content: true }, 'kept'],
    ['client_left', { stream: true, content: true }, 'kept'],
    ['gateway_fault', { stream: true, content: true }, 'release'],
    ['refused', {}, 'release'],
  ] as const)('that ended as %s %o is %s', (outcome, how, becomes) => {
    expect(endOf(outcome, how)).toBe(becomes)
  })
})
