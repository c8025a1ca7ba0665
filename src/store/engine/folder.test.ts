// The data folder: its file modes, its secrets, its lock, and what a reader finds in its database.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBooks } from '../ledger/books.ts'
import { migrate, openWriter } from './database.ts'
import { FolderError, openFolder } from './folder.ts'
import { lockFolder } from './lock.ts'
import { buildOperations } from './operation-runner.ts'
import { openCallReader } from './reader.ts'

let root: string
let folder: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'weir-folder-'))
  folder = join(root, 'a', 'b')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const modeOf = (path: string): number => statSync(path).mode & 0o777

describe('the data folder', () => {
  test('is created for its owner alone, and keeps its secrets', () => {
    const first = openFolder(folder, {})
    expect(modeOf(folder)).toBe(0o700)
    expect([modeOf(join(folder, 'pepper')), modeOf(join(folder, 'jwt-secret'))]).toEqual([0o600, 0o600])
    const reopened = openFolder(folder, {})
    expect(reopened.secrets.pepper.newest.reveal()).toBe(first.secrets.pepper.newest.reveal())
    expect(reopened.secrets.jwt.newest.reveal()).toBe(first.secrets.jwt.newest.reveal())
    expect(first.secrets.pepper.newest.reveal()).not.toBe(first.secrets.jwt.newest.reveal())
    expect(first.secrets.pepper.newest.reveal().length).toBeGreaterThanOrEqual(43)
  })

  test('takes secrets from the environment, and then writes no secret files', () => {
    const env = { WEIR_PEPPER: 'p'.repeat(32), WEIR_JWT_SECRET: 'j'.repeat(32) }
    const { secrets } = openFolder(folder, env)
    const read = [secrets.pepper.newest.reveal(), secrets.jwt.newest.reveal()]
    expect(read).toEqual([env.WEIR_PEPPER, env.WEIR_JWT_SECRET])
    expect(() => readFileSync(join(folder, 'pepper'))).toThrow('ENOENT')
  })

  test('renames a secret file only when it is complete, so that the partial file of a killed start does no harm', () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'pepper.123.part'), 'half')
    expect(openFolder(folder, {}).secrets.pepper.newest.reveal().length).toBeGreaterThanOrEqual(43)
    expect(readdirSync(folder).filter(name => name.endsWith('.part'))).toEqual(['pepper.123.part'])
  })

  test('refuses secrets that are too short or damaged', () => {
    expect(() => openFolder(folder, { WEIR_PEPPER: 'short' })).toThrow(FolderError)
    openFolder(folder, {})
    writeFileSync(join(folder, 'pepper'), '')
    expect(() => openFolder(folder, {})).toThrow('is damaged')
  })

  test('makes a secret file private if other users could read it', () => {
    openFolder(folder, {})
    chmodSync(join(folder, 'pepper'), 0o644)
    openFolder(folder, {})
    expect(modeOf(join(folder, 'pepper'))).toBe(0o600)
  })

  test('reports when it cannot be created, or when its path is too long for a socket', () => {
    writeFileSync(join(root, 'file'), '')
    expect(() => openFolder(join(root, 'file', 'x'), {})).toThrow(FolderError)
    expect(() => openFolder(join(root, 'x'.repeat(100)), {})).toThrow('too long for a unix socket')
  })
})

describe('the lock', () => {
  test('has one holder', () => {
    openFolder(folder, {})
    const lock = lockFolder(folder)
    expect(lock).toBeDefined()
    expect(lockFolder(folder)).toBeUndefined()
    lock!.release()
    const next = lockFolder(folder)
    expect(next).toBeDefined()
    next!.release()
  })

  test('writes nothing, so that a gateway can start on a full disk and settle the calls of a crash', () => {
    openFolder(folder, {})
    const lock = lockFolder(folder)
    const files = readdirSync(folder).filter(name => name.startsWith('lock'))
    expect([files, statSync(join(folder, 'lock')).size]).toEqual([['lock'], 0])
    lock!.release()
  })

  test('is released by the kernel when its holder is killed', async () => {
    openFolder(folder, {})
    const program = `
      const { lockFolder } = await import(${JSON.stringify(join(import.meta.dir, 'lock.ts'))})
      globalThis.lock = lockFolder(${JSON.stringify(folder)})
      console.log('locked')
      setInterval(() => {}, 1000)`
    const holder = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'inherit' })
    try {
      const { value } = await holder.stdout.getReader().read()
      expect(Buffer.from(value!).toString()).toBe('locked\n')
      expect(lockFolder(folder)).toBeUndefined()
    } finally {
      holder.kill('SIGKILL')
      await holder.exited
    }
    const lock = lockFolder(folder)
    expect(lock).toBeDefined()
    lock!.release()
  })
})

describe('a reader', () => {
  test('finds keys, balances and settings, and sees each commit', () => {
    const { database } = openFolder(folder, {})
    const db = openWriter(database)
    migrate(db)
    const { run } = buildOperations(openBooks(db))
    const reader = openCallReader(database)
    try {
      const digest = 'ab'.repeat(32)
      const bytes = Buffer.from(digest, 'hex')
      expect(reader.findKey(bytes)).toBeUndefined()
      const keyFields = { pepper: 'aabbccdd', suffix: 'x', name: 'mine', tier: 'free', existing: false }
      run.createKey({
        id: 13,
        accountId: 14,
        creditRef: 14,
        digest,
        ...keyFields,
        qpm: null,
        credit: '9007199254740993',
      })
      const flags = { revoked: false, strictCap: false, strict: false, keepsBodies: false, explains: false }
      const accessFields = { disabled: false, expiresMs: null, untilMs: null, endpoints: null, addresses: null }
      const rights = { allows: null, accountAllows: null, denies: null, requires: null, ...accessFields }
      const limitFields = { qpm: 20, limitsKeyId: 13, hasOwnLimit: false }
      const named = { id: 13, version: 2, accountId: 14, tier: 'free', pricePerMille: 1_000 }
      const found = { ...named, ...limitFields, ...flags, ...rights }
      expect(reader.findKey(bytes)).toEqual(found)
      const account = { keyName: 'mine', kind: 'prepaid', held: 0n, balance: 9_007_199_254_740_993n }
      expect(reader.accounts.findByKey(13, 0)).toMatchObject(account)
      expect(reader.accounts.findByKey(14, 0)).toBeUndefined()
      run.revokeKey({ id: 13 })
      expect(reader.findKey(bytes)).toEqual({ ...found, version: 3, revoked: true })
      run.createKey({
        id: 15,
        accountId: 16,
        creditRef: 16,
        digest: 'cd'.repeat(32),
        ...keyFields,
        qpm: 7,
        credit: '0',
      })
      expect(reader.findKey(Buffer.from('cd'.repeat(32), 'hex'))!.qpm).toBe(7)
      expect(reader.setting('a')).toBeUndefined()
      run.setSetting({ name: 'a', value: "it's" })
      expect(reader.setting('a')).toBe("it's")
      expect(() => reader.ping()).not.toThrow()
    } finally {
      reader.close()
      db.close()
    }
    expect(() => reader.ping()).toThrow()
  })
})
