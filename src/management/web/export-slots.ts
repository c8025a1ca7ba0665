// Slots for running exports. One person may have a few, and so may all people of one account together; some slots are
// reserved for staff. A reader that stops reading for a while loses its slot to the next export.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { Actor } from '../actor.ts'
import { actorIdOf, askerOf, isAtLeast, operator, shareOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'

export interface ExportSlot {
  /** Called when the reader has taken the last part and wants more. */
  keepAlive(): void
  /** Called before more is read from the database. Throws if whoever reads may not read any more. */
  check(): Promise<void>
  /** Called when the export ends, for whatever reason. Further calls do nothing. */
  release(): void
  /** `act` runs when the slot is taken away; after that nothing more may be written. */
  onLost(act: () => void): void
}

interface Holder {
  /** The actor, as in the audit log. */
  readonly name: string
  readonly isStaff: boolean
  readonly accounts: readonly number[]
  /** When the reader last took data. */
  tookMs: number
  lose: () => void
}

type ExportSlotsParts = Pick<ManagementParts, 'queryWorker' | 'reader' | 'nowMs' | 'dateMs'>

export class ExportSlots {
  readonly #holders = new Set<Holder>()
  readonly #parts: ExportSlotsParts

  constructor(parts: ExportSlotsParts) {
    this.#parts = parts
  }

  /** Refuses if the person or an account has all of its slots, or if no slot is free. */
  async enter(actor: Actor): Promise<ExportSlot> {
    const isStaff = isAtLeast(actor.role, 'support')
    const accounts = isStaff ? [] : await this.#accountsOf(actor)
    const holder: Holder = { name: shareOf(actor), isStaff, accounts, tookMs: this.#parts.nowMs(), lose: () => {} }
    this.#dropStalled()
    this.#refuse(holder, actor === operator)
    this.#holders.add(holder)
    let checkedMs = this.#parts.nowMs()
    return {
      check: async () => {
        if (this.#parts.nowMs() - checkedMs < bounds.readerCheckMs) return
        await this.#requireRole(actor)
        checkedMs = this.#parts.nowMs()
      },
      keepAlive: () => void (holder.tookMs = this.#parts.nowMs()),
      release: () => void this.#holders.delete(holder),
      onLost: act => void (holder.lose = act),
    }
  }

  /** What a member may read is part of each query. A session ends when the role of its person changes. */
  async #requireRole(actor: Actor): Promise<void> {
    const { reader, dateMs } = this.#parts
    if (actor === operator) return
    const role = await reader.people.siteRole(actorIdOf(actor), dateMs())
    const session = actor.token === undefined ? await reader.people.session(actor.sessionId) : undefined
    const isOver = actor.token === undefined && (session === undefined || session.expiresMs <= dateMs())
    if (isOver || role === undefined || !isAtLeast(role, actor.role)) throw new Refusal('token_invalid', 'export')
  }

  async #accountsOf(actor: Actor): Promise<readonly number[]> {
    const { personId, token } = actor
    if (token !== undefined) return token.accountId === null ? [] : [token.accountId]
    const me = await this.#parts.queryWorker.query('me', { id: personId }, askerOf(actor))
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

  #refuse({ name, isStaff, accounts }: Holder, isOperator: boolean): void {
    const holders = [...this.#holders]
    const count = (fits: (holder: Holder) => boolean): number => holders.filter(fits).length
    if (!isOperator && count(holder => holder.name === name) >= bounds.exportsOfPersonMax) {
      throw busy(hintOf('exports_of_person', { max: bounds.exportsOfPersonMax }))
    }
    const busiest = Math.max(0, ...accounts.map(id => count(holder => holder.accounts.includes(id))))
    if (busiest >= bounds.exportsOfAccountMax) {
      throw busy(hintOf('exports_of_account', { max: bounds.exportsOfAccountMax }))
    }
    const slots = isStaff ? bounds.exportsMax : bounds.exportsMax - bounds.exportsOfStaffMin
    const taken = isStaff ? holders.length : count(holder => !holder.isStaff)
    if (taken >= slots) throw new Refusal('overloaded', 'exports', { retryAfterMs: 10_000 })
  }
}

const busy = (hint: Hint): Refusal => new Refusal('concurrency_exceeded', 'exports', { hint, retryAfterMs: 10_000 })
