// Requests and answers of the keys and accounts that have them kept: the caller's own bytes and what it was sent, of
// good calls and bad, for the operator alone. Of all others there is nothing.

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
import { ask, bodyOf, freshName, idOf } from './repeated.ts'
import { goodStream, piece, role, sends } from './wire.ts'

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startHasty()
  key = await keeping('api_key')
})
afterAll(() => harness.stop())

/** A key whose bodies are kept, by its own wish or by its account's. */
async function keeping(by: 'api_key' | 'account'): Promise<string> {
  const made = await harness.weir('keys create', { tier: 'pro', credit: '100' })
  const id = parseTextId('key', made.id as string)!
  const db = openDatabase(join(harness.folder, 'weir.db'))
  if (by === 'api_key') db.run('UPDATE api_key SET keeps_bodies = 1 WHERE id = ?1', [id])
  else db.run('UPDATE account SET keeps_bodies = 1 WHERE id = (SELECT account_id FROM api_key WHERE id = ?1)', [id])
  db.close()
  return made.key as string
}

interface Kept {
  readonly text: string
  readonly truncated: boolean
}

async function kept(call: string): Promise<{ request: string; answer: string }> {
  const { request, answer } = (await harness.weir('bodies', { call })) as Record<'request' | 'answer', Kept>
  const textOf = ({ text, truncated }: Kept): string => text + (truncated ? '\n[cut here]' : '')
  return { request: textOf(request), answer: textOf(answer) }
}
const refusal = (work: Promise<unknown>): Promise<string> => work.then(String, (fault: Error) => fault.message)
const file = (): string => join(harness.folder, 'bodies.db')

describe('nothing is kept', () => {
  test('while nobody asked: not even a file', async () => {
    const ordinary = await harness.key()
    const answer = await chat(harness, ordinary, bodyOf())
    await answer.text()
    expect(existsSync(file())).toBe(false)
    expect(await refusal(kept(idOf(answer)))).toContain('No bodies are stored')
  })

  test('of a call of a key that did not ask, beside one that did', async () => {
    const ordinary = await harness.key()
    const one = await chat(harness, key, bodyOf())
    const others = [await chat(harness, ordinary, bodyOf()), await ask({ harness, key: ordinary, name: freshName() })]
    await Promise.all([one, ...others].map(answer => answer.text()))
    expect((await kept(idOf(one))).request).toBe(bodyOf())
    for (const other of others) expect(await refusal(kept(idOf(other)))).toContain('No bodies are stored')
  })

  test('for what is no id', async () => {
    for (const id of ['', 'req_', 'key_00000000000', 7]) {
      expect(await refusal(harness.weir('bodies', { call: id }))).toContain('Use the id of the call')
    }
  })

  test('of a call that was not admitted', async () => {
    const refused = await chat(harness, key, '{"model":')
    expect(refused.status).toBe(400)
    expect(await refusal(kept(idOf(refused)))).toContain('No bodies are stored')
  })
})

describe('a wish', () => {
  const isKept = async (by: string): Promise<boolean> => {
    const answer = await chat(harness, by, bodyOf())
    await answer.text()
    return !(await refusal(kept(idOf(answer)))).includes('No bodies are stored')
  }

  test.each([
    ['keys set', 'key'],
    ['accounts set', 'account'],
  ] as const)('%s holds from the next call on, whatever is remembered of the key', async (command, place) => {
    const own = await harness.key()
    const seen = [await isKept(own)]
    for (const bodies of ['on', 'off']) {
      await harness.weir(command, { [place]: own, bodies })
      seen.push(await isKept(own))
    }
    expect(seen).toEqual([false, true, false])
  })
})

