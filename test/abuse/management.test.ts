// One person against all others at the management interface: many requests at once, slow queries, large bodies without
// authentication, endless writes.

import { afterAll, afterEach, beforeAll, describe, expect, jest, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bounds } from '../../src/base/bounds.ts'
import { Refusal } from '../../src/base/errors.ts'
import { buildWebEndpoints } from '../../src/management/resources/table.ts'
import type { ListQuery } from '../../src/store/queries/paging.ts'
import type { QueryInput, QueryName } from '../../src/store/queries/queries.ts'
import { QueryWorker } from '../../src/store/queries/query-worker.ts'
import type { ManagementApp } from '../management/management-app.ts'
import { openManagementApp } from '../management/management-app.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import { rawRequest } from '../support/raw.ts'

const codeOf = (queries: Promise<unknown>): Promise<unknown> =>
  queries.then(
    () => 'answered',
    (fault: unknown) => (fault instanceof Refusal ? fault.code : fault),
  )

/** Without an end, or without a sign-in. */
const isOpen = (path: string): boolean => path === '/api/web/live' || path.startsWith('/api/auth/')
/** Queries that the gateway makes by itself. */
const ofGateway: ReadonlySet<QueryName> = new Set(['accountsWithOpenDays', 'lastClosedDay', 'transfersAfter'])

describe('a query that takes too long', () => {
  // The tests move the time, so that a thread that starts slowly on a busy machine is not taken for a slow query.
  const MS_MAX = 1_000
  let app: ManagementApp
  let worker: QueryWorker

  beforeAll(async () => {
    app = await openManagementApp()
    const path = join(app.folder, 'weir.db')
    const db = openDatabase(path)
    db.run('PRAGMA legacy_alter_table = ON')
    db.run('ALTER TABLE tier RENAME TO tier_before')
    // The query takes some seconds and no more: a terminated thread runs on until its query ends.
    db.run(`CREATE VIEW tier AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000)
      SELECT 'x' AS name, 1 AS qpm, 1000 AS price_per_mille, 1 AS account_qpm, 1 AS account_concurrency, 1 AS version
      FROM n WHERE i < 0`)
    db.close()
    worker = new QueryWorker(path, { msMax: MS_MAX })
  })
  afterEach(() => jest.useRealTimers())
  afterAll(async () => {
    worker.close()
    await app.stop()
  })

  const slowQuery = (): Promise<unknown> =>
    worker.query('tiers', { scope: null, filters: {}, sort: 'name', descending: false, limit: 1 })

  test('fails alone: the queries behind it are answered', async () => {
    jest.useFakeTimers()
    const queries = [slowQuery(), worker.query('siteVersion', {}), worker.query('siteVersion', {})].map(codeOf)
    jest.advanceTimersByTime(MS_MAX)
    expect(await Promise.all(queries)).toEqual(['storage_away', 'answered', 'answered'])
  })

  test('does not delay twenty of its kind for the sum of their times: most of them are refused as overloaded', async () => {
    jest.useFakeTimers()
    const queries = Array.from({ length: 20 }, () => codeOf(slowQuery()))
    jest.advanceTimersByTime(MS_MAX)
    expect(await queries[0]).toBe('storage_away')
    // All are decided after the time of two, not of twenty.
    jest.advanceTimersByTime(MS_MAX)
    const codes = await Promise.all(queries)
    expect([...new Set(codes)].sort()).toEqual(['overloaded', 'storage_away'])
    expect(codes.filter(code => code === 'storage_away').length).toBeLessThan(4)
  })

  test('is refused at once when the queue of queries is full', async () => {
    const queries = Array.from({ length: bounds.queriesMax + 1 }, slowQuery)
    expect(await codeOf(slowQuery())).toBe('overloaded')
    worker.close()
    const codes = await Promise.all(queries.map(codeOf))
    expect(new Set(codes)).toEqual(new Set(['storage_away']))
  })
})

