// The operator creates keys and books payments while the gateway is killed. A payment without an acknowledgement is booked
// again under the same reference until it has one; the ledger must have it once.

import { Problem, RequestProblem } from '../../src/cli/problem.ts'
import { ControlConnectionLost, sendControlRequest } from '../../src/http/server/control-socket.ts'
import { operatorOf } from '../support/operator.ts'
import type { EventLog } from './event-log.ts'
import type { Gate } from './gate.ts'

const AMOUNT_USD = '0.0001'
export const PAYMENT = 100_000n
const PAUSE_MS = 10

export class Operator {
  readonly #weir: ReturnType<typeof operatorOf>['weir']

  constructor(socket: string) {
    this.#weir = operatorOf(() => async request => {
      const answer = await sendControlRequest(socket, request)
      if (answer === undefined) throw new ControlConnectionLost()
      return answer
    }).weir
  }

  async createKey(credit: string): Promise<string> {
    return (await this.#weir('keys create', { tier: 'pro', qpm: '100000', credit })).key as string
  }

  async setBudget(key: string, amount: string): Promise<void> {
    await this.#weir('budgets set', { scope: key, span: 'total', amount })
  }

  /** Books one payment after the other until the gate is closed. */
  async bookPayments(gate: Gate, key: string, log: EventLog): Promise<void> {
    for (let payment = 0; ; ) {
      if ((await gate.pass()) === undefined) return
      const reference = `payment ${payment}`
      const fault = await this.#weir('top-up', { account: key, amount: AMOUNT_USD, reference }).then(
        () => undefined,
        (thrown: Error) => thrown,
      )
      // On a busy machine the ledger may take too long, and says so.
      const isLate = fault instanceof RequestProblem && fault.code === 'storage_away'
      if (fault !== undefined && (isLate || !(fault instanceof Problem))) {
        await Bun.sleep(1) // the gateway was killed, and the gate is about to shut
        continue
      }
      if (fault !== undefined) throw fault
      log.write({ kind: 'booked', reference })
      payment++
      await Bun.sleep(PAUSE_MS) // rare enough to keep the balance of the account low
    }
  }
}
