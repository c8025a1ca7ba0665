// The formats of generated images, with their media types.

import type { InlineImage } from '../media/image-type.ts'
import { findImageType } from '../media/image-type.ts'

const mimeByFormat: ReadonlyMap<unknown, string> = new Map([
  ['png', 'image/png'],
  ['webp', 'image/webp'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['svg', 'image/svg+xml'],
])

const IMAGE_TYPES: ReadonlySet<string> = new Set(mimeByFormat.values())

/** The media type of an image. An image without a format is a PNG. */
export const toImageMime = (format: unknown): string => mimeByFormat.get(format) ?? 'image/png'

/** The format of an image. Undefined: this dialect does not have it. */
export function toImageFormat(image: InlineImage): unknown {
  const mime = findImageType(image, IMAGE_TYPES)
  return [...mimeByFormat].find(([, known]) => known === mime)?.[0]
}