describe('the management interface', () => {
  let harness: Harness
  let owner: Person
  let member: Person

  beforeAll(async () => {
    // Time stands still for limits: no write is allowed again while writes are counted.
    harness = await startHarness({ world: { clock: { nowMs: () => 1_000, dateMs: () => Date.now() } } })
    owner = await setUpOwner(harness)
    member = await addPerson(harness, owner.ask)
  })
  afterAll(() => harness.stop())

  test('answers others while one person sends 300 requests at once', async () => {
    const flood = Array.from({ length: 300 }, () => member.ask('GET', 'web/keys'))
    const others = await Promise.all(Array.from({ length: 10 }, () => owner.ask('GET', 'web/accounts')))
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200))
    const answers = await Promise.all(flood)
    expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual([200, 429])
    const refused = answers.find(({ status }) => status === 429)!
    expect([refused.error.code, refused.headers.get('retry-after')]).toEqual(['rate_limit_exceeded', '1'])
    expect((await member.ask('GET', 'web/keys')).status).toBe(200)
  })

  test('lets no read of a member take a turn of the staff', async () => {
    const { account } = ((await member.ask('GET', 'web/me')).body.accounts as { account: string }[])[0]!
    const key = (await member.ask('POST', 'web/keys', { account })).body.id as string
    const [session] = (await member.ask('GET', 'web/sessions')).body.data as { id: string }[]
    const values: Readonly<Record<string, string>> = {
      ...{ account, key, session: session!.id, user: member.id },
      ...{ tier: 'standard', 'model*': 'demo/echo', span: 'day' },
    }
    const paths = buildWebEndpoints({ nowMs: () => 0 } as never)
      .filter(
        ({ method, who, path }) => method === 'GET' && !(typeof who === 'object' && 'site' in who) && !isOpen(path),
      )
      .map(({ path }) =>
        path.replace('/api/', '').replaceAll(/\{([^}]+)\}/g, (_all, name: string) => values[name] ?? 'x'),
      )
    using queries = spyOn(QueryWorker.prototype, 'query')
    for (const path of [...paths, 'web/keys?use=true', 'web/accounts?use=true']) await member.ask('GET', path)
    const ofStaff = queries.mock.calls.filter(([, input, asker]) => !(input as ListQuery).scope && asker === undefined)
    expect(ofStaff.map(([name]) => name).filter(name => !ofGateway.has(name))).toEqual([])
    expect(queries.mock.calls.length).toBeGreaterThan(paths.length / 2)
    // Members are not shown how many keys a tier has, and to count a million takes a third of a second.
    const ofTiers = queries.mock.calls.filter(([name]) => name === 'tiers' || name === 'tier')
    expect(ofTiers.map(([, input]) => (input as QueryInput<'tier'>).countsKeys)).toEqual([false, false])
  })

  test('limits the writes of a person, so that nobody fills the audit log', async () => {
    const writer = await addPerson(harness, owner.ask)
    let status = 0
    // Writes that are refused count as well, and are fast.
    for (let tried = 0; status !== 429 && tried < bounds.personWritesPerMinuteMax * 2; tried++) {
      status = (await writer.ask('PATCH', 'web/me', { role: 'owner' })).status
    }
    expect(status).toBe(429)
    expect((await writer.ask('PATCH', 'web/me', { name: 'Another' })).status).toBe(429)
    expect((await writer.ask('GET', 'web/me')).status).toBe(200)
    expect((await member.ask('PATCH', 'web/me', { name: 'Another' })).status).toBe(200)
  })

  describe('counts every write of a request', () => {
    let account: string
    const statusesUntilRefused = async (send: (at: number) => Promise<{ status: number }>): Promise<number[]> => {
      const statuses: number[] = []
      for (let at = 0; at < bounds.personWritesPerMinuteMax * 2 && !statuses.includes(429); at++) {
        statuses.push((await send(at)).status)
      }
      return statuses
    }

    beforeAll(async () => {
      account = String((await owner.ask('POST', 'web/accounts', { name: 'of a company', kind: 'postpaid' })).body.id)
    })

    test('that changes many keys at once', async () => {
      const developer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
      const keys: string[] = []
      for (let at = 0; at < 50; at++) {
        keys.push(String((await owner.ask('POST', 'web/keys', { account, name: `key ${at}` })).body.id))
      }
      const statuses = await statusesUntilRefused(at =>
        developer.ask('POST', 'web/keys/bulk', { action: at % 2 === 0 ? 'disable' : 'enable', keys }),
      )
      expect(statuses).toEqual([...Array(bounds.personWritesPerMinuteMax / 50).fill(200), 429])
    })

    test('that only reads, and leaves a row in the audit log', async () => {
      const manager = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
      const { key } = (await owner.ask('POST', 'web/keys', { account, keepsBodies: true })).body
      const answer = await chat(harness, String(key), { model: 'demo/echo', messages: hello })
      expect(answer.status).toBe(200)
      const path = `web/records/${answer.headers.get('x-request-id')}/bodies`
      await answer.text()
      await harness.idle()
      let status = 0
      while (status !== 200) ({ status } = await owner.ask('GET', path)) // bodies are written after their call
      const statuses = await statusesUntilRefused(() => manager.ask('GET', path))
      expect(statuses).toEqual([...Array(bounds.personWritesPerMinuteMax).fill(200), 429])
      expect((await manager.ask('GET', 'web/me')).status).toBe(200)
    })
  })

  describe('refuses a body without authentication', () => {
    const limit = bounds.anonymousBodyBytesMax
    const head = (lines: readonly string[]): string =>
      ['POST /api/auth/sign-in HTTP/1.1', 'host: weir', 'content-type: application/json', ...lines, '', ''].join('\r\n')

    test('whose Content-Length is too large', async () => {
      // The body is never sent: a server that waits for it does not answer.
      const answer = await rawRequest(harness.url, head([`content-length: ${limit + 1}`]))
      expect(answer.status).toBe(413)
    })

    test('whose chunks are too large together', async () => {
      const piece = Buffer.concat([Buffer.from('400\r\n'), Buffer.alloc(0x400, 32), Buffer.from('\r\n')])
      const pieces = Array.from({ length: limit / 0x400 + 1 }, () => piece)
      // The chunked body has no end, either.
      const sent = Buffer.concat([Buffer.from(head(['transfer-encoding: chunked'])), ...pieces])
      expect((await rawRequest(harness.url, sent)).status).toBe(413)
    })

    test('that is compressed, however small', async () => {
      const packed = gzipSync('{}')
      const lines = [`content-length: ${packed.length}`, 'content-encoding: gzip']
      const answer = await rawRequest(harness.url, Buffer.concat([Buffer.from(head(lines)), packed]))
      expect([answer.status, answer.body.toString()]).toEqual([415, expect.stringContaining('encoding_refused')])
    })
  })
})
