// What the parts of the vault share: words into an envelope that opens only in its own row, and out of it again.

import { bounds } from '../base/bounds.ts'
import type { Seal } from '../base/secrets/seal.ts'
import { SealError } from '../base/secrets/seal.ts'
import type { Writer } from '../store/engine/writer.ts'
import type { KeptId } from '../store/vault/kept.ts'
import type { KeptReader } from '../store/vault/kept-reader.ts'

export interface VaultParts {
  readonly writer: Pick<Writer, 'run'>
  readonly reader: { readonly kept: KeptReader }
  readonly seal: Seal
  dateMs(): number
  /** Told of what was not kept, or does not open. */
  onTrouble(detail: string): void
}

type Table = 'kept_response' | 'kept_reasoning' | 'task'

export const placeOf = (table: Table, row: number | string) => ({ table, row, column: 'sealed' })
/** An envelope opens for its account alone, whoever has moved it about. */
export const rowOf = ({ accountId, id }: KeptId): string => `${accountId}/${id}`

export const isId = (id: string): boolean => id !== '' && id.length <= bounds.keptIdCharsMax

export const close = (seal: Seal, place: ReturnType<typeof placeOf>, bytes: Uint8Array): string =>
  seal.close(place, bytes).toString('base64')

/** Undefined for what does not open: it was kept under another key, or is damaged. Nobody can have it back. */
export function openOrSay(
  { seal, onTrouble }: VaultParts,
  place: ReturnType<typeof placeOf>,
  sealed: Uint8Array,
): Buffer | undefined {
  try {
    return seal.open(place, sealed)
  } catch (fault) {
    if (!(fault instanceof SealError)) throw fault
    onTrouble(`${place.table}: ${fault.message}`)
    return undefined
  }
}
