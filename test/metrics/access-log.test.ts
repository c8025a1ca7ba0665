// One log line for each call, for calls only, without anything that the caller wrote.

import { afterEach, expect, test } from 'bun:test'
import { parseTextId } from '../../src/base/ids.ts'
import { fail, plain, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

const CANARY = 'canary-words-of-a-caller'

let harness: Harness
afterEach(() => harness.stop())

type Line = Record<string, unknown>

const lines = (event: string): readonly Line[] =>
  harness.logs.map(line => JSON.parse(line) as Line).filter(line => line.event === event)

const call = (key: string, more: object = {}): Promise<Response> =>
  chat(harness, key, { model: 'openai/gpt-4o-mini', messages: [...hello, { role: 'user', content: CANARY }], ...more })

test('if it is on, each line has the outcome, the channel and the figures of its call, whatever the log level', async () => {
  harness = await startHarness({ env: { LOG_LEVEL: 'error', WEIR_ACCESS_LOG: 'on' } })
  const key = await harness.key()
  harness.upstream.plan(plain(CANARY, { usage: { input: 11, output: 7 } }))
  const completed = await call(key, { user: CANARY })
  expect(await completed.text()).toContain(CANARY)
  harness.upstream.plan(streamed([CANARY]))
  await (await call(key, { stream: true })).text()
  await harness.idle() // its line comes after the last of its bytes
  harness.upstream.plan(fail(400))
  await (await call(key)).text()
  await (await call(key, { model: `openai/${CANARY}` })).text()
  await (await call(`wk-${CANARY}`)).text()
  await (await fetch(`${harness.url}/v1/${CANARY}?key=${CANARY}`)).text()
  await harness.idle()

  const [answered, stream, refused, unknown, keyless] = lines('call')
  expect(answered).toMatchObject({
    level: 'info',
    status: 200,
    outcome: 'completed',
    dialect: 'openai-chat',
    model: 'openai/gpt-4o-mini',
    attempts: 1,
    inputTokens: 11,
    outputTokens: 7,
    usd: '0.00000585',
    request: completed.headers.get('x-request-id'),
    channel: expect.stringMatching(/^openai#/),
    ms: expect.any(Number),
    addedMs: expect.any(Number),
  })
  expect(parseTextId('key', answered!.key as string)).toBeNumber()
  expect(stream).toMatchObject({ status: 200, firstContentMs: expect.any(Number) })
  expect(refused).toMatchObject({ status: 400, outcome: 'refused', error: 'upstream_refused', stage: 'forward' })
  expect(unknown).toMatchObject({ status: 404, error: 'model_unknown', stage: 'route' })
  expect(unknown).not.toHaveProperty('model')
  expect(keyless).toMatchObject({ status: 401, error: 'key_invalid', stage: 'auth' })
  expect(lines('call')).toHaveLength(5)
  expect(lines('request refused')).toMatchObject([{ status: 401, error: 'key_invalid', stage: 'auth' }])
  expect(harness.logs.join()).not.toContain(CANARY)
  expect(harness.logs.join()).not.toContain(key)
})

test('without the setting, the lines are logged at level debug only', async () => {
  harness = await startHarness()
  await (await call(await harness.key())).text()
  await harness.idle()
  expect(lines('call')).toMatchObject([{ level: 'debug', status: 200 }])
  await harness.stop()
  harness = await startHarness({ env: { LOG_LEVEL: 'info' } })
  await (await call(await harness.key())).text()
  await harness.idle()
  expect(lines('call')).toEqual([])
})
