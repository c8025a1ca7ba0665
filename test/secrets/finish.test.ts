// Old secrets are removed when nothing uses them any more, and before that only by force.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import { keysWith, marksIn, read, sealedWith, write } from './secret-rows.ts'

const SOON_MS = bounds.secretReplacedMsMin
const DAY_MS = 86_400_000

let folder: string
let harness: Harness
let laterMs: number

const world = { clock: { ...systemClock, dateMs: () => systemClock.dateMs() + laterMs } }
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-finish-'))
  laterMs = 0
  harness = await startHarness({ folder, world })
})
afterEach(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

const rotate = (kind: string, flags: object = {}) => harness.weir('rotate', { kind, ...flags })
const finish = (kind: string, force = false) =>
  rotate(kind, { finish: true, force }).catch((fault: Error) => fault.message)
const statusOf = async (kind: string) => (await rotate(kind, { status: true })).secrets as Record<string, unknown>[]
const call = async (key: string): Promise<number> =>
  (await chat(harness, key, { model: 'demo/echo', messages: hello })).status

async function restart(): Promise<void> {
  await harness.stop()
  harness = await startHarness({ folder, world })
}

describe('a pepper', () => {
  test('is removed when every key has called since', async () => {
    const [firstKey, secondKey, revoked] = [await harness.key(), await harness.key(), await harness.key()]
    await harness.weir('keys revoke', { key: revoked })
    const [old] = marksIn(folder, 'pepper') as [string]
    await rotate('pepper')
    const [fresh] = marksIn(folder, 'pepper') as [string]
    expect(keysWith(folder)).toEqual({ [old]: 2 })
    expect(await call(firstKey)).toBe(200)
    await until(() => keysWith(folder)[fresh] === 1, 'the key is digested again')
    expect(await statusOf('pepper')).toMatchObject([
      { mark: fresh, state: 'newest', rests: { keys: 1 }, replaced: null },
      { mark: old, state: 'older', rests: { keys: 1 }, replaced: expect.stringMatching(/^20/) },
    ])
    laterMs = SOON_MS + 1_000
    expect(await finish('pepper')).toStartWith(`No secret was removed. ${old}: keys 1 still use it`)
    const pendingKeys = (await rotate('pepper', { status: true })).keys as { key: string; mark: string; ends: string }[]
    expect(pendingKeys).toMatchObject([{ mark: old, ends: `…${secondKey.slice(-4)}` }])
    expect(await call(secondKey)).toBe(200)
    await until(() => keysWith(folder)[fresh] === 2, 'the other key is digested again')
    expect(await finish('pepper')).toEqual({ dropped: [old] })
    expect(marksIn(folder, 'pepper')).toEqual([fresh])
    expect(await Promise.all([firstKey, secondKey, revoked].map(call))).toEqual([200, 200, 401])
    await restart()
    expect(await Promise.all([firstKey, secondKey, revoked].map(call))).toEqual([200, 200, 401])
    expect(await finish('pepper')).toBe('There is no old secret to remove.')
  })

  test('removed by force takes along the keys and codes that use it, and no others', async () => {
    const oldKey = await harness.key()
    const codes = (await harness.weir('codes create', { count: '3', amount: '1' })).codes as string[]
    write(folder, 'UPDATE code SET expires_ms = 1 WHERE id = (SELECT max(id) FROM code)')
    const [old] = marksIn(folder, 'pepper') as [string]
    await rotate('pepper')
    const newKey = await harness.key()
    laterMs = SOON_MS + 1_000
    expect(await finish('pepper', true)).toEqual({ dropped: [old], lost: ['keys 1, codes 2'] })
    expect(await Promise.all([oldKey, newKey].map(call))).toEqual([401, 200])
    const redeemed = harness.weir('codes redeem', { code: codes[0], account: newKey })
    expect(await redeemed.catch((fault: Error) => fault.message)).toStartWith('Unknown code.')
    await restart()
    expect(await Promise.all([oldKey, newKey].map(call))).toEqual([401, 200])
  })

  test('is not removed while something that was made with it may still arrive, not even by force', async () => {
    await rotate('pepper')
    laterMs = SOON_MS - 10_000
    expect(await finish('pepper')).toContain('it can be removed from 20')
    expect(await finish('pepper', true)).toContain('it can be removed from 20')
    expect(marksIn(folder, 'pepper')).toHaveLength(2)
  })

  test('of a key from before peppers were recorded is the first', async () => {
    const key = await harness.key()
    write(folder, 'UPDATE api_key SET pepper = NULL')
    const [old] = marksIn(folder, 'pepper') as [string]
    await rotate('pepper')
    expect(await statusOf('pepper')).toMatchObject([{ rests: {} }, { mark: old, rests: { keys: 1 } }])
    laterMs = SOON_MS + 1_000
    expect(await finish('pepper')).toContain('keys 1 still use it')
    expect(await call(key)).toBe(200)
    await until(
      () => keysWith(folder)[old] === undefined && keysWith(folder).null === undefined,
      'the key is digested again',
    )
    expect(await finish('pepper')).toEqual({ dropped: [old] })
    expect(await call(key)).toBe(200)
  })
})

describe('a secret of tokens', () => {
  test('is removed when the longest token has expired', async () => {
    const [old] = marksIn(folder, 'jwt') as [string]
    await rotate('jwt')
    expect(await finish('jwt')).toContain('Callers may still send tokens or keys that were made with it')
    laterMs = SOON_MS + 1_000
    expect(await finish('jwt')).toEqual({ dropped: [old] })
  })
})

describe('an encryption key', () => {
  const idempotent = async (key: string, name: string) => {
    const headers = { 'idempotency-key': name }
    const answer = await chat(harness, key, { model: 'demo/echo', messages: hello }, headers)
    await answer.text()
    return [answer.status, answer.headers.has('x-weir-replayed')]
  }

  test('is removed when everything is re-encrypted, and callers can hold nothing of it any more', async () => {
    const key = await harness.key()
    for (const name of ['a', 'b', 'c']) expect(await idempotent(key, name)).toEqual([200, false])
    const [old] = marksIn(folder, 'encryption') as [string]
    await rotate('encryption')
    const [fresh] = marksIn(folder, 'encryption') as [string]
    await until(() => sealedWith(folder)[fresh] === 3, 'all is sealed anew')
    laterMs = SOON_MS + 1_000
    expect(await finish('encryption')).toContain('compacted with it: it can be removed from 20')
    laterMs = 30 * DAY_MS + 1_000
    expect(await finish('encryption')).toEqual({ dropped: [old] })
    expect(marksIn(folder, 'encryption')).toEqual([fresh])
    laterMs = 0
    expect(await idempotent(key, 'b')).toEqual([200, true])
    await restart()
    expect(await idempotent(key, 'c')).toEqual([200, true])
  })

  test('of data that cannot be decrypted is removed by force alone', async () => {
    const key = await harness.key()
    await idempotent(key, 'a')
    write(folder, "UPDATE kept_answer SET sealed = CAST(substr(sealed, 1, 40) || x'00' AS BLOB)")
    const [old] = marksIn(folder, 'encryption') as [string]
    await rotate('encryption')
    laterMs = 30 * DAY_MS + 1_000
    expect(await finish('encryption')).toContain('kept_answer 1 still use it')
    expect(await finish('encryption', true)).toEqual({ dropped: [old], lost: ['kept_answer 1'] })
    await restart()
    expect(marksIn(folder, 'encryption')).toHaveLength(1)
  })
})

describe('a rotation', () => {
  test('is refused when there are as many secrets as allowed', async () => {
    for (let count = 1; count < bounds.secretsMax; count++) await rotate('jwt')
    const refused = await rotate('jwt').catch((fault: Error) => fault.message)
    expect(refused).toContain('Remove old ones first: weir rotate jwt --finish')
    await restart()
    expect(marksIn(folder, 'jwt')).toHaveLength(bounds.secretsMax)
  })

  test('that cannot be written changes nothing', async () => {
    const marks = marksIn(folder, 'pepper')
    const key = await harness.key()
    mkdirSync(join(folder, 'pepper.part', 'in-the-way'), { recursive: true })
    const refused = await rotate('pepper').catch((fault: Error) => fault.message)
    expect(refused).toContain(`The secrets cannot be written to ${join(folder, 'pepper')}`)
    expect(marksIn(folder, 'pepper')).toEqual(marks)
    expect(await statusOf('pepper')).toMatchObject([{ mark: marks[0], state: 'newest', rests: { keys: 1 } }])
    expect(await call(key)).toBe(200)
  })

  test('leaves a row in the audit log, and so does its end', async () => {
    const [old] = marksIn(folder, 'jwt')
    await rotate('jwt')
    const [fresh] = marksIn(folder, 'jwt')
    laterMs = SOON_MS + 1_000
    await finish('jwt')
    const rows = read<Record<string, string>>(
      folder,
      "SELECT actor, action, target, changes FROM audit WHERE target = 'secret jwt'",
    )
    expect(rows).toEqual([
      {
        actor: 'cli',
        action: 'noteSecrets',
        target: 'secret jwt',
        changes: JSON.stringify({ newest: fresh, older: [old] }),
      },
      { actor: 'cli', action: 'dropSecrets', target: 'secret jwt', changes: JSON.stringify({ dropped: [old] }) },
    ])
  })

  test('without valid options prints its usage', async () => {
    const message = (kind: string, flags: object) => rotate(kind, flags).catch((fault: Error) => fault.message)
    expect(await message('salt', {})).toBe('The secret must be one of: pepper, jwt, encryption.')
    expect(await message('jwt', { force: true })).toBe('--force can only be used with --finish.')
  })
})
