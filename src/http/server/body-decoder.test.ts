// Tests the queues of compressed bodies: small bodies do not wait for large ones, and no body waits for nobody.

import { expect, test } from 'bun:test'
import zlib from 'node:zlib'
import { until } from '../../../test/support/gateway.ts'
import { HeldThreads } from '../../../test/support/held-threads.ts'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { BodyDecoder } from './body-decoder.ts'

/** A decoder with a clock of its own, whose thread gets no core. */
class HeldDecoder implements Disposable {
  readonly threads = new HeldThreads('decode-thread.ts')
  readonly deadlines = new Deadlines(() => this.#nowMs)
  readonly decoder = new BodyDecoder(this.deadlines, detail => expect(detail).toBe(''))
  #nowMs = 0

  decode(bytes: Uint8Array, owner: string, throwIfGone = (): void => {}): Promise<unknown> {
    const body = { encoding: 'gzip', bytes, owner, bytesMax: bounds.bodyBytesMax, throwIfGone } as const
    return this.decoder.decode(body).then(
      decoded => decoded.length,
      (fault: unknown) => (fault instanceof Refusal ? fault.code : fault),
    )
  }

  pass(ms: number): void {
    this.#nowMs += ms
    this.deadlines.fireDue()
  }

  [Symbol.dispose](): void {
    this.decoder.close()
    this.threads[Symbol.dispose]()
  }
}

const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)).toBase64())
const compress = (padding: number): Uint8Array => zlib.gzipSync(Buffer.concat([noise, Buffer.alloc(padding, 0x20)]))
const small = compress(0)
const smallLength = noise.length
const large = compress(bounds.promptBytesMax)

const soon = (decoded: Promise<unknown>): Promise<unknown> =>
  Promise.race([decoded, Bun.sleep(60_000).then(() => 'waits')])

test('small bodies do not wait for large ones, which are decoded one at a time', async () => {
  using held = new HeldDecoder()
  const owners = Array.from({ length: bounds.decodingsMax }, (_, index) => `account ${index}`)
  const larges = owners.map(owner => held.decode(large, owner))
  for (const owner of [...owners, 'another account']) expect(await soon(held.decode(small, owner))).toBe(smallLength)
  expect(held.threads.requests).toHaveLength(1)
  held.pass(bounds.bodyWorkerMsMax)
  expect(await Promise.all(larges)).toEqual(owners.map(() => 'overloaded'))
})

/** Starts to decode a large body, which occupies the thread. */
async function occupyThread(held: HeldDecoder): Promise<{ result: Promise<unknown> }> {
  const result = held.decode(large, 'first')
  await until(() => held.threads.requests.length > 0, 'a large body has reached the thread')
  return { result }
}

test('a large body that waits too long leaves the queue, its memory is free, and no thread decodes it', async () => {
  using held = new HeldDecoder()
  const { result: running } = await occupyThread(held)
  const memory: WeakRef<Uint8Array>[] = []
  const decodeAndForget = (owner: string): Promise<unknown> => {
    const bytes = new Uint8Array(large)
    memory.push(new WeakRef(bytes))
    return held.decode(bytes, owner)
  }
  const owners = ['first', 'second', 'third']
  const waiting = owners.map(decodeAndForget)
  // The small body of an account has its turn when the large one waits for the thread.
  for (const owner of owners) expect(await soon(held.decode(small, owner))).toBe(smallLength)
  held.pass(bounds.bodyWorkerMsMax)
  expect(await running).toBe('overloaded')
  expect(await Promise.all(waiting)).toEqual(owners.map(() => 'overloaded'))
  expect(held.deadlines.size).toBe(0)
  const isFree = (): boolean => {
    Bun.gc(true)
    return memory.every(ref => ref.deref() === undefined)
  }
  await until(isFree, 'the bodies are free')
  const next = held.decode(large, 'fourth')
  expect(await soon(held.decode(small, 'fourth'))).toBe(smallLength)
  held.decoder.close() // ends the one that runs
  await until(() => held.threads.requests.length > 1, 'the next body has reached a thread')
  held.decoder.close()
  expect(await next).toBe('draining')
  expect(held.threads.requests).toHaveLength(2) // the one that ran, and the next
})

test('a large body whose caller leaves while it waits leaves the queue at once', async () => {
  using held = new HeldDecoder()
  const { result: running } = await occupyThread(held)
  const gone = new Error('gone')
  let isGone = false
  const waiting = held.decode(large, 'second', () => {
    if (isGone) throw gone
  })
  expect(await soon(held.decode(small, 'second'))).toBe(smallLength)
  isGone = true
  held.pass(1_000)
  expect(await soon(waiting)).toBe(gone)
  held.decoder.close()
  expect(await running).toBe('draining')
  expect(held.threads.requests).toHaveLength(1)
})
