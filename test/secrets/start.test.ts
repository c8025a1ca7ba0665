// A start with the wrong secrets stops, and says what to do; with the right ones, wherever they are, it works.

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
import type { Kind } from './secret-rows.ts'
import { files, keysWith, kinds, marksIn, read, sealedWith, secretsIn, write } from './secret-rows.ts'

let folder: string
let harness: Harness | undefined
let key: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-secrets-'))
  await start()
  key = await harness!.key()
  expect(await call('a')).toEqual([200, false])
  await stop()
})
afterEach(async () => {
  await stop()
  await cleanUp()
  rmSync(folder, { recursive: true, force: true })
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

/** Makes a call whose answer is stored, encrypted. */
async function call(name: string): Promise<unknown[]> {
  const headers = { 'idempotency-key': name }
  const answer = await chat(harness!, key, { model: 'demo/echo', messages: hello }, headers)
  await answer.text()
  return [answer.status, answer.headers.has('x-weir-replayed')]
}

const fileOf = (kind: Kind): string => join(folder, files[kind])
const otherSecret = 'o'.repeat(40)

describe('a secret that has changed since the last start', () => {
  test.each([
    ['pepper', 'WEIR_PEPPER', 'keys or codes in the database were made with'],
    ['encryption', 'WEIR_ENCRYPTION_KEY', 'content in the database was encrypted with'],
  ] as const)('%s stops the start, in a file or in %s', async (kind, variable, message) => {
    const [mark] = marksIn(folder, kind)
    const right = secretsIn(folder, kind)[0]!
    writeFileSync(fileOf(kind), otherSecret)
    for (const env of [{}, { [variable]: otherSecret }]) {
      const fault = await refusal(env)
      expect(fault).toContain(message)
      expect(fault).toContain(`the mark ${mark}`)
      expect(fault).toContain(fileOf(kind))
      expect(fault).toContain(variable)
      for (const secret of [otherSecret, right]) expect(fault).not.toContain(secret)
    }
    // The lock is released, and the right secret still works, wherever it is.
    await start({ [variable]: right })
    expect(await call('a')).toEqual([200, true])
    await stop()
    writeFileSync(fileOf(kind), `${otherSecret}\n${right}\n`)
    await start()
    expect(await call('a')).toEqual([200, true])
  })

  test('of tokens does not stop the start, but is logged and audited', async () => {
    writeFileSync(fileOf('jwt'), otherSecret)
    await start()
    expect(harness!.logs.join('')).toContain('a secret has changed since the last start')
    const rows = read<{ actor: string }>(folder, "SELECT actor FROM audit WHERE action = 'noteSecrets'")
    expect(rows).toEqual([{ actor: expect.stringMatching(/^weir \d/) }])
    expect(harness!.logs.join('')).not.toContain(otherSecret)
  })

  test('is no problem if nothing uses it', async () => {
    write(folder, 'DELETE FROM kept_answer')
    await start()
    await stop()
    writeFileSync(fileOf('encryption'), otherSecret)
    await start()
    expect(await call('b')).toEqual([200, false])
    expect(read(folder, "SELECT mark FROM secret_mark WHERE kind = 'encryption'")).toHaveLength(1)
  })

  test('can be accepted if the right one is lost: what used it is given up', async () => {
    for (const kind of ['pepper', 'encryption'] as const) writeFileSync(fileOf(kind), otherSecret.repeat(2))
    expect(await refusal()).toContain('weir rotate pepper --finish --force')
    expect(await weirSays(folder, 'rotate pepper --finish --force')).toMatch(/^dropped +[0-9a-f]{8}\nlost +keys 1$/)
    expect(await refusal()).toContain('weir rotate encryption --finish --force')
    expect(await weirSays(folder, 'rotate encryption --finish --force')).toMatch(/\nlost +kept_answer 1$/)
    await start()
    expect(await call('a')).toEqual([401, false])
    key = await harness!.key()
    expect(await call('a')).toEqual([200, false])
  })
})

describe('a secrets file', () => {
  const long = (count: number): string => Array.from({ length: count }, (_, at) => `${at}`.repeat(40)).join('\n')

  test.each([
    ['empty', '', 'it is empty'],
    ['blank', ' \n\n', 'it is empty'],
    ['short', 'x'.repeat(31), 'secret 1 of 1 has fewer than 32 characters'],
    ['with a line cut off', `${'x'.repeat(40)}\n${'y'.repeat(7)}`, 'secret 2 of 2 has fewer than 32 characters'],
    ['with a line between', `${'x'.repeat(40)}\n\n${'y'.repeat(40)}`, 'secret 2 of 3 has fewer than 32'],
    ['too long', long(bounds.secretsMax + 1), `it has ${bounds.secretsMax + 1} secrets`],
    ['with one twice', `${'x'.repeat(40)}\n${'x'.repeat(40)}`, 'it has the same secret twice'],
  ])('that is %s stops the start', async (_, text, message) => {
    for (const kind of kinds) {
      const right = readFileSync(fileOf(kind))
      writeFileSync(fileOf(kind), text)
      const fault = await refusal()
      expect(fault).toContain(`${fileOf(kind)} is damaged: ${message}`)
      expect(fault).not.toMatch(/xxx|yyy|111/)
      writeFileSync(fileOf(kind), right)
    }
  })

  test('that is missing stops the start, and no new secret is created', async () => {
    for (const kind of ['pepper', 'encryption'] as const) {
      const right = readFileSync(fileOf(kind))
      rmSync(fileOf(kind))
      expect(await refusal()).toContain(`there is neither ${fileOf(kind)} nor WEIR_`)
      expect(await refusal()).toContain(`weir rotate ${kind} --finish --force`)
      writeFileSync(fileOf(kind), right)
    }
    rmSync(fileOf('jwt'))
    await start()
    expect(await call('a')).toEqual([200, true])
    await stop()
    rmSync(fileOf('encryption'))
    expect(await weirSays(folder, 'rotate encryption --finish --force')).toMatch(/\nlost +kept_answer 1$/)
    await start()
    expect(await call('b')).toEqual([200, false])
  })

  test('that others could read gets stricter permissions, and this is logged', async () => {
    for (const kind of kinds) chmodSync(fileOf(kind), 0o644)
    await start()
    for (const kind of kinds) {
      expect(statSync(fileOf(kind)).mode & 0o777).toBe(0o600)
      expect(harness!.logs.join('')).toContain(JSON.stringify({ file: fileOf(kind) }).slice(1, -1))
    }
  })
})

describe('secrets in the environment', () => {
  const [first, second] = ['1'.repeat(40), '2'.repeat(40)]
  const env = (text: string) => ({ WEIR_PEPPER: text, WEIR_JWT_SECRET: text, WEIR_ENCRYPTION_KEY: text })

  beforeEach(async () => {
    for (const name of ['weir.db', ...Object.values(files)]) rmSync(join(folder, name), { force: true })
    await start(env(first))
    key = await harness!.key()
    expect(await call('a')).toEqual([200, false])
    await stop()
  })

  test('are rotated by a list and a start, and the old ones go when nothing uses them', async () => {
    await start(env(`${second},${first}`))
    expect(await call('a')).toEqual([200, true])
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
    expect(await call('a')).toEqual([200, true])
    expect(Object.values(files).filter(name => existsSync(join(folder, name)))).toEqual([])
  })

  test('that are removed too soon stop the start', async () => {
    expect(await refusal(env(second))).toContain('keys or codes in the database were made with')
  })

  test.each([
    ['short', 'secret 2 of 2 has fewer than 32 characters', `${'x'.repeat(40)},short`],
    ['twice the same', 'it has the same secret twice', `${'x'.repeat(40)},${'x'.repeat(40)}`],
  ])('that are %s stop the start', async (_, message, text) => {
    const fault = await refusal(env(text))
    expect(fault).toStartWith(`WEIR_PEPPER cannot be used: ${message}`)
    expect(fault).not.toContain('xxx')
  })
})

test('commands on the folder alone rotate too, and the next start continues from there', async () => {
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
  expect(await call('a')).toEqual([200, true])
  await until(() => sealedWith(folder)[old] === undefined, 'everything is re-encrypted')
  const usage = await weir(folder, 'rotate')
  expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining('Usage: weir rotate <jwt|pepper|encryption>')])
})
