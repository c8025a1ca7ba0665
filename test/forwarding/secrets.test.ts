// Canaries: the tests search for the upstream's key and the caller's key wherever they must not be. Upstreams that send
// the gateway's credentials back are the worst case.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fail, jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import { buildFaults } from '../../tools/fake-upstream/faults.ts'
import { chatWire } from '../../tools/fake-upstream/openai-chat/wire.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { upstreamKey } from '../support/gateway.ts'
import type { Caller } from './caller.ts'
import { errorOf, eventsOf, openCall, startHasty } from './caller.ts'
import { event, piece, role } from './wire.ts'

let harness: Harness
let key: string
const answers: string[] = []

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key()
})
afterAll(() => harness.stop())

async function call(body: object): Promise<Caller> {
  const caller = await openCall(harness, key, body).whole()
  answers.push(caller.head + caller.text)
  return caller
}

const leaks = buildFaults(chatWire)
  .filter(({ id }) => id === 'F36')
  .flatMap(fault =>
    [false, true]
      .filter(stream => fault.asks === 'either' || stream)
      .map(stream => [fault.name, stream ? 'streamed' : 'plain', fault.script, stream] as const),
  )

const credentials = (authorization: string | undefined) => `so it was ${authorization}, you said`

/** A refusal that has the credentials in every field. */
function leakingFields(status: number): Script {
  return scripted(request => {
    const secrets = credentials(request.headers.get('authorization'))
    return fail(status, { error: { message: secrets, type: secrets, code: secrets, param: secrets } }).steps(request)
  })
}

/** The same inside a stream, after content. */
function leakingEvent(contentSeen: Promise<void>): Script {
  return scripted(function* leaking(request) {
    const secrets = credentials(request.headers.get('authorization'))
    yield streamHead
    yield chunk(role() + piece('x'))
    yield gate(contentSeen)
    yield chunk(event({ error: { message: secrets, type: secrets, code: secrets, param: secrets } }))
    yield end
  })
}

