// Downloads by ticket: a link without a token, which works once and for a minute, with the rights of whoever asked for it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

// Time passes only where a test says so: on a slow machine links would end meanwhile.
const startMs = Date.now()
const clock = { aheadMs: 0 }
const nowMs = (): number => startMs + clock.aheadMs
const world = { clock: { nowMs, dateMs: nowMs } }

let harness: Harness
let owner: Person
let account: string

beforeAll(async () => {
  harness = await startHarness({ world })
  owner = await setUpOwner(harness)
  const [first] = (await owner.ask('GET', 'web/me')).body.accounts as { account: string }[]
  account = first!.account
  await owner.ask('POST', `web/accounts/${account}/top-ups`, { amount: '5', reference: 'one' })
  const shop = { account, name: 'shop', keepsBodies: true }
  const { key } = (await owner.ask('POST', 'web/keys', shop)).body as { key: string }
  await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })
  await harness.idle()
})
afterAll(() => harness.stop())

const ofRecords = { of: 'records', query: { format: 'csv' } }
const ofStatement = () => ({ of: 'statement', query: { account, format: 'ndjson' } })

async function linkFor(person: Pick<Person, 'ask'>, body: unknown): Promise<string> {
  const told = await person.ask('POST', 'web/downloads', body)
  if (told.status !== 200) throw new Error(told.text)
  return String(told.body.url)
}
/** Follows a link as a browser does: without a token. */
const follow = (link: string): Promise<Response> => fetch(`${harness.url}${link}`)
const codeOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { error: { code: string } }).error.code

test('a link gives the file as an attachment, without a token', async () => {
  const records = await follow(await linkFor(owner, ofRecords))
  expect(records.status).toBe(200)
  expect(records.headers.get('content-disposition')).toBe('attachment; filename="records.csv"')
  expect(records.headers.get('cache-control')).toBe('no-store')
  const exported = await owner.ask('GET', 'web/records/export?format=csv')
  expect(await records.text()).toBe(exported.text)
  expect(exported.text.trim().split('\n')).toHaveLength(2)
  const statement = await follow(await linkFor(owner, ofStatement()))
  expect(statement.headers.get('content-disposition')).toBe(`attachment; filename="statement-${account}.ndjson"`)
  expect(await statement.text()).toContain('"top_up"')
})

test('no path below /api/web is answered without a token', async () => {
  for (const path of ['downloads', 'downloads/x', (await linkFor(owner, ofRecords)).replace('/api/auth/', '')]) {
    const response = await follow(`/api/web/${path}`)
    expect([response.status, await codeOf(response)]).toEqual([401, 'token_invalid'])
  }
})

test('HEAD does not use up a link, and no bodies are noted as seen', async () => {
  const link = await linkFor(owner, ofRecords)
  const head = await fetch(`${harness.url}${link}`, { method: 'HEAD' })
  expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET'])
  expect([(await follow(link)).status, (await follow(link)).status]).toEqual([200, 404])
  const [call] = (await owner.ask('GET', 'web/records')).body.data as { id: string }[]
  expect((await owner.ask('HEAD', `web/records/${call!.id}/bodies`)).status).toBe(405)
  expect((await owner.ask('GET', 'web/audit-log?action=noteBodiesSeen')).body.data).toEqual([])
})

test('the filters are those of the export', async () => {
  const query = { status: '404', streamed: 'false', from: '2026-01-01T00:00:00Z', format: 'ndjson' }
  expect(await (await follow(await linkFor(owner, { of: 'records', query }))).text()).toBe('')
  const unknown = await owner.ask('POST', 'web/downloads', { of: 'records', query: { colour: 'red' } })
  expect([unknown.status, unknown.error.param]).toEqual([400, 'query.colour'])
  const turned = { from: '2026-02-01T00:00:00Z', before: '2026-01-01T00:00:00Z' }
  expect((await owner.ask('POST', 'web/downloads', { of: 'records', query: turned })).error.param).toBe('from')
})

test('a link works once, also for two requests at the same time', async () => {
  const link = await linkFor(owner, ofRecords)
  const answers = await Promise.all([follow(link), follow(link), follow(link)])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404])
  for (const answer of answers) await answer.text()
  expect(await codeOf(await follow(link))).toBe('resource_unknown')
})

test('a link works for a minute, and an invented one never', async () => {
  const link = await linkFor(owner, ofRecords)
  clock.aheadMs += 60_000
  expect(await codeOf(await follow(link))).toBe('resource_unknown')
  for (const text of ['x'.repeat(43), 'x', 'x'.repeat(300)]) {
    expect(await codeOf(await follow(`/api/auth/downloads/${text}`))).toBe('resource_unknown')
  }
})

test('a member downloads only what the account of the member has, and only while it is a member', async () => {
  const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
  const stranger = await addPerson(harness, owner.ask)
  expect((await stranger.ask('POST', 'web/downloads', ofStatement())).error.code).toBe('resource_unknown')
  expect(await (await follow(await linkFor(stranger, { of: 'records', query: {} }))).text()).toBe('')
  const byChannel = { of: 'records', query: { channel: 'openai' } }
  expect((await viewer.ask('POST', 'web/downloads', byChannel)).error.code).toBe('role_too_low')
  const own = await (await follow(await linkFor(viewer, { of: 'records', query: {} }))).text()
  expect(own).toContain(account)
  expect((JSON.parse(own) as { channel: unknown }).channel).toBeNull()

  const links = [await linkFor(viewer, ofStatement()), await linkFor(viewer, { of: 'records', query: {} })]
  expect((await owner.ask('DELETE', `web/accounts/${account}/members/${viewer.id}`)).status).toBe(204)
  expect(await codeOf(await follow(links[0]!))).toBe('resource_unknown')
  expect(await (await follow(links[1]!)).text()).toBe('')
})

test('a session that has ended takes its links with it', async () => {
  const person = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
  const link = await linkFor(person, ofRecords)
  await person.ask('POST', 'auth/sign-out', {}, { cookie: person.cookie })
  expect(await codeOf(await follow(link))).toBe('session_over')
})

test('a session has a bounded number of links, and a ticket is in no log', async () => {
  const person = await addPerson(harness, owner.ask)
  const tickets: string[] = []
  for (let told = await person.ask('POST', 'web/downloads', ofRecords); told.status === 200; ) {
    tickets.push(String(told.body.url).split('/').at(-1)!)
    told = await person.ask('POST', 'web/downloads', ofRecords)
    if (told.status !== 200) expect(told.error.code).toBe('rate_limit_exceeded')
  }
  await (await follow(`/api/auth/downloads/${tickets[0]}`)).text()
  await follow(`/api/auth/downloads/${tickets[0]}`)
  await follow(`/api/auth/downloads/${tickets[1]}/more`)
  const text = harness.logs.join('\n')
  expect(tickets.filter(ticket => text.includes(ticket))).toEqual([])
  expect(tickets.length).toBeGreaterThan(10)
})
