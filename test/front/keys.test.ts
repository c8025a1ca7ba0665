// Keys on a running gateway: every header and query field that may carry a key, which credential may do what, and that
// keys are never shown or stored.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { mintKey } from '../../src/identity/key-format.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, CHAT, call, expectChatError, expectStages, goodBody, lines, reached } from './asking.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHarness({ env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  key = await harness.key()
})
afterAll(() => harness.stop())

interface Sent {
  readonly headers: Headers
  readonly query: string
}

const order = ['Authorization', 'x-api-key', 'x-goog-api-key', 'api-key', '?key='] as const
type Carrier = (typeof order)[number]

function put(carrier: Carrier, text: string): Sent {
  if (carrier === '?key=') return { headers: {}, query: `?key=${encodeURIComponent(text)}` }
  return { headers: { [carrier]: carrier === 'Authorization' ? `Bearer ${text}` : text }, query: '' }
}

function callWith(...sent: readonly Sent[]): Promise<RawAnswer> {
  const headers = Object.assign({}, ...sent.map(one => one.headers)) as Headers
  return rawRequest(harness.url, ask('POST', CHAT + sent.map(one => one.query).join(''), headers, goodBody()))
}

describe('a key is accepted', () => {
  test.each(order)('in %s', async carrier => {
    const answer = await callWith(put(carrier, key))
    expect(answer.status).toBe(200)
    expectStages(answer, reached.answered)
  })

  test.each([
    ...['authorization: bearer', 'AUTHORIZATION: BEARER', 'Authorization: bEaReR', 'Authorization: Bearer  '],
    ...['X-API-KEY:', 'X-Goog-Api-Key:', 'API-KEY:'],
  ])('with the scheme %s in any case', async start => {
    const [name, scheme] = start.split(':') as [string, string]
    const answer = await callWith({ headers: { [name]: `${scheme} ${key}`.trim() }, query: '' })
    expect(answer.status).toBe(200)
  })

  test('in the query among other fields', async () => {
    const answer = await callWith({ headers: {}, query: `?alt=sse&key=${key}&x=wk-nonsense` })
    expect(answer.status).toBe(200)
  })

  const pairs = order.flatMap((first, at) => order.slice(at + 1).map(second => [first, second] as const))

  test.each(pairs)('in %s before %s', async (first, second) => {
    const [free, pro] = [await harness.key({ tier: 'free' }), key]
    const one = await callWith(put(first, free), put(second, pro))
    const other = await callWith(put(first, pro), put(second, free))
    expect([one.status, other.status]).toEqual([200, 200])
    expectStages(one, [lines.authPass('free'), ...reached.answered.slice(1)])
    expectStages(other, [lines.authPass('pro'), ...reached.answered.slice(1)])
  })

  test.each(pairs)('not if a wrong key is in %s, although a right one is in %s', async (first, second) => {
    const answer = await callWith(put(first, 'wk-nonsense'), put(second, key))
    expectChatError(answer, 401)
    expectStages(answer, reached.refusedKey)
  })

  test.each(pairs)("although %s holds another vendor's key, in %s", async (first, second) => {
    const answer = await callWith(put(first, 'sk-another-vendor'), put(second, key))
    expect(answer.status).toBe(200)
  })
})

describe('keys and management tokens are not interchangeable:', () => {
  let token: string
  beforeAll(async () => {
    token = String((await harness.weir('token')).token)
  })
  const getMe = (headers: Headers) => rawRequest(harness.url, ask('GET', '/api/web/me', headers))

  test('a token opens /api/web/me', async () => {
    const answer = await getMe(bearer(token))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ id: null, name: 'operator', role: 'owner' })
  })

  test.each(order)('a token in %s opens no LLM endpoint', async carrier => {
    const answer = await callWith(put(carrier, token))
    expect(expectChatError(answer, 401).error.type).toBe('authentication_error')
    expectStages(answer, reached.refusedKey)
  })

  test('a key opens no endpoint of /api/web/*', async () => {
    for (const path of ['/api/web/me', '/api/web/keys', '/api/web/nothing']) {
      for (const carrier of order) {
        const { headers, query } = put(carrier, key)
        const answer = await rawRequest(harness.url, ask('GET', path + query, headers))
        expect(expectChatError(answer, 401, carrier === 'Authorization' ? ['hint'] : []).error.type).toBe(
          'authentication_error',
        )
        expectStages(answer, reached.nothing)
      }
    }
  })

  test('a token is accepted as a bearer token only', async () => {
    const otherCarriers: Headers[] = [
      {},
      { 'x-api-key': token },
      { authorization: token },
      { authorization: `Basic ${token}` },
    ]
    for (const headers of otherCarriers) expectChatError(await getMe(headers), 401)
    expectChatError(await rawRequest(harness.url, ask('GET', `/api/web/me?token=${token}&key=${token}`)), 401)
    expect((await getMe({ authorization: `bearer ${token}` })).status).toBe(200)
  })

  test('a token with one changed character is refused', async () => {
    const at = token.length - 10
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
    expectChatError(await getMe(bearer(changed)), 401)
  })
})

