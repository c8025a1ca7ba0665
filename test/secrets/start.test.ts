// A start with the wrong secrets stops, and says what to do; with the right ones in whichever place it goes on.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { Secret } from '../../src/base/secrets/secret.ts'
import { fingerprintOf } from '../../src/base/secrets/secret-fingerprint.ts'
import { FolderError } from '../../src/store/engine/folder.ts'
import { cleanUp, weir, weirSays } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import type { Kind } from './ground.ts'
import { files, keysWith, kinds, marksIn, read, sealedWith, secretsIn, write } from './ground.ts'

let folder: string
let harness: Harness | undefined
let key: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-secrets-'))
  await start()
  key = await harness!.key()
  expect(await ask('a')).toEqual([200, false])
  await stop()
})
afterEach(async () => {
  await stop()
  await cleanUp()
  rmSync(folder, { recursive: true })
})

async function start(env: Record<string, string> = {}): Promise<void> {
  harness = await startHarness({ folder, env })
}

async function stop(): Promise<void> {
  await harness?.stop()
  harness = undefined
}

const refusal = async (env: Record<string, string> = {}): Promise<string> => {
  const fault = await start(env).catch((thrown: unknown) => thrown)
  expect(fault).toBeInstanceOf(FolderError)
  return (fault as Error).message
}

/** With an answer that is kept, sealed. */
async function ask(name: string): Promise<unknown[]> {
  const headers = { 'idempotency-key': name }
  const answer = await chat(harness!, key, { model: 'demo/echo', messages: hello }, headers)
  await answer.text()
  return [answer.status, answer.headers.has('x-weir-replayed')]
}

const fileOf = (kind: Kind): string => join(folder, files[kind])
const other = 'o'.repeat(40)

describe('a secret that has changed since the last start', () => {
  test.each([
    ['pepper', 'WEIR_PEPPER', 'keys or codes in the database were made with'],
    ['encryption', 'WEIR_ENCRYPTION_KEY', 'content in the database was encrypted with'],
  ] as const)('%s stops the start, in a file or in %s', async (kind, variable, says) => {
    const [mark] = marksIn(folder, kind)
    const right = secretsIn(folder, kind)[0]!
    writeFileSync(fileOf(kind), other)
    for (const env of [{}, { [variable]: other }]) {
      const told = await refusal(env)
      expect(told).toContain(says)
      expect(told).toContain(`the mark ${mark}`)
      expect(told).toContain(fileOf(kind))
      expect(told).toContain(variable)
      for (const secret of [other, right]) expect(told).not.toContain(secret)
    }
    // The lock is given back, and what is right goes on to be right, wherever it stands.
    await start({ [variable]: right })
    expect(await ask('a')).toEqual([200, true])
    await stop()
    writeFileSync(fileOf(kind), `${other}\n${right}\n`)
    await start()
    expect(await ask('a')).toEqual([200, true])
  })

  test('of tokens does not: it is told in the log and in the audit log', async () => {
    writeFileSync(fileOf('jwt'), other)
    await start()
    expect(harness!.logs.join('')).toContain('a secret has changed since the last start')
    const rows = read<{ actor: string }>(folder, "SELECT actor FROM audit WHERE action = 'noteSecrets'")
    expect(rows).toEqual([{ actor: expect.stringMatching(/^weir \d/) }])
    expect(harness!.logs.join('')).not.toContain(other)
  })

  test('that nothing rests on is no matter', async () => {
    write(folder, 'DELETE FROM kept_answer')
    await start()
    await stop()
    writeFileSync(fileOf('encryption'), other)
    await start()
    expect(await ask('b')).toEqual([200, false])
    expect(read(folder, "SELECT mark FROM secret_mark WHERE kind = 'encryption'")).toHaveLength(1)
  })

  test('can be gone on with when the right one is lost: what rests on it is given up', async () => {
    for (const kind of ['pepper', 'encryption'] as const) writeFileSync(fileOf(kind), other.repeat(2))
    expect(await refusal()).toContain('weir rotate pepper --finish --force')
    expect(await weirSays(folder, 'rotate pepper --finish --force')).toMatch(/^dropped +[0-9a-f]{8}\nlost +keys 1$/)
    expect(await refusal()).toContain('weir rotate encryption --finish --force')
    expect(await weirSays(folder, 'rotate encryption --finish --force')).toMatch(/\nlost +kept_answer 1$/)
    await start()
    expect(await ask('a')).toEqual([401, false])
    key = await harness!.key()
    expect(await ask('a')).toEqual([200, false])
  })
})

