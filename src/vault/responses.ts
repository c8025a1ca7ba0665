// Stores responses that callers can fetch again and continue. Each row has the items of its own turn and the id of the
// response before it; a conversation is the chain of these rows.

import { bounds } from '../base/bounds.ts'
import { DAY_MS } from '../base/time.ts'
import type { ResponseRow } from '../store/vault/vault-reader.ts'
import type { ResponseFacts, ResponseStatus, VaultId } from '../store/vault/vault-types.ts'
import type { VaultParts } from './envelope.ts'
import { isStorableId, openOrReport, rowKey, sealLocation, sealToBase64 } from './envelope.ts'

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
  /** Absent when only the upstream has the body, and when the body was not read. */
  readonly body?: ResponseBody
  /** The body is stored here, and was not read. */
  readonly isUnread?: true
}

/** Called with the size of a stored body before it is decrypted. Throws if it must not be read now. */
export type ChargeBytes = (bytes: number) => void

export interface ChainOptions {
  readonly charge?: ChargeBytes | undefined
  /** Called with each response, the newest first. Returns whether the older ones are not needed. */
  onLink?(link: StoredResponse): boolean
}

export type ResponseChain =
  /** `links`: the oldest response first. */
  | { readonly done: 'found'; readonly links: readonly StoredResponse[] }
  /** A response of the chain does not exist, was deleted or has expired. */
  | { readonly done: 'missing'; readonly id: string }
  | { readonly done: 'too_long' }

export interface ResponseStore {
  /** Resolves when the response is durable. A response with the same id is replaced. */
  put(facts: ResponseFacts, body?: ResponseBody): Promise<'kept' | 'too_large'>
  get(owner: VaultId, charge?: ChargeBytes): Promise<StoredResponse | undefined>
  /** The response without its body, which is neither decrypted nor parsed: that takes time. */
  head(owner: VaultId): Promise<StoredResponse | undefined>
  /** Changes a response that is queued or in progress. A finished response does not change any more. */
  change(owner: VaultId, status: ResponseStatus, body?: ResponseBody): Promise<ResponseChanged>
  /** Returns whether the response existed. */
  delete(owner: VaultId): Promise<boolean>
  /** The response and all responses before it, or as many as `onLink` needs. */
  chain(owner: VaultId, options?: ChainOptions): Promise<ResponseChain>
}

export type ResponseChanged = 'changed' | 'over' | 'unknown' | 'too_large'

export interface ResponsesParts extends VaultParts {
  /** How many days a response is stored. */
  readonly days: number
}

/** After decrypting this much in one go, chain() lets other work run. To find a row takes as long as to decrypt some KiB. */
const BYTES_PER_STEP = 1024 * 1024
const ROW_BYTES = 16 * 1024

export function openResponses(parts: ResponsesParts): ResponseStore {
  const { writer, reader, seal, dateMs, days } = parts
  const locationOf = (owner: VaultId) => sealLocation('kept_response', rowKey(owner))
  const find = async (owner: VaultId): Promise<ResponseRow | undefined> =>
    isStorableId(owner.id) ? await reader.vault.response(owner, dateMs()) : undefined

  /** Null without a body; undefined when the body is too large. */
  function sealBody(owner: VaultId, body: ResponseBody | undefined): string | null | undefined {
    if (body === undefined) return null
    const bytes = Buffer.from(JSON.stringify(body))
    return bytes.length > bounds.storedResponseBytesMax ? undefined : sealToBase64(seal, locationOf(owner), bytes)
  }

  /** Undefined when the body cannot be decrypted and no upstream has it. */
  function readRow(
    { sealed, bytes, ...facts }: ResponseRow,
    charge: ChargeBytes | undefined,
  ): StoredResponse | undefined {
    if (sealed !== null) charge?.(bytes)
    const opened = sealed === null ? undefined : openOrReport(parts, locationOf(facts), sealed)
    if (opened !== undefined) return { ...facts, body: JSON.parse(opened.toString()) as ResponseBody }
    return facts.upstreamId === null ? undefined : facts
  }

  return {
    async put(facts, body) {
      const sealed = sealBody(facts, body)
      if (sealed === undefined || !isStorableId(facts.id)) return 'too_large'
      const expiresMs = facts.createdMs + days * DAY_MS
      return (await writer.run('keepResponse', { ...facts, expiresMs, sealed })).done
    },
    async get(owner, charge) {
      const row = await find(owner)
      return row === undefined ? undefined : readRow(row, charge)
    },
    async head(owner) {
      const row = await find(owner)
      if (row === undefined) return undefined
      const { sealed, bytes: _, ...facts } = row
      if (sealed !== null) return { ...facts, isUnread: true }
      return facts.upstreamId === null ? undefined : facts
    },
    async change(owner, status, body) {
      const sealed = sealBody(owner, body)
      if (sealed === undefined) return 'too_large'
      const { accountId, id } = owner
      return (await writer.run('changeResponse', { accountId, id, status, sealed })).done
    },
    async delete({ accountId, id }) {
      return isStorableId(id) && (await writer.run('dropResponse', { accountId, id })).done === 'dropped'
    },
    async chain({ accountId, id }, { charge, onLink } = {}) {
      const links: StoredResponse[] = []
      let [bytes, bytesOfStep] = [0, 0]
      for (let next: string | null = id; next !== null; ) {
        const row = await find({ accountId, id: next })
        bytes += row?.bytes ?? 0
        const isTooLong = links.length === bounds.responseChainMax || bytes > bounds.responseChainBytesMax
        if (isTooLong) return { done: 'too_long' }
        const link = row === undefined ? undefined : readRow(row, charge)
        if (link === undefined) return { done: 'missing', id: next }
        links.push(link)
        if (onLink?.(link)) break
        next = link.previousId
        bytesOfStep += row!.bytes + ROW_BYTES
        if (bytesOfStep < BYTES_PER_STEP) continue
        bytesOfStep = 0
        await new Promise(resolve => setImmediate(resolve))
      }
      return { done: 'found', links: links.reverse() }
    },
  }
}
