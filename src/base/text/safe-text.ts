// Makes texts of callers and upstreams safe to show in logs and terminals.

/** Control characters, and characters that change the direction of text: a terminal would act on them. */
const CONTROL = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const escapeChar = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Escapes control characters, line breaks included. JSON keeps its meaning. */
export const escapeControls = (text: string): string => text.replace(CONTROL, escapeChar)

/** Escapes control characters, but keeps line breaks and tabs. */
export const escapeControlsInLines = (text: string): string =>
  text.replace(CONTROL, char => (char === '\n' || char === '\t' ? char : escapeChar(char)))

const URL_TEXT = /\b([a-z][a-z0-9+.-]{1,20}:\/\/)([^\s"'<>\\]+)/gi
const PARAMETER = /([?&](?:key|api[-_]?key|(?:access[-_]?|auth[-_]?)?token|sig(?:nature)?|x-[a-z-]+)=)[^\s&"'\\]+/gi
const CREDENTIAL = /(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi
const KEY = /[sw]k-[\w-]{8,}/g

/** Replaces what may be secret: credentials and query strings of URLs, tokens in parameters and headers, API keys. */
export function redactSecrets(text: string): string {
  let redacted = text
  // These two checks are cheap, and most texts contain neither.
  if (redacted.includes('://')) redacted = redacted.replace(URL_TEXT, (_, scheme, rest) => scheme + redactUrl(rest))
  if (redacted.includes('=')) redacted = redacted.replace(PARAMETER, '$1[secret]')
  return redacted.replace(CREDENTIAL, '$1 [secret]').replace(KEY, '[secret]')
}

/** Removes user name, password, query and fragment from a URL without its scheme. */
function redactUrl(rest: string): string {
  const queryStart = rest.search(/[?#]/)
  const [query, hostAndPath] = queryStart < 0 ? ['', rest] : [`${rest[queryStart]}[secret]`, rest.slice(0, queryStart)]
  const slash = hostAndPath.indexOf('/')
  const host = slash < 0 ? hostAndPath : hostAndPath.slice(0, slash)
  return `${host.slice(host.lastIndexOf('@') + 1)}${slash < 0 ? '' : hostAndPath.slice(slash)}${query}`
}