describe('a key is never shown', () => {
  const suffixes = ['', '?x=1', '/nothing'] as const

  test('valid or not, in any answer or any log', async () => {
    const unknown = mintKey()
    const typo = `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`
    const revoked = await harness.key()
    await harness.weir('keys revoke', { key: revoked })
    const penniless = await harness.key({ credit: '0' })
    const secrets = [key, unknown, typo, revoked, penniless]
    const bodies = [goodBody(), '{', goodBody({ model: 'nobody/x' }), goodBody({ stream: true })]
    const answers: string[] = []
    for (const text of secrets) {
      for (const carrier of order) {
        const { headers, query } = put(carrier, text)
        for (const suffix of suffixes) {
          const path = `${CHAT}${suffix}${suffix.includes('?') && query !== '' ? query.replace('?', '&') : query}`
          for (const body of bodies) {
            const answer = await rawRequest(harness.url, ask('POST', path, headers, body))
            answers.push(answer.head + answer.body.toString('latin1'))
          }
        }
        const web = await rawRequest(harness.url, ask('GET', `/api/web/me${query}`, headers))
        answers.push(web.head + web.body.toString('latin1'))
      }
    }
    const leaks = [...answers, ...harness.logs].filter(text =>
      secrets.some(secret => text.includes(secret.slice(3, 33))),
    )
    expect(leaks).toEqual([])
    expect(harness.logs.length).toBeGreaterThan(100)
  })
})

describe('a revoked key', () => {
  const revoke = (text: string) => harness.weir('keys revoke', { key: text })

  test('is refused at once, even if it was cached a moment ago', async () => {
    const ownKey = await harness.key()
    for (let time = 0; time < 3; time++) expect((await call(harness, ownKey)).status).toBe(200)
    await revoke(ownKey)
    const answer = await call(harness, ownKey)
    expectChatError(answer, 401)
    expectStages(answer, reached.refusedKey)
  })

  test('is refused at once while many calls with it arrive', async () => {
    const ownKey = await harness.key()
    let revoked = false
    const after: number[] = []
    const caller = async (): Promise<void> => {
      for (let left = 5; left > 0; ) {
        const begunAfter = revoked
        const { status } = await chat(harness, ownKey, { model: 'demo/echo', messages: hello })
        if (!begunAfter) continue
        after.push(status)
        left--
      }
    }
    const callers = Array.from({ length: 4 }, caller)
    await revoke(ownKey)
    revoked = true
    await Promise.all(callers)
    expect(after).toEqual(Array(20).fill(401))
  })

  test('stays revoked when it is revoked again, by its text or by its id', async () => {
    const created = await harness.weir('keys create', { tier: 'pro', credit: '1' })
    await revoke(String(created.id))
    await revoke(String(created.key))
    expectChatError(await call(harness, String(created.key)), 401)
  })

  test('does not affect other keys', async () => {
    expect((await call(harness, key)).status).toBe(200)
  })
})

describe('on the disk', () => {
  test('no file holds the text of a key, nor a usable part of it', async () => {
    const ownKey = await harness.key()
    await call(harness, ownKey)
    const files = readdirSync(harness.folder).filter(name => statSync(join(harness.folder, name)).isFile())
    expect(files).toEqual(expect.arrayContaining(['weir.db', 'pepper', 'jwt-secret']))
    for (const name of files) {
      const bytes = readFileSync(join(harness.folder, name))
      for (const part of [ownKey, ownKey.slice(3), ownKey.slice(3, 33), ownKey.slice(3, 13), ownKey.slice(23, 33)]) {
        expect([name, bytes.includes(part)]).toEqual([name, false])
      }
    }
  })

  test('the pepper is not in the database', () => {
    const pepper = readFileSync(join(harness.folder, 'pepper'), 'utf8').trim()
    for (const name of ['weir.db', 'weir.db-wal']) {
      expect(readFileSync(join(harness.folder, name)).includes(pepper)).toBe(false)
    }
  })

  /** Adds a key as somebody would who can write to the database, but does not know the pepper. */
  function plant(digest: Uint8Array): void {
    const db = openDatabase(join(harness.folder, 'weir.db'), { readwrite: true })
    try {
      const { id } = db.query('SELECT max(id) + 1 AS id FROM api_key').get() as { id: number }
      const { account } = db.query('SELECT max(id) AS account FROM account').get() as { account: number }
      const insert = db.query(
        `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
         VALUES (?, ?, 'abcd', 'planted', ?, 'pro', 0)`,
      )
      insert.run(id, digest, account)
    } finally {
      db.close()
    }
  }

  test('a row with a plain hash of a key opens nothing, one with the right digest does', async () => {
    const pepper = readFileSync(join(harness.folder, 'pepper'), 'utf8').trim()
    const [plain, foreign, right] = [mintKey(), mintKey(), mintKey()]
    plant(createHash('sha256').update(plain).digest())
    plant(createHmac('sha256', 'another pepper').update(foreign).digest())
    plant(createHmac('sha256', pepper).update(right).digest())
    expectChatError(await call(harness, plain), 401)
    expectChatError(await call(harness, foreign), 401)
    expect((await call(harness, right)).status).toBe(200)
  })
})

describe('an address that guesses keys', () => {
  test('does not lock out a valid key at the same address, which may be that of a whole office', async () => {
    const fresh = await harness.key()
    for (let guess = 0; guess < 30; guess++) expectChatError(await call(harness, mintKey()), 401)
    expect((await call(harness, fresh)).status).toBe(200)
  })
})
