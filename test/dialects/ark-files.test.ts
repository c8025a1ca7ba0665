// Files at an upstream: whose they are, and who may name them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { says } from '../side/upstream.ts'

const price = { input: '1', output: '2' }
const provider = {
  ...{ id: 'pond', name: 'Pond', baseUrl: 'http://127.0.0.1:9', keyEnv: 'POND_KEY', baseUrlEnv: 'POND_URL' },
  speaks: { 'ark': '/chat/completions', 'ark-files': '/files' },
  sign: 'bearer',
  models: [{ id: 'echo', contextTokens: 8_192, outputTokensMax: 4_096, price }],
}

let harness: Harness
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-pond-'))
  writeFileSync(join(folder, 'pond.json'), JSON.stringify(provider))
  harness = await startHarness({
    env: { WEIR_PROVIDERS: folder, POND_KEY: 'sk-1,sk-2', WEIR_DRAIN_SECONDS: '0' },
    upstreamEnv: url => ({ POND_URL: `${url}/api/v3` }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Told = { readonly status: number; readonly json: Record<string, unknown> }

async function ask(key: string, path: string, init: RequestInit = {}): Promise<Told> {
  const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) }
  const response = await fetch(`${harness.url}/api/v3${path}`, { ...init, headers })
  const text = await response.text()
  return { status: response.status, json: text === '' ? {} : (JSON.parse(text) as Told['json']) }
}

async function upload(key: string, name: string, headers = {}): Promise<Told> {
  const body = new FormData()
  body.set('purpose', 'user_data')
  body.set('file', new File(['some words'], name, { type: 'text/plain' }))
  return await ask(key, '/files', { method: 'POST', body, headers })
}

const chat = (key: string, part: object) =>
  ask(key, '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'pond/echo', messages: [{ role: 'user', content: [part] }] }),
  })

const sent = () => harness.upstream.requests.length
const lastKey = () => harness.upstream.requests.at(-1)!.headers.get('authorization')

test('a file is its account\'s alone: to list, to see and to delete', async () => {
  const [alice, bob] = [await harness.key(), await harness.key()]
  const one = await upload(alice, 'one.txt')
  const two = await upload(alice, 'two.txt')
  const other = await upload(bob, 'other.txt')
  expect([one.status, one.json]).toMatchObject([200, { object: 'file', filename: 'one.txt', bytes: 10 }])
  const names = async (key: string, query = '') => {
    const { json } = await ask(key, `/files${query}`)
    return [(json.data as { filename: string }[]).map(file => file.filename), json.has_more]
  }
  expect(await names(alice)).toEqual([['two.txt', 'one.txt'], false])
  expect(await names(alice, '?order=asc&limit=1')).toEqual([['one.txt'], true])
  expect(await names(alice, `?after=${two.json.id}`)).toEqual([['one.txt'], false])
  expect(await names(alice, '?purpose=agent')).toEqual([[], false])
  expect(await names(bob)).toEqual([['other.txt'], false])
  const before = sent()
  const at = `/files/${one.json.id}`
  expect([(await ask(bob, at)).status, (await ask(bob, at, { method: 'DELETE' })).status]).toEqual([404, 404])
  expect((await ask(bob, '/files/..%2Fx')).status).toBe(404)
  expect(sent()).toBe(before)
  expect((await ask(alice, at)).json).toMatchObject({ id: one.json.id })
  expect((await ask(alice, at, { method: 'DELETE' })).json).toMatchObject({ deleted: true })
  expect((await ask(alice, at)).status).toBe(404)
  expect(await names(alice)).toEqual([['two.txt'], false])
  expect(other.json.id).not.toBe(two.json.id)
})

test('a call that names a file goes where it lies, and another\'s file is not there', async () => {
  const [alice, bob] = [await harness.key(), await harness.key()]
  const { json } = await upload(alice, 'one.txt')
  const named = [
    { type: 'image_url', image_url: { file_id: json.id } },
    { type: 'file', file: { File_ID: json.id } },
  ]
  const before = sent()
  for (const part of named) {
    const { status, json: said } = await chat(bob, part)
    expect([status, said.error]).toMatchObject([404, { message: expect.stringContaining('no such file') }])
  }
  expect((await chat(alice, { type: 'file', file: { file_id: 'file-unheard-of' } })).status).toBe(404)
  expect(sent()).toBe(before)
  harness.upstream.plan(says({ error: { message: 'slow down' } }, 429))
  expect((await chat(alice, named[0]!)).status).toBe(503) // the other channel does not have it
  expect([sent(), lastKey()]).toEqual([before + 1, 'Bearer sk-1'])
  expect((await harness.balance(bob)).held).toBe('0.00')
})

test('what cannot be put up is refused', async () => {
  const key = await harness.key()
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  expect((await ask(key, '/files', json)).status).toBe(415)
  expect((await upload(key, 'x', { 'x-weir-provider': 'nobody' })).status).toBe(404)
  expect((await upload(key, 'x', { 'x-weir-provider': 'pond' })).status).toBe(200)
  for (const answer of [says({}), says({ id: '../x' }), says({ error: { message: 'no key sk-1' } }, 401)]) {
    harness.upstream.plan(answer)
    expect((await upload(key, 'x')).status).toBe(502)
  }
  expect((await upload('wk-nobody', 'x')).status).toBe(401)
  expect((await ask(key, '/files?limit=0')).status).toBe(400)
})
