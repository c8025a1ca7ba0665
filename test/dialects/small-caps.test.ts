// A cap on the output that is smaller than an upstream accepts, as in a probe or in a question that is answered in one
// token.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Json } from '../../src/protocols/request/json-type.ts'
import { chatPath, startTwoUpstreams } from '../routing/two-upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import type { Json as Answer, CallerDialect } from './raw-callers.ts'
import { callers, eventsOfBody, rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

interface CappedCall {
  readonly url?: string
  readonly key?: string
  readonly stream?: boolean
  readonly cap: number
}

const send = (caller: CallerDialect, model: string, { stream = false, cap, ...to }: CappedCall): Promise<Response> => {
  const input = { model, stream, outputTokensMax: cap, text: 'one two three four five' }
  const { path, body } = rawCallers[caller]
  return fetch((to.url ?? harness.url) + path(input), {
    method: 'POST',
    headers: { 'authorization': `Bearer ${to.key ?? key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body(input)),
  })
}

const sentBody = (): Json => harness.upstream.requests.at(-1)!.json() as Json

describe.each(callers.filter(caller => caller !== 'openai-responses'))('of a caller of %s', caller => {
  test('is raised for an upstream of Responses, which is reported and paid for', async () => {
    for (const stream of [false, true]) {
      const answer = await send(caller, modelOf('openai-responses'), { stream, cap: 1 })
      expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'max_output_tokens'])
      const text = await answer.text()
      const { completed, whole } = rawCallers[caller]
      const said = stream ? completed(eventsOfBody(caller, text)) : whole(JSON.parse(text) as Answer)
      expect([said, sentBody().max_output_tokens]).toEqual(['one two three four five', 16])
      await harness.idle()
      expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', output_tokens: 5 })
    }
  })

  test('of 16 is not changed', async () => {
    const answer = await send(caller, modelOf('openai-responses'), { cap: 16 })
    expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, null])
  })
})

test.each(dialects.filter(one => one !== 'anthropic-messages').map(one => [one]))(
  'of zero is for Anthropic only: %s answers with a few tokens',
  async (upstream: Dialect) => {
    const answer = await send('anthropic-messages', modelOf(upstream), { cap: 0 })
    expect([answer.status, answer.headers.get('x-weir-loss')]).toEqual([200, 'max_output_tokens'])
  },
)

test('a model that does not think is asked in the dialect that keeps the cap', async () => {
  const model = { id: 'echo', contextTokens: 32_768, outputTokensMax: 1_000, price: { input: '1', output: '2' } }
  const nearFile = {
    speaks: { 'openai-responses': '/responses', ...chatPath },
    models: [
      { ...model, traits: { thinking: 'none' } },
      { ...model, id: 'think', traits: { thinking: 'effort' } },
    ],
  }
  const upstreams = await startTwoUpstreams({ nearFile })
  try {
    const to = { url: upstreams.url, key: await upstreams.key(), cap: 1 }
    const exact = await send('anthropic-messages', 'near/echo', to)
    expect([exact.status, exact.headers.get('x-weir-loss')]).toEqual([200, null])
    expect(upstreams.near.requests.at(-1)).toMatchObject({ path: '/v1/chat/completions' })
    const raised = await send('anthropic-messages', 'near/think', to)
    expect([raised.status, raised.headers.get('x-weir-loss')]).toEqual([200, 'max_output_tokens'])
    expect(upstreams.near.requests.at(-1)).toMatchObject({ path: '/v1/responses' })
  } finally {
    await upstreams.stop()
  }
})
