// Tests how much memory the fetched media of calls may take, and when it is returned.

import { beforeEach, expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { Stop } from '../../base/stop.ts'
import type { FetchMedia } from '../../http/client/media-fetch.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import type { Codec } from '../../protocols/protocol.ts'
import type { CallLifetime } from '../exchange.ts'
import type { MediaCall, ResolveMedia } from './media.ts'
import { buildResolveMedia } from './media.ts'
import { MediaMemory } from './media-memory.ts'

const { mediaPerCallBytesMax, mediaBytesMax } = bounds
const MIB = 1024 * 1024
/** A byte of media counts as three bytes of memory, and one call with the most media always has room. */
const oneCall = 3 * mediaPerCallBytesMax

let memory: MediaMemory
let resolveMedia: ResolveMedia
/** The size of the next files. */
let fileBytes: number

const fetchMedia: FetchMedia = async (url, stop) => {
  stop.throwIfStopped()
  if (url.endsWith('broken')) throw new Error('broken')
  return { mime: 'image/png', bytes: Buffer.alloc(fileBytes) }
}

beforeEach(() => {
  memory = new MediaMemory({ ownBytesMax: 0, bytesMax: 2 * oneCall })
  resolveMedia = buildResolveMedia(fetchMedia, memory)
  fileBytes = 16 * MIB
})

const codec = { mustInline: () => true } as unknown as Codec

function callOf(accountId: number): MediaCall {
  const lifetime = { stop: new Stop() } as unknown as CallLifetime
  return { lifetime, permit: { caller: { accountId } } } as unknown as MediaCall
}

function fetchFor(call: MediaCall, files: readonly string[]): Promise<unknown> {
  const parts = files.map(name => ({ kind: 'image', source: { at: 'url', url: `https://a.test/${name}` } }))
  const said = { messages: [{ parts }] } as unknown as Conversation
  return resolveMedia(said, codec, call).then(
    ({ size }) => size,
    (fault: Refusal) => fault.code ?? fault.message,
  )
}

const files = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `${index}`)

test('the media of one account are limited until its calls have their answers', async () => {
  const [first, second, other] = [callOf(1), callOf(1), callOf(2)]
  expect(await fetchFor(first, files(4))).toBe(4)
  expect(memory.bytes).toBe(oneCall)
  expect(await fetchFor(second, files(1))).toBe('concurrency_exceeded')
  expect(await fetchFor(other, files(4))).toBe(4)
  expect(await fetchFor(callOf(3), files(1))).toBe('overloaded')
  expect(memory.bytes).toBe(2 * oneCall)
  first.lifetime.media!.close()
  first.lifetime.media!.close()
  expect(memory.bytes).toBe(oneCall)
  expect(await fetchFor(second, files(1))).toBe(1)
})

test('another attempt returns what the last one has fetched', async () => {
  const call = callOf(1)
  for (const _attempt of [1, 2, 3]) expect(await fetchFor(call, files(4))).toBe(4)
  expect(memory.bytes).toBe(oneCall)
  expect(await fetchFor(call, [])).toBe(0)
  expect(memory.bytes).toBe(0)
})

test.each([
  ['a file that cannot be fetched', ['1', '2', 'broken']],
  ['more than one call may have', files(5)],
])('nothing counts after %s', async (_name, names) => {
  expect(await fetchFor(callOf(1), names)).toBeOneOf(['broken', 'media_refused'])
  expect(memory.bytes).toBe(0)
})

test('bytes count while they arrive, and too many stop the other downloads', async () => {
  const stops: Stop<Error>[] = []
  const arrive: ((bytes: number) => void)[] = []
  resolveMedia = buildResolveMedia((_url, stop, reader) => {
    stops.push(stop)
    arrive.push(reader!.onBytes!)
    return stop.race(new Promise<never>(() => {}))
  }, memory)
  const fetching = fetchFor(callOf(1), files(4))
  const other = fetchFor(callOf(1), files(1))
  for (const onBytes of arrive.slice(0, 3)) onBytes(mediaBytesMax)
  expect(memory.bytes).toBe(9 * mediaBytesMax)
  arrive[3]!(1 * MIB)
  arrive[3]!(3 * MIB)
  expect(memory.bytes).toBe(9 * mediaBytesMax + 9 * MIB)
  arrive[4]!(2 * MIB)
  expect(await other).toBe('concurrency_exceeded')
  expect([stops[0]!.reason, memory.bytes]).toEqual([undefined, 9 * mediaBytesMax + 9 * MIB])
  arrive[3]!(5 * MIB)
  expect([await fetching, memory.bytes]).toEqual(['media_refused', 0])
  arrive[0]!(mediaBytesMax + 1)
  expect(memory.bytes).toBe(0)
})
