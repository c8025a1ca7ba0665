// Converts JSON Schema to the subset that this dialect's providers hold a model to. They refuse a schema with anything
// else, so limits on numbers, texts and lists move into the description, and `oneOf` becomes `anyOf`.
//
// Some schemas cannot be converted, because the subset has only objects whose properties are all known, and no
// recursion. Closing a map that is open would leave the model nothing but `{}` to answer.
import { jsonText } from '../../base/text/json-text.ts'
import { findDefinition } from '../neutral/definitions.ts'
import { findType } from '../neutral/root-object.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Fields that mean the same there. */
const PLAIN_FIELDS = new Set(['type', 'title', 'description', 'default'])

/** Fields that have a rule of their own below. */
const CONVERTED_FIELDS = new Set([
  'enum',
  'const',
  'anyOf',
  'oneOf',
  'allOf',
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'unevaluatedProperties',
  'items',
  'minItems',
  'format',
])

/** Fields that say nothing to a model. Definitions count at the root only, where references can find them. */
const DROPPED_FIELDS = new Set(['$schema', '$id', '$comment', '$anchor', '$defs', 'definitions'])

/** Fields that restrict an answer and have no counterpart. In a description they do not bind the model. */
const RESTRICTIONS = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'maxItems',
  'uniqueItems',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'propertyNames',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'if',
  'then',
  'else',
  'not',
])

/** Fields that say what a value is. The provider wants one of them in each schema. */
const SHAPES = ['type', '$ref', 'anyOf', 'oneOf', 'allOf', 'enum', 'const', 'properties', 'items'] as const

const SUPPORTED_FORMATS: readonly unknown[] = [
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]

const DEFINITION_FIELDS = ['$defs', 'definitions'] as const

const DEPTH_MAX = 64

export interface SupportedSchema {
  readonly schema: Json
  /** Some limits are only in a description, which does not bind the model. */
  readonly isWeaker: boolean
}

/** Undefined: the provider would refuse the schema, or hold the model to another one. */
export function toSupportedSchema(schema: Json): SupportedSchema | undefined {
  const conversion = new SchemaConversion(schema)
  const converted = conversion.convertRoot()
  return conversion.isExpressible ? { schema: converted, isWeaker: conversion.isWeaker } : undefined
}

/** One schema inside the whole, while it is converted. */
interface Step {
  readonly schema: Json
  readonly depth: number
  readonly type: unknown
  readonly written: Record<string, unknown>
  /** What goes into the description. */
  readonly words: string[]
}

class SchemaConversion {
  isWeaker = false
  isExpressible = true
  readonly #root: Json
  /** The definitions that each definition refers to. */
  readonly #references = new Map<string, string[]>()
  /** Of the definition that is being converted. */
  #ownReferences: string[] | undefined

  constructor(root: Json) {
    this.#root = root
  }

