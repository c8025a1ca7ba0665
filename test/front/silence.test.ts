// A stream whose upstream is silent: the head is sent anyway, has only what is known, and the rest follows.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { fail, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, startHarness } from '../support/gateway.ts'
import { goodBody } from './asking.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness({ world: { silence: { headMs: 60, heartbeatMs: 20 } } })
})
afterAll(() => harness.stop())

/** The head of the answer while the upstream is silent, and the body once the upstream continues with `script`. */
async function inSilence(script: Script): Promise<{ answer: Response; body: string }> {
  const opens = Promise.withResolvers<void>()
  harness.upstream.plan(
    scripted(function* silentFirst(request) {
      yield gate(opens.promise)
      yield* script.steps(request)
    }),
  )
  const answer = await chat(harness, await harness.key(), goodBody({ stream: true }), { 'x-weir-comments': 'on' })
  const reader = answer.body!.getReader()
  const decoder = new TextDecoder()
  let body = decoder.decode((await reader.read()).value)
  expect(body).toMatch(/^(: \n\n)+$/)
  opens.resolve()
  for (let read = await reader.read(); !read.done; read = await reader.read()) body += decoder.decode(read.value)
  return { answer, body }
}

const FIGURES = ': X-Pipeline-Breakdown fwd=\\d+ cost=\\d+ deduct=\\d+ record=\\d+ bodies=\\d+\n\n'

function expectHead(answer: Response): void {
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-pipeline-auth')).toMatch(/^pass \(\d+ms, tier=pro\)$/)
  expect(answer.headers.get('x-pipeline-ratelimit')).toMatch(/^pass \(\d+ms\)$/)
  expect(answer.headers.get('x-pipeline-route')).toMatch(/^pass \(\d+ms, openai.*gpt-4o-mini\)$/)
  expect(answer.headers.get('x-pipeline-breakdown')).toMatch(/^fwd=\d+ cost=\d+ deduct=\d+ record=0 bodies=0$/)
  // The result of the stage is not known yet: neither `done` nor `fail` would be true.
  expect(answer.headers.get('x-pipeline-adapter')).toBeNull()
}

test('the answer follows when it arrives', async () => {
  const { answer, body } = await inSilence(streamed(['Hello, ', 'river']))
  expectHead(answer)
  expect(body).toMatch(new RegExp(`^(: \n\n)+data: .*river.*\n\n${FIGURES}data: \\[DONE\\]\n\n$`, 's'))
})

test('a failure follows as an error event, with a valid end', async () => {
  const { answer, body } = await inSilence(fail(500))
  expectHead(answer)
  const id = answer.headers.get('x-request-id')
  const error = '\\{"error":\\{"message":".*","type":".*","param":null,"code":".*"\\},"request_id":"'
  expect(body).toMatch(new RegExp(`^(: \n\n)+${FIGURES}data: ${error}${id}"\\}\n\ndata: \\[DONE\\]\n\n$`))
})
