// A backup is taken while calls run, audited, and restored into an empty folder: it holds everything up to the moment
// when it was taken, and its keys work.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { migrate, openWriter, readMigrations } from '../../src/store/engine/database.ts'
import { ask, bearer, CHAT, call, goodBody } from '../front/asking.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'
import { bookFaults } from '../support/books.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { spoil } from './sample-books.ts'

afterAll(cleanUp)

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** Makes calls one after the other, from several callers, until stopped; returns how many succeeded. */
function load(harness: Harness, keys: readonly string[]): () => Promise<number> {
  let [stopped, ended] = [false, 0]
  const callers = keys.map(async key => {
    while (!stopped) if ((await call(harness, key)).status === 200) ended++
  })
  return async () => {
    stopped = true
    await Promise.all(callers)
    return ended
  }
}

const rowsOf = (path: string, sql: string): unknown[][] => {
  const db = openDatabase(path, { readonly: true, safeIntegers: true })
  try {
    return db.query(sql).values()
  } finally {
    db.close()
  }
}

describe('a backup under load', () => {
  const base = freshFolder()
  const backup = join(base, 'backup')
  let keys: string[]
  let before: unknown[][]

  test('is complete, readable by its owner only, and its ledger is consistent', async () => {
    const harness = await startHarness({ env: { WEIR_AUDIT_SECONDS: '1' } })
    keys = await Promise.all([1, 2, 3, 4].map(() => harness.key()))
    const stop = load(harness, keys)
    while (harness.recordCount() < 20) await Bun.sleep(5)
    before = rowsOf(join(harness.folder, 'weir.db'), 'SELECT * FROM transfer')
    const answer = await harness.weir('backup', { folder: backup })
    const after = harness.recordCount()
    while (harness.recordCount() < after + 20) await Bun.sleep(5)
    expect(await stop()).toBeGreaterThanOrEqual(40)
    expect(answer).toMatchObject({ folder: backup, books: 'agree', findings: [] })
    expect((await harness.weir('audit')).findings).toEqual([])
    expect(harness.logs.filter(line => line.includes('"error"'))).toEqual([])
    await harness.stop()

    const files = readdirSync(backup)
    expect(files).toEqual(expect.arrayContaining(['backup.json', 'jwt-secret', 'pepper', 'weir.db']))
    expect(modeOf(backup)).toBe('700')
    for (const file of files) expect([file, modeOf(join(backup, file))]).toEqual([file, '600'])
    const note = JSON.parse(readFileSync(join(backup, 'backup.json'), 'utf8'))
    expect(note).toMatchObject({ version: expect.any(String), schema: readMigrations().length, booksAgree: true })
    expect(note.rows).toMatchObject({ transfers: answer.transfers, records: answer.records })
    expect(note.rows.transfers).toBeGreaterThanOrEqual(before.length)
  })

  test('is restored into an empty folder, with everything up to its moment, and is served', async () => {
    const data = join(base, 'data')
    const output = await weirSays(data, `restore ${backup}`)
    expect(output).toMatch(/^Restored to .*: 8 accounts, \d+ transfers, \d+ records\.$/)
    const database = join(data, 'weir.db')
    // The start ended the calls that were running at the time of the backup, and only those.
    const copied = rowsOf(join(backup, 'weir.db'), 'SELECT * FROM transfer')
    expect(copied.slice(0, before.length)).toEqual(before)
    expect(rowsOf(database, 'SELECT * FROM transfer').slice(0, copied.length)).toEqual(copied)
    const records = rowsOf(join(backup, 'weir.db'), 'SELECT * FROM record')
    const restoredRows = new Set(rowsOf(database, 'SELECT * FROM record').map(row => Bun.hash(row.join()).toString()))
    expect(records.filter(row => !restoredRows.has(Bun.hash(row.join()).toString()))).toEqual([])
    expect(rowsOf(database, 'SELECT count(*) FROM hold')).toEqual([[0n]])
    const db = openWriter(database)
    expect(bookFaults(db)).toEqual([])
    db.close()

    const served = await serve(data)
    for (const key of keys) {
      const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))
      expect(answer.status).toBe(200)
    }
    const refused = await weir(data, `restore ${backup}`)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^weir: Weir is running on .* Stop it/)])
    expect(await stopServed(served)).toBe(0)
    expect(await weirSays(data, 'audit')).toMatch(/^books +agree\n/)
  })

  test('restored over other data sets that data aside', async () => {
    const data = join(base, 'other')
    const key = await weirSays(data, 'keys create --credit 3')
    expect(await weirSays(data, `restore ${backup}`)).toMatch(/^The previous data is now in \S+\nRestored to /)
    expect((await weir(data, `balance ${key}`)).stderr).toContain('Unknown account')
    expect(await weirSays(data, `keys show ${keys[0]}`)).toMatch(/state +active/)
    const setAside = readdirSync(data).filter(name => name.startsWith('before-restore-'))
    expect(setAside).toHaveLength(1)
    const previousData = join(data, setAside[0]!)
    expect(readdirSync(previousData)).toEqual(expect.arrayContaining(['weir.db', 'pepper', 'jwt-secret']))
    expect(await weirSays(previousData, `balance ${key}`)).toMatch(/balance +3\.00/)
  })

  test('without an intact schema is not said to have lost the records, which the audit does not read then', async () => {
    const [copy, data] = [join(base, 'incomplete'), join(base, 'from-incomplete')]
    cpSync(backup, copy, { recursive: true })
    const db = openWriter(join(copy, 'weir.db'))
    db.run('DROP INDEX audit_actor')
    db.close()
    const refused = await weir(data, `restore ${copy}`)
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('index audit_actor is missing')])
    expect(refused.stdout).not.toContain('when it was made')
    const { stdout } = await weir(data, `restore ${copy} --despite-findings`)
    expect(stdout).toMatch(/\nRestored to .*: 8 accounts, \d+ transfers, records not counted\.\n/)
  })
})

