// Key → Caller. A malformed key is refused in memory; one that nobody has is looked up at most once in a while, and
// an address that keeps asking for such keys is not looked up for at all.

import { Refusal } from '../base/errors.ts'
import type { Secret } from '../base/secret.ts'
import type { Carriers } from '../identity/key-carriers.ts'
import { carriesSomething, findKey } from '../identity/key-carriers.ts'
import type { KeyDirectory } from '../identity/key-directory.ts'
import { digestKey, parseKey } from '../identity/key-format.ts'
import { RateLimiter } from '../limits/gcra.ts'
import type { KeyRow } from '../store/reader.ts'
import type { Caller } from './exchange.ts'

const GUESSES_PER_MINUTE_MAX = 20

export interface AuthenticateParts {
  readonly keys: KeyDirectory
  readonly pepper: Secret
  nowMs(): number
}

/** Who knocks: what it brings, and where it comes from, which is asked only where it matters. */
export interface Knock extends Carriers {
  address(): string
}

export type Authenticate = (knock: Knock) => Promise<Caller>

export function buildAuthenticate(parts: AuthenticateParts): Authenticate {
  const guesses = new RateLimiter<string>()

  async function lookUp(digest: Buffer, address: string): Promise<KeyRow | undefined> {
    const nowMs = parts.nowMs()
    if (guesses.isFull(address, GUESSES_PER_MINUTE_MAX, nowMs)) {
      throw new Refusal('key_invalid', 'too many unknown keys from this address')
    }
    const row = await parts.keys.lookUp(digest)
    if (row === undefined) guesses.take(address, GUESSES_PER_MINUTE_MAX, nowMs)
    return row
  }

  return async function authenticate(knock) {
    const sent = findKey(knock)
    if (sent === undefined) {
      throw new Refusal(carriesSomething(knock) ? 'key_invalid' : 'key_missing', 'no key of ours was sent')
    }
    const key = parseKey(sent)
    if (key === undefined) throw new Refusal('key_invalid', 'malformed')
    const digest = digestKey(key, parts.pepper)
    const recalled = parts.keys.recall(digest)
    const row = recalled === undefined ? await lookUp(digest, knock.address()) : recalled
    if (row === undefined || row === 'unknown') throw new Refusal('key_invalid', 'unknown')
    if (row.revoked) throw new Refusal('key_invalid', `key ${row.id} is revoked`)
    const { id, accountId, tier, qpm } = row
    return { keyId: id, accountId, tier, qpm, perMille: BigInt(row.pricePerMille) } as Caller
  }
}
