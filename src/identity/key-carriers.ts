// Where a caller may put its key, in order. The first carrier whose value begins `wk-` counts: real clients send
// two at once (one of them often another vendor's), and the seed's two carriers come first.

import { keyPrefix } from './key-format.ts'

export interface Carriers {
  header(name: string): string | undefined
  query(name: string): string | null
}

const BEARER = /^bearer\s+/i

/** The key as sent, or undefined when no carrier holds anything that looks like one of ours. */
export function findKey(carriers: Carriers): string | undefined {
  return (
    ours(carriers.header('authorization')?.replace(BEARER, '')) ??
    ours(carriers.header('x-api-key')) ??
    ours(carriers.header('x-goog-api-key')) ??
    ours(carriers.header('api-key')) ??
    ours(carriers.query('key'))
  )
}

/** Whether any carrier held anything at all: the caller is told whether its key is missing or wrong. */
export function carriesSomething(carriers: Carriers): boolean {
  const names = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key']
  return names.some(name => carriers.header(name)) || Boolean(carriers.query('key'))
}

function ours(value: string | null | undefined): string | undefined {
  const text = value?.trim()
  return text?.startsWith(keyPrefix) ? text : undefined
}
