// Masks what may be a secret in the fields of a plan. A plan is printed, and a pipeline keeps what it prints.

import { looksLikeCredential } from '../services/channel-checks.ts'
import { maskedUrl } from '../webhooks/shown-url.ts'
import type { ListName } from './file-schema.ts'
import type { EntryChanges } from './subject.ts'

const MASK = '…'

export function maskChanges(list: ListName | 'settings', changes: EntryChanges): EntryChanges {
  return Object.fromEntries(
    Object.entries(changes).map(([field, [before, after]]) => {
      const mask = (value: unknown): unknown => maskField(list, field, value)
      return [field, [mask(before), noteDifference(mask(after), { before, after, maskedBefore: mask(before) })]]
    }),
  )
}

function maskField(list: ListName | 'settings', field: string, value: unknown): unknown {
  if (list === 'webhooks' && field === 'url') return value === undefined ? undefined : maskedUrl(String(value))
  // The values of headers are for the upstream alone, whatever their names.
  if (list === 'channels' && field === 'headers') return mapStrings(value, () => MASK)
  const isSecret = (name: string): boolean => field === 'parameters' && looksLikeCredential(name)
  return mapStrings(value, (text, name) => (isSecret(name) ? MASK : maskAddress(text)))
}

interface MaskedPair {
  readonly before: unknown
  readonly after: unknown
  readonly maskedBefore: unknown
}

/** Two different values may look the same when they are masked. */
function noteDifference(masked: unknown, { before, after, maskedBefore }: MaskedPair): unknown {
  const isHidden = before !== undefined && JSON.stringify(masked) === JSON.stringify(maskedBefore)
  if (!isHidden || JSON.stringify(before) === JSON.stringify(after)) return masked
  return `${typeof masked === 'string' ? masked : JSON.stringify(masked)} (changed)`
}

/** An address may contain a password, or a key in its query. The gateway refuses such an address, but only after the plan. */
function maskAddress(text: string): string {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? URL.parse(text) : null
  if (url === null || `${url.username}${url.password}${url.search}${url.hash}` === '') return text
  return `${url.protocol}//${url.host}${url.pathname}?${MASK}`
}

/** Maps every text in a value, with the name of the field that holds it. Paths such as `a.b` count as their last name. */
function mapStrings(value: unknown, map: (text: string, name: string) => string, name = ''): unknown {
  if (typeof value === 'string') return map(value, name)
  if (Array.isArray(value)) return value.map(item => mapStrings(item, map, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [field, mapStrings(inner, map, field.split('.').at(-1))]),
  )
}
