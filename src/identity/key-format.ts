// API keys: `wk-` and 36 characters. A digest of a key is stored, never the key.

import { createHmac } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import { credentialSuffix, isCredential, mintCredential } from './credential-format.ts'

/** A text with the format and checksum of a key. The key may still be unknown. */
export type KeyText = Brand<string, 'KeyText'>

export const keyPrefix = 'wk-'

export const mintKey = (random?: (bytes: number) => Uint8Array): KeyText => mintCredential(keyPrefix, random) as KeyText

export const parseKey = (text: string): KeyText | undefined =>
  isCredential(text, keyPrefix) ? (text as KeyText) : undefined

/** The stored form of a key. Without the pepper, which is not in the database, nobody can verify or forge it. */
export function digestKey(key: KeyText, pepper: Secret): Buffer {
  return createHmac('sha256', pepper.reveal()).update(key).digest()
}

/** The digests of a key with each pepper, the newest first. */
export const digestsOf = (key: KeyText, peppers: SecretRing): readonly Buffer[] =>
  peppers.all.map(pepper => digestKey(key, pepper))

export const keySuffix = (key: KeyText): string => credentialSuffix(key)
