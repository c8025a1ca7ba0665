// Ids that are unique among processes, whatever their clocks do: the lowest 7 bits of an id are the slot of the process,
// and the database grants each slot the times whose ids it may mint.

import { assert } from '../../base/assert.ts'
import { Refusal } from '../../base/errors.ts'
import { idAtMs } from '../../base/ids.ts'

/** 7 bits. A millisecond has 13 bits of ids, so each process has 64 of them. */
export const SLOT_SPAN = 128

export interface IdGrant {
  readonly slot: number
  /** The ids of earlier times belong to former owners of the slot. */
  readonly fromMs: number
}

/** `untilMs` is what was granted last. A clock that is further ahead mints nothing. */
export function buildSlotMinter({ slot, fromMs }: IdGrant, dateMs: () => number, untilMs: () => number): () => number {
  assert(slot > 0 && slot < SLOT_SPAN, 'a slot has 7 bits')
  // The first id is at the beginning of `fromMs` or later.
  let latest = idAtMs(fromMs) + slot - SLOT_SPAN
  return function mintSlotId(): number {
    const byClock = idAtMs(dateMs()) + slot
    const next = byClock > latest ? byClock : latest + SLOT_SPAN
    if (next >= idAtMs(untilMs())) throw new Refusal('storage_away', 'no ids are granted for this time')
    latest = next
    return next
  }
}
