// Responses that can be asked for again, and carried on. Each keeps what was new in its turn, and the name of the one
// before it; a conversation is the chain of them.

import { bounds } from '../base/bounds.ts'
import type { KeptId, ResponseFacts, ResponseStatus } from '../store/vault/kept.ts'
import type { ResponseRow } from '../store/vault/kept-reader.ts'
import type { VaultParts } from './envelope.ts'
import { close, isId, openOrSay, placeOf, rowOf } from './envelope.ts'

/** JSON values, as they are to be given back. */
export interface ResponseBody {
  /** The items of this turn alone. */
  readonly input: readonly unknown[]
  /** With everything that the next turn needs, also what its caller did not want to see. */
  readonly output: readonly unknown[]
  /** The response object, as its caller got it. */
  readonly response: unknown
  /** The events of its stream, where they were to be heard again. */
  readonly events?: string
}

export interface StoredResponse extends ResponseFacts {
  readonly expiresMs: number
  /** None where only the upstream has it. */
  readonly body?: ResponseBody
}

export type Chain =
  /** The oldest first. */
  | { readonly done: 'found'; readonly links: readonly StoredResponse[] }
  /** One of them was never there, is deleted, or has had its time. */
  | { readonly done: 'missing'; readonly id: string }
  | { readonly done: 'too_long' }

export interface Responses {
  /** Resolves when it is durable. The newest of a name counts. */
  put(facts: ResponseFacts, body?: ResponseBody): Promise<'kept' | 'too_large'>
  get(owner: KeptId): StoredResponse | undefined
  /** Of one that is queued or in progress; afterwards it changes no more. */
  change(owner: KeptId, status: ResponseStatus, body?: ResponseBody): Promise<ResponseChanged>
  /** Whether there was one. */
  delete(owner: KeptId): Promise<boolean>
  /** It and all before it. */
  chain(owner: KeptId): Promise<Chain>
}

export type ResponseChanged = 'changed' | 'over' | 'unknown' | 'too_large'

export interface ResponsesParts extends VaultParts {
  /** How long a response is kept. */
  readonly days: number
}

const DAY_MS = 24 * 3_600_000
/** Opened and read in one go; then others have their turn. */
const BREATH_BYTES = 1024 * 1024

export function openResponses(parts: ResponsesParts): Responses {
  const { writer, reader, seal, dateMs, days } = parts
  const placeIn = (owner: KeptId) => placeOf('kept_response', rowOf(owner))
  const find = (owner: KeptId): ResponseRow | undefined =>
    isId(owner.id) ? reader.kept.response(owner, dateMs()) : undefined

  function closed(owner: KeptId, body: ResponseBody | undefined): string | null | undefined {
    if (body === undefined) return null
    const bytes = Buffer.from(JSON.stringify(body))
    return bytes.length > bounds.keptResponseBytesMax ? undefined : close(seal, placeIn(owner), bytes)
  }

  /** Undefined where nobody has its words any more. */
  function read({ sealed, bytes: _, ...facts }: ResponseRow): StoredResponse | undefined {
    const opened = sealed === null ? undefined : openOrSay(parts, placeIn(facts), sealed)
    if (opened !== undefined) return { ...facts, body: JSON.parse(opened.toString()) as ResponseBody }
    return facts.upstreamId === null ? undefined : facts
  }

  return {
    async put(facts, body) {
      const sealed = closed(facts, body)
      if (sealed === undefined || !isId(facts.id)) return 'too_large'
      const expiresMs = facts.createdMs + days * DAY_MS
      return (await writer.run('keepResponse', { ...facts, expiresMs, sealed })).done
    },
    get(owner) {
      const row = find(owner)
      return row === undefined ? undefined : read(row)
    },
    async change(owner, status, body) {
      const sealed = closed(owner, body)
      if (sealed === undefined) return 'too_large'
      const { accountId, id } = owner
      return (await writer.run('changeResponse', { accountId, id, status, sealed })).done
    },
    async delete({ accountId, id }) {
      return isId(id) && (await writer.run('dropResponse', { accountId, id })).done === 'dropped'
    },
    async chain({ accountId, id }) {
      const links: StoredResponse[] = []
      let [bytes, breath] = [0, 0]
      for (let next: string | null = id; next !== null; ) {
        const row = find({ accountId, id: next })
        bytes += row?.bytes ?? 0
        const isTooLong = links.length === bounds.responseChainMax || bytes > bounds.responseChainBytesMax
        if (isTooLong) return { done: 'too_long' }
        const link = row === undefined ? undefined : read(row)
        if (link === undefined) return { done: 'missing', id: next }
        links.push(link)
        next = link.previousId
        if (bytes - breath < BREATH_BYTES) continue
        breath = bytes
        await new Promise(resolve => setImmediate(resolve))
      }
      return { done: 'found', links: links.reverse() }
    },
  }
}
