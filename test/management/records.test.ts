// Records over the web: who may see which, found by all their fields, shown in full, exported, and deleted.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { idAtMs, textId } from '../../src/base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../src/base/time.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import { until } from '../support/gateway.ts'
import type { ManagementApp, Reply } from './management-app.ts'
import { member, openManagementApp, owner } from './management-app.ts'

let app: ManagementApp
let own: { accountId: number; keyId: number }
let foreign: { accountId: number; keyId: number }
/** The conversation of the calls `plain`, `failed` and `old`. */
const CHAT = '0123456789abcdef'
const ids: Record<'plain' | 'formula' | 'failed' | 'other' | 'old', number> = {} as never

const [viewer, manager, stranger] = [member(7), member(8), member(9)]
const support = { personId: 3, role: 'support' } as const

beforeAll(async () => {
  app = await openManagementApp()
  own = await app.account({ 7: 1, 8: 3 })
  foreign = await app.account({ 9: 3 })
  ids.plain = await app.call({
    ...own,
    conversation: CHAT,
    cost: '1500',
    endUser: 'ann',
    lines: '[["input",10,"0.15"]]',
  })
  ids.formula = await app.call({ ...own, cost: '2500', endUser: '=1+2', tags: '{"a,b":"=3+4;@x"}', streamed: true })
  const failed: Partial<RecordRow> = {
    status: 502,
    outcome: 'upstream_failed',
    error: 'upstream_unusable',
    routing: '{"candidates":1}',
    conversation: CHAT,
    dialect: 'gemini',
    requestedModel: 'river',
    loss: 'seed',
    tags: '{"team":"ads","beta":""}',
    attempts: '[["p#1","broken",5,1,503],["p#2","broken",5,7,503]]',
    firstContentMs: 700,
    durationMs: 900,
  }
  ids.failed = await app.call({ ...own, ...failed, model: 'x', channel: 'p#2' })
  ids.other = await app.call({ ...foreign, cost: '9000' })
  ids.old = await app.call({ ...own, conversation: CHAT, agoMs: 40 * DAY_MS, endUser: 'ann', cost: '700' })
})
afterAll(() => app.stop())

const idsOf = ({ body }: Reply): string[] => (body.data as { id: string }[]).map(({ id }) => id)
const req = (...names: (keyof typeof ids)[]): string[] => names.map(name => textId('req', ids[name]))
const accountText = (): string => textId('acc', own.accountId)

describe('a search', () => {
  test('finds by each filter', async () => {
    const searches: readonly (readonly [string, readonly (keyof typeof ids)[]])[] = [
      ['', ['other', 'failed', 'formula', 'plain', 'old']],
      ['sort=time', ['old', 'plain', 'formula', 'failed', 'other']],
      [`account=${accountText()}`, ['failed', 'formula', 'plain', 'old']],
      [`key=${textId('key', foreign.keyId)}`, ['other']],
      ['model=p/x', ['failed']],
      ['channel=p%232', ['failed']],
      ['provider=p&error=upstream_unusable', ['failed']],
      ['status=502', ['failed']],
      ['outcome=upstream_failed', ['failed']],
      ['costMin=0.0000025', ['other', 'formula']],
      ['costMin=0.0000015&costMax=0.0000025', ['formula', 'plain']],
      ['endUser=ann', ['plain', 'old']],
      ['endUser=%3D1%2B2', ['formula']],
      ['endUser=%25', []],
      ["endUser=' OR 1=1 --", []],
      ['endUser=%00', []],
      ['streamed=true', ['formula']],
      ['outcome=upstream_failed,refused', ['failed']],
      ['outcome=upstream_failed,completed&endUser=ann', ['plain', 'old']],
      ['dialect=gemini', ['failed']],
      ['requestedModel=river', ['failed']],
      ['requestedModel=p/m&endUser=ann', ['plain', 'old']],
      ['tag=team', ['failed']],
      ['tag=team=ads', ['failed']],
      ['tag=beta=', ['failed']],
      ['tag=ads', []],
      ['tag=team=ad', []],
      ['tag=a,b', ['formula']],
      ['lossy=true', ['failed']],
      ['lossy=false&endUser=ann', ['plain', 'old']],
      ['attemptsMin=2', ['failed']],
      ['attemptsMin=3', []],
      ['firstContentMsMin=700', ['failed']],
      ['firstContentMsMin=701', []],
      ['durationMsMin=900', ['failed']],
      [`id=${req('old')[0]}`, ['old']],
      [`from=${new Date(Date.now() - DAY_MS).toISOString()}`, ['other', 'failed', 'formula', 'plain']],
    ]
    for (const [query, names] of searches) {
      expect([query, idsOf(await app.ask(owner, `GET records?${query}`))]).toEqual([query, req(...names)])
    }
  })

  test('continues where its page ended, and says if a page is smaller than requested', async () => {
    const first = await app.ask(owner, 'GET records?limit=2')
    const second = await app.ask(owner, `GET records?limit=2&after=${String(first.body.next)}`)
    expect([...idsOf(first), ...idsOf(second)]).toEqual(req('other', 'failed', 'formula', 'plain'))
    expect((await app.ask(owner, 'GET records?limit=1000000')).body).toMatchObject({ limit: 200, endedEarly: false })
  })

  const invalid = [
    ['from=2026-01-01T00:00:00Z&before=2026-06-01T00:00:00Z', 'field_invalid'],
    ['colour=red', 'field_unknown'],
    ['after=xyz', 'field_invalid'],
    ['account=acc_x', 'field_invalid'],
    ['costMin=-1', 'field_invalid'],
    ['status=7', 'field_invalid'],
    ['outcome=completed,done', 'field_invalid'],
    ['attemptsMin=0', 'field_invalid'],
    [`endUser=${'x'.repeat(1_001)}`, 'field_invalid'],
  ] as const
  test.each(invalid)('for %s is refused', async (query, code) => {
    expect((await app.ask(owner, `GET records?${query}`)).code).toBe(code)
  })
})

