// A response that the funds cut is stored as incomplete: it can be retrieved and continued, like one that has reached
// its cap on output.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { answer, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ models: modelsWithoutThinking })
})
afterAll(() => harness.stop())

const words = Array.from({ length: 1_000 }, (_, at) => `data: word${at} `)
const models = [
  ['an upstream that stores responses', 'openai/gpt-4o-mini'],
  ['an upstream of the dialect', modelOf('openai-responses')],
  ['chat', modelOf('openai-chat')],
] as const

test.each(models.flatMap(([kind, model]) => [true, false].map(stream => [kind, stream, model] as const)))(
  'on %s, streamed %p',
  async (_kind, stream, model) => {
    const key = await harness.key({ credit: model.startsWith('openai/') ? '0.0005' : '0.0018' })
    const openai = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 })
    harness.upstream.plan(streamed(words))
    const cut = stream
      ? await openai.responses.stream({ model, input: 'Count' }).finalResponse()
      : await openai.responses.create({ model, input: 'Count' })
    expect([cut.status, cut.output_text.startsWith('data: word0 ')]).toEqual(['incomplete', true])

    const retrieved = await openai.responses.retrieve(cut.id)
    expect(retrieved).toMatchObject({ id: cut.id, status: 'incomplete', output_text: cut.output_text })
    expect(retrieved.incomplete_details).toEqual(cut.incomplete_details)

    await harness.weir('top-up', { account: key, amount: '10' })
    harness.upstream.plan(answer('Yes'))
    const before = harness.upstream.requests.length
    const next = await openai.responses.create({ model, input: 'Go on', previous_response_id: cut.id })
    expect([next.output_text, next.previous_response_id]).toEqual(['Yes', cut.id])
    // The upstream was stopped and has no such response, so that it gets all turns.
    const { body } = harness.upstream.requests.at(-1)!
    expect(harness.upstream.requests.length).toBe(before + 1)
    expect(JSON.parse(body.toString()).previous_response_id).toBeUndefined()
    expect(body.toString()).toContain('data: word0 ')
  },
)
