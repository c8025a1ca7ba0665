// Checks of request bodies that all dialects share, and the refusals for fields that fail them.

import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { isObject } from './json-body.ts'
import type { Json } from './json-type.ts'

const OUTPUT_TOKENS_MAX = 1_000_000_000
const CHOICES_MAX = 128

interface FieldRule {
  readonly check: (value: unknown) => boolean
  readonly message: string
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= OUTPUT_TOKENS_MAX
}

export const fieldRules = {
  object: { check: isObject, message: 'must be an object' },
  word: {
    check: value => typeof value === 'string' && value.length <= 64,
    message: 'must be a text of at most 64 characters',
  },
  text: { check: value => typeof value === 'string', message: 'must be a text' },
  boolean: { check: value => typeof value === 'boolean', message: 'must be true or false' },
  count: { check: isCount, message: 'must be a positive integer' },
  list: { check: Array.isArray, message: 'must be a list' },
  number: { check: value => typeof value === 'number', message: 'must be a number' },
  choices: {
    check: value => isCount(value) && (value as number) <= CHOICES_MAX,
    message: `must be an integer from 1 to ${CHOICES_MAX}`,
  },
} as const satisfies Record<string, FieldRule>

interface Checked {
  readonly object: Json
  readonly word: string
  readonly text: string
  readonly boolean: boolean
  readonly count: number
  readonly list: readonly unknown[]
  readonly number: number
  readonly choices: number
}

/** Returns the value of a field, or undefined if it is missing or null. Throws a Refusal if it breaks the rule. */
export function readOptional<Name extends keyof Checked>(
  json: Json,
  field: string,
  rule: Name,
): Checked[Name] | undefined {
  const value = json[field] ?? undefined
  const { check, message }: FieldRule = fieldRules[rule]
  if (value !== undefined && !check(value)) throw invalid(field, message)
  return value as Checked[Name] | undefined
}

/** Returns the model name as the caller wrote it. */
export function requireModel(json: Json): string {
  const { model } = json
  if (model === undefined || model === null) throw missing('model')
  if (typeof model !== 'string') throw invalid('model', 'must be a string')
  return model
}

/**
 * Fields that let an upstream use another model or another provider. It could be more expensive than the model that the
 * call is priced for.
 */
export const otherModelFields = ['models', 'fallbacks', 'preset', 'provider', 'route'] as const

/** Throws a Refusal if one of the fields is present and not empty. `within` names the object that has the fields. */
export function refuseFields(json: Json, fields: readonly string[], within?: string): void {
  for (const field of fields) {
    const value = json[field] ?? undefined
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0)
    const path = within === undefined ? field : `${within}.${field}`
    if (!isEmpty) throw invalid(path, 'is not served: a call is for one model at one price')
  }
}

/** Fields that defer the answer. The answer would be fetched later, outside the call, and not be billed. */
export const deferringFields = ['deferred', 'background'] as const

/** Throws a Refusal if one of the fields is present and not false. */
export function refuseDeferred(json: Json, fields: readonly string[]): void {
  for (const field of fields) {
    const value = json[field] ?? false
    if (value !== false) throw invalid(field, 'is not served here: the answer must come with the call. Leave it out')
  }
}

/** Refuses tools without a type, because an unknown tool counts as a paid one. `defaultType`: the type if left out. */
export function checkTools({ tools }: Json, defaultType?: string): void {
  if (!Array.isArray(tools)) return
  tools.forEach((tool: unknown, index) => {
    if (!isObject(tool)) throw invalid(`tools[${index}]`, 'must be an object')
    const type = tool.type ?? (isObject(tool.function) ? 'function' : defaultType)
    if (typeof type !== 'string' || type === '') throw invalid(`tools[${index}].type`, 'must be a text')
  })
}

/** Checks that messages are a list of objects with roles, and that their contents are texts or lists of parts. */
export function checkMessages(messages: unknown): void {
  if (messages === undefined || messages === null) throw missing('messages')
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('messages', 'must be a list with at least one message')
  }
  const wrong = messages.findIndex(isNoMessage)
  if (wrong >= 0) throw invalid(`messages[${wrong}]`, 'must be an object with a role')
  const unread = (messages as readonly Json[]).findIndex(hasNoContent)
  if (unread >= 0) throw invalid(`messages[${unread}].content`, 'must be a text or a list of parts')
}

const isNoMessage = (message: unknown): boolean => !isObject(message) || typeof message.role !== 'string'

/** An assistant that calls tools may say nothing, and some tools have no result. A user always says something. */
function hasNoContent({ role, content = null }: Json): boolean {
  if (content === null) return role === 'user'
  return typeof content !== 'string' && !Array.isArray(content)
}

export const missing = (field: string): Refusal => new Refusal('field_missing', field, describeField(field))

export const invalid = (field: string, says: string): Refusal =>
  new Refusal('field_invalid', field, describeField(field, says))

/** The field that an error is about, as `param` for dialects that have it, and as a sentence. */
export function describeField(param: string, says = 'is required'): { param: string; hint: Hint } {
  return { param, hint: hintOf('call_field', { name: param, says }) }
}

/** Reads a text of an object inside the request. `at` is the path of the object. */
export function requireText(json: Json, field: string, at: string): string {
  const value = json[field]
  if (typeof value !== 'string') throw invalid(`${at}.${field}`, 'must be a text')
  return value
}
