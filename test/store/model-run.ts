// Random ledger operations, on the file and on the model, step by step: both must answer the same and hold the same.
// Also run by hand for a million steps (scripts/proof/model.ts).

import type { BudgetSpan } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'
import { LedgerModel } from './model.ts'

export interface ModelRun {
  readonly seed: number
  readonly steps: number
}

const ACCOUNTS = [11, 12, 13, 14]
const DAY_MS = 86_400_000
const WHOLE_CHECK_EVERY = 2_000

interface Step {
  readonly books: TestBooks
  readonly model: LedgerModel
  random(below: number): number
  /** A new call, or an earlier one. */
  call(): number
  fresh(): number
}

type Action = (step: Step) => readonly [got: unknown, wanted: unknown]

const money = (amount: bigint): MoneyText => `${amount}`
const anAccount = ({ random }: Step): number => ACCOUNTS[random(ACCOUNTS.length)]!

const actions: Readonly<Record<string, readonly [weight: number, move: Action]>> = {
  hold: [
    40,
    step => {
      const { books, model, random } = step
      const [call, account, amount] = [step.fresh(), random(50) === 0 ? 99 : anAccount(step), BigInt(random(900))]
      const task = random(20) === 0
      const most = amount + BigInt(random(900))
      const share = random(2) === 0 ? { least: money(amount) } : {}
      const asked = 'least' in share ? most : amount
      const input = holdOf(call, account, money(asked), { kind: task ? 'task' : 'call', ...share })
      const got = books.run.hold(input)
      const wanted = model.hold(call, { account, key: account + 1_000, amount, task }, asked)
      const granted = got.done === 'held' && got.granted !== undefined ? BigInt(got.granted) : asked
      if (got.done === 'held' && granted !== model.holds.get(call)?.amount)
        return [granted, model.holds.get(call)?.amount]
      return [got.done, wanted]
    },
  ],
  settle: [
    40,
    step => {
      const { books, model, random } = step
      const call = step.call()
      const account = model.holds.get(call)?.account ?? anAccount(step)
      const cost = BigInt(random(random(10) === 0 ? 3_000 : 700))
      const got = books.run.settle({ record: recordOf(call, account), cost: money(cost) })
      const wanted = model.settle(call, cost)
      if (got.done === 'exists' || wanted === 'exists') return [got.done, wanted]
      return [
        [BigInt(got.charged), BigInt(got.shortfall)],
        [wanted.charged, wanted.shortfall],
      ]
    },
  ],
  extend: [
    20,
    step => {
      const { books, model, random } = step
      const [call, least] = [step.call(), BigInt(random(200))]
      const amount = least + BigInt(random(400))
      // Sometimes the confirmation of an earlier extension was lost.
      const known = model.holds.get(call)?.amount ?? 0n
      const lost = random(4) === 0 ? BigInt(random(Number(known) + 1)) : 0n
      const input = { callId: call, amount: money(amount), least: money(least), held: money(known - lost) }
      const got = books.run.extend(input)
      return [got.done === 'extended' ? got.granted : got.done, model.extend(call, amount, { least, lost })]
    },
  ],
  checkpoint: [
    8,
    step => {
      const { books, model, random } = step
      const [call, used] = [step.call(), BigInt(random(1_200))]
      const { usage } = emptyUsage
      const noted = model.holds.has(call) ? 'noted' : 'unknown'
      model.checkpoint(call, used)
      return [books.run.checkpoint({ callId: call, used: money(used), known: usage }).done, noted]
    },
  ],
  crash: [0.2, ({ books, model }) => [books.recover(), model.recover()]],
  post: [
    6,
    step => {
      const { books, model, random } = step
      const kind = (['top_up', 'gift', 'adjustment'] as const)[random(3)]!
      const sign = kind === 'adjustment' && random(5) > 0 ? -1n : 1n
      const [account, amount] = [anAccount(step), sign * BigInt(1 + random(600))]
      const input = { kind, ref: step.fresh(), accountId: account, amount: money(amount) }
      const got = books.run.post({ ...input, reference: null, author: 'x' })
      return [got.done, model.post(account, amount)]
    },
  ],
  refund: [
    8,
    step => {
      const { books, model, random } = step
      const call = step.call()
      const row = books.db.query('SELECT account_id FROM record WHERE call_id = ?1').get(call)
      const account = row === null ? 11 : Number((row as { account_id: bigint }).account_id)
      const amount = BigInt(1 + random(100))
      const input = { kind: 'refund', ref: call, accountId: account, amount: money(amount) } as const
      const got = books.run.post({ ...input, reference: null, author: 'x' })
      return [got.done, model.refund(call, account, amount)]
    },
  ],
  budget: [
    2,
    step => {
      const { books, model, random } = step
      const scope = anAccount(step) + (random(2) === 0 ? 1_000 : 0)
      const span = (['total', 'day'] as BudgetSpan[])[random(2)]!
      const cap = random(5) !== 0 ? null : BigInt(random(4_000))
      const got = books.run.setBudget({ scopeId: scope, span, cap: cap === null ? null : money(cap) })
      return [got.done, model.setBudget(scope, span, cap)]
    },
  ],
  account: [
    1.5,
    step => {
      const { books, model, random } = step
      const id = anAccount(step)
      const account = model.accounts.get(id)!
      const [postpaid, frozen, limit] = [random(12) === 0, random(6) === 0, BigInt(random(800))]
      const fits = postpaid || account.balance + limit - model.held(id) >= 0n
      const kind = postpaid ? 'postpaid' : 'prepaid'
      const got = books.run.setAccount({ id, kind, frozen, creditLimit: money(limit) })
      if (fits) Object.assign(account, { postpaid, frozen, limit })
      return [got.done, fits ? 'set' : 'balance_too_low']
    },
  ],
  day: [
    0.5,
    ({ books, model }) => {
      books.nowMs += DAY_MS
      model.newDay()
      return [0, 0]
    },
  ],
}

