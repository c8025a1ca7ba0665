// Files at an upstream: which account owns them, and who may reference them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { says, saysText } from '../passthrough/upstream.ts'
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

type Answer = { readonly status: number; readonly json: Record<string, unknown> }

async function ask(key: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) }
  const response = await fetch(`${harness.url}/api/v3${path}`, { ...init, headers })
  const text = await response.text()
  return { status: response.status, json: text === '' ? {} : (JSON.parse(text) as Answer['json']) }
}

async function upload(key: string, name: string, headers = {}): Promise<Answer> {
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

test('a file can be listed, retrieved and deleted only by its account', async () => {
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

test('a file that its upstream has deleted can be deleted, and counts no more', async () => {
  const key = await harness.key()
  const { json } = await upload(key, 'one.txt')
  harness.upstream.plan(says({ error: { message: 'There is no such file.' } }, 404))
  const deleted = await ask(key, `/files/${json.id}`, { method: 'DELETE' })
  expect(deleted).toEqual({ status: 200, json: { object: 'file', id: json.id, deleted: true } })
  const before = sent()
  expect((await ask(key, `/files/${json.id}`)).status).toBe(404)
  expect(sent()).toBe(before)
})

test.each([
  ['a page', saysText('<html>', 'text/html')],
  ['nothing', saysText('', 'application/json')],
  ['half an object', saysText('{"id":"file-1"', 'application/json')],
  ['an error', says({ error: { message: 'Broken.' } })],
])('an upstream that says %s about a file is unusable, and the file is kept', async (_what, answer) => {
  const key = await harness.key()
  const { json } = await upload(key, 'one.txt')
  harness.upstream.plan(answer)
  expect((await ask(key, `/files/${json.id}`)).status).toBe(502)
  harness.upstream.plan(answer)
  expect((await ask(key, '/files')).status).toBe(502)
  expect((await ask(key, `/files/${json.id}`)).json).toMatchObject({ id: json.id })
})

test('an error instead of a deletion does not forget the file', async () => {
  const key = await harness.key()
  const { json } = await upload(key, 'one.txt')
  harness.upstream.plan(says({ error: { message: 'Broken.' } }))
  expect((await ask(key, `/files/${json.id}`, { method: 'DELETE' })).status).toBe(502)
  expect((await ask(key, `/files/${json.id}`)).json).toMatchObject({ id: json.id })
})

test('a call that references a file goes to its channel, and a file of another account is a 404', async () => {
  const [alice, bob] = [await harness.key(), await harness.key()]
  const { json } = await upload(alice, 'one.txt')
  const named = [
    { type: 'image_url', image_url: { file_id: json.id } },
    { type: 'file', file: { File_ID: json.id } },
  ]
  const before = sent()
  for (const part of named) {
    const { status, json: body } = await chat(bob, part)
    expect([status, body.error]).toMatchObject([404, { message: expect.stringContaining('no such file') }])
  }
  expect((await chat(alice, { type: 'file', file: { file_id: 'file-unheard-of' } })).status).toBe(404)
  expect(sent()).toBe(before)
  harness.upstream.plan(says({ error: { message: 'slow down' } }, 429))
  expect((await chat(alice, named[0]!)).status).toBe(503) // the other channel does not have the file
  expect([sent(), lastKey()]).toEqual([before + 1, 'Bearer sk-1'])
  expect((await harness.balance(bob)).held).toBe('0.00')
})

test('invalid uploads are refused', async () => {
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

describe('an upload is admitted like a call', () => {
  const operate = (command: string, input: object) => harness.weir(command, input as Record<string, unknown>)

  async function expectRefused(key: string, status: number, code: string): Promise<Answer> {
    const before = sent()
    const answer = await upload(key, 'x.txt')
    expect([answer.status, JSON.stringify(answer.json)]).toEqual([status, expect.stringContaining(code)])
    expect(sent()).toBe(before)
    return answer
  }

  test('and refused without funds', async () => {
    const key = await harness.key({ credit: '0' })
    await expectRefused(key, 402, 'balance')
    expect((await ask(key, '/files')).status).toBe(200) // existing files can still be listed
  })

  test('and refused with an exhausted budget', async () => {
    const key = await harness.key()
    await operate('budgets set', { scope: key, span: 'month', amount: '0' })
    await expectRefused(key, 402, 'budget')
  })

  test('and refused for a frozen account', async () => {
    const key = await harness.key()
    await operate('accounts freeze', { account: (await operate('keys show', { key })).account })
    await expectRefused(key, 403, 'frozen')
  })

  test.each([
    ['for other endpoints', { endpoints: 'chat' }, 'calls of this kind'],
    ['for models of another provider', { allow: 'openai/*' }, 'model'],
    ['not for the models of the provider', { deny: 'pond/*' }, 'model'],
    ['not for its model, whatever it is called', { deny: 'echo' }, 'model'],
    ['for channels that have a tag', { require: 'eu' }, 'model'],
  ])('and refused for a key that is %s', async (_name, rights, why) => {
    const key = await harness.key()
    await operate('keys set', { key, ...rights })
    await expectRefused(key, 403, why)
  })

  test('and accepted for a key that may use a route to the model', async () => {
    await operate('routes set', { name: 'wet', members: ['pond/echo'] })
    const key = await harness.key()
    await operate('keys set', { key, allow: 'wet' })
    expect((await upload(key, 'x.txt')).status).toBe(200)
  })

  test('and counts against the limits of its account', async () => {
    const key = await harness.key()
    const { account } = await operate('keys show', { key })
    await operate('limits set', { resource: 'requests', amount: '2/minute', account })
    expect([(await upload(key, 'x')).status, (await upload(key, 'x')).status]).toEqual([200, 200])
    await expectRefused(key, 429, 'Too many calls')
  })

  test.each([
    ['names an unknown provider', { 'x-weir-provider': 'nobody' }, 404],
    ['is not a form', { 'content-type': 'application/json' }, 415],
  ])('and counts as a call also if it %s', async (_name, headers, status) => {
    const key = await harness.key({ qpm: 2 })
    const sendUpload = () =>
      fetch(`${harness.url}/api/v3/files`, {
        method: 'POST',
        body: '{}',
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
    const before = sent()
    const answers = [await sendUpload(), await sendUpload(), await sendUpload()]
    expect(answers.map(answer => answer.status)).toEqual([status, status, 429])
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining-requests'))).toEqual(['1', '0', '0'])
    expect(sent()).toBe(before)
  })

  test('and refused when the account has too many files or bytes, including uploads in progress', async () => {
    const key = await harness.key()
    await upload(key, 'x')
    const db = openDatabase(join(harness.folder, 'weir.db'))
    const { account_id: account } = db.query('SELECT account_id FROM kept_file ORDER BY seq DESC').get() as {
      readonly account_id: number
    }
    const add = db.query(
      'INSERT INTO kept_file (account_id, id, channel, expires_ms, bytes) VALUES (?1, ?2, ?3, ?4, 0)',
    )
    const fill = (from: number, until: number): void =>
      db.transaction(() => {
        for (let at = from; at < until; at++) add.run(account, `file-${at}`, 'pond#x', Date.now() + 1e6)
      })()
    fill(1, bounds.filesOfAccountMax - 2)
    const before = sent()
    const answer = await Promise.all(Array.from({ length: 8 }, () => upload(key, 'x')))
    expect(answer.filter(({ status }) => status === 200)).toHaveLength(2)
    expect(answer.filter(({ status }) => status === 400)).toHaveLength(6)
    expect(sent()).toBe(before + 2)
    await expectRefused(key, 400, 'as many files')
    db.run('DELETE FROM kept_file WHERE account_id = ?1 AND id LIKE ?2', [account, 'file-1%'])
    db.run('UPDATE kept_file SET bytes = ?2 WHERE account_id = ?1 AND id = ?3', [
      account,
      bounds.filesOfAccountBytesMax - 100,
      'file-2',
    ])
    db.close()
    await expectRefused(key, 400, 'as many files')
  })
})
