// Tests that a body is read within its bounds: by its announced length, while it is read, after it was decoded, and in
// time.

import { describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { readBody, readsMax } from './body.ts'
import { BodyBudget, buildBodyBudgetBounds } from './body-budget.ts'
import { BodyDecoder } from './body-decoder.ts'
import type { Arrival } from './server.ts'

const limits = { bytesMax: 1_000, msMax: 5_000 }
const json = { 'content-type': 'application/json' }

interface RequestParts {
  readonly headers?: Record<string, string>
  readonly body?: Uint8Array | string | ReadableStream<Uint8Array>
}

const openBudget = (): BodyBudget => new BodyBudget(buildBodyBudgetBounds(1e9))

function read(
  { headers = json, body = '{}' }: RequestParts,
  readLimits = limits,
  budget = openBudget(),
): Promise<Buffer> {
  const request = new Request('http://weir/', { method: 'POST', headers: { 'content-type': '' }, body })
  const arrival = { request, headers } as Pick<Arrival, 'request' | 'headers'> as Arrival
  const deadlines = new Deadlines(() => performance.now())
  const lease = budget.open({ class: 'caller', name: 'account 1' })
  return readBody(arrival, {
    limits: readLimits,
    readsMin: 1_024,
    deadlines,
    type: 'json',
    lease,
    decoder: new BodyDecoder(deadlines, detail => expect(detail).toBe('')),
  })
}

async function codeOf(request: RequestParts, readLimits = limits): Promise<string> {
  try {
    await read(request, readLimits)
    return 'read'
  } catch (fault) {
    return fault instanceof Refusal ? fault.code : `not a refusal: ${String(fault)}`
  }
}

const readText = async (request: RequestParts): Promise<string> => (await read(request)).toString('utf8')

/** A stream of pieces without a length; `onCancel` is called when the rest is not read. */
function pieces(count: number, size: number, onCancel: () => void = () => {}): ReadableStream<Uint8Array> {
  let left = count
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left-- === 0) controller.close()
      else controller.enqueue(new Uint8Array(size).fill(0x20))
    },
    cancel: onCancel,
  })
}

describe('the type of a body', () => {
  test.each(['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json ;x=y'])(
    'may be %j',
    async type => {
      expect(await codeOf({ headers: { 'content-type': type } })).toBe('read')
    },
  )

  test.each([
    ...['text/plain', 'application/jsonl', 'application/json-seq', 'application/x-www-form-urlencoded'],
    ...['json', '', 'x-application/json', 'text/json; application/json'],
  ])('may not be %j', async type => {
    expect(await codeOf({ headers: { 'content-type': type } })).toBe('content_type_unsupported')
  })

  test('is required', async () => {
    expect(await codeOf({ headers: {}, body: new Uint8Array([0x7b, 0x7d]) })).toBe('content_type_unsupported')
  })
})

describe('the size of a body', () => {
  test('is bounded to the byte', async () => {
    expect(await codeOf({ body: 'x'.repeat(1_000) })).toBe('read')
    expect(await codeOf({ body: 'x'.repeat(1_001) })).toBe('body_too_large')
    const announced = (length: number): RequestParts => {
      return { headers: { ...json, 'content-length': `${length}` }, body: 'x'.repeat(length) }
    }
    expect(await codeOf(announced(1_000))).toBe('read')
    expect(await codeOf(announced(1_001))).toBe('body_too_large')
  })

  test('is checked by Content-Length before anything is read', async () => {
    let pulled = 0
    const body = new ReadableStream<Uint8Array>({ pull: () => void pulled++ }, { highWaterMark: 0 })
    expect(await codeOf({ headers: { ...json, 'content-length': '1001' }, body })).toBe('body_too_large')
    expect(pulled).toBe(0)
  })

  test('is counted while reading without Content-Length', async () => {
    expect(await codeOf({ body: pieces(10, 100) })).toBe('read')
    expect(await codeOf({ body: pieces(101, 10) })).toBe('body_too_large')
  })

  test('stops the reading when it is too large', async () => {
    let cancelled = false
    expect(await codeOf({ body: pieces(1e9, 100, () => (cancelled = true)) })).toBe('body_too_large')
    expect(cancelled).toBe(true)
  })

  test('may be zero', async () => {
    expect(await readText({ body: '' })).toBe('')
    expect(await readText({ headers: { ...json, 'content-length': '0' }, body: '' })).toBe('')
  })
})

