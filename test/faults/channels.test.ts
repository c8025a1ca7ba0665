// The health of a channel after a fault, as an operator sees it in the list: one fault of each verdict, several times on one
// channel.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { HealthState } from '../../src/routing/health/health.ts'
import type { Json } from '../dialects/raw-callers.ts'
import type { Cell } from './cells.ts'
import { faultName, isNative, pairwiseCells } from './cells.ts'
import { FaultGateway, providerOf } from './gateway.ts'
import type { Consequence, VerdictName } from './verdicts.ts'
import { verdictOn, verdicts } from './verdicts.ts'

/** A fault for each verdict; one that lasts, where that makes a difference. */
const samples: Readonly<Record<VerdictName, string>> = {
  'fine': 'F33 usage missing',
  'unusable': 'F24 HTML with 200',
  'locked out': 'F35 401',
  'forbidden': 'F35 403',
  'slow': 'F11 headers of a stream, then silence',
  'limited': 'F34 429 until long after us',
  'spent': 'F35 429 because we have not paid',
  'overloaded': 'F34 529',
  'cut off': 'F31 error event after text',
  'slow midway': 'F14 a pause between two chunks, beyond idle',
  'too large': 'F29 an event of one huge line',
  'refused': "F35 400 that is the caller's",
  'not here': 'F35 404 for the model',
}

const expectedStates: Readonly<Record<Consequence, HealthState>> = {
  nothing: 'available',
  counted: 'broken',
  closed: 'rate_limited',
  spent: 'quota_spent',
  doubted: 'credential_bad',
  off: 'credential_bad',
}

const cells = Object.entries(samples).map(([verdict, name]): Cell => {
  const isSample = (cell: Cell): boolean => faultName(cell.fault) === name && cell.stream && verdictOn(cell) === verdict
  const all = pairwiseCells().filter(isSample)
  // Some are faults only in a translation.
  return { ...(all.find(isNative) ?? all[0]!), gated: false }
})

let gateway: FaultGateway
beforeAll(async () => {
  gateway = await FaultGateway.start(cells)
})
afterAll(() => gateway.stop())

async function stateOf(cell: Cell): Promise<unknown> {
  const { data: channels } = await gateway.harness.weir('channels list')
  const found = (channels as Json[]).find(({ id }) => String(id).startsWith(`${providerOf(cell)}#`))!
  return (found.health as Json).state
}

/** Enough to open any circuit breaker. */
const TIMES = 5
/** A channel that was unavailable for a second may be available again before the test reads its state. */
const TRIES = 10

test.each(cells.map(cell => [verdictOn(cell)!, cell] as const))(
  'a fault with the verdict "%s" sets the health of its channel',
  async (name, cell) => {
    const expectedState = expectedStates[verdicts[name].channel]
    await Promise.all(Array.from({ length: TIMES }, () => gateway.ask(cell).whole()))
    let seen = await stateOf(cell)
    for (let tries = 0; seen !== expectedState && tries < TRIES; tries++) {
      await gateway.ask(cell).whole()
      seen = await stateOf(cell)
    }
    expect(seen).toBe(expectedState)
  },
)
