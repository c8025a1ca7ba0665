// A form as it is read beside the thread that serves calls, where it is large: its parts, and how long its sounds last.

import type { FormPart } from '../../http/server/multipart.ts'
import { boundaryOf, readForm } from '../../http/server/multipart.ts'
import { soundLength } from '../openai-passthrough/sound-length.ts'

/** Longer texts are files, whatever they are called. */
const TEXT_BYTES_MAX = 64 * 1024

export const isFile = ({ filename, start, end }: FormPart): boolean =>
  filename !== undefined || end - start > TEXT_BYTES_MAX

/** Plain data, which can come from another thread. */
export interface FoundForm {
  /** Or why the body is no form. */
  readonly parts: readonly FormPart[] | string
  /** Of each file, by where it starts, in seconds. */
  readonly sounds: ReadonlyMap<number, number>
}

/** Undefined where the content type names no boundary that could be used. */
export function findForm(body: Buffer, contentType: string): FoundForm | undefined {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return undefined
  const parts = readForm(body, boundary)
  const files = typeof parts === 'string' ? [] : parts.filter(isFile)
  return { parts, sounds: new Map(files.map(({ start, end }) => [start, soundLength(body.subarray(start, end))])) }
}

const foundBefore = new WeakMap<Buffer, FoundForm>()

export const noteForm = (body: Buffer, found: FoundForm): void => void foundBefore.set(body, found)

export const partsOf = (body: Buffer, boundary: string): readonly FormPart[] | string =>
  foundBefore.get(body)?.parts ?? readForm(body, boundary)

/** How many seconds the sound in a file lasts. */
export const soundOf = (body: Buffer, { start, end }: FormPart): number =>
  foundBefore.get(body)?.sounds.get(start) ?? soundLength(body.subarray(start, end))
