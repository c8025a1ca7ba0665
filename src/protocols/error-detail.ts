// Reads the reason in an error that a web framework wrote: `detail` is a text, or a list of fields with what is wrong with
// each. Many servers of models check requests with such a framework, before their own code writes errors.

import { isObject } from './request/json-body.ts'

/** The text becomes part of an error; more fields would say no more. */
const FIELDS_MAX = 10

export function readErrorDetail(error: unknown): string | undefined {
  if (!isObject(error)) return undefined
  const { detail } = error
  if (typeof detail === 'string' && detail !== '') return detail
  if (!Array.isArray(detail)) return undefined
  const reasons = detail.slice(0, FIELDS_MAX).flatMap(reasonOf)
  return reasons.length === 0 ? undefined : reasons.join('; ')
}

function reasonOf(field: unknown): readonly string[] {
  if (!isObject(field) || typeof field.msg !== 'string') return []
  const path = Array.isArray(field.loc) ? field.loc.filter(isName).join('.') : ''
  return [path === '' ? field.msg : `${path}: ${field.msg}`]
}

const isName = (part: unknown): boolean => typeof part === 'string' || typeof part === 'number'
