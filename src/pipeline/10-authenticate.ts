// Key → Caller. A malformed key is refused in memory; one that nobody has is looked up once in a while.

import { Refusal } from '../base/errors.ts'
import type { SecretRing } from '../base/secret-ring.ts'
import type { Carriers } from '../identity/key-carriers.ts'
import { carriesSomething, findKey } from '../identity/key-carriers.ts'
import type { KeyDirectory } from '../identity/key-directory.ts'
import { digestKey, parseKey } from '../identity/key-format.ts'
import type { Visitor } from '../limits/gate.ts'
import type { Caller } from './exchange.ts'

export interface AuthenticateParts {
  readonly keys: KeyDirectory
  readonly pepper: SecretRing
}

export type Authenticate = (carriers: Carriers) => Promise<Caller>

/** Whose key it is, as far as memory can tell; it proves nothing. */
export type Recognise = (carriers: Carriers) => Visitor | undefined

export function buildRecognise({ keys, pepper }: AuthenticateParts): Recognise {
  return function recognise(carriers) {
    const key = parseKey(findKey(carriers) ?? '')
    const row = key && keys.recall(digestKey(key, pepper.newest))
    return row === undefined || row === 'unknown' || row.revoked ? undefined : row
  }
}

export function buildAuthenticate(parts: AuthenticateParts): Authenticate {
  return async function authenticate(carriers) {
    const sent = findKey(carriers)
    if (sent === undefined) {
      throw new Refusal(carriesSomething(carriers) ? 'key_invalid' : 'key_missing', 'no key of ours was sent')
    }
    const key = parseKey(sent)
    if (key === undefined) throw new Refusal('key_invalid', 'malformed')
    const digest = digestKey(key, parts.pepper.newest)
    const recalled = parts.keys.recall(digest)
    const row = recalled === undefined ? await parts.keys.lookUp(digest, key) : recalled
    if (row === undefined || row === 'unknown') throw new Refusal('key_invalid', 'unknown')
    if (row.revoked) throw new Refusal('key_invalid', `key ${row.id} is revoked`)
    return {
      keyId: row.id,
      accountId: row.accountId,
      tier: row.tier,
      qpm: row.qpm,
      perMille: BigInt(row.pricePerMille),
      clamps: row.clamps,
      strict: row.strict,
      keepsBodies: row.keepsBodies,
      explains: row.explains,
      allows: row.allows,
      denies: row.denies,
      requires: row.requires,
    } as Caller
  }
}
