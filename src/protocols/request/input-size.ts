// The size of the input of a request, as far as its bound and its estimate need it.

import type { ListedMedia } from '../media/media-list.ts'
import { isObject } from './json-body.ts'
import type { Service } from './services.ts'

export interface InputSize {
  /** The whole input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The size of the body, with each image or file counted as some text. */
  readonly inputBytes: number
  readonly services?: readonly Service[]
  /** The provider runs tools for the model, or reads content that is not in the request. */
  readonly serverTools?: boolean
  /** All input that is not text. Absent if there is none, or if it is not all listed. */
  readonly media?: ListedMedia
}

/** An image or a minute of audio is about a thousand tokens, whatever its size; so many bytes of text are as many. */
export const MEDIA_PART_BYTES = 4_000

/** The length of the texts in a part, such as an image in `image_url`. */
export function inlineBytes(part: unknown, depth = 0): number {
  if (typeof part === 'string') return part.length
  if (!isObject(part) || depth > 2) return 0
  let bytes = 0
  for (const field in part) bytes += inlineBytes(part[field], depth + 1)
  return bytes
}
