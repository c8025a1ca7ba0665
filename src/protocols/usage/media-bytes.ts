// Pictures and sound in an answer, counted as so many bytes of text: four of these are a token in every estimate, so
// that what is no text needs no measure of its own until a price has a rate for it.

import { isObject } from '../request/json-object.ts'

/** A picture of about a million pixels is so many tokens, where nothing is known of its model. */
export const pictureTokensDefault = 1_290

export const BYTES_PER_PICTURE = 4 * pictureTokensDefault

/** Of a second of sound; vendors count from 20 to 32. */
const TOKENS_PER_SECOND = 32
/** A second as it is sent, in base64: 24,000 samples of two bytes. Compressed sound is shorter. */
const CHARS_PER_SECOND = 64_000
/** Of sound for each byte of the words that are spoken in it: fifteen letters take about a second. */
const TOKENS_PER_SPOKEN_BYTE = 2

/** How much of what was written stands for pictures, and how much for sound. */
export interface MediaBytes {
  readonly pictureBytes: number
  readonly soundBytes: number
}

/** Of sound as it is sent. */
export const soundBytesOf = (data: unknown): number =>
  typeof data === 'string' ? Math.ceil((data.length / CHARS_PER_SECOND) * TOKENS_PER_SECOND * 4) : 0

/** The same of a whole answer, in which the words tell how long compressed sound lasts. */
export function wholeSoundBytes({ data, transcript }: { readonly data?: unknown; readonly transcript?: unknown }) {
  if (typeof data !== 'string' || data === '') return 0
  const spoken = typeof transcript === 'string' ? Buffer.byteLength(transcript) * TOKENS_PER_SPOKEN_BYTE * 4 : 0
  return Math.max(soundBytesOf(data), spoken)
}

/** Only what is there, for a reading. */
export const mediaOf = ({ pictureBytes, soundBytes }: MediaBytes): Partial<MediaBytes> => ({
  ...(pictureBytes > 0 && { pictureBytes }),
  ...(soundBytes > 0 && { soundBytes }),
})

/** Parts of a list that are pictures, whichever way a vendor names them. */
export function countPictures(parts: unknown): number {
  if (!Array.isArray(parts)) return 0
  return (parts as readonly unknown[]).filter(part => isObject(part) && isPicture(part)).length
}

const isPicture = ({ type, image_url: url, b64_json: data }: Readonly<Record<string, unknown>>): boolean =>
  (url ?? undefined) !== undefined || typeof data === 'string' || (typeof type === 'string' && type.includes('image'))
