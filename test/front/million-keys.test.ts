// A million keys cost a call as much as ten: one search in an index for a key that is not cached, nothing for one that
// is, and no more memory than the cache's bound. Searches of people are not slower either.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { KeyDirectory } from '../../src/identity/key-directory.ts'
import { mintKey } from '../../src/identity/key-format.ts'
import { migrate, openReader, openWriter } from '../../src/store/engine/database.ts'
import type { Reader } from '../../src/store/engine/reader.ts'
import { findKeySql, openCallReader } from '../../src/store/engine/reader.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { writeCursor } from '../../src/store/queries/cursor.ts'
import { keyPlan } from '../../src/store/queries/keys.ts'
import type { ListQuery } from '../../src/store/queries/paging.ts'
import { listPage } from '../../src/store/queries/paging.ts'
import { openDatabase } from '../support/database.ts'

const KEYS = 1_000_000
const folder = mkdtempSync(join(tmpdir(), 'weir-million-'))
const file = join(folder, 'weir.db')
const digestOf = (index: number): Buffer => createHash('sha256').update(String(index)).digest()

let reader: Reader

beforeAll(() => {
  const db = openWriter(file)
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  const insert = db.query(
    `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
     VALUES (?1, ?2, printf('%04x', ?1 % 65536), printf('key %07d', ?1 * 7919 % 1000003), 11 + ?1 % 1000, 'pro', 0)`,
  )
  // Created after the rows, which is much faster.
  const indexes = db
    .query("SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'api_key' AND type = 'index' AND sql IS NOT NULL")
    .all() as { name: string; sql: string }[]
  for (const { name } of indexes) db.run('DROP INDEX '.concat(name))
  db.transaction(() => {
    for (let id = 11; id < 1_011; id++) {
      db.query("INSERT INTO account (id, name, kind, created_ms) VALUES (?1, '', 'prepaid', 0)").run(id)
    }
    for (let index = 1; index <= KEYS; index++) insert.run(index, digestOf(index))
    for (const { sql } of indexes) db.run(sql)
    db.run("INSERT INTO person (id, email, name, role, created_ms) VALUES (7, 'a@b.c', 'A', 'member', 0)")
    db.run('INSERT INTO member (account_id, person_id, rank, added_ms) VALUES (17, 7, 1, 0), (18, 7, 2, 0)')
  })()
  db.close()
  reader = openCallReader(file)
})

afterAll(() => {
  reader.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('with a million keys', () => {
  test('the look-up of a key is a search in an index and never a scan', () => {
    const db = openDatabase(file, { readonly: true })
    const explain = db.query('EXPLAIN QUERY PLAN '.concat(findKeySql.sqlite))
    const plan = explain.all(new Uint8Array(32)) as { detail: string }[]
    db.close()
    // `d` is the list of different tags, which a search in an index has found.
    const bad = plan.map(step => step.detail).filter(detail => /^SCAN (?!d$)|TEMP B-TREE/.test(detail))
    expect(bad).toEqual([])
    expect(plan.some(step => step.detail.includes('digest=?'))).toBe(true)
  })

  const listQueries: readonly (readonly [name: string, ask: Partial<ListQuery>, first: number | undefined])[] = [
    ['newest first', {}, 1_000_000],
    ['the next page of it', { after: writeCursor('-created', { value: 500_000n, id: 500_000n }) }, 499_999],
    ['oldest first', { descending: false }, 1],
    ['by name', { sort: 'name', descending: false }, undefined],
    [
      'the middle of it by name',
      { sort: 'name', after: writeCursor('-name', { value: 'KEY 0500000', id: 5n }) },
      undefined,
    ],
    ['by what names begin with', { filters: { name: 'KEY 012345' }, sort: 'name', descending: false }, undefined],
    ['by how its text ends', { filters: { suffix: 'abcd' } }, 961_485],
    ['of an account', { filters: { account: 411 } }, 999_400],
    ['of a tier', { filters: { tier: 'pro' } }, 1_000_000],
    ['made since', { filters: { from: 999_990 } }, 1_000_000],
    ['of somebody’s accounts', { scope: { actorId: 7, rank: 1 } }, 999_007],
    ['of those that they develop for', { scope: { actorId: 7, rank: 2 } }, 999_007],
  ]

  test.each(listQueries)('a page of the list %s is found by an index', (_, partialQuery, first) => {
    const db = openReader(file)
    const plans: string[] = []
    const explainingDb = {
      prepare(sql: string) {
        const plan = db.query('EXPLAIN QUERY PLAN '.concat(sql)).all() as { detail: string }[]
        plans.push(...plan.map(({ detail }) => detail))
        return db.prepare(sql)
      },
    } as unknown as Database
    const query = { scope: null, filters: {}, sort: 'created', descending: true, limit: 50, ...partialQuery }
    const { rows } = sqliteSteps(explainingDb)(listPage(keyPlan, query))
    db.close()
    expect(rows.length).toBeGreaterThan(0)
    if (first !== undefined) expect(rows[0]!.id).toBe(first)
    // A query without a condition is read in the requested order, and ends with the page.
    const isPaged = query.after !== undefined || query.scope !== null || Object.keys(query.filters).length > 0
    expect(plans.some(detail => detail.startsWith('SEARCH k'))).toBe(isPaged)
    expect(plans.some(detail => detail.includes('TEMP B-TREE'))).toBe(query.scope !== null)
  })

  test('the cache holds no more keys than its bound, and each key is still found', async () => {
    let lookUps = 0
    const directory = new KeyDirectory({
      find: digest => {
        lookUps++
        return reader.findKey(digest)
      },
      nowMs: () => 0,
      knownMax: bounds.keysCachedMax,
      unknownMax: bounds.keysUnknownCachedMax,
      unknownMs: bounds.keyUnknownMsMax,
    })
    for (let index = 1; index <= KEYS; index += 29) {
      const row = await directory.lookUp(digestOf(index), mintKey())
      if (row?.id !== index) throw new Error(`key ${index} was not found`)
    }
    expect(lookUps).toBe(Math.ceil(KEYS / 29))
    expect(directory.cached).toBe(bounds.keysCachedMax)
    expect(directory.getCached(digestOf(1 + 29 * (lookUps - 1)))).toMatchObject({ tier: 'pro' })
    expect(directory.getCached(digestOf(1))).toBeUndefined()
  })
})
