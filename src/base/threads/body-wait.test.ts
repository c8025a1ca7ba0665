// Tests the wait for the threads that read bodies: it ends in time, when the caller leaves, and without a rest.

import { expect, test } from 'bun:test'
import { bounds } from '../bounds.ts'
import { Deadlines } from '../deadlines.ts'
import { Refusal } from '../errors.ts'
import { waitForBodyThread } from './body-wait.ts'

/** A wait for work that the test ends, with a clock of its own. */
function begin() {
  let nowMs = 0
  const deadlines = new Deadlines(() => nowMs)
  const work = Promise.withResolvers<string>()
  const caller: { gone?: Error } = {}
  const throwIfGone = (): void => {
    if (caller.gone !== undefined) throw caller.gone
  }
  let signal: AbortSignal | undefined
  const result = waitForBodyThread(deadlines, { what: 'bodies', throwIfGone }, given => {
    signal = given
    return work.promise
  }).catch((fault: unknown) => fault)
  const pass = (ms: number): void => {
    nowMs += ms
    deadlines.fireDue()
  }
  return { deadlines, work, caller, signal: signal!, result, pass }
}

test('the result of the work, or its error, ends the wait', async () => {
  const [done, failed] = [begin(), begin()]
  done.work.resolve('read')
  failed.work.reject(new Error('not read'))
  expect(await Promise.all([done.result, failed.result])).toEqual(['read', new Error('not read')])
  for (const { signal, deadlines } of [done, failed]) expect([signal.aborted, deadlines.size]).toEqual([false, 0])
})

test('after the longest wait the request is refused, and the signal has the same refusal', async () => {
  const { deadlines, signal, result, pass, work } = begin()
  for (let leftMs = bounds.bodyWorkerMsMax - 1; leftMs > 0; leftMs -= 250) pass(Math.min(leftMs, 250))
  expect(signal.aborted).toBe(false)
  pass(1)
  expect(signal.aborted).toBe(true)
  const refusal = (await result) as Refusal
  expect(refusal).toBeInstanceOf(Refusal)
  expect([refusal.code, refusal.extras.retryAfterMs]).toEqual(['overloaded', 2_000])
  expect(signal.reason).toBe(refusal)
  expect(deadlines.size).toBe(0)
  work.reject(new Error('nobody waits for this error'))
})

test('soon after the caller has left the request ends with the error of the check', async () => {
  const { deadlines, caller, signal, result, pass } = begin()
  pass(250)
  caller.gone = new Error('gone')
  expect(signal.aborted).toBe(false)
  pass(250)
  expect([signal.aborted, signal.reason, await result]).toEqual([true, caller.gone, caller.gone])
  expect(deadlines.size).toBe(0)
})
