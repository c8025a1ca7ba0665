// Checks what a key may do: whether it is valid now and from this address, and which endpoints, models and channels it
// may use.

import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import { matchesGlob } from '../base/text/glob.ts'
import type { RuleNames } from '../base/text/rule-names.ts'
import { isRuleAbout, normalizeName } from '../base/text/rule-names.ts'
import type { KnownKey } from './key-directory.ts'

/** The endpoints that a key can be restricted to: dialects of generations, and kinds of other calls. */
export const endpointNames = [
  'chat',
  'messages',
  'responses',
  'gemini',
  'ark',
  'completions',
  'embeddings',
  'images',
  'audio',
  'rerank',
  'moderations',
  'count_tokens',
  'files',
  'tasks',
  'models',
] as const
export type EndpointName = (typeof endpointNames)[number]

/** The address from which a key is used, and the endpoint. */
export interface KeyUse {
  address(): string
  /** Undefined for an unknown path, and for endpoints that every key may use. */
  readonly endpoint: EndpointName | undefined
}

/** Why a key may not be used; undefined if it may. Needs no lookup. */
export function keyProblem(key: KnownKey, use: KeyUse, dateMs: number): ErrorCode | undefined {
  if (key.revoked || key.disabled) return 'key_invalid'
  if (key.expiresMs !== null && dateMs >= key.expiresMs) return 'key_invalid'
  if (key.untilMs !== null && dateMs >= key.untilMs) return 'key_invalid'
  if (key.ranges !== undefined && !key.ranges.has(use.address())) return 'address_forbidden'
  if (key.endpoints === null || use.endpoint === undefined || key.endpoints.includes(use.endpoint)) return undefined
  return 'endpoint_forbidden'
}

/** Null means: no restriction. */
export interface KeyRights {
  /** Patterns of models; one of them must match. */
  readonly allows: readonly string[] | null
  /** The patterns of the key's account; one of them must match as well. */
  readonly accountAllows: readonly string[] | null
  /** Patterns of models; none of them may match, even if another pattern allows the model. */
  readonly denies: readonly string[] | null
  /** Tags; a channel must have all of them. */
  readonly requires: readonly string[] | null
}

/** The names of a model that patterns are compared with. */
export interface RestrictedModel {
  /** The name in the request. It can only forbid: a spelling that callers choose freely must not allow anything. */
  readonly requested: string
  readonly names: RuleNames
}

/** The normalized patterns of each list. A key keeps its list, so that a call does not normalize every pattern again. */
const normalizedLists = new WeakMap<readonly string[], readonly string[]>()

function normalizedList(patterns: readonly string[]): readonly string[] {
  let list = normalizedLists.get(patterns)
  if (list === undefined) {
    list = patterns.map(normalizeName)
    normalizedLists.set(patterns, list)
  }
  return list
}

function isDeniedBy(denies: readonly string[], { requested, names }: RestrictedModel): boolean {
  if (denies.length === 0) return false
  const name = normalizeName(requested)
  return normalizedList(denies).some(rule => isRuleAbout(rule, names) || matchesGlob(rule, name))
}

/** Throws if the key may not use a model. */
export function checkModelAllowed({ allows, accountAllows, denies }: KeyRights, model: RestrictedModel): void {
  const allow = (pattern: string): boolean => model.names.written.some(name => matchesGlob(pattern, name))
  const isAllowed = (allows === null || allows.some(allow)) && (accountAllows === null || accountAllows.some(allow))
  const isDenied = denies !== null && isDeniedBy(denies, model)
  if (isAllowed && !isDenied) return
  throw new Refusal('model_forbidden', isDenied ? 'denied' : 'not allowed', { param: 'model' })
}

export const mayUseChannel = ({ requires }: Pick<KeyRights, 'requires'>, tags: readonly string[]): boolean =>
  requires === null || requires.every(tag => tags.includes(tag))
