// Finds the API key in a request. Callers may send it in several headers or in the query. The first value that begins
// with `wk-` counts, because real clients send two keys at once, one of them often of another vendor.

import { keyPrefix } from './key-format.ts'
import { serviceTokenPrefix } from './service-token-format.ts'

export interface KeyCarriers {
  header(name: string): string | undefined
  query(name: string): string | null
}

const BEARER = /^bearer\s+/i

/** The key as it was sent; undefined if no value looks like a key of the gateway. */
export function findKey(carriers: KeyCarriers): string | undefined {
  return (
    keyIn(carriers.header('authorization')?.replace(BEARER, '')) ??
    keyIn(carriers.header('x-api-key')) ??
    keyIn(carriers.header('x-goog-api-key')) ??
    keyIn(carriers.header('api-key')) ??
    keyIn(carriers.query('key'))
  )
}

/** Whether the request has any value where a key may be: the error then says that the key is wrong, not missing. */
export const hasKeyValue = (carriers: KeyCarriers): boolean => valuesOf(carriers).length > 0

/** Whether the request has a service token where a key may be: the error then says where the token belongs. */
export const hasServiceToken = (carriers: KeyCarriers): boolean =>
  valuesOf(carriers).some(value => value.replace(BEARER, '').startsWith(serviceTokenPrefix))

function valuesOf(carriers: KeyCarriers): readonly string[] {
  const headers = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'].map(name => carriers.header(name))
  return [...headers, carriers.query('key')].filter(value => typeof value === 'string' && value !== '') as string[]
}

function keyIn(value: string | null | undefined): string | undefined {
  const text = value?.trim()
  return text?.startsWith(keyPrefix) ? text : undefined
}
