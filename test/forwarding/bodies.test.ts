// Stored bodies: of the keys and accounts that asked for it, the caller's own request bytes and the answer that was
// sent, of good calls and failed ones, readable by the operator alone. Nothing is stored for any other key.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { parseTextId } from '../../src/base/ids.ts'
import { fail, plain, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import { weir } from '../front/weir-process.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, upstreamKey } from '../support/gateway.ts'
import { openCall, startHasty, withoutComments } from './caller.ts'
import { bodyOf, freshName, idOf, send } from './idempotent-calls.ts'
import { goodStream, piece, role, sends } from './wire.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty()
  key = await createStoringKey('api_key')
})
afterAll(() => harness.stop())

/** Creates a key whose bodies are stored, by its own setting or by the setting of its account. */
async function createStoringKey(by: 'api_key' | 'account'): Promise<string> {
  const created = await harness.weir('keys create', { tier: 'pro', credit: '100' })
  const id = parseTextId('key', created.id as string)!
  const db = openDatabase(join(harness.folder, 'weir.db'))
  if (by === 'api_key') db.run('UPDATE api_key SET keeps_bodies = 1 WHERE id = ?1', [id])
  else db.run('UPDATE account SET keeps_bodies = 1 WHERE id = (SELECT account_id FROM api_key WHERE id = ?1)', [id])
  db.close()
  return created.key as string
}

interface StoredBody {
  readonly text: string
  readonly truncated: boolean
}

async function storedBodies(call: string): Promise<{ request: string; answer: string }> {
  const { request, answer } = (await harness.weir('bodies', { call })) as Record<'request' | 'answer', StoredBody>
  const textOf = ({ text, truncated }: StoredBody): string => text + (truncated ? '\n[cut here]' : '')
  return { request: textOf(request), answer: textOf(answer) }
}
const refusal = (work: Promise<unknown>): Promise<string> => work.then(String, (fault: Error) => fault.message)
const file = (): string => join(harness.folder, 'bodies.db')

describe('bodies are not stored', () => {
  test('while no key has asked for it: there is not even a file', async () => {
    const ordinary = await harness.key()
    const answer = await chat(harness, ordinary, bodyOf())
    await answer.text()
    expect(existsSync(file())).toBe(false)
    expect(await refusal(storedBodies(idOf(answer)))).toContain('No bodies are stored')
  })

  test('for a key that did not ask, while another key did', async () => {
    const ordinary = await harness.key()
    const stored = await chat(harness, key, bodyOf())
    const unstored = [
      await chat(harness, ordinary, bodyOf()),
      await send({ harness, key: ordinary, name: freshName() }),
    ]
    await Promise.all([stored, ...unstored].map(answer => answer.text()))
    expect((await storedBodies(idOf(stored))).request).toBe(bodyOf())
    for (const answer of unstored) expect(await refusal(storedBodies(idOf(answer)))).toContain('No bodies are stored')
  })

  test('under something that is not the id of a call', async () => {
    for (const id of ['', 'req_', 'key_00000000000', 7]) {
      expect(await refusal(harness.weir('bodies', { call: id }))).toContain('Use the id of the call')
    }
  })

  test('for a call that was not admitted', async () => {
    const refused = await chat(harness, key, '{"model":')
    expect(refused.status).toBe(400)
    expect(await refusal(storedBodies(idOf(refused)))).toContain('No bodies are stored')
  })
})

describe('the setting of', () => {
  const storesBodies = async (by: string): Promise<boolean> => {
    const answer = await chat(harness, by, bodyOf())
    await answer.text()
    return !(await refusal(storedBodies(idOf(answer)))).includes('No bodies are stored')
  }

  test.each([
    ['keys set', 'key'],
    ['accounts set', 'account'],
  ] as const)('%s applies from the next call on, although the key is cached', async (command, subjectOption) => {
    const own = await harness.key()
    const stored = [await storesBodies(own)]
    for (const bodies of ['on', 'off']) {
      await harness.weir(command, { [subjectOption]: own, bodies })
      stored.push(await storesBodies(own))
    }
    expect(stored).toEqual([false, true, false])
  })
})