describe('a search for a conversation', () => {
  const nowMs = Date.now()
  const since = (ms: number): string => new Date(nowMs - ms).toISOString()
  const key = (): string => `key=${textId('key', own.keyId)}`

  test('finds its turns of a key and a time, for staff and for members', async () => {
    const turns = `GET records?conversation=${CHAT}`
    expect(idsOf(await app.ask(owner, `${turns}&${key()}&from=${since(DAY_MS)}`))).toEqual(req('failed', 'plain'))
    const [from, before] = [since(43 * DAY_MS), since(38 * DAY_MS)]
    expect(idsOf(await app.ask(owner, `${turns}&${key()}&from=${from}&before=${before}`))).toEqual(req('old'))
    expect(idsOf(await app.ask(viewer, `${turns}&from=${since(DAY_MS)}`))).toEqual(req('failed', 'plain'))
    expect(idsOf(await app.ask(stranger, `${turns}&from=${since(DAY_MS)}`))).toEqual([])
    const others = await app.ask(owner, `GET records?conversation=${'f'.repeat(16)}&${key()}&from=${since(DAY_MS)}`)
    expect(idsOf(others)).toEqual([])
  })

  test('is in each record, null where a call has none', async () => {
    const { data } = (await app.ask(owner, 'GET records?sort=time')).body as { data: { conversation: unknown }[] }
    expect(data.map(({ conversation }) => conversation)).toEqual([CHAT, CHAT, null, CHAT, null])
    expect((await app.ask(viewer, `GET records/${req('plain')[0]}`)).body.conversation).toBe(CHAT)
  })

  test('is refused without a key, without a beginning, and for more than seven days', async () => {
    const codeOf = async (who: typeof owner | typeof viewer, query: string): Promise<unknown> =>
      (await app.ask(who, `GET records?conversation=${CHAT}&${query}`)).code
    expect(await codeOf(owner, `from=${since(DAY_MS)}`)).toBe('field_invalid')
    expect(await codeOf(owner, key())).toBe('field_invalid')
    expect(await codeOf(viewer, '')).toBe('field_invalid')
    expect(await codeOf(viewer, `before=${since(0)}`)).toBe('field_invalid')
    expect(await codeOf(owner, `${key()}&from=${since(8 * DAY_MS)}`)).toBe('field_invalid')
    const week = `${key()}&from=${since(8 * DAY_MS)}&before=${since(DAY_MS)}`
    expect((await app.ask(owner, `GET records?conversation=${CHAT}&${week}`)).status).toBe(200)
    expect((await app.ask(owner, 'GET records?conversation=Hello')).code).toBe('field_invalid')
    expect((await app.ask(owner, `GET records?conversation=${CHAT}&settledAfter=now`)).code).toBe('field_invalid')
    expect((await app.ask(owner, `GET records/export?conversation=${CHAT}`)).code).toBe('field_invalid')
  })
})

