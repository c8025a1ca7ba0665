// One against all others at the desk: whoever asks for everything at once, keeps a thread busy, sends what is too large
// before they have said who they are, or writes without end.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bounds } from '../../src/base/bounds.ts'
import { Refusal } from '../../src/base/errors.ts'
import { QueryWorker } from '../../src/store/queries/query-worker.ts'
import type { DeskApp } from '../management/desk-app.ts'
import { openDeskApp } from '../management/desk-app.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import { rawRequest } from '../support/raw.ts'

const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'told',
    (fault: unknown) => (fault instanceof Refusal ? fault.code : fault),
  )

describe('a question that takes too long', () => {
  let app: DeskApp
  let desk: QueryWorker

  beforeAll(async () => {
    app = await openDeskApp()
    const path = join(app.folder, 'weir.db')
    const db = openDatabase(path)
    db.run('PRAGMA legacy_alter_table = ON')
    db.run('ALTER TABLE tier RENAME TO tier_before')
    // For some seconds and no more: a thread that is ended goes on until its query does.
    db.run(`CREATE VIEW tier AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000)
      SELECT 'x' AS name, 1 AS qpm, 1000 AS price_per_mille, 1 AS account_qpm, 1 AS account_concurrency, 1 AS version
      FROM n WHERE i < 0`)
    db.close()
    desk = new QueryWorker(path, { msMax: 1_000 })
  })
  afterAll(async () => {
    desk.close()
    await app.stop()
  })

  const forever = (): Promise<unknown> =>
    desk.query('tiers', { scope: null, filters: {}, sort: 'name', descending: false, limit: 1 })

  test('ends alone: those behind it are answered', async () => {
    const asked = [forever(), desk.query('siteVersion', {}), desk.query('siteVersion', {})]
    expect(await Promise.all(asked.map(codeOf))).toEqual(['storage_away', 'told', 'told'])
  })

  test('keeps nobody waiting for as long as all of them would take', async () => {
    const sinceMs = performance.now()
    const asked = await Promise.all(Array.from({ length: 20 }, () => codeOf(forever())))
    expect([...new Set(asked)].sort()).toEqual(['overloaded', 'storage_away'])
    expect(asked.filter(code => code === 'storage_away').length).toBeLessThan(4)
    expect(performance.now() - sinceMs).toBeLessThan(10_000)
  })

  test('and as many as there may be are told so at once', async () => {
    const asked = Array.from({ length: bounds.queriesMax + 1 }, forever)
    expect(await codeOf(forever())).toBe('overloaded')
    desk.close()
    const codes = await Promise.all(asked.map(codeOf))
    expect(new Set(codes)).toEqual(new Set(['storage_away']))
  })
})

describe('a gateway', () => {
  let harness: Harness
  let owner: Person
  let member: Person

  beforeAll(async () => {
    harness = await startHarness()
    owner = await setUpOwner(harness)
    member = await addPerson(harness, owner.ask)
  })
  afterAll(() => harness.stop())

  test('answers others while one person asks for everything at once', async () => {
    const flood = Array.from({ length: 300 }, () => member.ask('GET', 'web/keys'))
    const others = await Promise.all(Array.from({ length: 10 }, () => owner.ask('GET', 'web/accounts')))
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200))
    const told = await Promise.all(flood)
    expect([...new Set(told.map(({ status }) => status))].sort()).toEqual([200, 429])
    const refused = told.find(({ status }) => status === 429)!
    expect([refused.error.code, refused.headers.get('retry-after')]).toEqual(['rate_limit_exceeded', '1'])
    expect((await member.ask('GET', 'web/keys')).status).toBe(200)
  })

  test('lets nobody fill the audit log', async () => {
    const writer = await addPerson(harness, owner.ask)
    let status = 0
    // What is refused anyway counts as well, and takes no time.
    for (let tried = 0; status !== 429 && tried < bounds.personWritesPerMinuteMax * 2; tried++) {
      status = (await writer.ask('PATCH', 'web/me', { role: 'owner' })).status
    }
    expect(status).toBe(429)
    expect((await writer.ask('PATCH', 'web/me', { name: 'Another' })).status).toBe(429)
    expect((await writer.ask('GET', 'web/me')).status).toBe(200)
    expect((await member.ask('PATCH', 'web/me', { name: 'Another' })).status).toBe(200)
  })

  describe('reads no body that is too large', () => {
    const most = bounds.anonymousBodyBytesMax
    const head = (lines: readonly string[]): string =>
      ['POST /api/auth/sign-in HTTP/1.1', 'host: weir', 'content-type: application/json', ...lines, '', ''].join('\r\n')

    test('by what it says of itself', async () => {
      // None of it is sent: whoever waits for it has not looked.
      const answer = await rawRequest(harness.url, head([`content-length: ${most + 1}`]))
      expect(answer.status).toBe(413)
    })

    test('in pieces', async () => {
      const piece = Buffer.concat([Buffer.from('400\r\n'), Buffer.alloc(0x400, 32), Buffer.from('\r\n')])
      const pieces = Array.from({ length: most / 0x400 + 1 }, () => piece)
      // It does not end, either.
      const sent = Buffer.concat([Buffer.from(head(['transfer-encoding: chunked'])), ...pieces])
      expect((await rawRequest(harness.url, sent)).status).toBe(413)
    })

    test('packed, however small', async () => {
      const packed = gzipSync('{}')
      const lines = [`content-length: ${packed.length}`, 'content-encoding: gzip']
      const answer = await rawRequest(harness.url, Buffer.concat([Buffer.from(head(lines)), packed]))
      expect([answer.status, answer.body.toString()]).toEqual([415, expect.stringContaining('encoding_refused')])
    })
  })
})