test('a backup holds the stored bodies and the key that decrypts them', async () => {
  const base = freshFolder()
  const [data, copy, back] = ['data', 'copy', 'back'].map(name => join(base, name)) as [string, string, string]
  const served = await serve(data)
  const key = await weirSays(data, 'keys create --credit 1')
  await weirSays(data, `keys set ${key} --bodies on`)
  const body = goodBody({ model: 'demo/echo' })
  const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), body))
  const id = answer.header('x-request-id')!
  expect(await weirSays(data, `bodies ${id}`)).toStartWith(body)
  await weirSays(data, `backup ${copy}`)
  expect(await stopServed(served)).toBe(0)
  await weirSays(back, `restore ${copy}`)
  expect(await weirSays(back, `bodies ${id}`)).toStartWith(body)
})

test("a backup is also checked for damage that the ledger's sums do not show", async () => {
  const base = freshFolder()
  await weirSays(join(base, 'data'), 'keys create --credit 3')
  const db = openWriter(join(base, 'data', 'weir.db'))
  spoil(db, "UPDATE tier SET qpm = 0 WHERE name = 'pro'")
  db.close()
  const { code, stdout } = await weir(join(base, 'data'), `backup ${join(base, 'copy')}`)
  expect([code, stdout]).toEqual([1, expect.stringContaining('CHECK constraint failed in tier')])
})

