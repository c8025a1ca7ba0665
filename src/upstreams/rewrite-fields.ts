// Changes top-level fields of a request that is a JSON object, and leaves every other byte as it was.

import { assert } from '../base/assert.ts'
import type { ObjectScan } from '../base/text/json-bytes.ts'
import { scanObject } from '../base/text/json-bytes.ts'

/** Of each field its new value as JSON; undefined: it is left out. */
export type Edits = ReadonlyMap<string, string | undefined>

const anything = { depthMax: Infinity, valuesMax: Infinity }
const [BRACE_OPEN, COMMA] = [0x7b, 0x2c]

/** Of what was read as an object before. */
export function scanned(bytes: Buffer): ObjectScan {
  const scan = scanObject(bytes, anything)
  assert(typeof scan !== 'string', 'a request is a JSON object')
  return scan
}

export const bufferOf = (body: Uint8Array): Buffer => Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** Fields that were not there are added at the end. */
export function rewriteFields(bytes: Buffer, edits: Edits, scan = scanned(bytes)): Buffer {
  if (edits.size === 0) return bytes
  for (const name of edits.keys()) if (scan.duplicates.has(name)) return rebuilt(bytes, edits, scan)
  const from = bytes.indexOf(BRACE_OPEN) + 1
  const kept: Buffer[] = []
  let [at, end] = [from, from]
  const fields = inOrder(scan)
  const last = fields.at(-1)?.[0]
  for (const [name, span] of fields) {
    end = span.end
    const upTo = name === last ? end : bytes.indexOf(COMMA, end)
    const value = edits.get(name)
    if (value !== undefined) {
      kept.push(Buffer.concat([bytes.subarray(at, span.start), Buffer.from(value), bytes.subarray(end, upTo)]))
    } else if (!edits.has(name)) kept.push(bytes.subarray(at, upTo))
    at = upTo + 1
  }
  const added = [...edits].flatMap(([name, value]) =>
    value === undefined || scan.fields.has(name) ? [] : [fieldOf(name, value)],
  )
  return Buffer.concat([bytes.subarray(0, from), ...joined([...kept, ...added]), bytes.subarray(end)])
}

type Field = readonly [name: string, span: { readonly start: number; readonly end: number }]

/** A name that stands twice is told by where it stands last. */
const inOrder = ({ fields, duplicates }: ObjectScan): readonly Field[] =>
  duplicates.size === 0 ? [...fields] : [...fields].sort(([, one], [, other]) => one.start - other.start)

const fieldOf = (name: string, value: string): Buffer => Buffer.from(`${JSON.stringify(name)}:${value}`)

const joined = (parts: readonly Buffer[]): readonly Buffer[] =>
  parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.of(COMMA), part]))

/** Each field once, for a body that has one of those that are changed several times. */
function rebuilt(bytes: Buffer, edits: Edits, scan: ObjectScan): Buffer {
  const values = new Map<string, string>()
  for (const [name, { start, end }] of scan.fields) values.set(name, bytes.toString('utf8', start, end))
  for (const [name, value] of edits) {
    if (value === undefined) values.delete(name)
    else values.set(name, value)
  }
  return Buffer.from(`{${[...values].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`)
}