  convertRoot(): Json {
    const converted: Record<string, unknown> = { ...this.#convert(this.#root, 0) }
    for (const field of DEFINITION_FIELDS) {
      const definitions = this.#root[field]
      if (isObject(definitions)) converted[field] = mapValues(definitions, this.#convertDefinition(field))
    }
    if (hasCycle(this.#references)) this.isExpressible = false
    return converted
  }

  #convertDefinition = (field: string) => (definition: unknown, name: string) => {
    this.#ownReferences = []
    this.#references.set(`${field}/${name}`, this.#ownReferences)
    return this.#convert(definition, 1)
  }

  #convert(value: unknown, depth: number): Json {
    if (!isObject(value) || depth > DEPTH_MAX) return this.#fail()
    const schema = mergeSinglePart(value)
    if (schema.$ref !== undefined) return this.#convertReference(schema)
    const step: Step = { schema, depth, type: findType(schema), written: {}, words: [] }
    const { written, words } = step
    for (const name of Object.keys(schema)) {
      if (PLAIN_FIELDS.has(name)) written[name] = schema[name]
      else if (!CONVERTED_FIELDS.has(name) && !DROPPED_FIELDS.has(name)) this.#moveToWords(name, step)
    }
    if (step.type !== undefined) written.type = step.type
    this.#convertShape(step)
    if (words.length > 0) written.description = [schema.description, `{${words.join(', ')}}`].filter(Boolean).join('\n')
    return SHAPES.some(name => written[name] !== undefined) ? written : this.#fail()
  }

  #convertShape(step: Step): void {
    const { schema, type } = step
    // The parts of an intersection must be closed one by one, and then no object fits them all.
    if (schema.allOf !== undefined) this.#fail()
    if (schema.format !== undefined) this.#keepIf(SUPPORTED_FORMATS.includes(schema.format), 'format', step)
    if (schema.minItems !== undefined) this.#keepIf(schema.minItems === 0 || schema.minItems === 1, 'minItems', step)
    const hasValues = this.#convertValues(step)
    const isVaried = this.#convertVariants(step, hasValues)
    if (isVaried) {
      if (schema.required !== undefined) this.#moveToWords('required', step, true)
    } else if (!hasValues && hasType(type, 'object')) this.#convertObject(step)
    if (schema.items !== undefined) this.#convertItems(step)
  }

  #fail(): Json {
    this.isExpressible = false
    return {}
  }

  #moveToWords(name: string, { schema, words }: Step, isRestriction = RESTRICTIONS.has(name)): void {
    words.push(`${name}: ${JSON.stringify(schema[name])}`)
    this.isWeaker ||= isRestriction
  }

  #keepIf(isSupported: boolean, name: string, step: Step): void {
    if (isSupported) step.written[name] = step.schema[name]
    else this.#moveToWords(name, step, true)
  }

  /** The provider replaces a reference by its definition, and takes nothing beside it. */
  #convertReference(schema: Json): Json {
    const definition = findDefinition(this.#root, schema.$ref)
    if (definition === undefined) return this.#fail()
    this.#ownReferences?.push(definition.key)
    this.isWeaker ||= Object.keys(schema).some(name => !IGNORED_BESIDE_REFERENCE.has(name))
    return { $ref: schema.$ref }
  }

  /**
   * True if the schema lists all values. The type is dropped if it fits only some of them, and a list of types always.
   * A type that fits none stays: without it the model could answer what the caller's schema excludes.
   */
  #convertValues(step: Step): boolean {
    const { schema, type, written } = step
    let hasValues = false
    for (const name of ['enum', 'const'] as const) {
      if (schema[name] === undefined) continue
      const values = name === 'const' ? [schema.const] : schema.enum
      const isSupported = Array.isArray(values) && values.length > 0 && values.every(isPrimitive)
      this.#keepIf(isSupported, name, step)
      hasValues ||= isSupported
      if (isSupported && !isTypeKept(values, type)) delete written.type
    }
    return hasValues
  }

  /**
   * True if the schema is a union. The alternatives of a `oneOf` that occurs in practice exclude each other, by a
   * property that says which one it is, so that `anyOf` allows no more.
   */
  #convertVariants(step: Step, hasValues: boolean): boolean {
    const { schema, type, written, depth } = step
    const name = schema.anyOf === undefined ? 'oneOf' : 'anyOf'
    const variants = schema[name]
    if (variants === undefined) return false
    if (name === 'anyOf' && schema.oneOf !== undefined) this.#moveToWords('oneOf', step, true)
    if (hasValues || !isEmpty(schema.properties) || schema.items !== undefined) {
      this.#moveToWords(name, step, true)
      return false
    }
    if (!Array.isArray(variants) || variants.length === 0) this.#fail()
    else written.anyOf = variants.map((variant: unknown) => this.#convert(addType(variant, type), depth + 1))
    delete written.type
    return true
  }

  #convertObject(step: Step): void {
    const { schema, written } = step
    const { properties, required = [], additionalProperties, patternProperties, unevaluatedProperties = false } = schema
    // Without a word about its properties, an object is a map as well.
    const isMap = additionalProperties === undefined ? properties === undefined : additionalProperties !== false
    const isOpen = isMap || !isEmpty(patternProperties) || unevaluatedProperties !== false
    const known = properties ?? {}
    const canBeClosed =
      isObject(known) && Array.isArray(required) && required.every(name => Object.hasOwn(known, jsonText(name)))
    if (isOpen || !canBeClosed) {
      this.#fail()
      return
    }
    written.properties = mapValues(known, (inner, name) => this.#convertProperty(inner, name, step))
    if (schema.required !== undefined) written.required = required
    written.additionalProperties = false
  }

  /** A description beside a reference moves to the object, since the reference cannot have it. */
  #convertProperty(inner: unknown, name: string, { words, depth }: Step): Json {
    const property = isObject(inner) ? mergeSinglePart(inner) : inner
    if (!isObject(property) || property.$ref === undefined || property.description === undefined)
      return this.#convert(property, depth + 1)
    const { description, ...rest } = property
    words.push(`${name}: ${JSON.stringify(description)}`)
    return this.#convert(rest, depth + 1)
  }

  #convertItems(step: Step): void {
    const { items } = step.schema
    if (items === true || (isObject(items) && Object.keys(items).length === 0)) return
    if (isObject(items)) step.written.items = this.#convert(items, step.depth + 1)
    else this.#moveToWords('items', step, true)
  }
}

