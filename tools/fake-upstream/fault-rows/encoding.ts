// F20: answers that are compressed although the client did not ask for it: once, many times, or as a bomb.

import { constants, crc32, deflateRawSync, gzipSync } from 'node:zlib'
import { buildBodyTo } from '../answers.ts'
import type { Script } from '../script.ts'
import { bytes, chunk, end, head, scripted } from '../script.ts'
import type { FaultKit, FaultRow } from './fault.ts'

const BLOCK_BYTES = 1024 * 1024

function encoded({ dialect }: FaultKit, encoding: string, encode: (body: Uint8Array) => Uint8Array): Script {
  return scripted(function* compressed(request) {
    const { contentType, body } = buildBodyTo(request, 'Hello', { dialect })
    const sent = encode(body)
    const length = String(sent.length)
    yield head(200, { 'content-type': contentType, 'content-encoding': encoding, 'content-length': length })
    yield bytes(sent)
    yield end
  })
}

function gzipTimes(times: number, body: Uint8Array): Uint8Array {
  let wrapped = body
  for (let left = times; left > 0; left--) wrapped = gzipSync(wrapped)
  return wrapped
}

/** A part of a deflate stream that does not refer to earlier parts, so that it can be repeated. */
const deflatePart = (data: Uint8Array) => deflateRawSync(data, { finishFlush: constants.Z_FULL_FLUSH })

/**
 * One valid gzip member: a good answer, then spaces up to the size. Each byte that is sent becomes a thousand bytes. The
 * checksum is correct, because a bomb that ends in an error would be detected too easily.
 */
export function* gzipBomb(body: Uint8Array, length: number): Iterable<Uint8Array> {
  const blank = Buffer.alloc(BLOCK_BYTES, ' ')
  const blankPart = deflatePart(blank)
  yield Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
  yield deflatePart(body)
  let checksum = crc32(body)
  let total = body.length
  while (total < length) {
    const rest = Math.min(BLOCK_BYTES, length - total)
    const part = blank.subarray(0, rest)
    yield rest === BLOCK_BYTES ? blankPart : deflatePart(part)
    checksum = crc32(part, checksum)
    total += rest
  }
  const trailer = Buffer.alloc(10)
  trailer.set([0x03, 0x00]) // an empty last block
  trailer.writeUInt32LE(checksum, 2)
  trailer.writeUInt32LE(total % 2 ** 32, 6)
  yield trailer
}

function bomb({ dialect, settings }: FaultKit): Script {
  return scripted(function* bombed(request) {
    const { contentType, body } = buildBodyTo(request, 'Hello', { dialect })
    const framing = { 'content-encoding': 'gzip', 'transfer-encoding': 'chunked' }
    yield head(200, { 'content-type': contentType, ...framing })
    for (const piece of gzipBomb(body, settings.bombBytes)) yield chunk(piece)
    yield end
  })
}

export function encodingFaults(kit: FaultKit): readonly FaultRow[] {
  const { encodings } = kit.settings
  const names = Array.from({ length: encodings }, () => 'gzip').join(', ')
  return [
    ['F20', 'gzip unasked', 'either', encoded(kit, 'gzip', body => gzipSync(body))],
    ['F20', 'gzip in name only', 'either', encoded(kit, 'gzip', body => body)],
    ['F20', 'an encoding that nobody knows', 'either', encoded(kit, 'rot13', body => body)],
    ['F20', 'a gzip bomb', 'either', bomb(kit)],
    ['F20', 'a hundred encodings', 'either', encoded(kit, names, body => gzipTimes(encodings, body))],
  ]
}
