// Reads the labels that callers set for their own records: the end user of a call, and tags that group its costs.
// Labels do not change a call, so a call is never refused for them. Invalid labels are left out, and long ones are cut.

export type Tags = Readonly<Record<string, string>>

const TAGS_MAX = 16
const TAG_CHARS_MAX = 64
export const END_USER_CHARS_MAX = 256

/** Control characters, direction marks and lone surrogates, which must not be shown to people. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu

function visible(text: string, charsMax: number): string {
  // Cut first, because a text may have megabytes. Twice the length leaves enough after characters are removed.
  return text
    .slice(0, charsMax * 2)
    .replace(INVISIBLE, '')
    .trim()
    .slice(0, charsMax)
    .replace(/\p{Cs}$/u, '')
}

/** Uses the first value that is a text. */
export function readEndUser(...values: readonly unknown[]): string | undefined {
  const text = values.find(value => typeof value === 'string')
  return text === undefined ? undefined : visible(text as string, END_USER_CHARS_MAX) || undefined
}

/** Reads the text fields of an object. Other fields are ignored. */
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

/** Reads `X-Weir-Tags: team=search, beta`: names with values, or names alone. */
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

/** Returns the tags of a call as JSON, for its record. Tags of the header come first and override those of the body. */
export function formatTags(fromBody: Tags | undefined, header: string | undefined): string | undefined {
  if (header === undefined) return fromBody === undefined ? undefined : JSON.stringify(fromBody)
  const fromHeader = readTagHeader(header)
  const all = Object.entries({ ...fromHeader, ...fromBody, ...fromHeader }).slice(0, TAGS_MAX)
  return all.length === 0 ? undefined : JSON.stringify(Object.fromEntries(all))
}

function add(tags: Map<string, string>, name: string, value: string): void {
  const visibleName = visible(name, TAG_CHARS_MAX)
  if (visibleName !== '') tags.set(visibleName, visible(value, TAG_CHARS_MAX))
}

const asTags = (tags: ReadonlyMap<string, string>): Tags | undefined =>
  tags.size === 0 ? undefined : Object.fromEntries(tags)
