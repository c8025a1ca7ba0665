// An export of many records: each once, in order; read no faster than it is received, and no further when its reader
// has left.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { Refusal } from '../../src/base/errors.ts'
import { idAtMs, parseTextId, textId } from '../../src/base/ids.ts'
import type { ManagementParts } from '../../src/management/management-parts.ts'
import { startExport } from '../../src/management/resources/record-export.ts'
import { openDatabase } from '../support/database.ts'
import type { ManagementApp } from './management-app.ts'
import { member, openManagementApp, owner } from './management-app.ts'

const MANY = 100_000
const FIRST_ID = idAtMs(Date.UTC(2026, 1, 1))

let app: ManagementApp
let queryCount = 0

beforeAll(async () => {
  app = await openManagementApp()
  const model = await app.call({ ...(await app.account()), agoMs: 1 })
  const db = openDatabase(app.store.folder.database)
  db.run(
    `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?1)
     INSERT INTO record SELECT ?2 + at, r.key_id, r.account_id, r.dialect, r.provider, r.model, r.channel, r.status,
       r.error, r.outcome, 'house', r.usage_source, r.streamed, at, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, r.attempts, NULL,
       NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM n, record r WHERE r.call_id = ?3`,
    [MANY, FIRST_ID, model],
  )
  db.close()
})
afterAll(() => app.stop())

/** The real query worker, with a count of its queries. */
const counted = (): ManagementParts['queryWorker'] => {
  const { queryWorker } = app.store.management
  return {
    query(name, input) {
      queryCount++
      return queryWorker.query(name, input)
    },
  }
}

const filter = { before: FIRST_ID + MANY }
const exportQuery = { scope: null, filter, oldestFirst: true, format: 'ndjson', staff: true } as const
const slot = { keepAlive() {}, check: async () => {}, release() {}, onLost() {} }

test('an export has each record once, in the order of time', async () => {
  const decoder = new TextDecoder()
  let [seen, rest, most] = [0, '', 0]
  const exported = await startExport(counted(), { search: exportQuery, gzip: false, slot })
  for await (const bytes of exported.body!) {
    most = Math.max(most, bytes.length)
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const { id, inputTokens } = JSON.parse(line) as { id: string; inputTokens: number }
      if (parseTextId('req', id) !== FIRST_ID + seen || inputTokens !== seen) throw new Error(`${id} is not the next`)
      seen++
    }
  }
  expect([seen, rest]).toEqual([MANY, ''])
  expect(most).toBeLessThan(bounds.exportRowsMax * 2_000)
  expect(queryCount).toBe(MANY / bounds.exportRowsMax)
})

test('an export reads no faster than it is received, and stops when its reader has left', async () => {
  queryCount = 0
  const exported = await startExport(counted(), { search: exportQuery, gzip: false, slot })
  const reader = exported.body!.getReader()
  for (let taken = 0; taken < 3; taken++) await reader.read()
  await Bun.sleep(50)
  expect(queryCount).toBeLessThanOrEqual(5)
  await reader.cancel()
  const countAfterLeave = queryCount
  await Bun.sleep(50)
  expect(queryCount).toBeLessThanOrEqual(countAfterLeave + 1)
})

test('an export whose first query fails is an error, and gives its slot back', async () => {
  const away = new Refusal('storage_away', 'the test')
  let released = 0
  const counting = { ...slot, release: () => void released++ }
  const exported = startExport(
    { query: () => Promise.reject(away) },
    { search: exportQuery, gzip: false, slot: counting },
  )
  await expect(exported).rejects.toBe(away)
  expect(released).toBe(1)
})

test('an export of staff may reach further back than a search; that of a member may not', async () => {
  const { accountId, keyId } = await app.account({ 8: 3 })
  const old = await app.call({ accountId, keyId, agoMs: 100 * 86_400_000 })
  const lines = async (actor: typeof owner): Promise<string> => {
    const { response } = await app.ask(actor, `GET records/export?account=${textId('acc', accountId)}`)
    return await response!.text()
  }
  expect(await lines(owner)).toContain(textId('req', old))
  expect(await lines(member(8))).toBe('')
  const from = new Date(Date.now() - 101 * 86_400_000).toISOString()
  expect((await app.ask(member(8), `GET records/export?from=${from}`)).code).toBe('field_invalid')
})
