// Packs a conversation into one opaque item, for callers that want to send less: all of its items, encrypted for their
// account. Wherever a caller sends the item, it is unpacked again, so that every upstream can read the conversation.

import type { Seal, SealLocation } from '../../base/secrets/seal.ts'
import { SealError } from '../../base/secrets/seal.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ChargeBytes } from '../../vault/responses.ts'

export interface ConversationCompaction {
  close(items: readonly Json[], accountId: number): string
  /**
   * The items of a compaction; undefined for any other item. Throws where it cannot be decrypted. It is charged before
   * it is decrypted.
   */
  open(item: Json, accountId: number, charge: ChargeBytes): readonly Json[] | undefined
}

/** Its length is a multiple of three bytes, so that every base64 text begins with the same characters. */
const PREFIX = Buffer.from('weirc1')
const PREFIX_BASE64 = PREFIX.toString('base64')

/** A compaction is free, so a caller can fill it with values as small as possible. They take about as much longer. */
const DENSITY = 3

const placeFor = (accountId: number): SealLocation => ({ table: 'compaction', row: accountId, column: 'sealed' })

export function buildCompaction(seal: Seal): ConversationCompaction {
  return {
    close(items, accountId) {
      const sealed = seal.seal(placeFor(accountId), Buffer.from(JSON.stringify(items)))
      return Buffer.concat([PREFIX, sealed]).toString('base64')
    },
    open({ type, encrypted_content: content }, accountId, charge) {
      if (type !== 'compaction' || typeof content !== 'string' || !content.startsWith(PREFIX_BASE64)) return undefined
      charge(DENSITY * content.length)
      try {
        const sealed = Buffer.from(content, 'base64').subarray(PREFIX.length)
        return JSON.parse(seal.open(placeFor(accountId), sealed).toString()) as readonly Json[]
      } catch (fault) {
        if (fault instanceof SealError) throw invalid('input', 'has a compaction item that cannot be decrypted')
        throw fault
      }
    },
  }
}