describe('the pieces of a body:', () => {
  const largeLimits = { bytesMax: 1024 * 1024, msMax: 30_000 }
  /** A stream that counts the pieces that were read. */
  function countingStream(count: number, size: number): { readonly body: ReadableStream<Uint8Array>; pulled: number } {
    const stream = { body: undefined as unknown as ReadableStream<Uint8Array>, pulled: 0 }
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      if (stream.pulled++ === count) controller.close()
      else controller.enqueue(new Uint8Array(size).fill(0x20))
    }
    stream.body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 })
    return stream
  }

  test.each([1, 7, 32])('too many pieces of %p bytes are refused, and reading stops', async size => {
    const stream = countingStream(1e6, size)
    expect(await codeOf(stream, largeLimits)).toBe('body_in_pieces')
    const most = Math.floor(1_024 / (1 - size / bounds.bodyReadBytesMin)) + bounds.bodyReadBytesMin
    expect(stream.pulled).toBeGreaterThan(1_024)
    expect(stream.pulled).toBeLessThanOrEqual(most)
  })

  test('the first pieces may have any size, up to the exact limit', async () => {
    const most = readsMax(1_024, 1_040)
    expect(most).toBe(1_040)
    expect(await codeOf(countingStream(most, 1), largeLimits)).toBe('read')
    expect(await codeOf(countingStream(most + 1, 1), largeLimits)).toBe('body_in_pieces')
  })

  test('pieces of 64 bytes may be as many as fit', async () => {
    expect(await codeOf(countingStream(16_384, 64), largeLimits)).toBe('read')
  })

  test('an announced length makes no difference', async () => {
    const headers = { ...json, 'content-length': '200000' }
    expect(await codeOf({ headers, body: countingStream(200_000, 1).body }, largeLimits)).toBe('body_in_pieces')
  })

  test('large and small pieces are joined in order, and their memory is counted', async () => {
    const sizes = [1, 4_096, 3, 4_095, 70_000, 1_023, 5_000, 2, 2, 4_000, 66_000, 9, ...Array<number>(900).fill(333)]
    const content = Buffer.from(
      Uint8Array.from({ length: sizes.reduce((a, b) => a + b) }, (_, index) => (index * 31) % 251),
    )
    for (const announced of [false, true]) {
      let offset = 0
      let next = 0
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (next === sizes.length) return controller.close()
          controller.enqueue(new Uint8Array(content.subarray(offset, (offset += sizes[next++]!))))
        },
      })
      const headers = announced ? { ...json, 'content-length': String(content.length) } : json
      const budget = openBudget()
      expect((await read({ headers, body }, largeLimits, budget)).equals(content)).toBe(true)
      const { bytes } = budget.countsOf('caller')
      expect(bytes).toBeGreaterThanOrEqual(content.length)
      expect(bytes).toBeLessThan(content.length + 80_000)
    }
  })

  test('the memory of many pieces includes their overhead', async () => {
    const budget = openBudget()
    await read(countingStream(100, 4_096), largeLimits, budget)
    expect(budget.countsOf('caller').bytes).toBeGreaterThan(100 * (4_096 + 100))
  })

  test('other work runs while many pieces arrive at once', async () => {
    const stream = countingStream(10_000, 64)
    let ticks = 0
    const tick = (): void => {
      ticks++
      timer = setImmediate(tick)
    }
    let timer = setImmediate(tick)
    expect(await codeOf(stream, largeLimits)).toBe('read')
    clearImmediate(timer)
    expect(ticks).toBeGreaterThan(100)
  })
})