describe('a file of secrets', () => {
  const long = (count: number): string => Array.from({ length: count }, (_, at) => `${at}`.repeat(40)).join('\n')

  test.each([
    ['empty', '', 'it is empty'],
    ['blank', ' \n\n', 'it is empty'],
    ['short', 'x'.repeat(31), 'secret 1 of 1 has fewer than 32 characters'],
    ['with a line cut off', `${'x'.repeat(40)}\n${'y'.repeat(7)}`, 'secret 2 of 2 has fewer than 32 characters'],
    ['with a line between', `${'x'.repeat(40)}\n\n${'y'.repeat(40)}`, 'secret 2 of 3 has fewer than 32'],
    ['too long', long(bounds.secretsMax + 1), `it has ${bounds.secretsMax + 1} secrets`],
    ['with one twice', `${'x'.repeat(40)}\n${'x'.repeat(40)}`, 'it has the same secret twice'],
  ])('that is %s stops the start', async (_, text, says) => {
    for (const kind of kinds) {
      const right = readFileSync(fileOf(kind))
      writeFileSync(fileOf(kind), text)
      const told = await refusal()
      expect(told).toContain(`${fileOf(kind)} is damaged: ${says}`)
      expect(told).not.toMatch(/xxx|yyy|111/)
      writeFileSync(fileOf(kind), right)
    }
  })

  test('that is gone stops the start, and none is made in its place', async () => {
    for (const kind of ['pepper', 'encryption'] as const) {
      const right = readFileSync(fileOf(kind))
      rmSync(fileOf(kind))
      expect(await refusal()).toContain(`there is neither ${fileOf(kind)} nor WEIR_`)
      expect(await refusal()).toContain(`weir rotate ${kind} --finish --force`)
      writeFileSync(fileOf(kind), right)
    }
    rmSync(fileOf('jwt'))
    await start()
    expect(await ask('a')).toEqual([200, true])
    await stop()
    rmSync(fileOf('encryption'))
    expect(await weirSays(folder, 'rotate encryption --finish --force')).toMatch(/\nlost +kept_answer 1$/)
    await start()
    expect(await ask('b')).toEqual([200, false])
  })

  test('that others could read is closed, and that is said', async () => {
    for (const kind of kinds) chmodSync(fileOf(kind), 0o644)
    await start()
    for (const kind of kinds) {
      expect(statSync(fileOf(kind)).mode & 0o777).toBe(0o600)
      expect(harness!.logs.join('')).toContain(JSON.stringify({ file: fileOf(kind) }).slice(1, -1))
    }
  })
})

describe('secrets of the environment', () => {
  const [first, second] = ['1'.repeat(40), '2'.repeat(40)]
  const env = (text: string) => ({ WEIR_PEPPER: text, WEIR_JWT_SECRET: text, WEIR_ENCRYPTION_KEY: text })

  beforeEach(async () => {
    for (const name of ['weir.db', ...Object.values(files)]) rmSync(join(folder, name), { force: true })
    await start(env(first))
    key = await harness!.key()
    expect(await ask('a')).toEqual([200, false])
    await stop()
  })

  test('are replaced by a list and a start, and the old ones go when nothing rests on them', async () => {
    await start(env(`${second},${first}`))
    expect(await ask('a')).toEqual([200, true])
    const refused = (kind: string, flags: object = {}) =>
      harness!.weir('rotate', { kind, ...flags }).catch((fault: Error) => fault.message)
    expect(await refused('pepper')).toContain('Put the new one before it, separated by a comma (WEIR_PEPPER=new,old)')
    const mark = fingerprintOf(new Secret(second))
    await until(() => keysWith(folder)[mark] === 1, 'the key is digested anew')
    await until(() => sealedWith(folder)[mark] === 1, 'the answer is sealed anew')
    for (const kind of kinds) {
      expect(await refused(kind, { finish: true, force: true })).toContain('remove it from WEIR_')
    }
    await stop()
    await start(env(second))
    expect(await ask('a')).toEqual([200, true])
    expect(Object.values(files).filter(name => existsSync(join(folder, name)))).toEqual([])
  })

  test('that are taken out too soon stop the start', async () => {
    expect(await refusal(env(second))).toContain('keys or codes in the database were made with')
  })

  test.each([
    ['short', 'secret 2 of 2 has fewer than 32 characters', `${'x'.repeat(40)},short`],
    ['twice the same', 'it has the same secret twice', `${'x'.repeat(40)},${'x'.repeat(40)}`],
  ])('that are %s stop the start', async (_, says, text) => {
    const told = await refusal(env(text))
    expect(told).toStartWith(`WEIR_PEPPER cannot be used: ${says}`)
    expect(told).not.toContain('xxx')
  })
})

test('commands on the folder alone rotate, too, and the next start goes on from there', async () => {
  const [old] = marksIn(folder, 'encryption') as [string]
  for (const kind of kinds) {
    expect(await weirSays(folder, `rotate ${kind}`)).toMatch(new RegExp(`^rotated +${kind}\nmark +[0-9a-f]{8}\n`))
  }
  const status = JSON.parse(await weirSays(folder, 'rotate encryption --status --json'))
  expect(status).toMatchObject({ from: 'file', secrets: [{ state: 'newest' }, { mark: old, state: 'older' }] })
  expect(await weirSays(folder, 'rotate pepper --status')).toMatch(/older .* 1 keys\n\nkeys\n/)
  const { code, stderr } = await weir(folder, 'rotate encryption --finish')
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^weir: No secret was removed\./)])
  await start()
  expect(await ask('a')).toEqual([200, true])
  await until(() => sealedWith(folder)[old] === undefined, 'it is sealed anew')
  const usage = await weir(folder, 'rotate')
  expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining('Usage: weir rotate <jwt|pepper|encryption>')])
})