describe('stored bodies', () => {
  test('are the request as it was sent and its plain answer', async () => {
    const body = `  {"model" : "openai/gpt-4o-mini",\n "messages":[{"role":"user","content":"\u00dcber \\u00fc"}]}`
    const answer = await chat(harness, key, body)
    expect(await storedBodies(idOf(answer))).toEqual({ request: body, answer: await answer.text() })
    expect(answer.headers.get('x-pipeline-breakdown')).toMatch(/ bodies=\d+$/)
  })

  test('exist for every key of an account that asked', async () => {
    const byAccount = await createStoringKey('account')
    const answer = await chat(harness, byAccount, bodyOf())
    expect(await storedBodies(idOf(answer))).toEqual({ request: bodyOf(), answer: await answer.text() })
  })

  test("hold a stream as it was relayed, without the gateway's comments", async () => {
    harness.upstream.plan(sends(goodStream, 13))
    const answer = await chat(harness, key, bodyOf({ stream: true }), { 'x-weir-comments': 'on' })
    const text = await answer.text()
    expect(text).toMatch(/^: X-Pipeline-Breakdown .* bodies=\d+$/m)
    expect((await storedBodies(idOf(answer))).answer).toBe(withoutComments(text))
  })

  test('hold what a caller had received when it left', async () => {
    const blocked = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(role() + piece('Hel')), gate(blocked.promise)))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"Hel"'), 'content has arrived')
    caller.leave()
    await harness.idle()
    expect((await storedBodies(caller.header('x-request-id')!)).answer).toStartWith(role() + piece('Hel'))
  })

  test('do not exist for calls that were refused before anything was paid for', async () => {
    const penniless = await harness.key({ credit: '0' })
    await harness.weir('keys set', { key: penniless, bodies: 'on' })
    const refused = [
      await chat(harness, key, bodyOf({ model: 'openai/none-such' })),
      await chat(harness, penniless, bodyOf()),
      await chat(harness, key, bodyOf({ messages: 7 })),
    ]
    expect(refused.map(({ status }) => status)).toEqual([404, 402, 400])
    await harness.idle()
    // A call whose bodies are stored follows them.
    const answer = await chat(harness, key, bodyOf())
    expect((await storedBodies(idOf(answer))).request).toBe(bodyOf())
    for (const one of refused) expect(await refusal(storedBodies(idOf(one)))).toContain('No bodies are stored')
  })

  test('hold an answer that was replayed', async () => {
    const idempotentCall = { harness, key, name: freshName() }
    const [first, replayed] = [await send(idempotentCall), await send(idempotentCall)]
    expect((await storedBodies(idOf(replayed))).answer).toBe((await storedBodies(idOf(first))).answer)
    expect((await storedBodies(idOf(replayed))).request).toBe(bodyOf())
  })

  test('hold only the beginning of a long body', async () => {
    const long = 'x'.repeat(2 * bounds.storedBodyBytesMax)
    harness.upstream.plan(plain(long))
    const body = bodyOf({ messages: [{ role: 'user', content: long }] })
    const answer = await chat(harness, key, body)
    const text = await answer.text()
    expect(text).toContain(long)
    const { request, answer: sent } = await storedBodies(idOf(answer))
    expect(request).toBe(`${body.slice(0, bounds.storedBodyBytesMax)}\n[cut here]`)
    expect(sent).toBe(`${text.slice(0, bounds.storedBodyBytesMax)}\n[cut here]`)
  })
})

test("an upstream that sends the gateway's own key back does not have it stored", async () => {
  harness.upstream.plan(
    scripted(request => {
      const message = `so it was ${request.headers.get('authorization')}`
      return fail(400, { error: { message, type: 'x' } }).steps(request)
    }),
  )
  const answer = await chat(harness, key, bodyOf())
  const sent = await storedBodies(idOf(answer)) // a call with a hold is settled before its answer, and stored with that
  expect(sent.answer).toContain('so it was Bearer [secret]')
  expect(sent.answer).not.toContain(upstreamKey)
})

test('the file of stored bodies shows no plain text on the disk, and does not hold the upstream key', async () => {
  harness.upstream.plan(plain('a very plain answer'))
  const answer = await chat(harness, key, bodyOf({ user: 'a very plain user' }))
  const { request, answer: sent } = await storedBodies(idOf(answer))
  expect(request + sent).not.toContain(upstreamKey)
  expect([request, sent]).toEqual([expect.stringContaining('a very plain user'), await answer.text()])
  for (const name of readdirSync(harness.folder).filter(one => /^bodies/.test(one))) {
    const bytes = readFileSync(join(harness.folder, name)).toString('latin1')
    for (const word of ['a very plain', 'Hello, river', upstreamKey]) expect(bytes).not.toContain(word)
  }
})

describe('the operator', () => {
  test('reads stored bodies by `weir bodies`, while the gateway runs and while it does not', async () => {
    const answer = await chat(harness, key, bodyOf())
    const text = await answer.text()
    const shown = { code: 0, stdout: `${bodyOf()}\n\n${text}\n`, stderr: '' }
    expect(await weir(harness.folder, `bodies ${idOf(answer)}`)).toEqual(shown)
    const none = await weir(harness.folder, 'bodies req_00000000000')
    expect([none.code, none.stdout]).toEqual([1, ''])
    expect(none.stderr).toContain('No bodies are stored')
    await harness.gateway.drain()
    expect(
      await weir(harness.folder, `bodies ${idOf(answer)}`, { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }),
    ).toEqual(shown)
    const env = { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off', WEIR_ENCRYPTION_KEY: 'another'.repeat(6) }
    const wrong = await weir(harness.folder, `bodies ${idOf(answer)}`, env)
    expect([wrong.code, wrong.stdout]).toEqual([1, ''])
    expect(wrong.stderr).toStartWith('weir: The encryption key in use does not fit the data: ')
  })
})
