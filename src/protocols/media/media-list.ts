// Lists the media of a request while its reader walks over the content.
//
// The list counts only if it has all input that is not text. A part with a field that is not known here may bring
// anything, and so may a reader's doubt; then the list is dropped, and the context of the model bounds the input.

import { hasDuplicates } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { getMediaFacts, readDataHead } from './measure.ts'
import type { CallMedia } from './media-tokens.ts'

/** All input of a call that is not text. */
export interface ListedMedia {
  readonly items: readonly CallMedia[]
  /** The size of the body without the bytes of these media. */
  readonly textBytes: number
}

/** How a part names its medium. */
export interface MediaPlace {
  readonly kind: CallMedia['kind']
  readonly holder: Json
  /** The field of the holder with the base64, a data URL or a URL. */
  readonly field: string
  /** The type that the part says, if it says one. */
  readonly mime?: unknown
  readonly detail?: unknown
  readonly framesPerSecond?: unknown
  /** The readers of this dialect also read base64 with the alphabet for URLs. */
  readonly readsUrlSafe?: true
}

/** Addresses that Google reads itself: whatever a part calls them, a video may be behind them. */
const GOOGLE_READS = /googleapis\.com|youtube\.com|youtu\.be/i

/** Fields that may have base64 without the head of a data URL. */
const BASE64_FIELDS: ReadonlySet<string> = new Set(['data', 'file_data'])

export class MediaList {
  /** Most calls have none. */
  #items: CallMedia[] | undefined
  #mediaChars = 0
  #isWhole = true

  /** Something that is not listed is in the request. */
  drop(): void {
    this.#isWhole = false
  }

  /** The list, if it is whole and not empty. `body` is the parsed request. */
  end(body: Json, bodyBytes: number): ListedMedia | undefined {
    // Of two fields with one name an upstream may read the one that was not read here.
    if (this.#items === undefined || !this.#isWhole || hasDuplicates(body)) return undefined
    return { items: this.#items, textBytes: bodyBytes - this.#mediaChars }
  }

  #push(media: CallMedia): void {
    this.#items ??= []
    this.#items.push(media)
  }

  /** Adds a medium that the request has, or names by its URL. */
  add({ kind, holder, field, mime, detail, framesPerSecond: frames, readsUrlSafe }: MediaPlace): void {
    const text = holder[field]
    if (typeof text !== 'string') return this.drop()
    if (/^\s*https?:/i.test(text)) return this.addUnseen(kind, { address: text, detail })
    const head = readDataHead(text)
    const found = getMediaFacts(holder, text)
    const facts = found?.isUrlSafe && !readsUrlSafe ? undefined : found
    // A short id can look like base64.
    const isBase64 = facts !== undefined && BASE64_FIELDS.has(field)
    if (head === undefined && !isBase64) return this.drop()
    // Upstreams may believe either of two types.
    const types = [mime, head?.mime].filter(type => type !== undefined && type !== '')
    if (!types.every(type => isTypeOf(kind, type)) || (kind === 'image' && facts?.pdf !== undefined)) return this.drop()
    if (frames !== undefined && !(typeof frames === 'number' && frames > 0)) return this.drop()
    this.#mediaChars += facts?.chars ?? 0
    this.#push({
      kind,
      ...(facts !== undefined && { facts }),
      ...detailOf(detail),
      ...(frames !== undefined && { framesPerSecond: frames as number }),
    })
  }

  /** Adds a medium of which only an id or a URL is known. */
  addUnseen(kind: CallMedia['kind'], { address, detail }: UnseenMedium = {}): void {
    if (address !== undefined && GOOGLE_READS.test(address)) return this.drop()
    this.#push({ kind, ...detailOf(detail) })
  }
}

interface UnseenMedium {
  readonly address?: string
  readonly detail?: unknown
}

const detailOf = (detail: unknown): Pick<CallMedia, 'detail'> =>
  detail === 'low' || detail === 'high' ? { detail } : {}

function isTypeOf(kind: CallMedia['kind'], mime: unknown): boolean {
  if (typeof mime !== 'string') return false
  return kind === 'file' ? /^application\/pdf$/i.test(mime) : mime.toLowerCase().startsWith(`${kind}/`)
}

/** Whether an object has no other fields with a value than these. */
export function hasOnly(value: Json, fields: ReadonlySet<string>): boolean {
  for (const name in value) if ((value[name] ?? undefined) !== undefined && !fields.has(name)) return false
  return true
}
