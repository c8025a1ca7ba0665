// A conversation as one opaque item, for callers that want to carry less: all its items, sealed for their account. It
// is opened again wherever it is sent, so that every upstream reads what was said.

import type { Seal, SealedPlace } from '../../base/secrets/seal.ts'
import { SealError } from '../../base/secrets/seal.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Json } from '../../protocols/request/json-type.ts'

export interface Compacting {
  close(items: readonly Json[], accountId: number): string
  /** What a compaction of ours stands for; undefined for any other item. Throws where it does not open. */
  open(item: Json, accountId: number): readonly Json[] | undefined
}

/** Its base64 has no rest, so that it is how every text begins. */
const MARK = Buffer.from('weirc1')
const MARKED = MARK.toString('base64')

const placeFor = (accountId: number): SealedPlace => ({ table: 'compaction', row: accountId, column: 'sealed' })

export function buildCompacting(seal: Seal): Compacting {
  return {
    close(items, accountId) {
      const sealed = seal.close(placeFor(accountId), Buffer.from(JSON.stringify(items)))
      return Buffer.concat([MARK, sealed]).toString('base64')
    },
    open({ type, encrypted_content: content }, accountId) {
      if (type !== 'compaction' || typeof content !== 'string' || !content.startsWith(MARKED)) return undefined
      try {
        const sealed = Buffer.from(content, 'base64').subarray(MARK.length)
        return JSON.parse(seal.open(placeFor(accountId), sealed).toString()) as readonly Json[]
      } catch (fault) {
        if (fault instanceof SealError) throw invalid('input', 'holds a compaction that does not open')
        throw fault
      }
    },
  }
}
