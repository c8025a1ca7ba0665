// Finds the media type of an image by its first bytes. Callers often declare a wrong one, such as `image/jpg`, or
// `image/png` for every image, and providers refuse an image that is not what its type says.

/** Enough base64 for the 12 bytes that tell the types apart. An image may have megabytes, which are not decoded. */
const HEAD_CHARS = 16

/** The first bytes in hexadecimal digits. */
const STARTS: readonly (readonly [type: string, start: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^474946383[79]61/],
  ['image/webp', /^52494646.{8}57454250/],
]

/** Names that were never registered, but are in use. */
const REGISTERED_NAMES: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['image/pjpeg', 'image/jpeg'],
  ['image/x-png', 'image/png'],
])

export interface InlineImage {
  readonly base64: string
  /** As the caller, or the server that had the image, declared it. */
  readonly mime: string
}

/** The type that the bytes have, if the provider reads that type, and otherwise the declared one. */
export function findImageType({ base64, mime }: InlineImage, read: ReadonlySet<string>): string {
  const head = Buffer.from(base64.slice(0, HEAD_CHARS), 'base64').toString('hex')
  const found = STARTS.find(([, start]) => start.test(head))?.[0]
  if (found !== undefined && read.has(found)) return found
  const declared = mime.split(';', 1)[0]!.trim().toLowerCase()
  return REGISTERED_NAMES.get(declared) ?? declared
}
