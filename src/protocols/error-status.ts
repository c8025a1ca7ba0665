import type { Json } from './request/json-type.ts'

// Finds the HTTP status that the body of an error names. It can differ from the status of the HTTP response.
const FIELDS = ['code', 'status', 'status_code', 'http_status'] as const

/** Returns the first field that is an error status, as a number or as digits. Otherwise returns `defaultStatus`. */
export function findErrorStatus(error: Json, defaultStatus: number): number {
  for (const field of FIELDS) {
    const value = error[field]
    const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
    if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599) return status
  }
  return defaultStatus
}
