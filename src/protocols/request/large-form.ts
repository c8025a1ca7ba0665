// Parses forms: their parts, and the duration of their audio files. Large forms are parsed in another thread, and the
// result is cached here.

import { createHash } from 'node:crypto'
import type { FormPart } from '../../http/server/multipart.ts'
import { boundaryOf, readForm } from '../../http/server/multipart.ts'
import { measureAudioSeconds } from '../openai-passthrough/audio-duration.ts'

/** A longer text counts as a file, even without a file name. */
const TEXT_BYTES_MAX = 64 * 1024

export const isFile = ({ filename, start, end }: FormPart): boolean =>
  filename !== undefined || end - start > TEXT_BYTES_MAX

/** A parsed form. Plain data, because it may come from another thread. */
export interface ParsedForm {
  /** A string says why the body is no form. */
  readonly parts: readonly FormPart[] | string
  /** The duration of each audio file in seconds, by the start of the file in the body. */
  readonly audioSeconds: ReadonlyMap<number, number>
  /** The SHA-256 of the parts in hex, whatever the boundary between them. */
  readonly hash: string | undefined
}

/** Undefined if the content type has no valid boundary. */
export function parseForm(body: Buffer, contentType: string): ParsedForm | undefined {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return undefined
  const parts = readForm(body, boundary)
  const files = typeof parts === 'string' ? [] : parts.filter(isFile)
  return {
    parts,
    audioSeconds: new Map(files.map(({ start, end }) => [start, measureAudioSeconds(body.subarray(start, end))])),
    hash: typeof parts === 'string' ? undefined : hashParts(body, parts, boundary),
  }
}

/** The length of each part is included, because without boundaries two forms could have the same bytes. */
function hashParts(body: Buffer, parts: readonly FormPart[], boundary: string): string {
  const hash = createHash('sha256')
  let start = `--${boundary}`.length
  for (const { end } of parts) {
    hash.update(`${end - start}\n`).update(body.subarray(start, end))
    start = end + `\r\n--${boundary}`.length
  }
  return hash.digest('hex')
}

const parsedForms = new WeakMap<Buffer, ParsedForm>()

export const cacheForm = (body: Buffer, found: ParsedForm): void => void parsedForms.set(body, found)

export const getFormParts = (body: Buffer, boundary: string): readonly FormPart[] | string =>
  parsedForms.get(body)?.parts ?? readForm(body, boundary)

/**
 * Clients write each form with a new boundary, also when they repeat it. Undefined if the body is no valid form of this
 * content type.
 */
export function hashForm(body: Buffer, contentType: string): string | undefined {
  const parsed = parsedForms.get(body)
  if (parsed !== undefined) return parsed.hash
  const boundary = boundaryOf(contentType)
  const parts = boundary === undefined ? '' : readForm(body, boundary)
  return typeof parts === 'string' ? undefined : hashParts(body, parts, boundary!)
}

/** Returns the duration of an audio file in seconds. */
export const getAudioSeconds = (body: Buffer, { start, end }: FormPart): number =>
  parsedForms.get(body)?.audioSeconds.get(start) ?? measureAudioSeconds(body.subarray(start, end))
