// Calls whose funds end before their answer: official SDKs of every dialect, on upstreams of every dialect, plain and
// streamed, get what the funds cover, and an end that their dialect allows. Nothing is charged beyond the balance.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { silence, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello } from '../support/gateway.ts'
import { ways } from './clients/client.ts'
import { clients } from './clients/list.ts'
import { dialects, modelOf, modelsWithoutThinking, startDialects } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ models: modelsWithoutThinking })
})
afterAll(() => harness.stop())

/** About 400 tokens of output at $2 a million, and 1,000 of input at $1. */
const LITTLE = '0.0018'
const words = Array.from({ length: 1_000 }, (_, at) => `word${at} `)

describe.each(clients.map(client => [client.name, client] as const))('%s', (_name, client) => {
  test.each(dialects.flatMap(upstream => ways.map(way => [upstream, way] as const)))(
    'on %s, %s: the answer ends where the money ends',
    async (upstream, way) => {
      const key = await harness.key({ credit: LITTLE })
      harness.upstream.plan(streamed(words))
      const session = client.connect(harness.url, key)
      const reply = await session.ask(way, { model: modelOf(upstream, 'lorem'), turns: [session.user('Count')] })
      await harness.idle()
      expect(words.join('')).toStartWith(reply.text)
      expect(reply.text.length).toBeWithin(400, words.join('').length - 400)
      expect(reply.finish).toBe('other')
      const record = harness.lastRecord()!
      expect(record).toMatchObject({ outcome: 'out_of_funds', error: 'balance_too_low', status: 200, shortfall: 0 })
      const { balance, held } = await harness.balance(key)
      expect(Number(held)).toBe(0)
      expect(Number(balance)).toBeWithin(0, Number(LITTLE))
      expect(record.output_tokens as number).toBeWithin(100, 800)
      expect([reply.usage.input, reply.usage.output]).toEqual([record.input_tokens, record.output_tokens] as number[])
    },
  )
})

describe('a model that reasons unseen until the money ends', () => {
  const traits = { thinking: 'effort', hidesThinking: true, tokensPerSecondMax: 100_000 }
  let reasoning: Harness
  beforeAll(async () => {
    reasoning = await startDialects({ models: [{ ...modelsWithoutThinking[0], traits }] })
  })
  afterAll(() => reasoning.stop())

  test.each([false, true])('streamed %p: the call is stopped, refused, and pays all that is left', async stream => {
    const key = await reasoning.key({ credit: LITTLE })
    reasoning.upstream.plan(silence())
    const response = await chat(reasoning, key, { model: modelOf('openai-chat'), messages: hello, stream })
    expect([response.status, await response.text()]).toEqual([402, expect.stringContaining('insufficient_balance')])
    await reasoning.idle()
    const record = reasoning.lastRecord()!
    expect(record).toMatchObject({ rule: 'out_of_funds_waiting', usage_source: 'estimated', status: 402, shortfall: 0 })
    const { balance, held } = await reasoning.balance(key)
    expect([Number(held), Number(balance) >= 0, Number(balance) < 0.0002]).toEqual([0, true, true])
  })
})
