// Stored channels and providers survive a restart. Those that cannot be used any more are marked; the start never fails.

import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Seal } from '../../src/base/secrets/seal.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { migrate, openWriter, readMigrations } from '../../src/store/engine/database.ts'
import { bindReads } from '../../src/store/engine/reads.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import { LiveRules } from '../../src/store/rules/live-rules.ts'
import { buildRulesReads } from '../../src/store/rules/rules-reader.ts'
import { openDatabase } from '../support/database.ts'
import type { ChannelSetup } from './channel-setup.ts'
import { callModel, canary, channelPath, defineProvider, idsOf, startChannelSetup } from './channel-setup.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-restart-'))
let setup: ChannelSetup | undefined
afterEach(async () => await setup?.stop())

const open = async (env: Record<string, string> = {}): Promise<ChannelSetup> => {
  setup = await startChannelSetup({ folder, env: { WEIR_DEMO: 'off', ...env } })
  return setup
}

test('stored channels and providers survive restarts, and are marked as unusable if damaged', async () => {
  const first = await open()
  await defineProvider(first, 'brook')
  const [id] = idsOf(await first.ask('POST', 'web/channels', { provider: 'brook', credentials: [canary], weight: 4 }))
  expect((await callModel(first, 'brook/echo')).status).toBe(200)
  const price = first.harness.lastRecord()!.price_version
  await first.stop()

  // The provider points at the port of an upstream that has stopped. The channel is moved to the new upstream.
  const second = await open()
  const shown = (await second.ask('GET', channelPath(id!))).body
  expect(shown).toMatchObject({ id, weight: 4, state: 'enabled', credential: { fingerprint: expect.any(String) } })
  const moved = await second.ask('PATCH', channelPath(id!), {
    baseUrl: `${second.harness.upstream.url}/v1`,
    credential: canary,
  })
  expect(moved.body).toMatchObject({ state: 'enabled' })
  expect((await callModel(second, 'brook/echo')).status).toBe(200)
  expect(second.harness.lastRecord()!.price_version).toBe(price)
  await second.stop()

  const damaged = openDatabase(join(folder, 'weir.db'))
  damaged.query('UPDATE channel SET credential = ?1').run(Buffer.alloc(60))
  damaged.close()
  const third = await open()
  expect((await third.ask('GET', channelPath(id!))).body).toMatchObject({
    state: 'unusable',
    problem: expect.stringContaining('cannot be decrypted any more'),
  })
  expect(third.harness.logs.join('\n')).toContain('its stored credential cannot be decrypted')
  expect((await callModel(third, 'brook/echo')).status).toBe(503)
  await third.stop()

  const fourth = await open({ WEIR_PRIVATE_HOSTS: 'nobody.example' })
  expect((await fourth.ask('GET', channelPath(id!))).body).toMatchObject({
    state: 'unusable',
    problem: expect.stringContaining('WEIR_PRIVATE_HOSTS'),
  })
  await fourth.stop()

  const db = openDatabase(join(folder, 'weir.db'))
  db.run("UPDATE provider SET definition = '{' WHERE id = 'brook'")
  db.close()
  const fifth = await open()
  expect((await fifth.ask('GET', 'web/providers?from=own')).body.data).toMatchObject([
    { id: 'brook', problem: expect.stringContaining('not valid JSON') },
  ])
  expect((await fifth.ask('GET', channelPath(id!))).body).toMatchObject({ state: 'unusable' })
  expect((await callModel(fifth, 'brook/echo')).status).toBe(404)
  expect((await callModel(fifth, 'openai/gpt-4o-mini')).status).toBe(200)
  await fifth.stop()
  setup = undefined
  rmSync(folder, { recursive: true, force: true })
})

test('rules of channels from before the channel table are migrated unchanged', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'weir-old-')), 'weir.db')
  const db = openWriter(path)
  const all = readMigrations()
  migrate(db, { migrations: all.slice(0, 7) })
  const seal = new Seal(buildSecretRing('s'.repeat(40)))
  const proxy = seal.seal({ table: 'channel_rule', row: 'p#abc', column: 'proxy' }, Buffer.from('http://proxy:1'))
  db.query(
    `INSERT INTO channel_rule (channel, disabled, weight, rpm, proxy, tags, author, changed_ms)
     VALUES ('p#abc', 1, 7, 5, ?1, 'eu,x', 'ann', 42)`,
  ).run(proxy)
  migrate(db)
  const book = new LiveRules({
    reader: bindReads(buildRulesReads(), sqliteSnapshots(db)),
    seal,
    onError: detail => expect(detail).toBe(''),
  })
  await book.reload()
  const [row] = book.current.channels
  expect(row).toMatchObject({ channel: 'p#abc', disabled: true, weight: 7, requestsPerMinute: 5, tags: ['eu', 'x'] })
  expect(row!.proxy!.reveal()).toBe('http://proxy:1')
  expect(book.current.stored).toEqual([])
  db.close()
})
