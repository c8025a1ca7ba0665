// A start on rules that somebody wrote by hand, or that refer to what no longer exists.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/boot/open-store.ts'
import { ConfigError, readConfig } from '../../src/config.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import { weirSays } from '../front/weir-process.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, upstreamKey } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'

let folder: string
let harness: Harness | undefined
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-start-'))
  harness = await startHarness({ folder })
})
afterEach(async () => {
  await harness?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function stop(): Promise<void> {
  await harness!.stop()
  harness = undefined
}

const run = (command: string, input: object) => harness!.weir(command, { ...input })

/** Writes to the database without the commands. */
function write(sql: string): void {
  const db = openDatabase(join(folder, 'weir.db'))
  db.run('PRAGMA ignore_check_constraints = ON')
  db.run(sql)
  db.close()
}

const status = async (model: string): Promise<number> =>
  (await chat(harness!, await harness!.key(), { model, messages: hello })).status

describe('an invalid rule stops the start, and can be repaired by a command:', () => {
  const member = '{"model":"b","priority":0,"weight":1}'
  const cases: readonly (readonly [string, string, RegExp, string, object])[] = [
    [
      'a route without members',
      "INSERT INTO model_route (name, policy, members, author, changed_ms) VALUES ('a', 'balanced', '[]', 'x', 0)",
      /^The route "a" cannot be read\. Remove it: weir routes remove a$/,
      'routes remove',
      { name: 'a' },
    ],
    [
      'names that stand for each other',
      `INSERT INTO model_route (name, policy, members, author, changed_ms)
       VALUES ('a', 'balanced', '[${member}]', 'x', 0),
         ('b', 'balanced', '[${member.replace('"b"', '"a"')}]', 'x', 0)`,
      /^The model names cannot be used\. .*See: weir routes list\.$/,
      'routes remove',
      { name: 'a' },
    ],
    [
      'a limit of nothing',
      "INSERT INTO limit_rule VALUES (7, 'requests', 'minute', 0, NULL, NULL, NULL, NULL, '', 'x', 0, 1)",
      /^Limit 7 cannot be used\. The amount of a limit must be a whole number .*See: weir limits list\.$/,
      'limits remove',
      { id: 7 },
    ],
  ]

  test.each(cases)('%s', async (...[, sql, message, command, input]) => {
    await stop()
    write(sql)
    const fault = await startHarness({ folder }).catch((thrown: unknown) => thrown)
    expect(fault).toBeInstanceOf(ConfigError)
    expect((fault as Error).message).toMatch(message)
    const store = await openStore(readConfig({ WEIR_DATA: folder, WEIR_BALLAST_MB: '0', LOG_LEVEL: 'silent' }))
    await operatorOf(() => store.manage).weir(command, input)
    await store.close()
    harness = await startHarness({ folder })
    expect(await status('openai/gpt-4o-mini')).toBe(200)
  })
})

describe('a rule about something that no longer exists is logged, and nothing else is affected:', () => {
  const warned = (): readonly string[] =>
    harness!.logs.filter(line => line.includes('a rule refers to something that does not exist'))

  test('a provider whose file is gone', async () => {
    const providers = mkdtempSync(join(tmpdir(), 'weir-start-providers-'))
    const brook = JSON.parse(readFileSync(join(import.meta.dir, '..', '..', 'providers', 'openai.json'), 'utf8'))
    const brookFile = { ...brook, id: 'brook', keyEnv: 'BROOK_KEY', baseUrlEnv: 'BROOK_URL' }
    writeFileSync(join(providers, 'brook.json'), JSON.stringify(brookFile))
    await stop()
    harness = await startHarness({ folder, env: { WEIR_PROVIDERS: providers, BROOK_KEY: 'k' } })
    await run('routes set', { name: 'both', members: ['brook/gpt-4o-mini', 'then', 'openai/gpt-4o-mini'] })
    await run('routes set', { name: 'alone', members: ['brook/gpt-4o-mini'] })
    await run('channels set', { channel: 'brook#1', weight: '2' })
    await stop()
    rmSync(providers, { recursive: true, force: true })
    harness = await startHarness({ folder })
    expect(warned().map(line => JSON.parse(line).note)).toEqual([
      'route alone: brook/gpt-4o-mini: there is no such provider and no such model name.',
      'route both: brook/gpt-4o-mini: there is no such provider and no such model name.',
      `channel ${channelId('brook', 'k')}`,
    ])
    expect([await status('both'), await status('alone'), await status('openai/gpt-4o-mini')]).toEqual([200, 404, 200])
  })

  test('a renewed key', async () => {
    await run('channels set', { channel: 'openai#1', disable: true })
    expect(await status('openai/gpt-4o-mini')).toBe(503)
    await stop()
    harness = await startHarness({ folder, upstreamKeys: 'sk-new' })
    expect(warned().join()).toContain(channelId('openai', upstreamKey))
    expect(await status('openai/gpt-4o-mini')).toBe(200)
  })

  test('a lost key of a proxy: its channel is disabled until an operator has set it again', async () => {
    await run('channels set', { channel: 'openai#1', proxy: 'http://joe:hunter2@127.0.0.1:9' })
    await stop()
    writeFileSync(join(folder, 'encryption-key'), 'x'.repeat(64))
    const fault = await startHarness({ folder }).catch((thrown: unknown) => thrown)
    expect((fault as Error).message).toContain('give up what was made with it: weir rotate encryption --finish --force')
    expect(await weirSays(folder, 'rotate encryption --finish --force')).toMatch(/^dropped +[0-9a-f]{8}\nlost +/)
    harness = await startHarness({ folder })
    expect(harness.logs.join()).toContain('a channel is not used')
    expect(harness.logs.join()).not.toContain('hunter2')
    expect([await status('openai/gpt-4o-mini'), await status('demo/echo')]).toEqual([503, 200])
    const sent = harness.upstream.requests.length
    expect(sent).toBe(0)
    const listed = (await run('channels list', {})).data as Record<string, unknown>[]
    expect(listed.find(({ id }) => id === channelId('openai', upstreamKey))).toMatchObject({
      state: 'unusable',
      problem: expect.stringContaining('The proxy of this channel cannot be decrypted'),
      proxy: true,
    })
    await run('channels set', { channel: channelId('openai', upstreamKey), proxy: 'none' })
    expect(await status('openai/gpt-4o-mini')).toBe(200)
  })
})
