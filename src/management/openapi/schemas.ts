// Converts the zod schemas of requests and answers to JSON schemas. A schema with an id is described once and referenced
// by its name.

import * as z from 'zod'
import type { JsonSchema } from './operation.ts'

type Direction = 'input' | 'output'

type Described = Record<string, unknown>

export class Schemas {
  /** Keyed by the name of the schema in the document. */
  readonly named = new Map<string, JsonSchema>()

  describe(schema: z.ZodType, io: Direction): JsonSchema {
    const { $schema: _, $defs = {}, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Described
    const renamed = new Map<string, string>()
    const defs = Object.entries($defs as Record<string, Described>)
    for (const [id, def] of defs) renamed.set(id, this.#nameOf(id, readable(def), io))
    for (const [id, def] of defs) this.named.set(renamed.get(id)!, withRefs(readable(def), renamed) as JsonSchema)
    return withRefs(readable(rest), renamed) as JsonSchema
  }

  /** If the input and the output form of a schema differ, they get two names. */
  #nameOf(id: string, def: unknown, io: Direction): string {
    const known = this.named.get(id)
    const isSame = known === undefined || JSON.stringify(unnamed(known)) === JSON.stringify(unnamed(def))
    return isSame ? id : `${id}${io === 'input' ? 'Input' : 'Shown'}`
  }
}

type Change = (value: Described) => unknown

/** Applies `change` to every object of a schema, the outer ones first. Examples are values, so they stay unchanged. */
function mapped(value: unknown, change: Change): unknown {
  if (Array.isArray(value)) return value.map(item => mapped(item, change))
  if (typeof value !== 'object' || value === null) return value
  const changed = change(value as Described)
  if (typeof changed !== 'object' || changed === null) return changed
  const inner = (name: string, field: unknown): unknown => (name === 'examples' ? field : mapped(field, change))
  return Object.fromEntries(Object.entries(changed).map(([name, field]) => [name, inner(name, field)]))
}

/** Removes fields that do not help a reader: a long pattern beside a format, and the largest possible numbers. */
const readable = (value: Described): Described =>
  mapped(value, object =>
    Object.fromEntries(Object.entries(object).filter(([name, field]) => !isNoise(name, field, object))),
  ) as Described

function isNoise(name: string, field: unknown, { format }: Described): boolean {
  if (name === 'pattern') return typeof field === 'string' && typeof format === 'string'
  if (name === 'id') return typeof field === 'string'
  return field === Number.MAX_SAFE_INTEGER || field === Number.MIN_SAFE_INTEGER
}

const DEFS = '#/$defs/'

const withRefs = (value: unknown, renamed: ReadonlyMap<string, string>): unknown =>
  mapped(value, object => {
    const { $ref } = object
    if (typeof $ref !== 'string' || !$ref.startsWith(DEFS)) return object
    const id = $ref.slice(DEFS.length)
    return { ...object, $ref: `#/components/schemas/${renamed.get(id) ?? id}` }
  })

/** Removes the names of references, to compare schemas that have different names for the same thing. */
const unnamed = (value: unknown): unknown =>
  mapped(value, object => ('$ref' in object ? { ...object, $ref: '' } : object))
