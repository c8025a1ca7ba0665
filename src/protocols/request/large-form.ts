// Parses forms: their parts, and the duration of their audio files. Large forms are parsed in another thread, and the
// result is cached here.

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
  }
}

const parsedForms = new WeakMap<Buffer, ParsedForm>()

export const cacheForm = (body: Buffer, found: ParsedForm): void => void parsedForms.set(body, found)

export const getFormParts = (body: Buffer, boundary: string): readonly FormPart[] | string =>
  parsedForms.get(body)?.parts ?? readForm(body, boundary)

/** Returns the duration of an audio file in seconds. */
export const getAudioSeconds = (body: Buffer, { start, end }: FormPart): number =>
  parsedForms.get(body)?.audioSeconds.get(start) ?? measureAudioSeconds(body.subarray(start, end))
