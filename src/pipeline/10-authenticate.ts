// Key → Caller: the key exists, is valid now, and may be used from this address for this purpose. A malformed key is
// refused without a lookup; unknown keys are remembered for a while, so that they are looked up rarely.

import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { KeyCarriers } from '../identity/key-carriers.ts'
import { findKey, hasKeyValue, hasServiceToken } from '../identity/key-carriers.ts'
import type { KeyDirectory, KnownKey } from '../identity/key-directory.ts'
import { withRanges } from '../identity/key-directory.ts'
import { digestKey, parseKey } from '../identity/key-format.ts'
import type { KeyUse } from '../identity/key-rights.ts'
import { keyProblem } from '../identity/key-rights.ts'
import type { GateVisitor } from '../limits/gate.ts'
import type { FoundKey } from '../store/engine/reader.ts'
import type { Caller } from './exchange.ts'

export interface AuthenticateParts {
  readonly keys: KeyDirectory
  readonly pepper: SecretRing
  dateMs(): number
}

/** The headers of a request that may carry a key, and how the request uses it. */
export type KeyedRequest = KeyCarriers & KeyUse

/** Returns a promise only where the store must be read. */
export type Authenticate = (bearer: KeyedRequest) => Caller | Promise<Caller>

/** Finds the key of a request among the keys in memory. It proves nothing. */
export type RecogniseKey = (bearer: KeyedRequest) => GateVisitor | undefined

export function buildRecogniseKey({ keys, pepper, dateMs }: AuthenticateParts): RecogniseKey {
  return function recognise(bearer) {
    const key = parseKey(findKey(bearer) ?? '')
    const row = key && keys.getCached(digestKey(key, pepper.newest))
    if (row === undefined || row === 'unknown') return undefined
    return keyProblem(row, bearer, dateMs()) === undefined ? row : undefined
  }
}

function noKey(bearer: KeyedRequest): Refusal {
  if (hasServiceToken(bearer))
    return new Refusal('key_invalid', 'a service token', { hint: hintOf('call_service_token') })
  if (hasKeyValue(bearer)) return new Refusal('key_invalid', 'another key', { hint: hintOf('call_key_prefix') })
  return new Refusal('key_missing', 'no key was sent')
}

export function buildAuthenticate(parts: AuthenticateParts): Authenticate {
  /** All calls of a key have the same Caller, as long as the row of the key is cached. */
  const callers = new WeakMap<KnownKey, Caller>()

  function checkKey(row: KnownKey | 'unknown' | undefined, digest: Buffer, bearer: KeyedRequest): Caller {
    if (row === undefined || row === 'unknown') throw new Refusal('key_invalid', 'unknown')
    const problem = keyProblem(row, bearer, parts.dateMs())
    if (problem !== undefined) throw new Refusal(problem, `key ${row.id}`)
    let caller = callers.get(row)
    if (caller === undefined) callers.set(row, (caller = callerOf(row, digest)))
    return caller
  }

  return function authenticate(bearer) {
    const sent = findKey(bearer)
    if (sent === undefined) throw noKey(bearer)
    const key = parseKey(sent)
    if (key === undefined) throw new Refusal('key_invalid', 'malformed')
    const digest = digestKey(key, parts.pepper.newest)
    const recalled = parts.keys.getCached(digest)
    if (recalled !== undefined) return checkKey(recalled, digest, bearer)
    return parts.keys.lookUp(digest, key).then(row => checkKey(row, digest, bearer))
  }
}

/** A key that somebody asks about, who does not have its text. */
export interface CallerInQuestion {
  readonly caller: Caller
  /** Why a call of this key is refused at once. */
  readonly problem: Refusal | undefined
}

/** The caller that a key is, for explanations only. Without an address, the key's list of addresses is not checked. */
export function callerInQuestion(
  { row, digest }: FoundKey,
  use: Pick<KeyUse, 'endpoint'> & { readonly address: string | undefined },
  dateMs: number,
): CallerInQuestion {
  const { address, endpoint } = use
  const known = address === undefined ? row : withRanges(row)
  const problem = keyProblem(known, { endpoint, address: () => address! }, dateMs)
  return { caller: callerOf(row, digest), problem: problem && new Refusal(problem, `key ${row.id}`) }
}

const callerOf = (row: KnownKey, digest: Buffer): Caller =>
  ({
    keyId: row.id,
    version: row.version,
    digest,
    accountId: row.accountId,
    tier: row.tier,
    qpm: row.qpm,
    limitsKeyId: row.limitsKeyId,
    hasOwnLimit: row.hasOwnLimit,
    perMille: BigInt(row.pricePerMille),
    strictCap: row.strictCap,
    strict: row.strict,
    keepsBodies: row.keepsBodies,
    explains: row.explains,
    expiresMs: row.expiresMs,
    untilMs: row.untilMs,
    allows: row.allows,
    accountAllows: row.accountAllows,
    denies: row.denies,
    requires: row.requires,
  }) as Caller
