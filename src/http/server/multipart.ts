// Parses a multipart/form-data body in place. Nothing is copied, so that unchanged parts can be forwarded as they are.
//
// Strict: the upstream will parse the same bytes, so a body that two parsers could read differently is refused. The
// parser makes one pass over the body.

export interface FormPart {
  readonly name: string
  /** Undefined for a plain field. */
  readonly filename: string | undefined
  readonly contentType: string | undefined
  /** The start and end of the content in the body. */
  readonly start: number
  readonly end: number
}

const PARTS_MAX = 256
const PART_HEAD_BYTES_MAX = 4 * 1024
const NAME_CHARS_MAX = 256

/** The characters that RFC 2046 allows; the last one must not be a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/
const CRLF = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** The boundary of multipart/form-data; undefined for another content type, or without a valid boundary. */
export function boundaryOf(contentType: string): string | undefined {
  const parameters = readParameters(contentType)
  if (parameters?.value !== 'multipart/form-data') return undefined
  const boundary = parameters.named.get('boundary')
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined
}

/** Returns the parts, or a text that says why the body is not a valid form. */
export function readForm(body: Buffer, boundary: string): readonly FormPart[] | string {
  const dashes = Buffer.from(`--${boundary}`)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  if (!startsAt(body, 0, dashes)) return 'the body does not begin with its boundary'
  const parts: FormPart[] = []
  for (let at = dashes.length; ; ) {
    if (startsAt(body, at, Buffer.from('--')))
      return isBlank(body, at + 2) ? parts : 'there is data after the last boundary'
    if (!startsAt(body, at, CRLF)) return 'a boundary is not followed by a line break'
    if (parts.length === PARTS_MAX) return `the body has more than ${PARTS_MAX} parts`
    const head = at + CRLF.length
    // The head of a part cannot contain a boundary, so the end of the part comes after it.
    const headEnd = body.subarray(head, head + PART_HEAD_BYTES_MAX).indexOf(HEAD_END)
    if (headEnd < 0) return 'the head of a part does not end'
    const start = head + headEnd + HEAD_END.length
    // Ambiguous: the line break before the boundary could belong to the head or to the boundary.
    if (startsAt(body, start, dashes)) return 'a part has no line break between its headers and the next boundary'
    const end = body.indexOf(delimiter, start)
    if (end < 0) return 'a part does not end'
    const part = readPart(body.toString('latin1', head, head + headEnd), { start, end })
    if (typeof part === 'string') return part
    parts.push(part)
    at = end + delimiter.length
  }
}

function startsAt(body: Buffer, at: number, bytes: Buffer): boolean {
  return at + bytes.length <= body.length && body.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0
}

/** The end of the body, or one line break, which many clients add. */
const isBlank = (body: Buffer, at: number): boolean =>
  at === body.length || (at + CRLF.length === body.length && startsAt(body, at, CRLF))

function readPart(head: string, span: Pick<FormPart, 'start' | 'end'>): FormPart | string {
  let disposition: string | undefined
  let contentType: string | undefined
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon < 1 || !/^[\t\x20-\x7e\x80-\xff]*$/.test(line)) return 'a part has a malformed header'
    const name = line.slice(0, colon).toLowerCase()
    // Some parsers read a line that begins with a blank as the continuation of the line before.
    if (!HEADER_NAME.test(name)) return 'a part has a malformed header'
    const value = line.slice(colon + 1).trim()
    if (name === 'content-disposition' && disposition === undefined) disposition = value
    else if (name === 'content-type' && contentType === undefined) contentType = value
    else if (name === 'content-disposition' || name === 'content-type') return 'a part has a header twice'
    else if (name === 'content-transfer-encoding')
      return 'a part has a Content-Transfer-Encoding, which is not supported'
  }
  const parameters = readParameters(disposition ?? '')
  const name = parameters?.named.get('name')
  const isNamed = name !== undefined && name !== '' && name.length <= NAME_CHARS_MAX
  if (parameters?.value !== 'form-data' || !isNamed) return 'a part has no name'
  const { named } = parameters
  return { name: utf8(name), filename: named.get('filename') ?? named.get('filename*'), contentType, ...span }
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/

/** Headers were read as latin1. */
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')

interface Parameters {
  readonly value: string
  readonly named: ReadonlyMap<string, string>
}

/**
 * Reads `value; name=word; name="a \" quoted text"`. Undefined if it is malformed, or a name occurs twice. Many parsers
 * read `name*` or `name*0` (RFC 2231) instead of `name`, so these are refused, but for the file names that clients send.
 */
function readParameters(text: string): Parameters | undefined {
  const [value = ''] = text.split(';', 1)
  const named = new Map<string, string>()
  const parameter = /[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))[ \t]*/y
  parameter.lastIndex = value.trimEnd().length
  while (parameter.lastIndex < text.length) {
    const found = parameter.exec(text)
    const name = found?.[1]?.toLowerCase()
    if (found === null || name === undefined || named.has(name)) return undefined
    if (name.includes('*') && name !== 'filename*') return undefined
    // Only \" and \\ are unescaped: browsers do not escape other backslashes in a file name.
    named.set(name, found[3] ?? found[2]!.replace(/\\(["\\])/g, '$1'))
  }
  return { value: value.trim().toLowerCase(), named }
}