describe("the upstream's key does not reach the caller", () => {
  test.each(leaks)('after the fault: %s (%s)', async (_name, _form, script, stream) => {
    harness.upstream.plan(script)
    const caller = await call({ stream })
    expect(caller.head + caller.text).not.toContain(upstreamKey)
  })

  test.each([400, 401, 404, 422, 429, 500])('in any field of a %i', async status => {
    harness.upstream.plan(leakingFields(status))
    const caller = await call({})
    expect(caller.text).not.toContain(upstreamKey)
    if (status < 429 && status !== 401) expect(errorOf(caller.body).message).toBe(credentials('Bearer [secret]'))
  })

  test('in any field of an error event', async () => {
    const contentSeen = Promise.withResolvers<void>()
    harness.upstream.plan(leakingEvent(contentSeen.promise))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('"x"'), 'content has arrived')
    contentSeen.resolve()
    await caller.whole()
    answers.push(caller.text)
    expect(errorOf(eventsOf(caller.body).at(-2)!).message).toBe(credentials('Bearer [secret]'))
    expect(caller.text).not.toContain(upstreamKey)
  })

  test('in parts, of which each field has less than half', async () => {
    const secret = 'sk-proj-Zq8nT4wLx2VbR7yKc5MjH9dPfG3sA6eU1oN0iWtBq7X'
    const other = await startHasty({ upstreamKeys: secret })
    const chars = Math.floor(secret.length * 0.45)
    const [first, last] = [secret.slice(0, chars), secret.slice(-chars)]
    other.upstream.plan(fail(400, { error: { message: `It begins with ${first}.`, type: 'x', param: last } }))
    const caller = await openCall(other, await other.key(), {}).whole()
    await other.stop()
    expect(errorOf(caller.body)).toMatchObject({ message: 'It begins with [secret].', param: '[secret]' })
  })

  const encoded: readonly [string, (secret: string) => string][] = [
    ['in upper case', secret => secret.toUpperCase()],
    ['in base64', secret => Buffer.from(secret).toString('base64')],
    ['in base64 with a name before it', secret => Buffer.from(`me:${secret}`).toString('base64')],
    ['in base64 of another alphabet', secret => Buffer.from(`?>${secret}`).toString('base64url')],
    ['in hex', secret => Buffer.from(secret).toString('hex')],
    ['in an address', secret => [...secret].map(one => `%${Buffer.from(one).toString('hex')}`).join('')],
    ['in lines', secret => secret.replaceAll(/.{4}/g, '$&\n')],
    ['in part', secret => `${secret.slice(0, 20)}…`],
  ]

  test.each(encoded)('written %s, in an answer or in an event', async (_name, encode) => {
    const encodedKey = encode(upstreamKey)
    harness.upstream.plan(
      fail(400, { error: { message: `so it was ${encodedKey}, you said`, type: encodedKey, code: encodedKey } }),
    )
    const plain = await call({})
    expect(errorOf(plain.body).message).toStartWith('so it was ')
    const contentSeen = Promise.withResolvers<void>()
    harness.upstream.plan(
      scripted(function* leaking() {
        yield streamHead
        yield chunk(role() + piece('x'))
        yield gate(contentSeen.promise)
        const text = event({ error: { message: encodedKey, type: encodedKey } })
        yield chunk(text.slice(0, text.length / 2))
        yield chunk(text.slice(text.length / 2))
        yield end
      }),
    )
    const streamed = openCall(harness, key, { stream: true })
    await streamed.until(({ text }) => text.includes('"x"'), 'content has arrived')
    contentSeen.resolve()
    await streamed.whole()
    for (const { text } of [plain, streamed]) {
      expect(text).toContain('[secret]')
      expect(text).not.toContain(JSON.stringify(encodedKey).slice(1, -1))
    }
    expect(harness.logs.join('')).not.toContain(JSON.stringify(encodedKey).slice(1, -1))
  })

  const types: readonly (readonly [told: string, passed: string])[] = [
    [`application/json; charset=utf-8; key=${upstreamKey}; ${'x'.repeat(40)}`, 'application/json'],
    [`application/json; k=${upstreamKey}`, 'application/json'],
    [`application/json; k=${upstreamKey.toUpperCase()}`, 'application/json'],
    [`application/json; k=${Buffer.from(upstreamKey).toString('base64url')}`, 'application/json'],
    [`application/json; k="<script>\\"`, 'application/json'],
    [`application/json; v=${'1'.repeat(200)}`, 'application/json'],
    [`application/${upstreamKey}`, ''],
    [`${'x'.repeat(200)}/json`, ''],
    ['not a type', ''],
    ['application/json;charset=UTF-8', 'application/json;charset=UTF-8'],
    ['application/vnd.api+json; profile="a b"; v=1', 'application/vnd.api+json; profile="a b"; v=1'],
  ]
  test.each(types)('in the content type of an answer: %s', async (type, passed) => {
    harness.upstream.plan(
      scripted(() => {
        const whole = JSON.stringify({
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
        })
        return jsonAnswer(200, whole, { 'content-type': type })
      }),
    )
    const caller = await call({})
    expect(caller.head.toLowerCase()).not.toContain(upstreamKey.toLowerCase())
    expect([caller.status, caller.header('content-type') ?? '']).toEqual([200, passed])
  })

  test('written with escapes, or many times', async () => {
    harness.upstream.plan(
      scripted(() => {
        const escape = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
        const escaped = [...upstreamKey].map(escape).join('')
        return jsonAnswer(400, `{"error":{"message":"${escaped} ${upstreamKey}${upstreamKey}","type":"x"}}`)
      }),
    )
    expect(errorOf((await call({})).body).message).toBe('[secret] [secret][secret]')
  })
})

describe('after all of these calls', () => {
  test('no canary is in an answer', () => {
    expect(answers.length).toBeGreaterThan(10)
    for (const answer of answers) expect(answer).not.toContain(upstreamKey)
    for (const answer of answers) expect(answer).not.toContain(key)
  })

  test('no canary is in a log line at the most verbose level', () => {
    const log = harness.logs.join('')
    expect(log).toContain('attempt failed')
    expect(log).not.toContain(upstreamKey)
    expect(log).not.toContain(key)
    expect(log).not.toContain(key.slice(3, 20))
  })

  test('no canary is in a file of the data folder', async () => {
    await harness.idle()
    const paths = readdirSync(harness.folder).map(name => join(harness.folder, name))
    const files = paths.filter(path => statSync(path).isFile())
    expect(files.some(path => path.endsWith('weir.db'))).toBe(true)
    for (const path of files) {
      const bytes = readFileSync(path).toString('latin1')
      for (const canary of [upstreamKey, key, key.slice(3, 30)]) expect(bytes.includes(canary), path).toBe(false)
    }
  })

  test("no caller's key went upstream", () => {
    for (const { rawHead, body } of harness.upstream.requests) {
      expect(rawHead).not.toContain(key)
      expect(Buffer.from(body).toString('latin1')).not.toContain(key)
    }
  })
})
