// Keys on a running gateway: every carrier, who may do what with which credential, and what is never shown or kept.

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

describe('carriers', () => {
  test.each(order)('%s', async carrier => {
    const answer = await callWith(put(carrier, key))
    expect(answer.status).toBe(200)
    expectStages(answer, reached.answered)
  })

  test.each([
    ...['authorization: bearer', 'AUTHORIZATION: BEARER', 'Authorization: bEaReR', 'Authorization: Bearer  '],
    ...['X-API-KEY:', 'X-Goog-Api-Key:', 'API-KEY:'],
  ])('%s in whatever case', async start => {
    const [name, scheme] = start.split(':') as [string, string]
    const answer = await callWith({ headers: { [name]: `${scheme} ${key}`.trim() }, query: '' })
    expect(answer.status).toBe(200)
  })

  test('a key in the query stands among other fields of it', async () => {
    const answer = await callWith({ headers: {}, query: `?alt=sse&key=${key}&x=wk-nonsense` })
    expect(answer.status).toBe(200)
  })

  const pairs = order.flatMap((first, at) => order.slice(at + 1).map(second => [first, second] as const))

  test.each(pairs)('%s counts before %s', async (first, second) => {
    const [free, pro] = [await harness.key({ tier: 'free' }), key]
    const one = await callWith(put(first, free), put(second, pro))
    const other = await callWith(put(first, pro), put(second, free))
    expect([one.status, other.status]).toEqual([200, 200])
    expectStages(one, [lines.authPass('free'), ...reached.answered.slice(1)])
    expectStages(other, [lines.authPass('pro'), ...reached.answered.slice(1)])
  })

  test.each(pairs)('a wrong key in %s is not saved by a right one in %s', async (first, second) => {
    const answer = await callWith(put(first, 'wk-nonsense'), put(second, key))
    expectChatError(answer, 401)
    expectStages(answer, reached.refusedKey)
  })

  test.each(pairs)('what is no key of ours in %s leaves it to %s', async (first, second) => {
    const answer = await callWith(put(first, 'sk-another-vendor'), put(second, key))
    expect(answer.status).toBe(200)
  })
})

describe('the two credentials are not interchangeable', () => {
  let token: string
  beforeAll(async () => {
    token = String((await harness.weir('token')).token)
  })
  const me = (headers: Headers) => rawRequest(harness.url, ask('GET', '/api/web/me', headers))

  test('a token opens /api/web/me', async () => {
    const answer = await me(bearer(token))
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body.toString())).toMatchObject({ id: null, name: 'operator', role: 'owner' })
  })

  test.each(order)('a token in %s opens no LLM endpoint', async carrier => {
    const answer = await callWith(put(carrier, token))
    expect(expectChatError(answer, 401).error.type).toBe('authentication_error')
    expectStages(answer, reached.refusedKey)
  })

  test('a key opens nothing of /api/web/*', async () => {
    for (const path of ['/api/web/me', '/api/web/keys', '/api/web/nothing']) {
      for (const carrier of order) {
        const { headers, query } = put(carrier, key)
        const answer = await rawRequest(harness.url, ask('GET', path + query, headers))
        expect(expectChatError(answer, 401).error.type).toBe('authentication_error')
        expectStages(answer, reached.nothing)
      }
    }
  })

  test('a token is taken as a bearer and in no other way', async () => {
    const ways: Headers[] = [{}, { 'x-api-key': token }, { authorization: token }, { authorization: `Basic ${token}` }]
    for (const headers of ways) expectChatError(await me(headers), 401)
    expectChatError(await rawRequest(harness.url, ask('GET', `/api/web/me?token=${token}&key=${token}`)), 401)
    expect((await me({ authorization: `bearer ${token}` })).status).toBe(200)
  })

  test('a token that was changed in one place is none', async () => {
    const at = token.length - 10
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
    expectChatError(await me(bearer(changed)), 401)
  })
})