const emptyUsage = {
  usage: {
    inputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 1,
    reasoningTokens: 0,
    lines: null,
  },
}

/** Throws at the first step that differs. Returns how often each kind of step was taken, with its results. */
export function runModel({ seed, steps }: ModelRun): Record<string, number> {
  const random = randomFrom(seed)
  const books = openTestBooks({ sync: false })
  const model = new LedgerModel()
  for (const id of ACCOUNTS) {
    books.account(id, '5000')
    model.accounts.set(id, { balance: 5_000n, limit: 0n, postpaid: false, frozen: false })
  }
  let next = 1_000_000
  const earlierCall = (): number => (next === 1_000_000 ? next : next - random(Math.min(60, next - 1_000_000)))
  const call = (): number => {
    const open = random(3) === 0 ? undefined : [...model.holds.keys()][random(1 + model.holds.size)]
    return open ?? earlierCall()
  }
  const step: Step = { books, model, random, call, fresh: () => (next += 1) }
  const weighted = Object.entries(actions).flatMap(([name, [weight]]) => new Array<string>(weight * 10).fill(name))
  const counts: Record<string, number> = {}
  for (let at = 0; at < steps; at++) {
    const name = weighted[random(weighted.length)]!
    const [got, wanted] = actions[name]![1](step)
    counts[`${name} ${typeof got === 'string' ? got : ''}`.trim()] ??= 0
    counts[`${name} ${typeof got === 'string' ? got : ''}`.trim()]! += 1
    const same = Bun.deepEquals(got, wanted) && (at % 20 !== 0 || sameState(books, model))
    if (!same) throw new Error(`seed ${seed}, step ${at}, ${name}: ${Bun.inspect(got)}, not ${Bun.inspect(wanted)}`)
    const faults = at % WHOLE_CHECK_EVERY === 0 || at === steps - 1 ? bookFaults(books.db) : []
    if (faults.length > 0) throw new Error(`seed ${seed}, step ${at}, after ${name}: ${faults.join('\n')}`)
  }
  books.close()
  return counts
}

function sameState(books: TestBooks, model: LedgerModel): boolean {
  return ACCOUNTS.every(id => {
    const { balance, held } = books.row(id)
    return balance === model.accounts.get(id)!.balance && held === model.held(id)
  })
}
