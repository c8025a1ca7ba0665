// Creates, changes, rotates and revokes keys. A change is written first, then applied to new calls, then to running calls.

import { bounds } from '../../base/bounds.ts'
import type { KeyText } from '../../identity/key-format.ts'
import { digestKey, keySuffix, mintKey } from '../../identity/key-format.ts'
import type { AuditActor, ExpectedVersion, StaleVersion } from '../../store/audit-log/audited-operations.ts'
import type { MoneyText } from '../../store/ledger/money-text.ts'
import type { RevokedKeys } from '../../store/people/people.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { KeyChange, KeyInsert, KeyOperations } from '../../store/rules/key-operations.ts'
import type { ManagementParts } from '../management-parts.ts'

type Done<Name extends keyof KeyOperations> = KeyOperations[Name]['result'] | StaleVersion

/** The key, the scope in which it must lie, and who asks for the change. */
export interface KeyRequest {
  readonly id: number
  readonly scope: Scope | null
  readonly by: AuditActor & Partial<ExpectedVersion>
}

export interface CreatedKey<Name extends keyof KeyOperations> {
  /** Shown once: only its digest is stored. */
  readonly text: KeyText
  readonly result: Done<Name>
}

type StoredKeyText = Pick<KeyInsert, 'digest' | 'pepper' | 'suffix'>

export interface NewKeyInput extends Omit<KeyInsert, keyof StoredKeyText | 'name'> {
  /** Undefined: a generated name. */
  readonly name: string | undefined
}

type Parts = Pick<ManagementParts, 'writer' | 'pepper' | 'onKeyChanged' | 'keyLifetime' | 'dateMs'>

function mint({ pepper }: Parts): { text: KeyText; stored: StoredKeyText } {
  const text = mintKey()
  const digest = digestKey(text, pepper.newest).toString('hex')
  return { text, stored: { digest, pepper: pepper.newestFingerprint, suffix: keySuffix(text) } }
}

export async function createApiKey(
  parts: Parts,
  wanted: NewKeyInput,
  by: AuditActor,
): Promise<CreatedKey<'createKey'>> {
  const { text, stored } = mint(parts)
  const name = wanted.name ?? (wanted.existing ? `unnamed ${stored.suffix}` : 'unnamed')
  const result = await writeKey(parts, parts.writer.run('createKey', { ...wanted, ...stored, name }, by))
  return { text, result }
}

export async function changeKey(parts: Parts, request: KeyRequest, change: KeyChange): Promise<Done<'setKey'>> {
  const { id, scope, by } = request
  const result: Done<'setKey'> = await writeKey(parts, parts.writer.run('setKey', { ...change, id, scope }, by))
  if (result.done !== 'set') return result
  if (change.disabled) parts.keyLifetime.end(id)
  if (change.expiresMs !== undefined) parts.keyLifetime.expires(id, change.expiresMs)
  return result
}

export async function rotateApiKey(
  parts: Parts,
  request: KeyRequest,
  overlapMs: number,
): Promise<CreatedKey<'rotateKey'>> {
  const { id, scope, by } = request
  const { text, stored } = mint(parts)
  const nowMs = parts.dateMs()
  const untilMs = overlapMs === 0 ? null : nowMs + overlapMs
  const rotated = parts.writer.run('rotateKey', { id, scope, ...stored, untilMs }, by)
  const result: Done<'rotateKey'> = await writeKey(parts, rotated)
  if (result.done === 'rotated') parts.keyLifetime.textReplaced(id, untilMs ?? nowMs)
  return { text, result }
}

export interface PlaygroundRequest {
  readonly accountId: number
  readonly scope: Scope | null
  readonly by: AuditActor
  /** The actor whose playground it is, as in the audit log. */
  readonly of: string
  readonly budget: MoneyText
}

interface PlaygroundKey extends CreatedKey<'setPlaygroundKey'> {
  readonly id: number
  readonly expiresMs: number
}

/** Two requests of one actor at once may both find no key, and both want to create it: the second one looks again. */
const PLAYGROUND_TRIES = 3

/** An actor has one key for its playground in an account. Each request gives it a new text. */
export async function createPlaygroundKey(
  parts: Parts & Pick<ManagementParts, 'queryWorker' | 'mintId'>,
  { accountId, scope, by, of: playgroundOf, budget }: PlaygroundRequest,
): Promise<PlaygroundKey> {
  for (let tries = 1; ; tries++) {
    const { text, stored } = mint(parts)
    const id = (await parts.queryWorker.query('playgroundKey', { accountId, playgroundOf })) ?? parts.mintId()
    const nowMs = parts.dateMs()
    const expiresMs = nowMs + bounds.playgroundKeyMsMax
    const key = { ...stored, id, accountId, playgroundOf, expiresMs, budget, scope }
    const result: Done<'setPlaygroundKey'> = await writeKey(parts, parts.writer.run('setPlaygroundKey', key, by))
    if (result.done === 'set') parts.keyLifetime.expires(id, expiresMs)
    if (result.done !== 'raced' || tries === PLAYGROUND_TRIES) return { text, id, expiresMs, result }
  }
}

export async function revokeKey(parts: Parts, { id, scope, by }: KeyRequest): Promise<Done<'revokeKey'>> {
  const result: Done<'revokeKey'> = await writeKey(parts, parts.writer.run('revokeKey', { id, scope }, by))
  if (result.done === 'revoked') parts.keyLifetime.end(id)
  return result
}

/** Runs a write that may remove rights of a person. Then this gateway forgets the playground keys that were revoked. */
export async function writeRights<T extends { readonly done: string }>(
  parts: Pick<Parts, 'onKeyChanged' | 'keyLifetime'>,
  write: Promise<T>,
): Promise<T> {
  const result: T & Partial<RevokedKeys> = await writeKey(parts, write)
  for (const id of result.revokedKeys ?? []) parts.keyLifetime.end(id)
  return result
}

/** Drops cached keys after a write, also after a failed one, because it may have been written. */
async function writeKey<T>({ onKeyChanged }: Pick<Parts, 'onKeyChanged'>, write: Promise<T>): Promise<T> {
  try {
    return await write
  } finally {
    onKeyChanged()
  }
}