const IGNORED_BESIDE_REFERENCE = new Set([...DROPPED_FIELDS, '$ref', 'title', 'default', 'examples'])

const hasType = (type: unknown, name: string): boolean => (Array.isArray(type) ? type.includes(name) : type === name)

const isEmpty = (value: unknown): boolean => value === undefined || (isObject(value) && Object.keys(value).length === 0)

const isPrimitive = (value: unknown): boolean => value === null || typeof value !== 'object'

function isTypeKept(values: readonly unknown[], type: unknown): boolean {
  if (Array.isArray(type)) return !values.some(value => type.some(name => isOfType(value, name)))
  const fittingCount = values.filter(value => isOfType(value, type)).length
  return fittingCount === values.length || fittingCount === 0
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === undefined) return true
  if (value === null) return type === 'null'
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

/** An alternative may leave its type to the schema around it. */
const addType = (variant: unknown, type: unknown): unknown =>
  isObject(variant) && type !== undefined && SHAPES.every(name => variant[name] === undefined)
    ? { ...variant, type }
    : variant

/** Pydantic wraps a reference that has a description in an `allOf` of one. */
function mergeSinglePart(schema: Json): Json {
  if (!Array.isArray(schema.allOf) || schema.allOf.length !== 1) return schema
  const { allOf, ...rest } = schema
  const part: unknown = (allOf as unknown[])[0]
  if (!isObject(part)) return schema
  const hasConflict = Object.keys(rest).some(name => !PLAIN_FIELDS.has(name) && part[name] !== undefined)
  return hasConflict ? schema : { ...part, ...rest }
}

/** Takes away what nothing left refers to, again and again. Only a cycle remains. */
function hasCycle(references: ReadonlyMap<string, readonly string[]>): boolean {
  const counts = new Map<string, number>()
  for (const names of references.values()) for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const taken = [...references.keys()].filter(name => !counts.has(name))
  // The list grows while it is read.
  for (const name of taken) {
    for (const next of references.get(name) ?? []) {
      const left = (counts.get(next) ?? 0) - 1
      counts.set(next, left)
      if (left === 0) taken.push(next)
    }
  }
  return taken.length < references.size
}

function mapValues(map: Json, convert: (value: unknown, name: string) => unknown): Json {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, convert(value, name)]))
}
