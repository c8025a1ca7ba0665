// Places for exports that are under way. One person has few of them, and so have all people of one account together;
// some are kept for those who run the site. Whoever does not read for a while loses the place to whoever comes next.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'

export interface ExportSlot {
  /** Called when the reader has taken what it was given, and wants more. */
  goesOn(): void
  /** Called when the export is over, however it ended. Calling it again does nothing. */
  leave(): void
  /** Runs when the slot was taken away: nothing more may be written. */
  onLost(act: () => void): void
}

interface Holder {
  readonly personId: number
  readonly isStaff: boolean
  readonly accounts: readonly number[]
  /** When the reader last took something. */
  tookMs: number
  lose: () => void
}

export class ExportSlots {
  readonly #holders = new Set<Holder>()
  readonly #parts: Pick<ManagementParts, 'desk' | 'nowMs'>

  constructor(parts: Pick<ManagementParts, 'desk' | 'nowMs'>) {
    this.#parts = parts
  }

  /** Refuses whoever has their share already, or has to wait for others. */
  async enter({ personId, role }: Actor): Promise<ExportSlot> {
    const isStaff = isAtLeast(role, 'support')
    const accounts = isStaff ? [] : await this.#accountsOf(personId)
    const holder: Holder = { personId, isStaff, accounts, tookMs: this.#parts.nowMs(), lose: () => {} }
    this.#dropStalled()
    this.#refuse(holder)
    this.#holders.add(holder)
    return {
      goesOn: () => void (holder.tookMs = this.#parts.nowMs()),
      leave: () => void this.#holders.delete(holder),
      onLost: act => void (holder.lose = act),
    }
  }

  async #accountsOf(personId: number): Promise<readonly number[]> {
    const me = await this.#parts.desk.ask('me', { id: personId })
    return (me?.accounts ?? []).map(({ accountId }) => accountId)
  }

  #dropStalled(): void {
    const sinceMs = this.#parts.nowMs() - bounds.exportStallMsMax
    for (const holder of [...this.#holders]) {
      if (holder.tookMs > sinceMs) continue
      this.#holders.delete(holder)
      holder.lose()
    }
  }

  #refuse({ personId, isStaff, accounts }: Holder): void {
    const holders = [...this.#holders]
    const count = (fits: (holder: Holder) => boolean): number => holders.filter(fits).length
    if (count(one => one.personId === personId) >= bounds.exportsOfPersonMax) {
      throw busy(`You have ${bounds.exportsOfPersonMax} exports under way. Wait until one of them is read to its end.`)
    }
    const most = Math.max(0, ...accounts.map(id => count(one => one.accounts.includes(id))))
    if (most >= bounds.exportsOfAccountMax) {
      throw busy(`Your account has ${bounds.exportsOfAccountMax} exports under way. Wait until one of them has ended.`)
    }
    const room = isStaff ? bounds.exportsMax : bounds.exportsMax - bounds.exportsOfStaffMin
    const taken = isStaff ? holders.length : count(one => !one.isStaff)
    if (taken >= room) throw new Refusal('overloaded', 'exports', { retryAfterMs: 10_000 })
  }
}

const busy = (hint: string): Refusal => new Refusal('concurrency_exceeded', 'exports', { hint, retryAfterMs: 10_000 })
