// Encrypts and decrypts what the vault stores. An envelope can be opened only for the row that it was sealed for.

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
  /** Called when something could not be stored or decrypted. */
  onTrouble(detail: string): void
}

type Table = 'kept_response' | 'kept_reasoning' | 'task'

export const placeOf = (table: Table, row: number | string) => ({ table, row, column: 'sealed' })
/** Contains the account, so that an envelope that was moved to another account's row does not open. */
export const rowOf = ({ accountId, id }: KeptId): string => `${accountId}/${id}`

export const isId = (id: string): boolean => id !== '' && id.length <= bounds.keptIdCharsMax

export const close = (seal: Seal, place: ReturnType<typeof placeOf>, bytes: Uint8Array): string =>
  seal.close(place, bytes).toString('base64')

/** Undefined when the envelope does not open: it was sealed with another key, or is damaged. It cannot be recovered. */
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
