// Replaces a field of a body by a changed value. The objects and lists in the value that are the caller's own are copied
// from the body byte by byte: numbers keep all digits (`1.0`), and texts keep their escapes.

import type { FieldSpan } from '../../base/text/json-bytes.ts'
import { scanList, scanObject } from '../../base/text/json-bytes.ts'
import { isObject, scanBounds } from './json-body.ts'
import type { Json } from './json-type.ts'
import type { Splice } from './splices.ts'

/** How deep a change may be: the message, its content, a block in it, and a field of the block that is left as it is. */
const LEVELS = 4

type Container = Json | readonly unknown[]

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null

/** `before` is the parsed value at `span`. What is unchanged in `after` is the same object as in `before`. */
export function replaceChanged(body: Buffer, span: FieldSpan, before: unknown, after: Container): Splice {
  const inAfter = new Set<unknown>()
  collect(after, LEVELS, inAfter)
  const sources = new Map<unknown, FieldSpan>()
  findSources(body, span, before, { levels: LEVELS, wanted: inAfter, sources })
  return { ...span, text: write(after, body, sources) }
}

function collect(value: unknown, levels: number, found: Set<unknown>): void {
  if (!isContainer(value)) return
  found.add(value)
  if (levels > 0) for (const inner of Object.values(value)) collect(inner, levels - 1, found)
}

interface Search {
  readonly levels: number
  readonly wanted: ReadonlySet<unknown>
  readonly sources: Map<unknown, FieldSpan>
}

/** Finds the bytes of each wanted object or list in `value`. What is not wanted itself may contain some. */
function findSources(body: Buffer, { start, end }: FieldSpan, value: unknown, search: Search): void {
  const { levels, wanted, sources } = search
  if (!isContainer(value)) return
  if (wanted.has(value)) return void sources.set(value, { start, end })
  if (levels === 0) return
  for (const [name, inner] of findInner(body.subarray(start, end), value)) {
    const span = { start: start + inner.start, end: start + inner.end }
    findSources(body, span, (value as Json)[name], { ...search, levels: levels - 1 })
  }
}

function findInner(bytes: Buffer, value: Container): Iterable<readonly [string | number, FieldSpan]> {
  if (Array.isArray(value)) return scanList(bytes, scanBounds)?.entries() ?? []
  const scan = scanObject(bytes, scanBounds)
  return typeof scan === 'string' ? [] : scan.fields
}

function write(value: unknown, body: Buffer, sources: ReadonlyMap<unknown, FieldSpan>): string {
  const source = sources.get(value)
  if (source !== undefined) return body.toString('utf8', source.start, source.end)
  if (Array.isArray(value)) return `[${value.map(one => write(one, body, sources)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.keys(value).map(name => `${JSON.stringify(name)}:${write(value[name], body, sources)}`)
  return `{${fields.join(',')}}`
}
