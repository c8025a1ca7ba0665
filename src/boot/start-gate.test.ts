// Tests how long and in what number requests wait for the gateway to be complete.

import { expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { StartGate } from './start-gate.ts'

const outcome = (waiting: Promise<void>): Promise<string> =>
  waiting.then(
    () => 'open',
    fault => String((fault as Error).message),
  )

test('a request waits until the gateway is complete', async () => {
  const gate = new StartGate(60_000)
  const waiting = outcome(gate.wait())
  expect(gate.isOpen).toBe(false)
  gate.open()
  expect([await waiting, await outcome(gate.wait()), gate.isOpen]).toEqual(['open', 'open', true])
})

test('a request is refused when it has waited too long', async () => {
  expect(await outcome(new StartGate(1).wait())).toBe('overloaded: starting')
})

test('requests are refused when the start fails', async () => {
  const gate = new StartGate(60_000)
  const waiting = outcome(gate.wait())
  gate.fail()
  expect([await waiting, await outcome(gate.wait())]).toEqual(['overloaded: starting', 'overloaded: starting'])
})

test('only a bounded number of requests waits', async () => {
  const gate = new StartGate(60_000)
  const waiting = Array.from({ length: bounds.startWaitersMax }, () => outcome(gate.wait()))
  expect(await outcome(gate.wait())).toBe('overloaded: starting')
  gate.open()
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['open']))
})
