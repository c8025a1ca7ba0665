// However a call ends, its concurrency slot is free afterwards, and of the tokens that were reserved for it only those
// stay counted that it used.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { textId } from '../../src/base/ids.ts'
import {
  errorMidStream,
  fail,
  garbage,
  resetAfterRequest,
  resetMidStream,
  silence,
  streamed,
  truncatedStream,
} from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import { openCall } from '../forwarding/caller.ts'
import { closedGate } from '../support/closed-gate.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, HUNG_MS, hello, until } from '../support/gateway.ts'

const MODEL = 'openai/gpt-4o-mini'
const PLACES = 2
/** More than any of these calls reserves, so that only concurrency slots are scarce. A second refills two of them. */
const TOKENS = 200_000
/** Calls that are held back wait as long as they must. */
const attemptTimes = { firstContentMs: HUNG_MS, betweenChunksMs: HUNG_MS }

let harness: Harness
let key: string

beforeAll(async () => {
  harness = await startDialects({
    env: { WEIR_DRAIN_SECONDS: '0' },
    world: { attemptTimes },
  })
  await harness.weir('limits set', { resource: 'concurrency', amount: String(PLACES), per: 'key' })
  await harness.weir('limits set', { resource: 'tokens', amount: `${TOKENS}/day`, per: 'key' })
})
afterAll(() => harness.stop())
beforeEach(async () => {
  key = await harness.key({ qpm: 100_000 })
})

type Ends = () => Promise<unknown>

const body = { model: MODEL, messages: hello }
/** A call at a provider without failures. */
const lastCall = { model: modelOf('ark'), messages: hello, max_tokens: 1 }

/** Makes the call and reads its answer. */
const readAnswer =
  (more: object = {}, headers: Record<string, string> = {}): Ends =>
  async () => {
    const response = await chat(harness, key, { ...body, ...more }, headers)
    await response.text()
    return response.status
  }

const planned =
  (script: Script, more: object = {}): Ends =>
  async () => {
    harness.upstream.plan(script)
    return await readAnswer(more)()
  }

/** The caller leaves when its request is upstream. */
const callerLeaves =
  (script: Script, more: object = {}): Ends =>
  async () => {
    harness.upstream.plan(script)
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, more)
    await received
    caller.leave()
    await harness.idle()
  }

/** An upstream that is silent meanwhile is given up soon. */
const impatiently =
  (ends: Ends): Ends =>
  async () => {
    Object.assign(attemptTimes, { firstContentMs: 700, betweenChunksMs: 700 })
    try {
      return await ends()
    } finally {
      Object.assign(attemptTimes, { firstContentMs: HUNG_MS, betweenChunksMs: HUNG_MS })
    }
  }

async function inBackground(): Promise<void> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const call = JSON.stringify({ model: MODEL, input: 'Hello river', background: true })
  const created = await fetch(`${harness.url}/v1/responses`, { method: 'POST', headers, body: call })
  expect(((await created.json()) as { status: string }).status).toBe('queued')
  await harness.idle()
}

let times = 0
async function repeated(): Promise<void> {
  const name = { 'idempotency-key': `place-${times++}` }
  expect(await readAnswer({}, name)()).toBe(200)
  expect(await readAnswer({}, name)()).toBe(200)
  expect(await readAnswer({ max_tokens: 7 }, name)()).toBe(422)
}

const stream = { stream: true }
const endings: Readonly<Record<string, Ends>> = {
  'a plain answer': readAnswer(),
  'a stream': readAnswer(stream),
  'a failure upstream': planned(fail(500)),
  'a refusal upstream': planned(fail(400)),
  'a reset': planned(resetAfterRequest()),
  'garbage': planned(garbage()),
  'silence': impatiently(planned(silence())),
  'silence of a stream': impatiently(planned(silence(), stream)),
  'a stream that is cut': planned(truncatedStream(), stream),
  'a stream that is reset': planned(resetMidStream(), stream),
  'an error in a stream': planned(errorMidStream(), stream),
  'a caller that leaves before its answer': callerLeaves(silence()),
  'a caller that leaves its stream': callerLeaves(streamed(['He', 'llo']), stream),
  'a body that is none': async () => (await chat(harness, key, '{')).text(),
  'a model that is not there': readAnswer({ model: 'openai/none' }),
  'a provider that is not there': readAnswer({ model: 'none/none' }),
  'more than its funds cover': async () => {
    const penniless = await harness.key({ credit: '0', qpm: 100_000 })
    expect((await chat(harness, penniless, body)).status).toBe(402)
  },
  'an answer that is given again': repeated,
  'a call in the background': inBackground,
}

test.each(Object.entries(endings))('%s', async (_name, ends) => {
  // One after the other, until no slot would be left.
  for (let round = 0; round < PLACES; round++) await ends()
  await harness.idle()
  const used = await tokensUsed()
  const closed = closedGate()
  harness.upstream.plan(...Array.from({ length: PLACES }, () => closed.script))
  const first = Array.from({ length: PLACES }, () => chat(harness, key, lastCall))
  await until(() => closed.taken() === PLACES, 'every place is free')
  const refused = await chat(harness, key, lastCall)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('x-pipeline-ratelimit')).toContain('reason=concurrency_exceeded')
  // What the two calls reserve until they have ended; and what time refills.
  const size = Math.ceil(JSON.stringify(lastCall).length / 4) + 1
  const remaining = Number(refused.headers.get('x-ratelimit-remaining-tokens'))
  const expected = TOKENS - PLACES * size - used
  expect(remaining).toBeWithin(expected, expected + 100)
  closed.open()
  for (const answer of first) expect((await answer).status).toBe(200)
})

/** The tokens according to the records. */
async function tokensUsed(): Promise<number> {
  const { id } = await harness.weir('keys show', { key })
  const ownRecords = harness.records().filter(({ key_id }) => textId('key', Number(key_id)) === id)
  return ownRecords.reduce(
    (sum, { input_tokens, output_tokens }) => sum + Number(input_tokens) + Number(output_tokens),
    0,
  )
}
