// Tests whose share of the management interface a request uses: more service tokens do not give more of it.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import type { Actor } from '../actor.ts'
import { tokenActor } from '../actor.ts'
import { RequestShares } from './request-shares.ts'

const person: Actor = { personId: 7, role: 'admin', sessionId: 1 }
const site = (id: number, creator: string): Actor => tokenActor({ id, role: 'admin', accountId: null, creator })
const inAccount = (id: number, accountId: number): Actor =>
  tokenActor({ id, role: 'member', accountId, creator: 'usr_00000000007' })

/** How many requests run at once if each of these actors sends one. */
function running(shares: RequestShares, actors: readonly Actor[], isRead = true): number {
  return actors.filter(actor => {
    try {
      shares.enter(actor, isRead)
      return true
    } catch {
      return false
    }
  }).length
}

const many = (make: (id: number) => Actor): readonly Actor[] => Array.from({ length: 1_000 }, (_, at) => make(100 + at))

test('a thousand tokens of the site have one share for each person who made them, and that person has another', () => {
  const shares = new RequestShares({ nowMs: () => 0 })
  expect(
    running(
      shares,
      many(id => site(id, 'usr_00000000007')),
    ),
  ).toBe(bounds.staffRequestsMax)
  expect(running(shares, [person])).toBe(1)
  expect(running(shares, [site(1, 'usr_00000000008'), site(1, 'cli')])).toBe(2)
})

test('a thousand tokens of an account have one share, and other accounts have their own', () => {
  const shares = new RequestShares({ nowMs: () => 0 })
  expect(
    running(
      shares,
      many(id => inAccount(id, 5)),
    ),
  ).toBe(bounds.personRequestsMax)
  expect(running(shares, [inAccount(1, 6)])).toBe(1)
})

test('a thousand tokens of an account write no more often than one', () => {
  const shares = new RequestShares({ nowMs: () => 0 })
  let writes = 0
  for (const actor of many(id => inAccount(id, 5))) {
    try {
      shares.enter(actor, false)()
      writes++
    } catch {}
  }
  expect(writes).toBe(bounds.personWritesPerMinuteMax)
})
