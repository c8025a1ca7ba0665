// Schemas in the form that OpenAI and Anthropic accept for the arguments of a function. They want an object at the root,
// and refuse the whole request if there are alternatives beside it. Gemini, Anthropic and MCP servers have other schemas.

import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { findDefinition, joinDefinition } from './definitions.ts'

/** Fields that the root of a schema of arguments must not have. */
const REFUSED_AT_ROOT = new Set(['allOf', 'anyOf', 'oneOf', 'enum', 'not', '$ref'])

/** Alternatives inside of alternatives, and references to references. */
const DEPTH_MAX = 8

const ALTERNATIVES = ['allOf', 'anyOf', 'oneOf'] as const

/** Fields about properties whose names are not listed. */
const OTHER_PROPERTIES = ['additionalProperties', 'patternProperties', 'unevaluatedProperties'] as const

export interface ArgumentsSchema {
  readonly schema: Json
  /** The schema allows more than the caller's. */
  readonly isWeaker: boolean
}

/** The schema with an object at its root. Alternatives there become one object with all of their properties. */
export function toArgumentsSchema(schema: Json): ArgumentsSchema {
  const merge = new BranchMerge(schema)
  const root = merge.inlineReferences(schema)
  const isWeaker = Object.keys(root).some(name => REFUSED_AT_ROOT.has(name))
  if (isWeaker) return { schema: merge.mergeRoot(root), isWeaker }
  const { type, properties } = root
  if (type === 'object' && isObject(properties)) return { schema: root, isWeaker }
  return { schema: { ...root, type: 'object', properties: isObject(properties) ? properties : {} }, isWeaker }
}

/** Leaves out null and empty lists of alternatives, which some callers write instead of nothing. */
function dropEmpty(schema: Json): Json {
  const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0)
  const emptyNames = new Set([...REFUSED_AT_ROOT].filter(name => isEmpty(schema[name])))
  if (emptyNames.size === 0) return schema
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !emptyNames.has(name)))
}

/** Whether an object may have properties whose names are not listed, by its own words. */
const isMap = (schema: Json): boolean => OTHER_PROPERTIES.some(name => schema[name] === true || isObject(schema[name]))

const hasType = ({ type }: Json, name: string): boolean => (Array.isArray(type) ? type.includes(name) : type === name)

/** Merges objects into one that allows what each of them allows. */
class BranchMerge {
  readonly #root: Json
  /** The schemas of each property, by their text. */
  readonly #properties = new Map<string, Map<string, unknown>>()
  /** Each definition counts once: many references cost no more than one, and recursion ends. */
  readonly #used = new Set<Json>()
  /** A part of the schema is not read, or is a map, so that an object may have properties that are not in the result. */
  #isPartUnknown = false

  constructor(root: Json) {
    this.#root = root
  }

  /** The definition that a schema refers to, with the fields beside the reference, until that is no reference. */
  inlineReferences(schema: Json): Json {
    const chain = new Set<Json>()
    let inlined = dropEmpty(schema)
    while (inlined.$ref !== undefined) {
      const definition = findDefinition(this.#root, inlined.$ref)?.schema
      if (definition === undefined || chain.has(definition) || chain.size === DEPTH_MAX) {
        this.#isPartUnknown = true
        break
      }
      if (this.#used.has(definition)) break
      this.#used.add(definition)
      chain.add(definition)
      const { $ref: _reference, ...beside } = inlined
      inlined = joinDefinition(dropEmpty(definition), beside)
    }
    return inlined
  }

  mergeRoot(root: Json): Json {
    const required = this.#add(root, 0)
    const dropped = new Set([...REFUSED_AT_ROOT, 'required', ...(this.#isPartUnknown ? ['unevaluatedProperties'] : [])])
    const kept = Object.entries(root).filter(([name]) => !dropped.has(name))
    const properties = [...this.#properties].map(([name, schemas]) => {
      const [first, ...others] = schemas.values()
      return [name, others.length === 0 ? first : { anyOf: [first, ...others] }] as const
    })
    return {
      ...Object.fromEntries(kept),
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.size > 0 && { required: [...required] }),
      // A closed object would forbid what is unknown. An open one cannot be strict.
      ...(this.#isPartUnknown && { additionalProperties: true }),
    }
  }

  /** Adds the properties of an object and of its branches. Returns the names of those that are always required. */
  #add(schema: Json, depth: number): ReadonlySet<string> {
    if (isObject(schema.properties)) this.#addProperties(schema.properties)
    // The root keeps what it says itself.
    if (depth > 0) this.#isPartUnknown ||= isMap(schema)
    const required = new Set<string>()
    const addAll = (names: Iterable<unknown>): void => {
      for (const name of names) if (typeof name === 'string') required.add(name)
    }
    if (Array.isArray(schema.required)) addAll(schema.required)
    if (depth === DEPTH_MAX) {
      this.#isPartUnknown ||= ALTERNATIVES.some(name => schema[name] !== undefined)
      return required
    }
    for (const names of this.#addBranches(schema.allOf, depth)) addAll(names)
    for (const alternatives of [schema.anyOf, schema.oneOf]) {
      const [first = new Set<string>(), ...others] = this.#addBranches(alternatives, depth)
      addAll([...first].filter(name => others.every(names => names.has(name))))
    }
    return required
  }

  /** What each branch requires. One that is no object fits no arguments. */
  #addBranches(branches: unknown, depth: number): readonly ReadonlySet<string>[] {
    if (!Array.isArray(branches)) return []
    return branches
      .filter(isObject)
      .map(branch => this.inlineReferences(branch))
      .filter(branch => branch.type === undefined || hasType(branch, 'object'))
      .map(branch => this.#add(branch, depth + 1))
  }

  #addProperties(properties: Json): void {
    for (const [name, schema] of Object.entries(properties)) {
      const schemas = this.#properties.get(name) ?? new Map<string, unknown>()
      this.#properties.set(name, schemas.set(JSON.stringify(schema), schema))
    }
  }
}
