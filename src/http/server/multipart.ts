// Reads a multipart/form-data body where it lies: no byte is copied, so that what is not replaced goes on as it came.
//
// Strict, since another reader will read the same bytes after us: what two readers could take for two different forms
// is refused. One pass over the body, whatever it holds.

export interface FormPart {
  readonly name: string
  /** Undefined for a plain field. */
  readonly filename: string | undefined
  readonly contentType: string | undefined
  /** Of its content in the body. */
  readonly start: number
  readonly end: number
}

const PARTS_MAX = 256
const PART_HEAD_BYTES_MAX = 4 * 1024
const NAME_CHARS_MAX = 256

/** The characters that RFC 2046 allows, of which the last is no space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/
const CRLF = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

/** Undefined for a content type that is not multipart/form-data with one usable boundary. */
export function boundaryOf(contentType: string): string | undefined {
  const parameters = readParameters(contentType)
  if (parameters?.value !== 'multipart/form-data') return undefined
  const boundary = parameters.named.get('boundary')
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined
}

/** Why a body is no form is told in a few words. */
export function readForm(body: Buffer, boundary: string): readonly FormPart[] | string {
  const dashes = Buffer.from(`--${boundary}`)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  if (!startsAt(body, 0, dashes)) return 'it does not begin with its boundary'
  const parts: FormPart[] = []
  for (let at = dashes.length; ; ) {
    if (startsAt(body, at, Buffer.from('--'))) return isBlank(body, at + 2) ? parts : 'something follows its end'
    if (!startsAt(body, at, CRLF)) return 'a boundary is followed by something else'
    if (parts.length === PARTS_MAX) return `it has more than ${PARTS_MAX} parts`
    const head = at + CRLF.length
    // A head may not hold a boundary, so the part ends behind it.
    const headEnd = body.subarray(head, head + PART_HEAD_BYTES_MAX).indexOf(HEAD_END)
    if (headEnd < 0) return 'the head of a part does not end'
    const start = head + headEnd + HEAD_END.length
    // Whose line break would that before it be: the head's, or the boundary's?
    if (startsAt(body, start, dashes)) return 'a part has no content, not even an empty one'
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

/** Nothing, or the one line break that many writers end with. */
const isBlank = (body: Buffer, at: number): boolean =>
  at === body.length || (at + CRLF.length === body.length && startsAt(body, at, CRLF))

function readPart(head: string, span: Pick<FormPart, 'start' | 'end'>): FormPart | string {
  let disposition: string | undefined
  let contentType: string | undefined
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon < 1 || !/^[\t\x20-\x7e\x80-\xff]*$/.test(line)) return 'a part has a header that is none'
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (name === 'content-disposition' && disposition === undefined) disposition = value
    else if (name === 'content-type' && contentType === undefined) contentType = value
    else if (name === 'content-disposition' || name === 'content-type') return 'a part has a header twice'
    else if (name === 'content-transfer-encoding') return 'a part is encoded'
  }
  const parameters = readParameters(disposition ?? '')
  const name = parameters?.named.get('name')
  const isNamed = name !== undefined && name !== '' && name.length <= NAME_CHARS_MAX
  if (parameters?.value !== 'form-data' || !isNamed) return 'a part has no name'
  return { name: utf8(name), filename: parameters.named.get('filename'), contentType, ...span }
}

/** Headers come as one character a byte. */
const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')

interface Parameters {
  readonly value: string
  readonly named: ReadonlyMap<string, string>
}

/** `value; name=word; name="a \" quoted text"`. Undefined for what is not, or has a name twice. */
function readParameters(text: string): Parameters | undefined {
  const [value = ''] = text.split(';', 1)
  const named = new Map<string, string>()
  const parameter = /[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))[ \t]*/y
  parameter.lastIndex = value.trimEnd().length
  while (parameter.lastIndex < text.length) {
    const found = parameter.exec(text)
    const name = found?.[1]?.toLowerCase()
    if (found === null || name === undefined || named.has(name)) return undefined
    // Only what must be escaped is: browsers leave a backslash in a file's name as it is.
    named.set(name, found[3] ?? found[2]!.replace(/\\(["\\])/g, '$1'))
  }
  return { value: value.trim().toLowerCase(), named }
}