describe('kept are', () => {
  test('a request as it was sent, and its plain answer', async () => {
    const body = `  {"model" : "openai/gpt-4o-mini",\n "messages":[{"role":"user","content":"\u00dcber \\u00fc"}]}`
    const answer = await chat(harness, key, body)
    expect(await kept(idOf(answer))).toEqual({ request: body, answer: await answer.text() })
    expect(answer.headers.get('x-pipeline-breakdown')).toMatch(/ bodies=\d+$/)
  })

  test('those of every key of an account that asked', async () => {
    const byAccount = await keeping('account')
    const answer = await chat(harness, byAccount, bodyOf())
    expect(await kept(idOf(answer))).toEqual({ request: bodyOf(), answer: await answer.text() })
  })

  test('a stream as it was relayed, without our comments', async () => {
    harness.upstream.plan(sends(goodStream, 13))
    const answer = await chat(harness, key, bodyOf({ stream: true }), { 'x-weir-comments': 'on' })
    const text = await answer.text()
    expect(text).toMatch(/^: X-Pipeline-Breakdown .* bodies=\d+$/m)
    expect((await kept(idOf(answer))).answer).toBe(withoutComments(text))
  })

  test('what a caller had received when it left', async () => {
    const never = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(role() + piece('Hel')), gate(never.promise)))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"Hel"'), 'content is here')
    caller.leave()
    await harness.idle()
    expect((await kept(caller.header('x-request-id')!)).answer).toStartWith(role() + piece('Hel'))
  })

  test('nothing of what was refused before anything was paid for', async () => {
    const poor = await harness.key({ credit: '0' })
    await harness.weir('keys set', { key: poor, bodies: 'on' })
    const refused = [
      await chat(harness, key, bodyOf({ model: 'openai/none-such' })),
      await chat(harness, poor, bodyOf()),
      await chat(harness, key, bodyOf({ messages: 7 })),
    ]
    expect(refused.map(({ status }) => status)).toEqual([404, 402, 400])
    await harness.idle()
    // One that is kept comes behind them.
    const answer = await chat(harness, key, bodyOf())
    expect((await kept(idOf(answer))).request).toBe(bodyOf())
    for (const one of refused) expect(await refusal(kept(idOf(one)))).toContain('No bodies are stored')
  })

  test('an answer that is given again', async () => {
    const asking = { harness, key, name: freshName() }
    const [first, again] = [await ask(asking), await ask(asking)]
    expect((await kept(idOf(again))).answer).toBe((await kept(idOf(first))).answer)
    expect((await kept(idOf(again))).request).toBe(bodyOf())
  })

  test('no more than the beginning of what is long', async () => {
    const long = 'x'.repeat(2 * bounds.storedBodyBytesMax)
    harness.upstream.plan(plain(long))
    const body = bodyOf({ messages: [{ role: 'user', content: long }] })
    const answer = await chat(harness, key, body)
    const text = await answer.text()
    expect(text).toContain(long)
    const { request, answer: sent } = await kept(idOf(answer))
    expect(request).toBe(`${body.slice(0, bounds.storedBodyBytesMax)}\n[cut here]`)
    expect(sent).toBe(`${text.slice(0, bounds.storedBodyBytesMax)}\n[cut here]`)
  })
})

async function retried<T>(ask: () => Promise<T>): Promise<T> {
  for (let round = 0; ; round++) {
    try {
      return await ask()
    } catch (fault) {
      if (round === 200) throw fault
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
}

test('an upstream that says our own key back does not have it kept', async () => {
  harness.upstream.plan(
    scripted(request => {
      const message = `so it was ${request.headers.get('authorization')}`
      return fail(400, { error: { message, type: 'x' } }).steps(request)
    }),
  )
  const answer = await chat(harness, key, bodyOf())
  const sent = await retried(() => kept(idOf(answer)))
  expect(sent.answer).toContain('so it was Bearer [secret]')
  expect(sent.answer).not.toContain(upstreamKey)
})

test('nothing of it can be read on the disk, and our key upstream is nowhere in it', async () => {
  harness.upstream.plan(plain('a very plain answer'))
  const answer = await chat(harness, key, bodyOf({ user: 'a very plain user' }))
  const { request, answer: sent } = await kept(idOf(answer))
  expect(request + sent).not.toContain(upstreamKey)
  expect([request, sent]).toEqual([expect.stringContaining('a very plain user'), await answer.text()])
  for (const name of readdirSync(harness.folder).filter(one => /^bodies/.test(one))) {
    const bytes = readFileSync(join(harness.folder, name)).toString('latin1')
    for (const word of ['a very plain', 'Hello, river', upstreamKey]) expect(bytes).not.toContain(word)
  }
})

describe('the operator', () => {
  test('reads them by `weir bodies`, while the gateway runs and when it does not', async () => {
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
