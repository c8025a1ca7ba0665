// From the schemas that requests are read with to those that describe them. What has an id is described once, and
// named wherever it is used.

import * as z from 'zod'
import type { JsonSchema } from './operation.ts'

type Direction = 'input' | 'output'

type Described = Record<string, unknown>

export class Schemas {
  /** By the name under which they are found in the document. */
  readonly named = new Map<string, JsonSchema>()

  describe(schema: z.ZodType, io: Direction): JsonSchema {
    const { $schema: _, $defs = {}, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Described
    const renamed = new Map<string, string>()
    const defs = Object.entries($defs as Record<string, Described>)
    for (const [id, def] of defs) renamed.set(id, this.#nameOf(id, readable(def), io))
    for (const [id, def] of defs) this.named.set(renamed.get(id)!, withRefs(readable(def), renamed) as JsonSchema)
    return withRefs(readable(rest), renamed) as JsonSchema
  }

  /** What is asked for and what is shown may differ, and then have two names. */
  #nameOf(id: string, def: unknown, io: Direction): string {
    const known = this.named.get(id)
    const isSame = known === undefined || JSON.stringify(unnamed(known)) === JSON.stringify(unnamed(def))
    return isSame ? id : `${id}${io === 'input' ? 'Input' : 'Shown'}`
  }
}

type Change = (value: Described) => unknown

/** Changes every object in it, the outer ones first; examples are values and no schemas. */
function mapped(value: unknown, change: Change): unknown {
  if (Array.isArray(value)) return value.map(one => mapped(one, change))
  if (typeof value !== 'object' || value === null) return value
  const changed = change(value as Described)
  if (typeof changed !== 'object' || changed === null) return changed
  const inner = (name: string, one: unknown): unknown => (name === 'examples' ? one : mapped(one, change))
  return Object.fromEntries(Object.entries(changed).map(([name, one]) => [name, inner(name, one)]))
}

/** A pattern that says in five hundred signs what its format says in a word is no help, nor is the largest number. */
const readable = (value: Described): Described =>
  mapped(value, one =>
    Object.fromEntries(Object.entries(one).filter(([name, told]) => !isNoise(name, told, one))),
  ) as Described

function isNoise(name: string, told: unknown, { format }: Described): boolean {
  if (name === 'pattern') return typeof told === 'string' && typeof format === 'string'
  if (name === 'id') return typeof told === 'string'
  return told === Number.MAX_SAFE_INTEGER || told === Number.MIN_SAFE_INTEGER
}

const DEFS = '#/$defs/'

const withRefs = (value: unknown, renamed: ReadonlyMap<string, string>): unknown =>
  mapped(value, one => {
    const { $ref } = one
    if (typeof $ref !== 'string' || !$ref.startsWith(DEFS)) return one
    const id = $ref.slice(DEFS.length)
    return { ...one, $ref: `#/components/schemas/${renamed.get(id) ?? id}` }
  })

/** To compare what is named otherwise on both sides. */
const unnamed = (value: unknown): unknown => mapped(value, one => ('$ref' in one ? { ...one, $ref: '' } : one))
