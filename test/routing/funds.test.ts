// A route whose first member is free and whose second costs money, called without money: when the first does not
// answer, the error says that the second was skipped, and why.

import { afterEach, describe, expect, test } from 'bun:test'
import { answer, fail, silence } from '../../tools/fake-upstream/answers.ts'
import { callers, eventsOfBody, rawCallers, requestOf } from '../dialects/raw-callers.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { TwoUpstreams } from './two-upstreams.ts'
import { startTwoUpstreams } from './two-upstreams.ts'

let upstreams: TwoUpstreams
afterEach(() => upstreams.stop())

const free = { free: true, models: [{ id: 'echo', contextTokens: 32_768, outputTokensMax: 1_000 }] }
const speaksResponses = { speaks: { 'openai-responses': '/responses' } }

async function start(more: object = {}): Promise<void> {
  upstreams = await startTwoUpstreams({ nearFile: free, ...more })
  await upstreams.setRoute('house', 'near/echo then far/echo')
}

const pennilessKey = (): Promise<string> => upstreams.key({ credit: '0.00001' })
const SKIPPED = /A fallback was skipped because the balance does not cover it\. It may cost up to \$0\.\d+; \$0\.0/

describe.each(callers)('a caller of %s', speaker => {
  test('gets the reason in a plain error', async () => {
    await start()
    upstreams.near.planModel('echo', fail(500))
    const request = { model: 'house', stream: false }
    const caller = await openRaw(upstreams.url, requestOf(speaker, await pennilessKey(), request)).whole()
    expect(caller.status).toBe(502)
    expect(rawCallers[speaker].error(JSON.parse(caller.text), 502).message).toMatch(SKIPPED)
    expect(upstreams.far.requests).toHaveLength(0)
  })

  test('gets the reason in a stream whose head was already sent', async () => {
    const attemptTimes = { firstContentMs: 100, betweenChunksMs: 100 }
    await start({ world: { silence: { headMs: 1, heartbeatMs: 1_000 }, attemptTimes } })
    upstreams.near.planModel('echo', silence())
    const request = { model: 'house', stream: true }
    const caller = await openRaw(upstreams.url, requestOf(speaker, await pennilessKey(), request)).whole()
    const { failed, error } = rawCallers[speaker]
    expect(error(failed(eventsOfBody(speaker, caller.body)), 504).message).toMatch(SKIPPED)
  })
})

test('with money the second member answers', async () => {
  await start()
  upstreams.near.planModel('echo', fail(500))
  upstreams.far.planModel('echo', answer('Hello'))
  expect((await upstreams.call(await upstreams.key(), 'house')).status).toBe(200)
})

test('a request that the upstream itself refuses gets its own error', async () => {
  await start()
  upstreams.near.planModel('echo', fail(400))
  const response = await upstreams.call(await pennilessKey(), 'house')
  expect([response.status, await response.text()]).toEqual([400, expect.not.stringMatching(SKIPPED)])
})

test('if the other members could not serve the call at all, the error is 402', async () => {
  await start({ farFile: speaksResponses })
  const body = { model: 'house', input: 'Hello', include: ['reasoning.encrypted_content'], truncation: 'auto' }
  const headers = { 'content-type': 'application/json', 'x-weir-translate': 'strict' }
  const respond = async (key: string): Promise<Response> =>
    fetch(`${upstreams.url}/v1/responses`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...body, prompt_cache_key: 'x', safety_identifier: 'y', max_tool_calls: 3 }),
    })
  expect((await respond(await upstreams.key())).status).toBe(200)
  const response = await respond(await pennilessKey())
  expect([response.status, await response.text()]).toEqual([402, expect.stringMatching(SKIPPED)])
  expect(upstreams.near.requests).toHaveLength(0)
})