describe('a restore that is killed', () => {
  const base = freshFolder()
  const [backup, data] = [join(base, 'backup'), join(base, 'data')]
  const files = ['weir.db', 'pepper', 'jwt-secret']
  let [restoredKey, replacedKey] = ['', '']

  /** Leaves the folder as a kill does after so many of the moves. */
  function killedAfter(moves: number): void {
    const [part, setAside] = [join(data, 'restoring'), join(data, 'before-restore-x')]
    mkdirSync(part)
    mkdirSync(setAside)
    for (const file of files) cpSync(join(backup, file), join(part, file))
    writeFileSync(join(part, 'aside'), 'before-restore-x')
    files.slice(0, moves).forEach(file => renameSync(join(data, file), join(setAside, file)))
    files.slice(0, Math.max(0, moves - files.length)).forEach(file => renameSync(join(part, file), join(data, file)))
  }

  beforeAll(async () => {
    const [first, replaced] = [join(base, 'first'), join(base, 'replaced')]
    const keys = [weirSays(first, 'keys create --credit 3'), weirSays(replaced, 'keys create --credit 4')] as const
    ;[restoredKey, replacedKey] = await Promise.all(keys)
    await weirSays(first, `backup ${backup}`)
  })

  test.each([0, 1, 3, 4])('after %i moves prevents a start, and can be run again', async moves => {
    rmSync(data, { recursive: true, force: true })
    cpSync(join(base, 'replaced'), data, { recursive: true })
    killedAfter(moves)
    expect((await weir(data, 'serve')).stderr).toMatch(/^weir: A restore to .* was interrupted\. Run it again/)
    await weirSays(data, `restore ${backup}`)
    const setAside = readdirSync(data).filter(name => name.startsWith('before-restore-'))
    expect(setAside).toEqual(['before-restore-x'])
    const balances = await Promise.all([
      weirSays(data, `balance ${restoredKey}`),
      weirSays(join(data, 'before-restore-x'), `balance ${replacedKey}`),
    ])
    expect(balances).toEqual([expect.stringMatching(/balance +3\.00/), expect.stringMatching(/balance +4\.00/)])
  })
})

describe('a restore that ends before its first move', () => {
  const base = freshFolder()
  const [backup, data] = [join(base, 'backup'), join(base, 'data')]

  test('by a kill changes nothing, and the old data is served', async () => {
    await weirSays(join(base, 'first'), 'keys create --credit 3')
    await weirSays(join(base, 'first'), `backup ${backup}`)
    const key = await weirSays(data, 'keys create --credit 4')
    mkdirSync(join(data, 'restoring'))
    cpSync(join(backup, 'weir.db'), join(data, 'restoring', 'weir.db'))
    expect(await weirSays(data, `balance ${key}`)).toMatch(/balance +4\.00/)
  })

  test("and before it has noted a folder's name does not make the next restore take the old data for its own", async () => {
    writeFileSync(join(data, 'restoring', 'aside'), '')
    expect(await weirSays(data, `restore ${backup}`)).toMatch(/^The previous data is now in \S+before-restore-\S+\n/)
    const [setAside] = readdirSync(data).filter(name => name.startsWith('before-restore-'))
    const previousData = join(data, setAside!, 'weir.db')
    expect(rowsOf(previousData, 'SELECT balance FROM account WHERE id > 4')).toEqual([[4_000_000_000n]])
  })

  test('for lack of space changes nothing, and the gateway can start', async () => {
    const before = readFileSync(join(data, 'weir.db'))
    // A folder in the place of a file fails like a full disk.
    mkdirSync(join(data, 'restoring', 'pepper', 'x'), { recursive: true })
    const { code, stderr } = await weir(data, `restore ${backup}`)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^weir: The backup cannot be copied: [^\n]+\n$/)])
    expect(existsSync(join(data, 'restoring'))).toBeFalse()
    expect(readFileSync(join(data, 'weir.db')).equals(before)).toBeTrue()
    expect(await weirSays(data, 'audit')).toMatch(/^books +agree\n/)
  })
})

/** A backup as of the first migration: an account with money, a recorded call and a call with a hold. */
function oldBackup(folder: string): void {
  mkdirSync(folder)
  const db = openWriter(join(folder, 'weir.db'))
  migrate(db, { migrations: readMigrations().slice(0, 1) })
  db.run("INSERT INTO account VALUES (9000001, 'old', 5000000000, 100, 1)")
  db.run('INSERT INTO hold VALUES (77, 9000001, 100)')
  db.run(
    `INSERT INTO record VALUES
       (9000002, 9000003, 9000001, 'p', 'm', 'c', 200, 'completed', 'reported', 1, 0, 2, 30, 1, 0, 5)`,
  )
  db.close()
  writeFileSync(join(folder, 'backup.json'), JSON.stringify({ schema: 1 }))
}

