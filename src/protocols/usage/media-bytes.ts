// Estimates images and audio in an answer as bytes of text. Four bytes count as a token in every estimate, so images
// and audio need no unit of their own unless a price has a rate for them.

import { isObject } from '../request/json-body.ts'

/** The tokens of an image of about a million pixels, for a model without its own number. */
export const imageTokensDefault = 1_290

export const BYTES_PER_IMAGE = 4 * imageTokensDefault

/** The tokens of a second of audio. Vendors count from 20 to 32. */
const TOKENS_PER_SECOND = 32
/** The same for audio that is transcribed, which has a count of its own. */
export const TRANSCRIBED_TOKENS_PER_SECOND = 10
/** The base64 characters of a second of uncompressed audio: 24,000 samples of two bytes. */
const CHARS_PER_SECOND = 64_000
/** The audio tokens for each byte of the transcript. About fifteen letters are spoken in a second. */
const TOKENS_PER_SPOKEN_BYTE = 2

/** How much of the output is images, and how much is audio. */
export interface MediaBytes {
  readonly pictureBytes: number
  readonly soundBytes: number
}

/** Estimates uncompressed audio in base64. */
export const estimateAudioBytes = (data: unknown): number =>
  typeof data === 'string' ? Math.ceil((data.length / CHARS_PER_SECOND) * TOKENS_PER_SECOND * 4) : 0

/** Estimates the audio of a whole answer. Its transcript shows how long compressed audio lasts. */
export function estimateWholeAudioBytes({
  data,
  transcript,
}: {
  readonly data?: unknown
  readonly transcript?: unknown
}) {
  if (typeof data !== 'string' || data === '') return 0
  const spoken = typeof transcript === 'string' ? Buffer.byteLength(transcript) * TOKENS_PER_SPOKEN_BYTE * 4 : 0
  return Math.max(estimateAudioBytes(data), spoken)
}

/** Returns only the values above zero. */
export const pickMediaBytes = ({ pictureBytes, soundBytes }: MediaBytes): Partial<MediaBytes> => ({
  ...(pictureBytes > 0 && { pictureBytes }),
  ...(soundBytes > 0 && { soundBytes }),
})

/** Counts the parts of a list that are images, in the formats of all vendors. */
export function countImages(parts: unknown): number {
  if (!Array.isArray(parts)) return 0
  return (parts as readonly unknown[]).filter(part => isObject(part) && isPicture(part)).length
}

const isPicture = ({ type, image_url: url, b64_json: data }: Readonly<Record<string, unknown>>): boolean =>
  (url ?? undefined) !== undefined || typeof data === 'string' || (typeof type === 'string' && type.includes('image'))
