// What a fault means for its channel, as an operator sees it listed: one fault of each verdict, again and again on one
// channel.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { HealthState } from '../../src/routing/health/health.ts'
import type { Json } from '../dialects/speaking.ts'
import type { Cell } from './cells.ts'
import { faultName, isNative, pairwiseCells } from './cells.ts'
import { FaultGateway, providerOf } from './gateway.ts'
import type { Consequence, VerdictName } from './verdicts.ts'
import { verdictOn, verdicts } from './verdicts.ts'

/** Of each verdict a fault that lasts, where that makes a difference. */
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

const standings: Readonly<Record<Consequence, HealthState>> = {
  nothing: 'available',
  counted: 'broken',
  closed: 'rate_limited',
  spent: 'quota_spent',
  doubted: 'credential_bad',
  off: 'credential_bad',
}

const cells = Object.entries(samples).map(([verdict, name]): Cell => {
  const isIt = (cell: Cell): boolean => faultName(cell.fault) === name && cell.stream && verdictOn(cell) === verdict
  const all = pairwiseCells().filter(isIt)
  // Some are faults only for a translation.
  return { ...(all.find(isNative) ?? all[0]!), gated: false }
})

let gateway: FaultGateway
beforeAll(async () => {
  gateway = await FaultGateway.start(cells)
})
afterAll(() => gateway.stop())

async function standingOf(cell: Cell): Promise<unknown> {
  const { data: channels } = await gateway.harness.weir('channels list')
  const found = (channels as Json[]).find(({ id }) => String(id).startsWith(`${providerOf(cell)}#`))!
  return (found.health as Json).state
}

/** Enough for any breaker. */
const TIMES = 5
/** One that was closed for a second may be open again before anybody looks. */
const LOOKS = 10

test.each(cells.map(cell => [verdictOn(cell)!, cell] as const))('%s', async (name, cell) => {
  const standing = standings[verdicts[name].channel]
  await Promise.all(Array.from({ length: TIMES }, () => gateway.ask(cell).whole()))
  let seen = await standingOf(cell)
  for (let looks = 0; seen !== standing && looks < LOOKS; looks++) {
    await gateway.ask(cell).whole()
    seen = await standingOf(cell)
  }
  expect(seen).toBe(standing)
})
