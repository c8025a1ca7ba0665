import type { Json } from './request/json-type.ts'

// The HTTP status that an error names inside of an answer whose own status is another.
const FIELDS = ['code', 'status', 'status_code', 'http_status'] as const

/** The first field that is a status of an error, as a number or its digits; else `otherwise`. */
export function statusIn(error: Json, otherwise: number): number {
  for (const field of FIELDS) {
    const value = error[field]
    const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599) return status
  }
  return otherwise
}
