// The hash chain of the audit log is checked in slices, and errors in any slice are found.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditHash } from '../audit-log/audited-operations.ts'
import { migrate, openWriter } from '../engine/database.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { AuditCheckRequest, AuditCheckResult, AuditHead } from './audit-log.ts'
import { auditLogQueries } from './audit-log.ts'

const ROWS = 45_000

const folder = mkdtempSync(join(tmpdir(), 'weir-chain-'))
let db: Database
let slices: number

beforeAll(() => {
  db = openWriter(join(folder, 'weir.db'))
  migrate(db)
  const insert = db.query("INSERT INTO audit VALUES (?1, 1, 'cli', NULL, NULL, 'setTier', 'tier', NULL, '{}', ?2)")
  const same = { madeMs: 1, actor: 'cli', address: null, request: null, action: 'setTier', target: 'tier' }
  let last: Uint8Array = Buffer.alloc(32)
  db.transaction(() => {
    for (let seq = 1; seq <= ROWS; seq++) {
      last = auditHash(last, { ...same, seq, accountId: null, changes: '{}' })
      insert.run(seq, last)
    }
  })()
})
afterAll(() => {
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

function checkAll(known?: AuditHead): AuditCheckResult {
  const check = (ask: AuditCheckRequest): AuditCheckResult => sqliteSteps(db)(auditLogQueries.checkAuditLog(ask))
  let checked = check({ known })
  for (slices = 1; checked.goesOn; slices++) checked = check({ known, after: checked.head })
  return checked
}

test('the whole log is checked, slice by slice', () => {
  expect(checkAll()).toMatchObject({ rows: ROWS, brokenAt: null, head: { seq: ROWS } })
  expect(slices).toBeGreaterThan(1)
})

test('a known row is verified in every slice, and reported when it is beyond the last row', () => {
  const { head } = checkAll()
  for (const seq of [1, 20_000, 20_001, ROWS]) {
    const { hash } = db.query('SELECT lower(hex(hash)) AS hash FROM audit WHERE seq = ?1').get(seq) as { hash: string }
    expect(checkAll({ seq, hash }).brokenAt).toBeNull()
    expect(checkAll({ seq, hash: hash.replace(/./, digit => (digit === '0' ? '1' : '0')) }).brokenAt).toBe(seq)
  }
  expect(checkAll({ seq: ROWS + 1, hash: head!.hash }).brokenAt).toBe(ROWS + 1)
})

test('a changed row is found at the edges of slices and at the end', () => {
  db.run('DROP TRIGGER audit_is_final')
  for (const seq of [20_000, 20_001, 40_001, ROWS]) {
    db.query("UPDATE audit SET actor = 'x' WHERE seq = ?1").run(seq)
    expect(checkAll()).toMatchObject({ rows: seq - 1, brokenAt: seq })
    db.query("UPDATE audit SET actor = 'cli' WHERE seq = ?1").run(seq)
  }
  expect(checkAll().brokenAt).toBeNull()
})