describe('records of another account', () => {
  test('are not found, shown, exported or deleted', async () => {
    expect(idsOf(await app.ask(viewer, 'GET records'))).toEqual(req('failed', 'formula', 'plain', 'old'))
    expect(idsOf(await app.ask(stranger, 'GET records'))).toEqual(req('other'))
    expect(idsOf(await app.ask(member(55), 'GET records'))).toEqual([])
    expect(idsOf(await app.ask(stranger, `GET records?account=${accountText()}`))).toEqual([])
    expect((await app.ask(stranger, `GET records/${req('plain')[0]}`)).code).toBe('resource_unknown')
    expect((await app.ask(stranger, `GET records/${req('plain')[0]}/bodies`)).code).toBe('resource_unknown')
    const exported = await (await app.ask(stranger, 'GET records/export')).response!.text()
    expect(
      exported
        .trim()
        .split('\n')
        .map(line => (JSON.parse(line) as { id: string }).id),
    ).toEqual(req('other'))
    const order = { account: accountText(), endUser: 'ann' }
    expect((await app.ask(stranger, 'POST records/deletions', order)).code).toBe('resource_unknown')
    expect((await app.ask(viewer, 'POST records/deletions', order)).code).toBe('resource_unknown')
    expect((await app.ask(manager, 'POST records/deletions', { endUser: 'ann' })).code).toBe('field_missing')
    const key = { account: accountText(), key: textId('key', foreign.keyId) }
    expect((await app.ask(manager, 'POST records/deletions', key)).code).toBe('resource_unknown')
  })

  test('are not shown without an actor, whatever has let the request through', async () => {
    for (const line of ['GET records', 'GET accounts', 'GET me', 'POST accounts']) {
      expect([line, (await app.ask(undefined, line, { name: 'x', type: 'team' })).code]).toEqual([
        line,
        'token_invalid',
      ])
    }
  })

  test('and channels are visible to staff alone', async () => {
    const failed = await app.ask(viewer, `GET records/${req('failed')[0]}`)
    expect(failed.body).toMatchObject({ channel: null, attempts: null, routing: null })
    const forOwner = await app.ask(owner, `GET records/${req('failed')[0]}`)
    expect(forOwner.body).toMatchObject({ channel: 'p#2', routing: { candidates: 1 } })
    expect((await app.ask(viewer, 'GET records?channel=p%232')).code).toBe('role_too_low')
    const text = await (await app.ask(viewer, 'GET records/export?format=csv')).response!.text()
    expect(text).not.toContain('p#2')
  })
})

test('one record is shown in full', async () => {
  const { body } = await app.ask(owner, `GET records/${req('plain')[0]}`)
  expect(body).toMatchObject({
    id: req('plain')[0],
    account: accountText(),
    model: 'p/m',
    channel: 'p#1',
    cost: '0.0000015',
    endUser: 'ann',
    accountName: expect.any(String),
    keyName: `k${own.keyId}`,
    keySuffix: 'abcd',
    lines: [{ what: 'input', count: 10, rate: '0.15' }],
    timeline: [],
    tags: {},
    attempts: [{ channel: 'p#1', model: null, atMs: null, ms: 5, firstMs: null, status: null, verdict: 'answered' }],
    routing: null,
    rule: 'completed',
    transfers: [{ kind: 'charge', amount: '0.0000015' }],
  })
})

describe('stored bodies', () => {
  test('are for managers and admins, and each access is audited', async () => {
    const bytes = (text: string) => ({ bytes: Buffer.from(text), truncated: false })
    app.store.bodies.store({ callId: ids.plain, accountId: 1 }, { request: bytes('asked'), answer: bytes('told') })
    const path = `GET records/${req('plain')[0]}/bodies`
    expect((await app.ask(viewer, path)).code).toBe('resource_unknown')
    expect((await app.ask(support, path)).code).toBe('role_too_low')
    for (const who of [manager, owner]) {
      expect((await app.ask(who, path)).body).toMatchObject({ request: { text: 'asked' }, answer: { text: 'told' } })
    }
    expect((await app.ask(owner, `GET records/${req('formula')[0]}/bodies`)).code).toBe('resource_unknown')
    const { body } = await app.ask(owner, 'GET audit-log?action=noteBodiesSeen')
    expect((body.data as unknown[]).length).toBe(2)
    expect((body.data as unknown[])[0]).toMatchObject({ target: req('plain')[0], account: accountText() })
  })
})

