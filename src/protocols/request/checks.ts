// Checks of a request body that every dialect makes, and what it says when one fails.

import { Refusal } from '../../base/errors.ts'
import { isObject } from './json-object.ts'
import type { Json } from './json-type.ts'

const OUTPUT_TOKENS_MAX = 1_000_000_000
const CHOICES_MAX = 128

interface Rule {
  readonly check: (value: unknown) => boolean
  readonly says: string
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= OUTPUT_TOKENS_MAX
}

export const rules = {
  object: { check: isObject, says: 'must be an object' },
  word: { check: value => typeof value === 'string' && value.length <= 64, says: 'must be a short text' },
  text: { check: value => typeof value === 'string', says: 'must be a text' },
  boolean: { check: value => typeof value === 'boolean', says: 'must be true or false' },
  count: { check: isCount, says: 'must be a positive integer' },
  list: { check: Array.isArray, says: 'must be a list' },
  number: { check: value => typeof value === 'number', says: 'must be a number' },
  choices: {
    check: value => isCount(value) && (value as number) <= CHOICES_MAX,
    says: `must be an integer from 1 to ${CHOICES_MAX}`,
  },
} as const satisfies Record<string, Rule>

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

/** The field's value, if it is there and not null. Throws where it is something else than the rule says. */
export function optional<Name extends keyof Checked>(json: Json, field: string, rule: Name): Checked[Name] | undefined {
  const value = json[field] ?? undefined
  const { check, says }: Rule = rules[rule]
  if (value !== undefined && !check(value)) throw invalid(field, says)
  return value as Checked[Name] | undefined
}

/** The model as the caller named it. */
export function requireModel(json: Json): string {
  const { model } = json
  if (model === undefined || model === null) throw missing('model')
  if (typeof model !== 'string') throw invalid('model', 'must be a string')
  return model
}

/**
 * Name models that an upstream may serve instead, or who may serve them: at the price of what was asked for, a dearer
 * one.
 */
export const otherModels = ['models', 'fallbacks', 'preset', 'provider', 'route'] as const

/** Throws where one of these is there and says something; `within` names the field that holds them. */
export function refuseFields(json: Json, fields: readonly string[], within?: string): void {
  for (const field of fields) {
    const value = json[field] ?? undefined
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0)
    const path = within === undefined ? field : `${within}.${field}`
    if (!isEmpty) throw invalid(path, 'is not served: a call is for one model at one price')
  }
}

/** Their answer would be that there is none yet, and whoever asked for it then would not be asked to pay. */
export const postponingFields = ['deferred', 'background'] as const

/** Throws where one of these is there and is not false: the answer to the call would be that there is none yet. */
export function refusePostponed(json: Json, fields: readonly string[]): void {
  for (const field of fields) {
    const value = json[field] ?? false
    if (value !== false) throw invalid(field, 'is not served here: the answer must come with the call. Leave it out')
  }
}

/** What is no tool at all would be taken for one that is paid for. `kind` is what it is where it need not say. */
export function checkTools({ tools }: Json, kind?: string): void {
  if (!Array.isArray(tools)) return
  tools.forEach((tool: unknown, index) => {
    if (!isObject(tool)) throw invalid(`tools[${index}]`, 'must be an object')
    const type = tool.type ?? (isObject(tool.function) ? 'function' : kind)
    if (typeof type !== 'string' || type === '') throw invalid(`tools[${index}].type`, 'must be a text')
  })
}

/** Messages of the dialects that have them: a list of objects with roles. */
export function checkMessages(messages: unknown): void {
  if (messages === undefined || messages === null) throw missing('messages')
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('messages', 'must be a list with at least one message')
  }
  messages.forEach((message: unknown, index) => {
    const ok = isObject(message) && typeof message.role === 'string'
    if (!ok) throw invalid(`messages[${index}]`, 'must be an object with a role')
  })
}

export const missing = (field: string): Refusal => new Refusal('field_missing', field, at(field))

export const invalid = (field: string, says: string): Refusal => new Refusal('field_invalid', field, at(field, says))

/** Which field is at fault, for dialects that have a place for it, and in words. */
export function at(param: string, says = 'is required'): { param: string; hint: string } {
  return { param, hint: `"${param}" ${says}.` }
}
