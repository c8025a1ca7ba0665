// The operator, who makes keys and books payments while the gateway is killed. A payment whose booking was not heard
// of is booked again under the same reference, until it is: it must be in the books once.

import { sendControlCommand } from '../../src/http/server/control-socket.ts'
import type { EventLog } from './event-log.ts'
import type { Gate } from './gate.ts'

type Answer = Readonly<Record<string, unknown>>

const AMOUNT_USD = '0.0001'
export const PAYMENT = 100_000n
const PAUSE_MS = 10
const BOOKED_BEFORE = /^This was booked before: a reference can be used once/

export class Operator {
  readonly #socket: string

  constructor(socket: string) {
    this.#socket = socket
  }

  /** Undefined when the gateway is gone. */
  async #ask(command: string, input: unknown): Promise<Answer | undefined> {
    try {
      return (await sendControlCommand(this.#socket, command, input)) as Answer | undefined
    } catch {
      return undefined
    }
  }

  async #tell(command: string, input: unknown): Promise<Answer> {
    const answer = await this.#ask(command, input)
    if (answer === undefined || 'problem' in answer) throw new Error(`${command}: ${JSON.stringify(answer)}`)
    return answer
  }

  async createKey(credit: string): Promise<string> {
    return (await this.#tell('keys-create', { tier: 'pro', qpm: '100000', credit })).key as string
  }

  async setBudget(key: string, amount: string): Promise<void> {
    await this.#tell('budgets-set', { scope: key, span: 'total', amount })
  }

  /** One payment after the other, as long as the gate lets it. */
  async bookPayments(gate: Gate, key: string, log: EventLog): Promise<void> {
    for (let payment = 0; ; ) {
      if ((await gate.pass()) === undefined) return
      const reference = `payment ${payment}`
      const answer = await this.#ask('top-up', { account: key, amount: AMOUNT_USD, reference })
      if (answer === undefined) {
        await Bun.sleep(1) // it is gone, and the gate is about to shut
        continue
      }
      const isBooked = 'posted' in answer || BOOKED_BEFORE.test(String(answer.problem))
      if (!isBooked) throw new Error(`a payment was refused: ${JSON.stringify(answer)}`)
      log.write({ kind: 'booked', reference })
      payment++
      await Bun.sleep(PAUSE_MS) // little enough to keep the payer poor
    }
  }
}
