// Schemas of fields that several resources have in common.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { must } from '../web/issue-text.ts'
import { timeInput } from './endpoint.ts'

type Json = Readonly<Record<string, unknown>>

/** A value that is JSON of any form. Its schema names the forms, so that a generated client has a type for it. */
export const jsonValue = z.unknown().meta({
  id: 'JsonValue',
  description: 'Any JSON value',
  type: ['string', 'number', 'boolean', 'object', 'array', 'null'],
})

/** An object whose code checks it by itself, and whose JSON Schema comes from that code. */
export const describedObject = (id: string, description: string, schema: Json) =>
  z.looseObject({}).meta({ ...schema, id, description })

/** Replaces the parts of a JSON Schema that the OpenAPI document has under a name by references to them. */
export function withReferences(schema: Json, names: ReadonlyMap<Json, string>): Json {
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced)
    if (typeof value !== 'object' || value === null) return value
    const name = names.get(value as Json)
    return name === undefined ? inner(value as Json) : { $ref: `#/components/schemas/${name}` }
  }
  const inner = (value: Json): Json =>
    Object.fromEntries(Object.entries(value).map(([field, one]) => [field, replaced(one)]))
  return inner(schema)
}

export const label = z
  .string()
  .trim()
  .min(1)
  .max(bounds.keyNameCharsMax)
  .refine(text => !/\p{Cc}/u.test(text), must('must_have_no_controls'))
export const tierName = z.string().min(1).max(50)

export const tierUnknown = (): Refusal =>
  new Refusal('field_invalid', 'tier', { param: 'tier', hint: hintOf('tier_unknown') })
/** The refusal of a change of a key that only its playground changes. */
export const isPlayground = (): Refusal =>
  new Refusal('state_unfit', 'playground', { hint: hintOf('key_of_playground') })
/** A model name as callers write it, with any number of `*`. No comma: lists are stored with commas between. */
export const modelPattern = z
  .string()
  .min(1)
  .max(bounds.modelNameCharsMax)
  .regex(/^[\x21-\x2b\x2d-\x7e]*$/, must('must_be_pattern'))

/** Null: no restriction. */
export const listOrAll = <T extends z.ZodType<string>>(item: T, max: number) => z.array(item).min(1).max(max).nullable()

export const modelPatterns = listOrAll(modelPattern, bounds.keyPatternsMax)

/** The tokens of a call, or of many. Input contains what was read from a cache or written to it; output contains reasoning. */
export const tokenFields = {
  inputTokens: z.number(),
  cacheReadTokens: z.number(),
  cacheWriteTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
}

/** When a key or a token ends; null: never. */
export const expiry = timeInput.refine(ms => ms < Date.UTC(2100, 0), must('must_be_early')).nullable()

export function refusePastExpiry(expires: number | null | undefined, nowMs: number): void {
  if (typeof expires !== 'number' || expires > nowMs) return
  throw new Refusal('field_invalid', 'past', { param: 'expires', hint: hintOf('expires_past') })
}

/** The value of a filter in the query string. */
export const yesNo = z.enum(['true', 'false']).transform(text => text === 'true')
