// Others' words, made fit to be shown: names, end users, errors of upstreams.

/** What a terminal would obey instead of showing: control characters, and marks that turn the direction of writing. */
const OBEYED = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const escapeOf = (mark: string): string => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`

/** On one line. What is JSON is still what it was when it is read. */
export const harmless = (text: string): string => text.replace(OBEYED, escapeOf)

/** The same, for a text of several lines. */
export const harmlessLines = (text: string): string =>
  text.replace(OBEYED, mark => (mark === '\n' || mark === '\t' ? mark : escapeOf(mark)))

const ADDRESS = /\b([a-z][a-z0-9+.-]{1,20}:\/\/)([^\s"'<>\\]+)/gi
const PARAMETER = /([?&](?:key|api[-_]?key|(?:access[-_]?|auth[-_]?)?token|sig(?:nature)?|x-[a-z-]+)=)[^\s&"'\\]+/gi
const CREDENTIAL = /(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi
const KEY = /[sw]k-[\w-]{8,}/g

/** Without what may be secret in it, whoever wrote it: who logs in at an address, what is asked there, keys. */
export function withoutSecrets(text: string): string {
  let left = text
  // Most texts have none of these, which is seen at once.
  if (left.includes('://')) left = left.replace(ADDRESS, (_, scheme, rest) => scheme + bareAddress(rest))
  if (left.includes('=')) left = left.replace(PARAMETER, '$1[secret]')
  return left.replace(CREDENTIAL, '$1 [secret]').replace(KEY, '[secret]')
}

function bareAddress(rest: string): string {
  const end = rest.search(/[?#]/)
  const [asked, whole] = end < 0 ? ['', rest] : [`${rest[end]}[secret]`, rest.slice(0, end)]
  const slash = whole.indexOf('/')
  const host = slash < 0 ? whole : whole.slice(0, slash)
  return `${host.slice(host.lastIndexOf('@') + 1)}${slash < 0 ? '' : whole.slice(slash)}${asked}`
}
