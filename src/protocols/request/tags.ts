// What callers tell us for their records alone: whom a call is for, and what its cost is to be sorted by. None of it
// changes a call, so nothing here is ever a reason to refuse one: what cannot be used is left out, what is too long is
// cut.

export type Tags = Readonly<Record<string, string>>

const TAGS_MAX = 16
const TAG_CHARS_MAX = 64
export const END_USER_CHARS_MAX = 256

/** Controls, marks of direction and halves of pairs have no place in a list that people read. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu

function visible(text: string, charsMax: number): string {
  // Cut first: a text may be megabytes. Twice the length leaves room for what is taken out.
  return text
    .slice(0, charsMax * 2)
    .replace(INVISIBLE, '')
    .trim()
    .slice(0, charsMax)
    .replace(/\p{Cs}$/u, '')
}

/** The first that is a text. */
export function readEndUser(...given: readonly unknown[]): string | undefined {
  const text = given.find(value => typeof value === 'string')
  return text === undefined ? undefined : visible(text as string, END_USER_CHARS_MAX) || undefined
}

/** The texts of an object; anything else in it is none of ours. */
export function readTags(metadata: unknown): Tags | undefined {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return undefined
  const tags = new Map<string, string>()
  for (const name in metadata) {
    const value = (metadata as Record<string, unknown>)[name]
    if (typeof value === 'string') add(tags, name, value)
    if (tags.size === TAGS_MAX) break
  }
  return asTags(tags)
}

/** `X-Weir-Tags: team=search, beta`: names with values, or plain words. */
function readTagHeader(header: string): Tags | undefined {
  const tags = new Map<string, string>()
  for (const part of header.split(',')) {
    const at = part.indexOf('=')
    if (at < 0) add(tags, part, '')
    else add(tags, part.slice(0, at), part.slice(at + 1))
    if (tags.size === TAGS_MAX) break
  }
  return asTags(tags)
}

/** As JSON, for the record. The header was written for us, so its tags come first and win over those of the body. */
export function tagText(fromBody: Tags | undefined, header: string | undefined): string | undefined {
  if (header === undefined) return fromBody === undefined ? undefined : JSON.stringify(fromBody)
  const fromHeader = readTagHeader(header)
  const all = Object.entries({ ...fromHeader, ...fromBody, ...fromHeader }).slice(0, TAGS_MAX)
  return all.length === 0 ? undefined : JSON.stringify(Object.fromEntries(all))
}

function add(tags: Map<string, string>, name: string, value: string): void {
  const shown = visible(name, TAG_CHARS_MAX)
  if (shown !== '') tags.set(shown, visible(value, TAG_CHARS_MAX))
}

const asTags = (tags: ReadonlyMap<string, string>): Tags | undefined =>
  tags.size === 0 ? undefined : Object.fromEntries(tags)
