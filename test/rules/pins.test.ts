// What lies at an upstream stays with the credential that put it there: whatever the order of the keys, under the names
// that older versions gave to channels, and as far as can be told when a key was renewed.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const price = { input: '1', output: '2' }
const provider = {
  id: 'pond',
  name: 'Pond',
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: 'POND_KEY',
  baseUrlEnv: 'POND_URL',
  speaks: {
    'openai-responses': '/v1/responses',
    'ark': '/api/v3/chat/completions',
    'ark-files': '/api/v3/files',
    'ark-tasks': '/api/v3/contents/generations/tasks',
  },
  can: { keepsResponses: true },
  sign: 'bearer',
  models: [
    { id: 'echo', contextTokens: 8_192, outputTokensMax: 4_096, price },
    { id: 'film', price },
  ],
}

let upstream: FakeUpstream
let providers: string
let folder: string
let harness: Harness
let key: string

beforeAll(async () => {
  upstream = await startFakeUpstream()
  providers = mkdtempSync(join(tmpdir(), 'weir-pond-'))
  writeFileSync(join(providers, 'pond.json'), JSON.stringify(provider))
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop()
  for (const each of [providers, folder]) rmSync(each, { recursive: true, force: true })
})

const start = (keys: string): Promise<Harness> =>
  startHarness({
    folder,
    env: { WEIR_PROVIDERS: providers, POND_KEY: keys, POND_URL: upstream.url, WEIR_DRAIN_SECONDS: '0' },
    world: { tasksEveryMs: 1e6 },
  })

async function begin(keys: string): Promise<void> {
  if (harness !== undefined) {
    await harness.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  folder = mkdtempSync(join(tmpdir(), 'weir-pins-'))
  harness = await start(keys)
  key = await harness.key()
}

/** Starts again with these keys; with `named`, on what an older version would have written. */
async function again(keys: string, named?: string): Promise<void> {
  await harness.stop()
  if (named !== undefined) {
    const db = openDatabase(join(folder, 'weir.db'))
    for (const table of ['kept_response', 'kept_file', 'task']) {
      db.query('UPDATE '.concat(table, ' SET channel = ?1')).run(named)
    }
    db.close()
  }
  harness = await start(keys)
}

type Told = { readonly status: number; readonly json: Record<string, unknown> }

async function ask(path: string, init: RequestInit = {}): Promise<Told> {
  const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) }
  const response = await fetch(`${harness.url}${path}`, { ...init, headers })
  const text = await response.text()
  return { status: response.status, json: text === '' ? {} : (JSON.parse(text) as Told['json']) }
}

const post = (path: string, body: object): Promise<Told> =>
  ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** With which key the upstream was last asked. */
const lastKey = (): string => upstream.requests.at(-1)!.headers.get('authorization')!.slice('Bearer '.length)
const lastBody = () => JSON.parse(upstream.requests.at(-1)!.body.toString()) as Record<string, unknown>

interface Kind {
  /** Makes one, and tells its name. */
  make(): Promise<string>
  /** Asks for it again. */
  see(id: string): Promise<Told>
}

const kinds: Readonly<Record<string, Kind>> = {
  'a response': {
    make: async () => (await post('/v1/responses', { model: 'pond/echo', input: 'one' })).json.id as string,
    see: id => ask(`/v1/responses/${id}`),
  },
  'what follows a response': {
    make: async () => (await post('/v1/responses', { model: 'pond/echo', input: 'one' })).json.id as string,
    see: id => post('/v1/responses', { model: 'pond/echo', input: 'two', previous_response_id: id }),
  },
  'a file': {
    async make() {
      const body = new FormData()
      body.set('purpose', 'user_data')
      body.set('file', new File(['some words'], 'one.txt', { type: 'text/plain' }))
      return (await ask('/api/v3/files', { method: 'POST', body })).json.id as string
    },
    see: id => ask(`/api/v3/files/${id}`),
  },
  'a call that names a file': {
    make: () => kinds['a file']!.make(),
    see: id =>
      post('/api/v3/chat/completions', {
        model: 'pond/echo',
        messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
      }),
  },
  'a task': {
    async make() {
      const content = [{ type: 'text', text: 'a river' }]
      const begun = await post('/api/v3/contents/generations/tasks', { model: 'pond/film', content })
      return begun.json.id as string
    },
    see: id => ask(`/api/v3/contents/generations/tasks/${id}`),
  },
}

describe.each(Object.entries(kinds))('%s', (name, { make, see }) => {
  beforeEach(() => begin('sk-1,sk-2,sk-3'))

  test('is asked for with the key that made it, wherever that stands now', async () => {
    const id = await make()
    const maker = lastKey()
    for (const keys of ['sk-3,sk-2,sk-1', `sk-0,${maker}`, maker]) {
      await again(keys)
      expect([(await see(id)).status, lastKey()]).toEqual([200, maker])
    }
  })

  test('and under the place of that key, which was its name once', async () => {
    const id = await make()
    const maker = lastKey()
    await again('sk-1,sk-2,sk-3', `pond#${maker.slice(-1)}`)
    expect([(await see(id)).status, lastKey()]).toEqual([200, maker])
  })

  test('and with the one key that there is, where it was renewed', async () => {
    await begin('sk-old')
    const id = await make()
    expect(lastKey()).toBe('sk-old')
    const before = upstream.requests.length
    await again('sk-new')
    expect((await see(id)).status).toBe(200)
    // What is kept here, too, needs no upstream that may know nothing of it.
    if (name === 'a response') expect(upstream.requests.length).toBe(before)
    else expect(lastKey()).toBe('sk-new')
    if (name === 'what follows a response') expect(lastBody()).not.toHaveProperty('previous_response_id')
  })
})

test('what a key made that is gone, among several, is said to be out of reach', async () => {
  await begin('sk-1')
  const [file, response] = [await kinds['a file']!.make(), await kinds['a response']!.make()]
  await again('sk-2,sk-3')
  const before = upstream.requests.length
  expect((await kinds['a file']!.see(file)).status).toBe(503)
  expect((await kinds['a call that names a file']!.see(file)).status).toBe(404)
  expect((await kinds['a response']!.see(response)).status).toBe(200)
  expect(upstream.requests.length).toBe(before)
  expect((await kinds['what follows a response']!.see(response)).status).toBe(200)
  expect(lastBody()).not.toHaveProperty('previous_response_id')
})