describe('the time of a body', () => {
  test('is bounded', async () => {
    const body = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) })
    expect(await codeOf({ body }, { ...limits, msMax: 20 })).toBe('body_too_slow')
  })
})

describe('the encoding of a body:', () => {
  const encoders: Record<string, (bytes: Uint8Array) => Uint8Array> = {
    gzip: bytes => zlib.gzipSync(bytes),
    deflate: bytes => zlib.deflateSync(bytes),
    br: bytes => zlib.brotliCompressSync(bytes),
    zstd: bytes => zlib.zstdCompressSync(bytes),
  }
  const encoded = (encoding: string, body: Uint8Array): RequestParts => {
    return { headers: { ...json, 'content-encoding': encoding }, body }
  }
  const names = Object.keys(encoders)
  const good = Buffer.from('{"text":"Grüße"}')

  test.each(names)('%s is decoded', async name => {
    expect(await readText(encoded(name, encoders[name]!(good)))).toBe(good.toString())
    expect(await readText(encoded(` ${name.toUpperCase()} `, encoders[name]!(good)))).toBe(good.toString())
  })

  test.each(names)('%s is bounded to the byte after decoding', async name => {
    expect(await codeOf(encoded(name, encoders[name]!(Buffer.alloc(1_000, 0x20))))).toBe('read')
    expect(await codeOf(encoded(name, encoders[name]!(Buffer.alloc(1_001, 0x20))))).toBe('body_too_large')
  })

  test.each(names)('%s that becomes larger than a prompt is decoded in a thread, also within its bound', async name => {
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)).toBase64())
    const large = Buffer.concat([noise, Buffer.alloc(bounds.promptBytesMax, 0x20), noise])
    const body = encoders[name]!(large)
    const [enough, tooSmall] = [large.length, large.length - 1].map(bytesMax => ({ ...limits, bytesMax }))
    expect((await read(encoded(name, body), enough)).equals(large)).toBeTrue()
    expect(await codeOf(encoded(name, body), tooSmall)).toBe('body_too_large')
    const cut = body.subarray(0, -5)
    if (name !== 'zstd') expect(await codeOf(encoded(name, cut), enough)).toBe('encoding_invalid')
  })

  test.each(names)('%s that is a decompression bomb is refused', async name => {
    const bomb = encoders[name]!(Buffer.alloc(300_000, 0x20))
    expect(bomb.byteLength).toBeLessThan(1_000)
    expect(await codeOf(encoded(name, bomb))).toBe('body_too_large')
  })

  test.each(names)('%s is refused if the body has no such encoding', async name => {
    expect(await codeOf(encoded(name, good))).toBe('encoding_invalid')
  })

  // The runtime returns the first part of a zstd body that was cut off. Such a body is refused later, as invalid JSON.
  test.each(['gzip', 'deflate', 'br'])('%s that was cut off is refused', async name => {
    const encodedBody = encoders[name]!(good)
    for (const missing of [1, 5, encodedBody.byteLength]) {
      const cut = encodedBody.subarray(0, encodedBody.byteLength - missing)
      expect([missing, await codeOf(encoded(name, cut))]).toEqual([missing, 'encoding_invalid'])
    }
  })

  test('identity means no encoding', async () => {
    expect(await readText(encoded('identity', good))).toBe(good.toString())
    expect(await readText(encoded('Identity', good))).toBe(good.toString())
  })

  test.each(['compress', 'x', 'gzip, br', 'gzip gzip', 'constructor', '__proto__', 'tostring', 'valueof'])(
    '%j is not supported',
    async name => {
      const verdict = codeOf(encoded(name, good))
      // A value that is not a decoder might never call back.
      const silence = new Promise<string>(resolve => setTimeout(resolve, 1_000, 'silence'))
      expect(await Promise.race([verdict, silence])).toBe('encoding_unsupported')
    },
  )
})
