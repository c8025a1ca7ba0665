// A route whose first member is free and whose second costs money, called without money: when the first does not
// answer, the error says that the second was skipped, and why.

import { afterEach, describe, expect, test } from 'bun:test'
import { answer, fail, silence } from '../../tools/fake-upstream/answers.ts'
import { callers, eventsOfBody, rawCallers, requestOf } from '../dialects/raw-callers.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Shores } from './shores.ts'
import { startShores } from './shores.ts'

let shores: Shores
afterEach(() => shores.stop())

const free = { free: true, models: [{ id: 'echo', contextTokens: 32_768, outputTokensMax: 1_000 }] }
const speaksResponses = { speaks: { 'openai-responses': '/responses' } }

async function start(more: object = {}): Promise<void> {
  shores = await startShores({ nearFile: free, ...more })
  await shores.name('house', 'near/echo then far/echo')
}

const poor = (): Promise<string> => shores.key({ credit: '0.00001' })
const SKIPPED = /A fallback was skipped because the balance does not cover it\. It may cost up to \$0\.\d+; \$0\.0/

describe.each(callers)('%s', speaker => {
  test('is told, plainly', async () => {
    await start()
    shores.near.planModel('echo', fail(500))
    const asked = { model: 'house', stream: false }
    const caller = await openRaw(shores.url, requestOf(speaker, await poor(), asked)).whole()
    expect(caller.status).toBe(502)
    expect(rawCallers[speaker].error(JSON.parse(caller.text), 502).message).toMatch(SKIPPED)
    expect(shores.far.requests).toHaveLength(0)
  })

  test('is told in a stream whose head has left', async () => {
    const attemptTimes = { firstContentMs: 100, betweenChunksMs: 100 }
    await start({ world: { silence: { headMs: 1, heartbeatMs: 1_000 }, attemptTimes } })
    shores.near.planModel('echo', silence())
    const asked = { model: 'house', stream: true }
    const caller = await openRaw(shores.url, requestOf(speaker, await poor(), asked)).whole()
    const { failed: broken, error } = rawCallers[speaker]
    expect(error(broken(eventsOfBody(speaker, caller.body)), 504).message).toMatch(SKIPPED)
  })
})

test('with money the second answers', async () => {
  await start()
  shores.near.planModel('echo', fail(500))
  shores.far.planModel('echo', answer('Hello'))
  expect((await shores.ask(await shores.key(), 'house')).status).toBe(200)
})

test('a request that the upstream itself calls bad is no matter of money', async () => {
  await start()
  shores.near.planModel('echo', fail(400))
  const response = await shores.ask(await poor(), 'house')
  expect([response.status, await response.text()]).toEqual([400, expect.not.stringMatching(SKIPPED)])
})

test('where the others could not even be asked, it is 402', async () => {
  await start({ farFile: speaksResponses })
  const body = { model: 'house', input: 'Hello', include: ['reasoning.encrypted_content'], truncation: 'auto' }
  const headers = { 'content-type': 'application/json', 'x-weir-translate': 'strict' }
  const ask = async (key: string): Promise<Response> =>
    fetch(`${shores.url}/v1/responses`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...body, prompt_cache_key: 'x', safety_identifier: 'y', max_tool_calls: 3 }),
    })
  expect((await ask(await shores.key())).status).toBe(200)
  const response = await ask(await poor())
  expect([response.status, await response.text()]).toEqual([402, expect.stringMatching(SKIPPED)])
  expect(shores.near.requests).toHaveLength(0)
})
