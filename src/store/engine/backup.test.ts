// A backup of any earlier schema can be verified and restored, because after a failed upgrade an operator needs the
// backup from before the upgrade.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { restoreBackup, verifyBackup } from './backup.ts'
import { migrate, openWriter, readMigrations } from './database.ts'

const migrations = readMigrations()
const folders: string[] = []
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-backup-'))
  folders.push(folder)
  return folder
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe.each(migrations.map(({ version }) => version))('a backup of schema %d', schema => {
  test('is verified, restored and migrated', async () => {
    const [backup, data] = [newFolder(), newFolder()]
    const db = openWriter(join(backup, 'weir.db'))
    migrate(db, { migrations: migrations.slice(0, schema) })
    if (schema > 1) {
      db.run("INSERT INTO account (id, name, kind, balance, created_ms) VALUES (77, 'a', 'prepaid', 5, 0)")
      db.run('UPDATE account SET balance = -5 WHERE id = 4')
      db.run("INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (9, 'top_up', 4, 77, 5, 0)")
    }
    db.close()
    writeFileSync(join(backup, 'backup.json'), JSON.stringify({ schema }))

    const report = await verifyBackup(backup, { data, env: {} })
    expect(report?.findings ?? []).toEqual([])
    expect(report?.transfers).toBe(schema > 1 ? 1 : undefined)

    restoreBackup(backup, data)
    const restored = openWriter(join(data, 'weir.db'))
    migrate(restored)
    const { user_version } = restored.query('PRAGMA user_version').get() as { user_version: bigint }
    restored.close()
    expect(Number(user_version)).toBe(migrations.length)
  })
})
