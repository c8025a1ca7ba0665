// What is done to keys, by whoever asks for it: the web, a terminal. Durable first, then in force, then what is still
// under way hears of it.

import type { KeyText } from '../../identity/key-format.ts'
import { digestKey, keySuffix, mintKey } from '../../identity/key-format.ts'
import type { By, Seen, Stale } from '../../store/audit-log/audited.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { KeyChange, KeyInsert, KeyOperations } from '../../store/rules/key-operations.ts'
import type { OperatorParts } from '../command.ts'

type Done<Name extends keyof KeyOperations> = KeyOperations[Name]['result'] | Stale

/** Whose key it may be, and who asks. */
export interface Asking {
  readonly id: number
  readonly scope: Scope | null
  readonly by: By & Partial<Seen>
}

export interface KeyMade<Name extends keyof KeyOperations> {
  /** Shown once: only its digest is kept. */
  readonly text: KeyText
  readonly result: Done<Name>
}

type Stored = Pick<KeyInsert, 'digest' | 'pepper' | 'suffix'>

export interface KeyWanted extends Omit<KeyInsert, keyof Stored | 'name'> {
  /** Undefined: one that nobody else has. */
  readonly name: string | undefined
}

type Parts = Pick<OperatorParts, 'writer' | 'pepper' | 'onKeyChanged' | 'keyEnds' | 'dateMs'>

function mint({ pepper }: Parts): { text: KeyText; stored: Stored } {
  const text = mintKey()
  const digest = digestKey(text, pepper.newest).toString('hex')
  return { text, stored: { digest, pepper: pepper.newestMark, suffix: keySuffix(text) } }
}

export async function makeKey(parts: Parts, wanted: KeyWanted, by: By): Promise<KeyMade<'createKey'>> {
  const { text, stored } = mint(parts)
  const name = wanted.name ?? (wanted.existing ? `unnamed ${stored.suffix}` : 'unnamed')
  const result = await written(parts, parts.writer.run('createKey', { ...wanted, ...stored, name }, by))
  return { text, result }
}

export async function changeKey(parts: Parts, asking: Asking, change: KeyChange): Promise<Done<'setKey'>> {
  const { id, scope, by } = asking
  const result: Done<'setKey'> = await written(parts, parts.writer.run('setKey', { ...change, id, scope }, by))
  if (result.done !== 'set') return result
  if (change.disabled) parts.keyEnds.end(id)
  if (change.expiresMs !== undefined) parts.keyEnds.expires(id, change.expiresMs)
  return result
}

export async function renewKey(parts: Parts, asking: Asking, overlapMs: number): Promise<KeyMade<'rotateKey'>> {
  const { id, scope, by } = asking
  const { text, stored } = mint(parts)
  const nowMs = parts.dateMs()
  const untilMs = overlapMs === 0 ? null : nowMs + overlapMs
  const rotated = parts.writer.run('rotateKey', { id, scope, ...stored, untilMs }, by)
  const result: Done<'rotateKey'> = await written(parts, rotated)
  if (result.done === 'rotated') parts.keyEnds.renewed(id, untilMs ?? nowMs)
  return { text, result }
}

export async function revokeKey(parts: Parts, { id, scope, by }: Asking): Promise<Done<'revokeKey'>> {
  const result: Done<'revokeKey'> = await written(parts, parts.writer.run('revokeKey', { id, scope }, by))
  if (result.done === 'revoked') parts.keyEnds.end(id)
  return result
}

/** Whatever is remembered of keys is looked up again, also where nobody knows whether it was written. */
async function written<T>({ onKeyChanged }: Parts, writing: Promise<T>): Promise<T> {
  try {
    return await writing
  } finally {
    onKeyChanged()
  }
}

/** Lists are kept with commas between; null: whichever. */
export const listText = (list: readonly string[] | null | undefined): string | null | undefined =>
  list && (list.length === 0 ? null : list.join())
