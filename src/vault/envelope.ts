// Encrypts and decrypts what the vault stores. An envelope can be opened only for the row that it was sealed for.

import { bounds } from '../base/bounds.ts'
import type { Seal } from '../base/secrets/seal.ts'
import { SealError } from '../base/secrets/seal.ts'
import type { StoreWriter } from '../store/engine/store-engine.ts'
import type { VaultReader } from '../store/vault/vault-reader.ts'
import type { VaultId } from '../store/vault/vault-types.ts'

export interface VaultParts {
  readonly writer: Pick<StoreWriter, 'run'>
  readonly reader: { readonly vault: VaultReader }
  readonly seal: Seal
  dateMs(): number
  /** Called when something could not be stored or decrypted. */
  onProblem(detail: string): void
}

type Table = 'kept_response' | 'kept_reasoning' | 'task'

export const sealLocation = (table: Table, row: number | string) => ({ table, row, column: 'sealed' })
/** Contains the account, so that an envelope that was moved to another account's row does not open. */
export const rowKey = ({ accountId, id }: VaultId): string => `${accountId}/${id}`

export const isStorableId = (id: string): boolean => id !== '' && id.length <= bounds.storedIdCharsMax

export const sealToBase64 = (seal: Seal, place: ReturnType<typeof sealLocation>, bytes: Uint8Array): string =>
  seal.seal(place, bytes).toString('base64')

/** Undefined when the envelope does not open: it was sealed with another key, or is damaged. It cannot be recovered. */
export function openOrReport(
  { seal, onProblem }: VaultParts,
  place: ReturnType<typeof sealLocation>,
  sealed: Uint8Array,
): Buffer | undefined {
  try {
    return seal.open(place, sealed)
  } catch (fault) {
    if (!(fault instanceof SealError)) throw fault
    onProblem(`${place.table}: ${fault.message}`)
    return undefined
  }
}
