// Random histories of one idempotency key: callers that come at any time with either of two requests, calls that end
// well, badly, late or twice, crashes, and days that pass. For each period in which an answer is promised there is one
// execution and one charge, and every caller gets the right answer.

import { expect, test } from 'bun:test'
import { idAtMs } from '../../src/base/ids.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'

const HISTORIES = 2_000
const STEPS = 15
const COST = 10n
const HOUR_MS = 3_600_000

/** The expected state of a key. */
type Key = { readonly state: 'running' | 'finished'; readonly callId: number; readonly print: string } | undefined

interface History {
  readonly books: TestBooks
  readonly name: string
  key: Key
  lastId: number
  charges: number
}

const isOld = ({ books }: History, callId: number): boolean => callId < idAtMs(books.nowMs - 24 * HOUR_MS)

function claim(history: History, print: string): void {
  const { books, name, key } = history
  const callId = (history.lastId = Math.max(idAtMs(books.nowMs), history.lastId + 1))
  const got = books.run.hold(holdOf(callId, 11, '50', { idempotency: { name, fingerprint: print.repeat(64) } }))
  if (key === undefined || (key.state === 'finished' && isOld(history, key.callId))) {
    expect(got).toEqual({ done: 'held' })
    history.key = { state: 'running', callId, print }
  } else expect(got).toEqual({ done: key.print === print ? key.state : 'other_body', callId: key.callId })
}

function settle(history: History, how: 'kept' | 'unkept' | 'release'): void {
  const { books, key } = history
  if (key === undefined) return
  const idempotency = how === 'release' ? how : { sealed: how === 'kept' ? 'AAAA' : null }
  const cost = how === 'release' ? '0' : (`${COST}` as const)
  // A second settle of the same call changes nothing, unless it reverses the first one.
  const { done } = books.run.settle({ record: recordOf(key.callId, 11), cost, idempotency })
  expect(done).toBe(key.state === 'running' ? 'settled' : 'exists')
  if (done === 'settled' && how !== 'release') history.charges++
  history.key = how === 'release' ? undefined : { ...key, state: 'finished' }
}

function crash(history: History): void {
  expect(history.books.recover()).toBe(history.key?.state === 'running' ? 1 : 0)
  if (history.key?.state === 'running') history.key = undefined
}

function passTime(history: History, hours: number): void {
  const { books } = history
  books.nowMs += hours * HOUR_MS
  books.run.forgetAnswers({ before: idAtMs(books.nowMs - 24 * HOUR_MS) })
  if (history.key?.state === 'finished' && isOld(history, history.key.callId)) history.key = undefined
}

test(`${HISTORIES} histories of a key`, () => {
  const seed = Date.now() >>> 0
  const random = randomFrom(seed)
  const books = openTestBooks({ sync: false })
  books.account(11, '1000000000')
  let lastId = 0
  let charges = 0
  for (let at = 0; at < HISTORIES; at++) {
    const history: History = { books, name: `history-${at}`, key: undefined, lastId, charges: 0 }
    const actions = [
      () => claim(history, 'a'),
      () => claim(history, 'a'),
      () => claim(history, 'b'),
      () => settle(history, 'kept'),
      () => settle(history, 'unkept'),
      () => settle(history, 'release'),
      () => crash(history),
      () => passTime(history, random(30)),
    ]
    const chosen: number[] = []
    try {
      for (let step = 0; step < STEPS; step++) {
        chosen.push(random(actions.length))
        actions[chosen.at(-1)!]!()
      }
    } catch (fault) {
      throw new Error(`seed ${seed}, history ${at}, moves ${chosen.join(' ')}`, { cause: fault })
    }
    settle(history, 'release')
    lastId = history.lastId
    charges += history.charges
    expect(books.row(11)).toEqual({ balance: 1_000_000_000n - COST * BigInt(charges), held: 0n })
  }
  expect(charges).toBeGreaterThan(HISTORIES / 2)
  expect(books.count('idempotency')).toBe(0)
  expect(books.count('kept_answer')).toBe(0)
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})
