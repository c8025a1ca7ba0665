// The key of a conversation: short, equal for all of its turns, and different for other accounts. Affinity uses it, and the
// record has an id that is made of it.

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Exchange, Route } from '../exchange.ts'

/** `model` is the name that the caller sent; `begins` comes from `Protocol.begins`. */
export function conversationKey(accountId: number, model: string, begins: string): string {
  // Two conversations with the same key only share a preference, and are listed together. So a fast hash is enough.
  const text = `${model}\n${begins}`
  const half = text.length >>> 1
  return `${accountId}:${crc32(text)}:${crc32(text.slice(half), half)}`
}

/** The key of the conversation of a call. Undefined where its dialect has none. It is computed once for each call. */
export function conversationKeyOf(
  { permit }: Route,
  { call, protocol, routing }: Pick<Exchange, 'call' | 'protocol' | 'routing'>,
): string | undefined {
  if (call === undefined || protocol.begins === undefined) return undefined
  routing.conversationKey ??= conversationKey(permit.caller.accountId, call.model, protocol.begins(call.json))
  return routing.conversationKey
}

/** The id of the conversation of a call, for its record. Undefined where it cannot be known. */
export type ConversationId = (route: Route, exchange: Exchange) => string | undefined

const ID_CHARS = 16

/**
 * The key says something about the text, so the id is a hash of it and of a secret: nobody who has the database, or the
 * answers of the gateway, can try texts until one matches. After a rotation of the secret, conversations get new ids.
 */
export function buildConversationId(pepper: Pick<SecretRing, 'newest' | 'all'>): ConversationId {
  let derivedFrom: readonly unknown[] | undefined
  let secret = ''
  return function conversationId(route, exchange) {
    if (isContinued(exchange)) return undefined
    const key = conversationKeyOf(route, exchange)
    if (key === undefined) return undefined
    if (derivedFrom !== pepper.all) {
      derivedFrom = pepper.all
      // Not the secret itself: what it protects elsewhere must not depend on how it is used here.
      secret = hash('sha256', `conversation id\n${pepper.newest.reveal()}`, 'hex')
    }
    return hash('sha256', secret + key, 'hex').slice(0, ID_CHARS)
  }
}

/** Only the upstream knows the turns before this one, so that the start of the conversation is not in the request. */
const isContinued = ({ call, attempt }: Exchange): boolean =>
  call?.state?.previous !== undefined && attempt.candidate?.previousResponseId !== undefined
