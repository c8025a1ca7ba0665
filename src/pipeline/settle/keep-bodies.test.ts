// What happens to a call's idempotency key: stored with its answer, stored without it, or released.

import { describe, expect, test } from 'bun:test'
import { Deadlines } from '../../base/deadlines.ts'
import { Seal } from '../../base/secrets/seal.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import type { Outcome } from '../../billing/who-pays.ts'
import { LargeBodyReader } from '../../protocols/request/large-json.ts'
import type { Exchange } from '../exchange.ts'
import { readClaim } from '../lifetime/idempotency.ts'
import { BodyRecorder } from './body-recorder.ts'
import { buildBodyStorage } from './keep-bodies.ts'

/** An account that may store no more answers. */
const FULL = 9

const bodyStorage = buildBodyStorage({
  seal: new Seal(buildSecretRing('x'.repeat(40))),
  answerQuota: { take: accountId => accountId !== FULL },
  bodies: { store() {}, countDropped() {} },
})
const requestWithKey = (path: string) => ({ path, query: () => null, header: () => 'once' })

interface TestCall {
  readonly stream: boolean
  readonly content: boolean
  readonly bytes?: number
  readonly claimed?: boolean
  readonly accountId?: number
}

function keyAfter(outcome: Outcome, call: TestCall) {
  const { stream, content, bytes = 5, claimed = true, accountId = 1 } = call
  const recorder = new BodyRecorder({ bytes: new Uint8Array(), truncated: false }, 10)
  recorder.take(new Uint8Array(bytes))
  const claim = claimed ? { claim: readClaim(requestWithKey('/a'), Buffer.from('{}')) } : undefined
  const exchange = {
    callId: 7,
    call: { stream },
    permit: { caller: { accountId } },
    attempt: { meter: { content } },
    options: { recorder, ...claim },
  } as unknown as Exchange
  const { idempotency } = bodyStorage.idempotencyEnd(exchange, { outcome, status: 200 })
  if (typeof idempotency !== 'object') return idempotency
  return idempotency.sealed === null ? 'stored without its answer' : 'stored'
}

const outcomes: readonly (readonly [Outcome, plain: string, emptyStream: string, stream: string])[] = [
  ['completed', 'stored', 'stored', 'stored'],
  ['client_left', 'release', 'release', 'stored'],
  ['refused', 'release', 'release', 'stored'],
  ['upstream_failed', 'release', 'release', 'stored'],
  ['too_long', 'release', 'release', 'stored'],
  ['drained', 'release', 'release', 'stored'],
  ['revoked', 'release', 'release', 'stored'],
  ['gateway_fault', 'release', 'release', 'release'], // nobody paid for the answer
]

test.each(outcomes)(
  'the key of a call that ended with %s: plain answer: %s, stream without content: %s, stream with content: %s',
  (...row) => {
    const [outcome, plain, empty, stream] = row
    expect(keyAfter(outcome, { stream: false, content: true })).toBe(plain as never)
    expect(keyAfter(outcome, { stream: true, content: false })).toBe(empty as never)
    expect(keyAfter(outcome, { stream: true, content: true })).toBe(stream as never)
  },
)

test('the key of an answer for which its account has no room is stored without the answer', () => {
  const call = { stream: false, content: true }
  expect(keyAfter('completed', { ...call, accountId: FULL })).toBe('stored without its answer')
  expect(keyAfter('refused', { ...call, accountId: FULL })).toBe('release')
})

test('the key of a too long answer is stored without the answer; a call without a key stores nothing', () => {
  expect(keyAfter('completed', { stream: false, content: true, bytes: 11 })).toBe('stored without its answer')
  expect(keyAfter('completed', { stream: false, content: true, claimed: false })).toBeUndefined()
})

describe('a request is the same', () => {
  const fingerprint = (path: string, body: string) =>
    readClaim(requestWithKey(path), Buffer.from(body))!.key.fingerprint
  test('only with the same path and the same bytes', () => {
    expect(fingerprint('/a', '{}')).toBe(fingerprint('/a', '{}'))
    expect(fingerprint('/b', '{}')).not.toBe(fingerprint('/a', '{}'))
    expect(fingerprint('/a', '{} ')).not.toBe(fingerprint('/a', '{}'))
  })

  test('also if its body is large: then the hash that another thread computed is compared', async () => {
    const deadlines = new Deadlines(() => performance.now())
    const largeJson = new LargeBodyReader({ deadlines, onFault: detail => expect(detail).toBe('') })
    const readLarge = async (body: string) => await largeJson.read(Buffer.from(body), { name: 'a', throwIfGone() {} })
    const fingerprintOf = (path: string, body: Buffer) => readClaim(requestWithKey(path), body)!.key.fingerprint
    try {
      const [body, sameBody] = [await readLarge('{"a":1}'), await readLarge('{"a":1}')]
      expect(fingerprintOf('/a', body)).toBe(fingerprintOf('/a', sameBody))
      expect(fingerprintOf('/b', body)).not.toBe(fingerprintOf('/a', sameBody))
      expect(fingerprintOf('/a', await readLarge('{"a":2}'))).not.toBe(fingerprintOf('/a', body))
      sameBody.fill(0) // the bytes are not read again
      expect(fingerprintOf('/a', body)).toBe(fingerprintOf('/a', sameBody))
    } finally {
      largeJson.close()
    }
  })
})
