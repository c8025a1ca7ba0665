// Changes top-level fields of a JSON object. Every other byte stays unchanged.

import { assert } from '../base/assert.ts'
import type { ObjectScan } from '../base/text/json-bytes.ts'
import { scanObject } from '../base/text/json-bytes.ts'

/** The new value of each field as JSON; undefined: the field is removed. */
export type FieldEdits = ReadonlyMap<string, string | undefined>

const noLimits = { depthMax: Infinity, valuesMax: Infinity }
const [BRACE_OPEN, COMMA] = [0x7b, 0x2c]

/** Scans a body that was parsed as an object before. */
export function scanBody(bytes: Buffer): ObjectScan {
  const scan = scanObject(bytes, noLimits)
  assert(typeof scan !== 'string', 'a request body must be a JSON object')
  return scan
}

export const bufferOf = (body: Uint8Array): Buffer => Buffer.from(body.buffer, body.byteOffset, body.byteLength)

/** New fields are added at the end. */
export function rewriteFields(bytes: Buffer, edits: FieldEdits, scan = scanBody(bytes)): Buffer {
  if (edits.size === 0) return bytes
  for (const name of edits.keys()) if (scan.duplicates.has(name)) return rebuildObject(bytes, edits, scan)
  const first = bytes.indexOf(BRACE_OPEN) + 1
  const kept: Buffer[] = []
  let [position, end] = [first, first]
  const fields = inOrder(scan)
  const last = fields.at(-1)?.[0]
  for (const [name, span] of fields) {
    end = span.end
    const upTo = name === last ? end : bytes.indexOf(COMMA, end)
    const value = edits.get(name)
    if (value !== undefined) {
      kept.push(Buffer.concat([bytes.subarray(position, span.start), Buffer.from(value), bytes.subarray(end, upTo)]))
    } else if (!edits.has(name)) kept.push(bytes.subarray(position, upTo))
    position = upTo + 1
  }
  const added = [...edits].flatMap(([name, value]) =>
    value === undefined || scan.fields.has(name) ? [] : [writeField(name, value)],
  )
  return Buffer.concat([bytes.subarray(0, first), ...joinWithCommas([...kept, ...added]), bytes.subarray(end)])
}

type Field = readonly [name: string, span: { readonly start: number; readonly end: number }]

/** Fields by position. A duplicate field counts at its last position. */
const inOrder = ({ fields, duplicates }: ObjectScan): readonly Field[] =>
  duplicates.size === 0 ? [...fields] : [...fields].sort(([, a], [, b]) => a.start - b.start)

const writeField = (name: string, value: string): Buffer => Buffer.from(`${JSON.stringify(name)}:${value}`)

const joinWithCommas = (parts: readonly Buffer[]): readonly Buffer[] =>
  parts.flatMap((part, index) => (index === 0 ? [part] : [Buffer.of(COMMA), part]))

/** Writes each field once. For a body in which a changed field occurs several times. */
function rebuildObject(bytes: Buffer, edits: FieldEdits, scan: ObjectScan): Buffer {
  const values = new Map<string, string>()
  for (const [name, { start, end }] of scan.fields) values.set(name, bytes.toString('utf8', start, end))
  for (const [name, value] of edits) {
    if (value === undefined) values.delete(name)
    else values.set(name, value)
  }
  return Buffer.from(`{${[...values].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`)
}