describe('a backup from before the ledger', () => {
  const base = freshFolder()

  test('is migrated, audited, and copied unchanged', async () => {
    oldBackup(join(base, 'old'))
    const data = join(base, 'data')
    expect(await weirSays(data, `restore ${join(base, 'old')}`)).toBe(
      'The backup was made by a version of Weir without a ledger. It is audited after its migration.\n' +
        `Restored to ${data}: 5 accounts, 1 transfers, 1 records.`,
    )
    expect(rowsOf(join(data, 'weir.db'), 'SELECT balance, held FROM account WHERE id = 9000001')).toEqual([
      [5_000_000_000n, 0n],
    ])
    const copies = readdirSync(join(data, 'backups'))
    expect(copies).toEqual([expect.stringMatching(/^schema-1-/)])
    expect(modeOf(join(data, 'backups', copies[0]!))).toBe('600')
  })

  test('is not restored if its tables are not those of its schema', async () => {
    const odd = join(base, 'odd')
    oldBackup(odd)
    const db = openWriter(join(odd, 'weir.db'))
    db.run('DROP TABLE record')
    db.close()
    const { code, stderr } = await weir(join(base, 'target'), `restore ${odd}`)
    expect([code, stderr]).toEqual([1, expect.stringContaining('is damaged: table record is missing')])
    expect(existsSync(join(base, 'target'))).toBeFalse()
  })
})

