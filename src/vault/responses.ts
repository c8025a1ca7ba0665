// Stores responses that callers can fetch again and continue. Each row has the items of its own turn and the id of the
// response before it; a conversation is the chain of these rows.

import { bounds } from '../base/bounds.ts'
import type { KeptId, ResponseFacts, ResponseStatus } from '../store/vault/kept.ts'
import type { ResponseRow } from '../store/vault/kept-reader.ts'
import type { VaultParts } from './envelope.ts'
import { close, isId, openOrSay, placeOf, rowOf } from './envelope.ts'

/** JSON values, as they are returned to the caller. */
export interface ResponseBody {
  /** The input items of this turn only. */
  readonly input: readonly unknown[]
  /** Everything that the next turn needs, including items that the caller did not ask to see. */
  readonly output: readonly unknown[]
  /** The response object as the caller got it. */
  readonly response: unknown
  /** The events of its stream, if they can be replayed. */
  readonly events?: string
}

export interface StoredResponse extends ResponseFacts {
  readonly expiresMs: number
  /** Absent when only the upstream has the body. */
  readonly body?: ResponseBody
}

export type Chain =
  /** `links`: the oldest response first. */
  | { readonly done: 'found'; readonly links: readonly StoredResponse[] }
  /** A response of the chain does not exist, was deleted or has expired. */
  | { readonly done: 'missing'; readonly id: string }
  | { readonly done: 'too_long' }

export interface Responses {
  /** Resolves when the response is durable. A response with the same id is replaced. */
  put(facts: ResponseFacts, body?: ResponseBody): Promise<'kept' | 'too_large'>
  get(owner: KeptId): StoredResponse | undefined
  /** Changes a response that is queued or in progress. A finished response does not change any more. */
  change(owner: KeptId, status: ResponseStatus, body?: ResponseBody): Promise<ResponseChanged>
  /** Returns whether the response existed. */
  delete(owner: KeptId): Promise<boolean>
  /** The response and all responses before it. */
  chain(owner: KeptId): Promise<Chain>
}

export type ResponseChanged = 'changed' | 'over' | 'unknown' | 'too_large'

export interface ResponsesParts extends VaultParts {
  /** How many days a response is stored. */
  readonly days: number
}

const DAY_MS = 24 * 3_600_000
/** After decrypting this much in one go, chain() lets other work run. */
const BYTES_PER_STEP = 1024 * 1024

export function openResponses(parts: ResponsesParts): Responses {
  const { writer, reader, seal, dateMs, days } = parts
  const locationOf = (owner: KeptId) => placeOf('kept_response', rowOf(owner))
  const find = (owner: KeptId): ResponseRow | undefined =>
    isId(owner.id) ? reader.kept.response(owner, dateMs()) : undefined

  /** Null without a body; undefined when the body is too large. */
  function sealBody(owner: KeptId, body: ResponseBody | undefined): string | null | undefined {
    if (body === undefined) return null
    const bytes = Buffer.from(JSON.stringify(body))
    return bytes.length > bounds.keptResponseBytesMax ? undefined : close(seal, locationOf(owner), bytes)
  }

  /** Undefined when the body cannot be decrypted and no upstream has it. */
  function readRow({ sealed, bytes: _, ...facts }: ResponseRow): StoredResponse | undefined {
    const opened = sealed === null ? undefined : openOrSay(parts, locationOf(facts), sealed)
    if (opened !== undefined) return { ...facts, body: JSON.parse(opened.toString()) as ResponseBody }
    return facts.upstreamId === null ? undefined : facts
  }

  return {
    async put(facts, body) {
      const sealed = sealBody(facts, body)
      if (sealed === undefined || !isId(facts.id)) return 'too_large'
      const expiresMs = facts.createdMs + days * DAY_MS
      return (await writer.run('keepResponse', { ...facts, expiresMs, sealed })).done
    },
    get(owner) {
      const row = find(owner)
      return row === undefined ? undefined : readRow(row)
    },
    async change(owner, status, body) {
      const sealed = sealBody(owner, body)
      if (sealed === undefined) return 'too_large'
      const { accountId, id } = owner
      return (await writer.run('changeResponse', { accountId, id, status, sealed })).done
    },
    async delete({ accountId, id }) {
      return isId(id) && (await writer.run('dropResponse', { accountId, id })).done === 'dropped'
    },
    async chain({ accountId, id }) {
      const links: StoredResponse[] = []
      let [bytes, bytesAtPause] = [0, 0]
      for (let next: string | null = id; next !== null; ) {
        const row = find({ accountId, id: next })
        bytes += row?.bytes ?? 0
        const isTooLong = links.length === bounds.responseChainMax || bytes > bounds.responseChainBytesMax
        if (isTooLong) return { done: 'too_long' }
        const link = row === undefined ? undefined : readRow(row)
        if (link === undefined) return { done: 'missing', id: next }
        links.push(link)
        next = link.previousId
        if (bytes - bytesAtPause < BYTES_PER_STEP) continue
        bytesAtPause = bytes
        await new Promise(resolve => setImmediate(resolve))
      }
      return { done: 'found', links: links.reverse() }
    },
  }
}
