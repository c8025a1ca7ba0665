// Gemini does not promise as many candidates as were requested. Its streams have no last event: they are complete if every
// candidate that has begun is finished when the upstream ends its answer.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, end, head, script } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { post, rawRequest } from '../support/raw.ts'
import { eventsOfBody, rawCallers } from './raw-callers.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_ATTEMPTS: '1' } })
  key = await harness.key({ credit: '1000', qpm: 100_000 })
})
afterAll(() => harness.stop())

const started = (index: number, text: string): object => ({ candidates: [{ index, content: { parts: [{ text }] } }] })
const finished = (index: number): object => ({
  candidates: [{ index, content: { parts: [{ text: '' }] }, finishReason: 'STOP' }],
})

const bodyOf = {
  'gemini': { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { candidateCount: 2 } },
  'openai-chat': { stream: true, n: 2, messages: [{ role: 'user', content: 'Hi' }] },
} as const

type Caller = keyof typeof bodyOf

async function ask(caller: Caller, answer: readonly object[], ending: Step) {
  const events = answer.map(data => chunk(`data: ${JSON.stringify(data)}\n\n`))
  const headers = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }
  harness.upstream.plan(script(head(200, headers), ...events, ending))
  const model = modelOf('gemini')
  const path = rawCallers[caller].path({ model, stream: true })
  const request = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const { body } = await rawRequest(harness.url, post(path, request, JSON.stringify({ model, ...bodyOf[caller] })))
  await harness.idle()
  return { events: eventsOfBody(caller, body), outcome: harness.lastRecord()!.outcome }
}

const callers: readonly Caller[] = ['gemini', 'openai-chat']

test.each(callers)('a caller of %s gets one candidate of two', async caller => {
  const { events, outcome } = await ask(caller, [started(0, 'Hel'), started(0, 'lo'), finished(0)], end)
  expect(outcome).toBe('completed')
  expect(rawCallers[caller].completed(events)).toBe('Hello')
})

test.each(callers)('a caller of %s gets an error if the second candidate is not finished', async caller => {
  const { outcome } = await ask(caller, [started(0, 'Hello'), started(1, 'Hel'), finished(0)], end)
  expect(outcome).toBe('upstream_failed')
})

test.each(callers)('a caller of %s gets an error if the connection breaks', async caller => {
  const { outcome } = await ask(caller, [started(0, 'Hello'), finished(0)], close)
  expect(outcome).toBe('upstream_failed')
})
