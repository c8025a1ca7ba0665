// Who may read what of the audit log.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Person

beforeAll(async () => {
  harness = await startHarness()
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

interface Row {
  readonly actor: string
  readonly address: string | null
  readonly account: string
}

test("a manager sees the changes of their account, without the addresses of the site's staff", async () => {
  const account = String((await owner.ask('POST', 'web/accounts', { name: 'team', type: 'team' })).body.id)
  const manager = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
  await owner.ask('PATCH', `web/accounts/${account}`, { name: 'renamed' })
  await manager.ask('POST', 'web/keys', { account, name: 'mine' })
  const visible = (await manager.ask('GET', 'web/audit-log')).body.data as Row[]
  const rowsOf = (actor: string): readonly Row[] => visible.filter(row => row.actor === actor)
  const address = (actor: string): unknown[] => [...new Set(rowsOf(actor).map(row => row.address))]
  expect(address(owner.id)).toEqual([null])
  expect(address(manager.id)).toEqual(['127.0.0.1'])
  expect(visible.every(row => row.account === account)).toBe(true)
  const allRows = (await owner.ask('GET', `web/audit-log?account=${account}`)).body.data as Row[]
  expect(allRows.some(row => row.actor === owner.id && row.address === '127.0.0.1')).toBe(true)
})

test('a row has the details that no column of the changed row shows', async () => {
  const account = String((await owner.ask('POST', 'web/accounts', { name: 'paid', type: 'team' })).body.id)
  const posted = await owner.ask('POST', `web/accounts/${account}/top-ups`, { amount: '12.5', reference: 'invoice 7' })
  expect(posted.status).toBe(201)
  const [row] = (await owner.ask('GET', 'web/audit-log?limit=1')).body.data as { action: string; changes: object }[]
  expect(row).toMatchObject({ action: 'post', changes: { kind: 'top_up', amount: '12.50', reference: 'invoice 7' } })
})