describe('an invalid backup or backup folder:', () => {
  test('a backup with replaced files is not restored', async () => {
    const base = freshFolder()
    const [good, empty] = [join(base, 'good'), join(base, 'empty')]
    await weirSays(join(base, 'data'), 'keys create --credit 3')
    await weirSays(join(base, 'data'), `backup ${good}`)
    const emptyDb = openWriter(empty)
    migrate(emptyDb)
    emptyDb.close()
    const exchanged = [
      ['weir.db', '', 'is not the database that was backed up: it has schema 0'],
      ['weir.db', readFileSync(empty), 'The audit of this backup found contradictions'],
      ['pepper', 'x', 'pepper is damaged: secret 1 of 1 has fewer than 32 characters'],
      ['backup.json', '{', 'backup.json of the backup is damaged'],
    ] as const
    for (const [file, content, problem] of exchanged) {
      const bad = join(base, 'bad')
      rmSync(bad, { recursive: true, force: true })
      cpSync(good, bad, { recursive: true })
      writeFileSync(join(bad, file), content)
      const { code, stderr } = await weir(join(base, 'target'), `restore ${bad}`)
      expect([file, code, stderr]).toEqual([file, 1, expect.stringContaining(problem)])
      expect(stderr).toMatch(/^weir: [^\n]+\n$/)
    }
    expect(existsSync(join(base, 'target'))).toBeFalse()
  })

  test('a backup in which a byte of a database was changed is not restored', async () => {
    const base = freshFolder()
    const copy = join(base, 'copy')
    await weirSays(join(base, 'data'), 'keys create --credit 3 --name riverside')
    await weirSays(join(base, 'data'), `backup ${copy}`)
    const bytes = readFileSync(join(copy, 'weir.db'))
    bytes.write('lakesidee', bytes.indexOf('riverside'))
    writeFileSync(join(copy, 'weir.db'), bytes)
    const { code, stdout, stderr } = await weir(join(base, 'target'), `restore ${copy}`)
    expect([code, stdout]).toEqual([1, expect.stringContaining('the file weir.db is not as it was')])
    expect(stderr).toContain('The audit of this backup found contradictions')
    expect(existsSync(join(base, 'target'))).toBeFalse()
    expect((await weir(join(base, 'target'), `restore ${copy} --despite-findings`)).code).toBe(0)
  })

  test('a backup that fails leaves nothing behind, and prints the reason', async () => {
    const base = freshFolder()
    const data = join(base, 'data')
    await weirSays(data, 'keys create --credit 3')
    writeFileSync(join(data, 'bodies.db'), 'no database at all, and long enough to be looked at')
    writeFileSync(join(base, 'file'), '')
    for (const [to, problem] of [
      ['copy', 'No backup was made. The copy failed: '],
      ['file/x', 'cannot be created: '],
    ]) {
      const { code, stdout, stderr } = await weir(data, `backup ${join(base, to!)}`)
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(problem!)])
      expect(stderr).toMatch(/^weir: [^\n]+\n$/)
    }
    expect(readdirSync(join(base, 'copy'))).toEqual([])
    rmSync(join(data, 'bodies.db'))
    expect(await weirSays(data, `backup ${join(base, 'copy')}`)).toContain('agree')
  })

  test('it is refused with a message, and nothing is changed', async () => {
    const folder = freshFolder()
    const data = join(folder, 'data')
    const key = await weirSays(data, 'keys create --credit 3')
    mkdirSync(join(folder, 'full'))
    writeFileSync(join(folder, 'full', 'x'), '')
    const problems = [
      [`backup ${join(folder, 'full')}`, 'already exists and is not an empty folder'],
      [`restore ${join(folder, 'full')}`, 'There is no complete backup in'],
      [`restore ${join(folder, 'nowhere')}`, 'There is no complete backup in'],
    ] as const
    for (const [command, problem] of problems) {
      const { code, stderr } = await weir(data, command)
      expect([command, code, stderr]).toEqual([command, 1, expect.stringContaining(problem)])
    }
    expect(readdirSync(join(folder, 'full'))).toEqual(['x'])
    expect(await weirSays(data, `balance ${key}`)).toMatch(/balance +3\.00/)
  })

  test('a backup of an inconsistent ledger is kept, marked so, and restored only on demand', async () => {
    const folder = freshFolder()
    const data = join(folder, 'data')
    const key = await weirSays(data, 'keys create --credit 3')
    const db = openWriter(join(data, 'weir.db'))
    spoil(db, 'UPDATE account SET balance = balance + 1 WHERE id > 4')
    db.close()
    const { code, stdout, stderr } = await weir(data, `backup ${join(folder, 'copy')}`)
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^folder +\S+\/copy-books-do-not-agree\n[^]*balance +acc_\w+ +the balance of/)
    const copy = join(folder, 'copy-books-do-not-agree')
    expect(existsSync(join(folder, 'copy'))).toBeFalse()
    expect(JSON.parse(readFileSync(join(copy, 'backup.json'), 'utf8'))).toMatchObject({ booksAgree: false })

    const target = join(folder, 'target')
    const refused = await weir(target, `restore ${copy}`)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('add --despite-findings')])
    expect(existsSync(target)).toBeFalse()
    expect((await weir(target, `restore ${copy} --despite-findings`)).code).toBe(1)
    expect(await weirSays(target, `accounts show ${key}`)).toContain('frozen since')
  })

  test('a backup that was damaged in transit is detected', async () => {
    const folder = freshFolder()
    const data = join(folder, 'data')
    await weirSays(data, 'keys create --credit 3')
    const good = join(folder, 'good')
    expect(await weirSays(data, `backup ${good}`)).toContain('agree')
    const bad = join(folder, 'bad')
    cpSync(good, bad, { recursive: true })
    const bytes = readFileSync(join(bad, 'weir.db'))
    bytes.fill(0xa5, bytes.length - 3 * 4096)
    writeFileSync(join(bad, 'weir.db'), bytes)
    const { code, stderr } = await weir(join(folder, 'target'), `restore ${bad}`)
    expect([code, existsSync(join(folder, 'target'))]).toEqual([1, false])
    expect(stderr).toMatch(
      /^weir: (The audit of this backup found contradictions|The database of the backup cannot be read)/,
    )
  })
})