describe('an export', () => {
  test('as CSV makes formulas harmless', async () => {
    const text = await (await app.ask(owner, 'GET records/export?format=csv&endUser=%3D1%2B2')).response!.text()
    const [head, line] = text.split('\r\n')
    expect(head).toStartWith('id,time,account,key,model,channel,')
    expect(line).toContain(`,'=1+2,"{""a,b"":""=3+4;'@x""}",`)
  })

  test('is compressed if the request asks for it', async () => {
    const plain = await (await app.ask(owner, 'GET records/export')).response!.text()
    const { response } = await app.ask(owner, 'GET records/export', undefined, { 'accept-encoding': 'br, gzip' })
    expect(response!.headers.get('content-encoding')).toBe('gzip')
    const packed = await response!.arrayBuffer()
    expect(Buffer.from(Bun.gunzipSync(new Uint8Array(packed))).toString()).toBe(plain)
  })

  test('over the number of concurrent exports is refused, and one whose reader leaves is over', async () => {
    const open = await Promise.all([owner, owner, manager, manager].map(who => app.ask(who, 'GET records/export')))
    expect((await app.ask(owner, 'GET records/export')).code).toBe('concurrency_exceeded')
    for (const { response } of open) await response!.body!.cancel()
    expect(await (await app.ask(owner, 'GET records/export')).response!.text()).not.toBe('')
  })
})

describe('a deletion', () => {
  test('is refused while too many are waiting', async () => {
    const busy = await app.account({ 77: 3 })
    const account = textId('acc', busy.accountId)
    const order = (who = member(77)) => app.ask(who, 'POST records/deletions', { account })
    // A running call keeps them all waiting.
    const callFields = { dialect: 'openai-chat', provider: 'p', model: 'm', streamed: false, priceVersion: null }
    const draft = { ...callFields, endUser: null, tags: null }
    const hold = { callId: idAtMs(Date.now() - 1_000), kind: 'call', ...busy, amount: '0', wants: '0', draft } as const
    await app.store.management.writer.run('hold', hold)
    for (let at = 0; at < bounds.deletionsOpenMax; at++) expect((await order()).status).toBe(202)
    expect((await order()).code).toBe('state_unfit')
    expect((await order(member(78))).code).toBe('resource_unknown')
    expect((await order(owner)).status).toBe(202)
  })

  test('of an end user removes records, bodies and the name; the money and the statistics stay', async () => {
    // A fixed range: without one, the answer states the last day, which is another one after the minute has changed.
    const time = (inMs: number): string => new Date(Date.now() + inMs).toISOString()
    const range = `from=${time(-DAY_MS)}&before=${time(HOUR_MS)}`
    const sums = async () => (await app.ask(owner, `GET statistics/summary?account=${accountText()}&${range}`)).body
    const topNames = async () => (await app.ask(owner, `GET statistics/end-users?account=${accountText()}`)).body.data
    await sums()
    await until(() => (app.store.management.statisticsAggregator.progress.seq ?? 0) >= 5, 'all is summed up')
    const [before, names] = [await sums(), await topNames()]
    expect(before).toMatchObject({ calls: 3, cost: '0.000004' })
    expect(JSON.stringify(names)).toContain('ann')
    const ordered = await app.ask(manager, 'POST records/deletions', { account: accountText(), endUser: 'ann' })
    const author = textId('usr', 8)
    expect(ordered.body).toMatchObject({ account: accountText(), ofEndUser: true, from: null, author })
    await app.store.management.recordDeleter.sweep()
    const deletion = (await app.ask(manager, `GET records/deletions/${String(ordered.body.id)}`)).body
    expect([deletion.deleted, deletion.done === null]).toEqual([2, false])
    expect(idsOf(await app.ask(owner, 'GET records'))).toEqual(req('other', 'failed', 'formula'))
    expect(await app.store.bodies.read(ids.plain)).toBeUndefined()
    expect(await sums()).toEqual(before)
    expect(JSON.stringify(await topNames())).not.toContain('ann')
    const log = JSON.stringify((await app.ask(owner, 'GET audit-log?action=orderDeletion')).body)
    expect(log).toContain('"ofEndUser":true')
    expect(log).not.toContain('ann')
    const { findings } = await auditDatabase(app.store.folder.database)
    expect(findings).toEqual([])
  })

  test('follows the number of days that records are kept', async () => {
    const old = await app.call({ ...foreign, agoMs: 31 * DAY_MS, cost: '400' })
    const young = await app.call({ ...foreign, agoMs: 29 * DAY_MS, cost: '500' })
    expect((await app.ask(owner, 'PATCH settings', { retentionDays: 30 })).status).toBe(200)
    await app.store.management.recordDeleter.sweep()
    const remaining = idsOf(await app.ask(owner, 'GET records'))
    expect([remaining.includes(textId('req', old)), remaining.includes(textId('req', young))]).toEqual([false, true])
    expect((await auditDatabase(app.store.folder.database)).findings).toEqual([])
  })
})
