// Objects that are stored at an upstream stay with the credential that created them: whatever the order of the keys,
// under the channel names of older versions, and as far as possible when a key was renewed.

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

async function startFresh(keys: string): Promise<void> {
  if (harness !== undefined) {
    await harness.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  folder = mkdtempSync(join(tmpdir(), 'weir-pins-'))
  harness = await start(keys)
  key = await harness.key()
}

/** Starts again with these keys; with `named`, on data as an older version wrote it. */
async function restart(keys: string, named?: string): Promise<void> {
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

type JsonAnswer = { readonly status: number; readonly json: Record<string, unknown> }

async function request(path: string, init: RequestInit = {}): Promise<JsonAnswer> {
  const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) }
  const response = await fetch(`${harness.url}${path}`, { ...init, headers })
  const text = await response.text()
  return { status: response.status, json: text === '' ? {} : (JSON.parse(text) as JsonAnswer['json']) }
}

const post = (path: string, body: object): Promise<JsonAnswer> =>
  request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** The key of the last request to the upstream. */
const lastKey = (): string => upstream.requests.at(-1)!.headers.get('authorization')!.slice('Bearer '.length)
const lastBody = () => JSON.parse(upstream.requests.at(-1)!.body.toString()) as Record<string, unknown>

interface Kind {
  /** Creates an object and returns its id. */
  make(): Promise<string>
  /** Reads it again. */
  read(id: string): Promise<JsonAnswer>
}

const kinds: Readonly<Record<string, Kind>> = {
  'a response': {
    make: async () => (await post('/v1/responses', { model: 'pond/echo', input: 'one' })).json.id as string,
    read: id => request(`/v1/responses/${id}`),
  },
  'what follows a response': {
    make: async () => (await post('/v1/responses', { model: 'pond/echo', input: 'one' })).json.id as string,
    read: id => post('/v1/responses', { model: 'pond/echo', input: 'two', previous_response_id: id }),
  },
  'a file': {
    async make() {
      const body = new FormData()
      body.set('purpose', 'user_data')
      body.set('file', new File(['some words'], 'one.txt', { type: 'text/plain' }))
      return (await request('/api/v3/files', { method: 'POST', body })).json.id as string
    },
    read: id => request(`/api/v3/files/${id}`),
  },
  'a call that names a file': {
    make: () => kinds['a file']!.make(),
    read: id =>
      post('/api/v3/chat/completions', {
        model: 'pond/echo',
        messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
      }),
  },
  'a task': {
    async make() {
      const content = [{ type: 'text', text: 'a river' }]
      const created = await post('/api/v3/contents/generations/tasks', { model: 'pond/film', content })
      return created.json.id as string
    },
    read: id => request(`/api/v3/contents/generations/tasks/${id}`),
  },
}

describe.each(Object.entries(kinds))('the pin of %s', (name, { make, read: see }) => {
  beforeEach(() => startFresh('sk-1,sk-2,sk-3'))

  test('is the key that created it, at any position', async () => {
    const id = await make()
    const maker = lastKey()
    for (const keys of ['sk-3,sk-2,sk-1', `sk-0,${maker}`, maker]) {
      await restart(keys)
      expect([(await see(id)).status, lastKey()]).toEqual([200, maker])
    }
  })

  test('is found by the position of that key, which was its name in older versions', async () => {
    const id = await make()
    const maker = lastKey()
    await restart('sk-1,sk-2,sk-3', `pond#${maker.slice(-1)}`)
    expect([(await see(id)).status, lastKey()]).toEqual([200, maker])
  })

  test('moves to the only key if that was renewed', async () => {
    await startFresh('sk-old')
    const id = await make()
    expect(lastKey()).toBe('sk-old')
    const before = upstream.requests.length
    await restart('sk-new')
    expect((await see(id)).status).toBe(200)
    // A response that is stored here, too, needs no upstream that may not know it.
    if (name === 'a response') expect(upstream.requests.length).toBe(before)
    else expect(lastKey()).toBe('sk-new')
    if (name === 'what follows a response') expect(lastBody()).not.toHaveProperty('previous_response_id')
  })
})

test('an object of a key that is gone, among several keys, gets an error that it cannot be reached', async () => {
  await startFresh('sk-1')
  const [file, response] = [await kinds['a file']!.make(), await kinds['a response']!.make()]
  await restart('sk-2,sk-3')
  const before = upstream.requests.length
  expect((await kinds['a file']!.read(file)).status).toBe(503)
  expect((await kinds['a call that names a file']!.read(file)).status).toBe(404)
  expect((await kinds['a response']!.read(response)).status).toBe(200)
  expect(upstream.requests.length).toBe(before)
  expect((await kinds['what follows a response']!.read(response)).status).toBe(200)
  expect(lastBody()).not.toHaveProperty('previous_response_id')
})
