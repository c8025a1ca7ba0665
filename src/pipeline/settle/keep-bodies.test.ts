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

const keeping = buildBodyStorage({
  seal: new Seal(buildSecretRing('x'.repeat(40))),
  bodies: { store() {}, countDropped() {} },
})
const claiming = (path: string) => ({ path, query: () => null, header: () => 'once' })

function ended(outcome: Outcome, seen: { stream: boolean; content: boolean; bytes?: number; claimed?: boolean }) {
  const { stream, content, bytes = 5, claimed = true } = seen
  const recorder = new BodyRecorder({ bytes: new Uint8Array(), truncated: false }, 10)
  recorder.take(new Uint8Array(bytes))
  const claim = claimed ? { claim: readClaim(claiming('/a'), Buffer.from('{}')) } : undefined
  const exchange = {
    callId: 7,
    call: { stream },
    attempt: { meter: { content } },
    options: { recorder, ...claim },
  } as unknown as Exchange
  const { idempotency } = keeping.idempotencyEnd(exchange, { outcome, status: 200 })
  if (typeof idempotency !== 'object') return idempotency
  return idempotency.sealed === null ? 'unkept' : 'kept'
}

const outcomes: readonly (readonly [Outcome, plain: string, emptyStream: string, stream: string])[] = [
  ['completed', 'kept', 'kept', 'kept'],
  ['client_left', 'release', 'release', 'kept'],
  ['refused', 'release', 'release', 'kept'],
  ['upstream_failed', 'release', 'release', 'kept'],
  ['too_long', 'release', 'release', 'kept'],
  ['drained', 'release', 'release', 'kept'],
  ['revoked', 'release', 'release', 'kept'],
  ['gateway_fault', 'release', 'release', 'release'], // nobody paid for it
]

test.each(outcomes)('%s: plain %s, a stream without content %s, with %s', (...row) => {
  const [outcome, plain, empty, stream] = row
  expect(ended(outcome, { stream: false, content: true })).toBe(plain as never)
  expect(ended(outcome, { stream: true, content: false })).toBe(empty as never)
  expect(ended(outcome, { stream: true, content: true })).toBe(stream as never)
})

test('a long answer is not stored and its key is not released; a call without a key has none', () => {
  expect(ended('completed', { stream: false, content: true, bytes: 11 })).toBe('unkept')
  expect(ended('completed', { stream: false, content: true, claimed: false })).toBeUndefined()
})

describe('a request is the same', () => {
  const fingerprint = (path: string, body: string) => readClaim(claiming(path), Buffer.from(body))!.key.fingerprint
  test('only with the same path and the same bytes', () => {
    expect(fingerprint('/a', '{}')).toBe(fingerprint('/a', '{}'))
    expect(fingerprint('/b', '{}')).not.toBe(fingerprint('/a', '{}'))
    expect(fingerprint('/a', '{} ')).not.toBe(fingerprint('/a', '{}'))
  })

  test('also if it is large: the hash that another thread took stands for it', async () => {
    const deadlines = new Deadlines(() => performance.now())
    const largeJson = new LargeBodyReader({ deadlines, onFault: detail => expect(detail).toBe('') })
    const looked = async (body: string) => await largeJson.read(Buffer.from(body), { name: 'a', throwIfGone() {} })
    const of = (path: string, body: Buffer) => readClaim(claiming(path), body)!.key.fingerprint
    try {
      const [one, same] = [await looked('{"a":1}'), await looked('{"a":1}')]
      expect(of('/a', one)).toBe(of('/a', same))
      expect(of('/b', one)).not.toBe(of('/a', same))
      expect(of('/a', await looked('{"a":2}'))).not.toBe(of('/a', one))
      same.fill(0) // nobody reads it again
      expect(of('/a', one)).toBe(of('/a', same))
    } finally {
      largeJson.close()
    }
  })
})
