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

interface RawRow {
  readonly seq: number
  readonly hash: string
  readonly hashBefore: string
  readonly hashedText: string
  readonly actor: string
}

test('a browser can recompute the chain from the answers alone, across pages', async () => {
  for (let at = 0; at < 3; at++) await owner.ask('POST', 'web/accounts', { name: `über ${at} "q"`, type: 'team' })
  let last = '0'.repeat(64)
  let seq = 0
  let after = ''
  do {
    const { body } = await owner.ask('GET', `web/audit-log?raw=true&sort=seq&limit=2${after}`)
    for (const row of body.data as RawRow[]) {
      expect([row.seq, row.hashBefore]).toEqual([seq + 1, last])
      const bytes = Uint8Array.from(row.hashBefore.match(/../g)!, hex => Number.parseInt(hex, 16))
      const text = new TextEncoder().encode(row.hashedText)
      const digest = await crypto.subtle.digest('SHA-256', new Uint8Array([...bytes, ...text]))
      expect(Buffer.from(digest).toString('hex')).toBe(row.hash)
      expect((JSON.parse(row.hashedText) as unknown[]).slice(0, 3)).toEqual([row.seq, expect.any(Number), row.actor])
      ;[last, seq] = [row.hash, row.seq]
    }
    after = body.next === null ? '' : `&after=${String(body.next)}`
  } while (after !== '')
  expect(seq).toBeGreaterThan(3)
  expect((await owner.ask('GET', `web/audit-log/check?head=${seq}:${last}`)).body).toMatchObject({ brokenAt: null })
})

test('what is hashed is for staff only', async () => {
  const account = String((await owner.ask('POST', 'web/accounts', { name: 'raw', type: 'team' })).body.id)
  const manager = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
  const { status, error } = await manager.ask('GET', 'web/audit-log?raw=true')
  expect([status, error.code]).toEqual([403, 'role_too_low'])
  expect((await manager.ask('GET', 'web/audit-log')).text).not.toContain('hashedText')
  expect((await owner.ask('GET', 'web/audit-log')).text).not.toContain('hashedText')
})