describe('a key is never shown', () => {
  const places = ['', '?x=1', '/nothing'] as const

  test('neither right nor wrong, in no answer and in no log', async () => {
    const wrong = mintKey()
    const typo = `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`
    const revoked = await harness.key()
    await harness.weir('keys revoke', { key: revoked })
    const poor = await harness.key({ credit: '0' })
    const all = [key, wrong, typo, revoked, poor]
    const bodies = [goodBody(), '{', goodBody({ model: 'nobody/x' }), goodBody({ stream: true })]
    const answers: string[] = []
    for (const text of all) {
      for (const carrier of order) {
        const { headers, query } = put(carrier, text)
        for (const place of places) {
          const path = `${CHAT}${place}${place.includes('?') && query !== '' ? query.replace('?', '&') : query}`
          for (const body of bodies) {
            const answer = await rawRequest(harness.url, ask('POST', path, headers, body))
            answers.push(answer.head + answer.body.toString('latin1'))
          }
        }
        const web = await rawRequest(harness.url, ask('GET', `/api/web/me${query}`, headers))
        answers.push(web.head + web.body.toString('latin1'))
      }
    }
    const shown = [...answers, ...harness.logs].filter(text => all.some(secret => text.includes(secret.slice(3, 33))))
    expect(shown).toEqual([])
    expect(harness.logs.length).toBeGreaterThan(100)
  })
})

describe('a revoked key', () => {
  const revoke = (text: string) => harness.weir('keys revoke', { key: text })

  test('is refused at once, also where it was known a moment ago', async () => {
    const own = await harness.key()
    for (let time = 0; time < 3; time++) expect((await call(harness, own)).status).toBe(200)
    await revoke(own)
    const answer = await call(harness, own)
    expectChatError(answer, 401)
    expectStages(answer, reached.refusedKey)
  })

  test('is refused at once while calls with it come from all sides', async () => {
    const own = await harness.key()
    let revoked = false
    const after: number[] = []
    const caller = async (): Promise<void> => {
      for (let time = 0; time < 20; time++) {
        const begunAfter = revoked
        const { status } = await chat(harness, own, { model: 'demo/echo', messages: hello })
        if (begunAfter) after.push(status)
      }
    }
    const callers = Array.from({ length: 4 }, caller)
    await revoke(own)
    revoked = true
    await Promise.all(callers)
    expect(after.length).toBeGreaterThan(0)
    expect(new Set(after)).toEqual(new Set([401]))
  })

  test('stays revoked when it is revoked again, by itself or by its id', async () => {
    const made = await harness.weir('keys create', { tier: 'pro', credit: '1' })
    await revoke(String(made.id))
    await revoke(String(made.key))
    expectChatError(await call(harness, String(made.key)), 401)
  })

  test('leaves other keys alone', async () => {
    expect((await call(harness, key)).status).toBe(200)
  })
})

describe('what is on the disk', () => {
  test('no file holds the text of a key, nor a part of it that would do', async () => {
    const own = await harness.key()
    await call(harness, own)
    const files = readdirSync(harness.folder).filter(name => statSync(join(harness.folder, name)).isFile())
    expect(files).toEqual(expect.arrayContaining(['weir.db', 'pepper', 'jwt-secret']))
    for (const name of files) {
      const bytes = readFileSync(join(harness.folder, name))
      for (const part of [own, own.slice(3), own.slice(3, 33), own.slice(3, 13), own.slice(23, 33)]) {
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

  /** As somebody who can write to the database, but does not know the pepper, would add a key. */
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

  test('a row with a plain hash of a key opens nothing, one with the right digest would', async () => {
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

describe('an address that guesses', () => {
  test('does not lock out a good key behind it, which it may share with a whole office', async () => {
    const fresh = await harness.key()
    for (let guess = 0; guess < 30; guess++) expectChatError(await call(harness, mintKey()), 401)
    expect((await call(harness, fresh)).status).toBe(200)
  })
})
