// A million keys cost a call what ten do: one search in an index for a key that is not in memory, nothing for one
// that is, and no more memory than the cache's bound.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { KeyDirectory } from '../../src/identity/key-directory.ts'
import { mintKey } from '../../src/identity/key-format.ts'
import { migrate, openWriter } from '../../src/store/database.ts'
import { Reader } from '../../src/store/reader.ts'

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
     VALUES (?1, ?2, 'abcd', '', 11, 'pro', 0)`,
  )
  db.transaction(() => {
    db.run(`INSERT INTO account (id, name, kind, created_ms) VALUES (11, '', 'prepaid', 0)`)
    for (let index = 1; index <= KEYS; index++) insert.run(index, digestOf(index))
  })()
  db.close()
  reader = new Reader(file)
}, 60_000)

afterAll(() => {
  reader.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('with a million keys', () => {
  test('a look-up is a search in an index and never a scan', () => {
    const db = new Database(file, { readonly: true })
    const explain = db.query('EXPLAIN QUERY PLAN '.concat(Reader.findKeySql))
    const plan = explain.all(new Uint8Array(32)) as { detail: string }[]
    db.close()
    expect(plan.map(step => step.detail).filter(detail => detail.startsWith('SCAN'))).toEqual([])
    expect(plan.some(step => step.detail.includes('digest=?'))).toBe(true)
  })

  test('memory holds no more of them than its bound, and each is still found', async () => {
    let looked = 0
    const directory = new KeyDirectory({
      find: digest => {
        looked++
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
    expect(looked).toBe(Math.ceil(KEYS / 29))
    expect(directory.cached).toBe(bounds.keysCachedMax)
    expect(directory.recall(digestOf(1 + 29 * (looked - 1)))).toMatchObject({ tier: 'pro' })
    expect(directory.recall(digestOf(1))).toBeUndefined()
  })
})
