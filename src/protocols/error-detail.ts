// Reads the reason in an error that does not have the form of its dialect. Cloud gateways, web frameworks and vendors have
// forms of their own, and many servers of models check requests with such a framework before their own code writes errors.

import { isObject } from './request/json-body.ts'

/** The text becomes part of an error; more entries or levels would say no more. */
const [ENTRIES_MAX, LEVELS_MAX] = [10, 4]

const REASON_FIELDS = ['message', 'Message', 'detail', 'msg', 'error_msg', 'errors'] as const

/** The reason is a text, a field of an object, or a list with what is wrong with each field of the request. */
export function readErrorDetail(error: unknown, levels = LEVELS_MAX): string | undefined {
  if (typeof error === 'string') return error === '' ? undefined : error
  if (levels === 0) return undefined
  if (Array.isArray(error)) {
    const reasons = error.slice(0, ENTRIES_MAX).flatMap(one => readErrorDetail(one, levels - 1) ?? [])
    return reasons.length === 0 ? undefined : reasons.join('; ')
  }
  if (!isObject(error)) return undefined
  for (const name of REASON_FIELDS) {
    const reason = readErrorDetail(error[name], levels - 1)
    if (reason !== undefined) return pathOf(error.loc) + reason
  }
  return undefined
}

/** The path of the field that the reason is about. */
function pathOf(location: unknown): string {
  const path = Array.isArray(location) ? location.filter(isName).join('.') : ''
  return path === '' ? '' : `${path}: `
}

const isName = (part: unknown): boolean => typeof part === 'string' || typeof part === 'number'

/** Web pages, and bytes that are no text. */
const NO_REASON = /^\s*(?:<|$)|[^\P{Cc}\s]|\ufffd/u

/** Reads the reason in the body of an error. `json` is its value, if it is JSON. Otherwise the whole text is the reason. */
export function readErrorBody(body: Buffer, json: unknown): string | undefined {
  const reason = json === undefined ? body.toString('utf8').trim() : readErrorDetail(json)
  return reason === undefined || NO_REASON.test(reason) ? undefined : reason
}
