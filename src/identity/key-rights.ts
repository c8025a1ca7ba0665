// What a key may: call at all, now and from there; kinds of endpoints; models by the names that callers use for them,
// and channels by what is said of them.

import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import { matchesGlob } from '../base/text/glob.ts'
import type { KnownKey } from './key-directory.ts'

/** What a key may be kept to, by the kind of what is called in whichever dialect, or by the dialect of its calls. */
export const endpointNames = [
  ...(['chat', 'messages', 'responses', 'gemini', 'ark'] as const),
  ...(['completions', 'embeddings', 'images', 'audio', 'rerank', 'moderations'] as const),
  ...(['count_tokens', 'files', 'tasks', 'models'] as const),
] as const
export type EndpointName = (typeof endpointNames)[number]

/** Where and how somebody uses a key. */
export interface KeyUse {
  address(): string
  /** Undefined where there is nothing, or what every key may ask for. */
  readonly endpoint: EndpointName | undefined
}

/** Why a key may not call; undefined where it may. Decided from what is in memory, by the date. */
export function keyProblem(key: KnownKey, use: KeyUse, dateMs: number): ErrorCode | undefined {
  if (key.revoked || key.disabled) return 'key_invalid'
  if (key.expiresMs !== null && dateMs >= key.expiresMs) return 'key_invalid'
  if (key.untilMs !== null && dateMs >= key.untilMs) return 'key_invalid'
  if (key.ranges !== undefined && !key.ranges.has(use.address())) return 'address_forbidden'
  if (key.endpoints === null || use.endpoint === undefined || key.endpoints.includes(use.endpoint)) return undefined
  return 'endpoint_forbidden'
}

/** Null: whichever. */
export interface KeyRights {
  /** Patterns: one of them must fit. */
  readonly allows: readonly string[] | null
  /** Its account's: one of these must fit, too. */
  readonly accountAllows: readonly string[] | null
  /** Patterns: none of them may fit, also where another allows it. */
  readonly denies: readonly string[] | null
  /** Tags: a channel must have all of them. */
  readonly requires: readonly string[] | null
}

/** Throws for a model that the key may not use: by the name that the caller used, and by the model's own. */
export function checkModel({ allows, accountAllows, denies }: KeyRights, asked: string, model: string): void {
  const fits = (pattern: string): boolean => matchesGlob(pattern, asked) || matchesGlob(pattern, model)
  const isAllowed = (allows === null || allows.some(fits)) && (accountAllows === null || accountAllows.some(fits))
  const isDenied = denies?.some(fits)
  if (isAllowed && !isDenied) return
  throw new Refusal('model_forbidden', isDenied ? 'denied' : 'not allowed', { param: 'model' })
}

export const mayUseChannel = ({ requires }: Pick<KeyRights, 'requires'>, tags: readonly string[]): boolean =>
  requires === null || requires.every(tag => tags.includes(tag))
