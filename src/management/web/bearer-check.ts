// Finds the actor of a management request by its bearer token: the token of a session (JWT), or a service token (wst-…).

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { networkOf } from '../../http/address/caller-address.ts'
import type { AttemptCounterParts } from '../../identity/attempt-limits.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import { keyPrefix } from '../../identity/key-format.ts'
import { digestServiceToken, parseServiceToken, serviceTokenPrefix } from '../../identity/service-token-format.ts'
import { ADDRESS_RATE } from '../../identity/sign-in-limits.ts'
import type { StoreWriter } from '../../store/engine/store-engine.ts'
import type { ServiceTokenRow } from '../../store/people/people-reader.ts'
import type { Actor } from '../actor.ts'
import { tokenActor } from '../actor.ts'
import type { SessionCheckParts } from './session-check.ts'
import { buildSessionCheck } from './session-check.ts'
import { hasSessionCookie } from './sessions.ts'

export interface BearerRequest {
  readonly path: string
  header(name: string): string | undefined
  address(): string
}

export interface BearerCheckParts extends SessionCheckParts, AttemptCounterParts {
  readonly writer: Pick<StoreWriter, 'run'>
}

/** Throws if the request has no valid token. */
export type CheckBearer = (request: BearerRequest) => Promise<Actor>

/** The text of a bearer token; undefined if there is none. */
function bearerOf(authorization: string | undefined): string | undefined {
  const [scheme, token] = (authorization ?? '').split(' ', 2)
  return scheme?.toLowerCase() === 'bearer' && token ? token : undefined
}

/** Whether a request says that it has a service token. It proves nothing. */
export const bearsServiceToken = (authorization: string | undefined): boolean =>
  bearerOf(authorization)?.startsWith(serviceTokenPrefix) === true

const invalid = (detail: string, hint: Hint): Refusal => new Refusal('token_invalid', detail, { hint })

export function buildBearerCheck(parts: BearerCheckParts): CheckBearer {
  const checkSession = buildSessionCheck(parts)
  const checkServiceToken = buildServiceTokenCheck(parts)
  return async function checkBearer(request) {
    const authorization = request.header('authorization')
    const token = bearerOf(authorization)
    if (bearsServiceToken(authorization)) return await checkServiceToken(token!, request)
    const actor = token === undefined ? undefined : await checkSession(token)
    if (actor !== undefined) return actor
    if (token?.startsWith(keyPrefix)) throw invalid('an API key', hintOf('token_is_key'))
    throw new Refusal('token_invalid', request.path)
  }
}

function buildServiceTokenCheck({ reader, dateMs, ...parts }: BearerCheckParts) {
  const attempts = new AttemptCounter('service-token', ADDRESS_RATE, parts)
  const noteUse = buildNoteUse(parts)
  return async function checkServiceToken(sent: string, request: BearerRequest): Promise<Actor> {
    if (hasSessionCookie(request.header('cookie'))) {
      throw invalid('both', hintOf('token_or_cookie'))
    }
    const text = parseServiceToken(sent)
    const row = text && (await reader.people.serviceToken(digestServiceToken(text)))
    if (row === undefined) {
      // Only an unknown text is a guess, and only guesses wait. Somebody behind the same address must not stop programs
      // with a valid token, and neither must a token that has ended. A look-up is as cheap as the refusal without it.
      const network = networkOf(request.address())
      await attempts.countOrRefuse(network)
      throw invalid('unknown', hintOf('token_unknown'))
    }
    const problem = problemOf(row, dateMs())
    if (problem !== undefined) throw invalid(`service token ${row.id}`, problem)
    noteUse(row, dateMs())
    return tokenActor(row)
  }
}

/** Why a token is not valid now, for whoever has its text. */
function problemOf({ revoked, expiresMs, untilMs }: ServiceTokenRow, dateNowMs: number): Hint | undefined {
  if (revoked) return hintOf('token_was_revoked')
  if (expiresMs !== null && dateNowMs >= expiresMs) return hintOf('token_expired')
  return untilMs !== null && dateNowMs >= untilMs ? hintOf('token_rotated') : undefined
}

/**
 * Stores the time of the last use of a token, at most once a minute. The request does not wait for it, and a time that
 * could not be written is lost: the next use is written instead.
 */
function buildNoteUse({ writer }: Pick<BearerCheckParts, 'writer'>): (row: ServiceTokenRow, usedMs: number) => void {
  const writing = new Set<number>()
  return function noteUse({ id, usedMs: lastMs }, usedMs) {
    const isRecent = lastMs !== null && usedMs - lastMs < bounds.tokenUseNotedMsMin
    if (isRecent || writing.has(id)) return
    writing.add(id)
    void writer
      .run('noteTokenUse', { id, usedMs })
      .catch(() => {})
      .finally(() => writing.delete(id))
  }
}
