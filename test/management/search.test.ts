// The search finds things of all kinds, and nothing that the actor may not see.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { textId } from '../../src/base/ids.ts'
import { openDatabase } from '../support/database.ts'
import type { ManagementApp, Who } from './management-app.ts'
import { member, openManagementApp, owner } from './management-app.ts'

const support: Who = { personId: 0, role: 'support' }

let app: ManagementApp
let own: { accountId: number; keyId: number }
let foreign: { accountId: number; keyId: number }
let callId = 0

beforeAll(async () => {
  app = await openManagementApp()
  own = await app.account({ 7: 1, 8: 3 })
  foreign = await app.account({ 9: 1 })
  for (const [holder, name] of [
    [own, 'River%'],
    [foreign, 'riverbank'],
  ] as const) {
    await app.ask(owner, `PATCH accounts/${textId('acc', holder.accountId)}`, { name })
    await app.ask(owner, `PATCH keys/${textId('key', holder.keyId)}`, { name: `${name} key` })
    const webhook = { url: 'https://hooks.invalid/river', events: ['balance.low'] }
    await app.ask(owner, `POST accounts/${textId('acc', holder.accountId)}/webhooks`, webhook)
  }
  callId = await app.call({ ...foreign, cost: '5' })
})
afterAll(() => app.stop())

const hits = async (who: Who, text: string): Promise<string[]> => {
  const { body } = await app.ask(who, `GET search?text=${encodeURIComponent(text)}`)
  return (body.data as { kind: string; name: string }[]).map(({ kind, name }) => `${kind} ${name}`)
}

test('names are found by their beginning, in any case', async () => {
  expect(await hits(owner, 'RIVER')).toEqual([
    ...['account River%', 'account riverbank', 'key River% key', 'key riverbank key'],
    ...['webhook https://hooks.invalid/river', 'webhook https://hooks.invalid/river'],
  ])
  expect(await hits(owner, 'river%')).toEqual(['account River%', 'key River% key'])
  expect(await hits(owner, 'iver')).toEqual([expect.stringContaining('webhook'), expect.stringContaining('webhook')])
})

test('keys are found by their end, and all by their ids', async () => {
  expect(await hits(owner, 'abcd')).toEqual(['key River% key', 'key riverbank key'])
  expect(await hits(owner, textId('acc', own.accountId))).toEqual(['account River%'])
  expect(await hits(owner, textId('key', own.keyId))).toEqual(['key River% key'])
  expect(await hits(owner, textId('req', callId))).toEqual(['call p/m'])
  expect(await hits(owner, textId('usr', 7))).toEqual(['person 7'])
  expect(await hits(owner, textId('req', callId + 1))).toEqual([])
})

test('people are found by the beginning of their names and addresses', async () => {
  const db = openDatabase(join(app.folder, 'weir.db'))
  const insert = "INSERT INTO person (id, email, name, role, created_ms) VALUES (?1, ?2, ?3, 'member', 0)"
  db.run(insert, [70, 'a@marsh.invalid', 'Marsh Zoe'])
  db.run(insert, [71, 'marsh@a.invalid', 'Bo'])
  db.close()
  expect(await hits(owner, 'MARSH')).toEqual(['person Bo', 'person Marsh Zoe'])
  expect(await hits(owner, 'zoe')).toEqual([])
})

test('support finds webhooks by what it sees of their URLs', async () => {
  const url = 'https://only.invalid/T000/s3cret?token=t0ken'
  const created = await app.ask(owner, 'POST webhooks', { url, events: ['balance.low'] })
  const id = String(created.body.id)
  for (const text of ['https://only', 'ONLY.inv', id]) {
    expect(await hits(support, text)).toEqual(['webhook https://only.invalid/…'])
    expect(await hits(owner, text)).toEqual([`webhook ${url}`])
  }
  // A hit would tell that the text is a part of the secret.
  for (const text of ['t000', 's3', 't0ken', 'invalid/T']) expect(await hits(support, text)).toEqual([])
  expect(await hits(owner, 's3cret')).toEqual([`webhook ${url}`])
})

test('staff find what is in memory', async () => {
  expect(await hits(owner, 'pro')).toContain('tier pro')
  expect(await hits(owner, 'anthropic')).toContainEqual(expect.stringMatching(/^provider /))
  expect((await hits(owner, 'gpt')).filter(hit => hit.startsWith('model '))).toHaveLength(5)
})

test('members find nothing of others', async () => {
  expect(await hits(member(7), 'river')).toEqual(['account River%', 'key River% key'])
  expect(await hits(member(8), 'river')).toEqual([
    ...['account River%', 'key River% key', 'webhook https://hooks.invalid/river'],
  ])
  const ids = [textId('acc', foreign.accountId), textId('key', foreign.keyId), textId('req', callId), textId('usr', 8)]
  for (const text of [...ids, 'gpt', 'pro', 'anthropic']) expect(await hits(member(7), text)).toEqual([])
  expect(await hits(member(9), textId('req', callId))).toEqual(['call p/m'])
  expect(await hits(member(55), 'river')).toEqual([])
})
