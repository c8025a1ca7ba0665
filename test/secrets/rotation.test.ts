// Secrets are rotated while calls run: no call fails, and what was made before stays valid.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { openCall } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import { bodiesWith, keysWith, kinds, marksIn, read, sealedWith, secretsIn } from './secret-rows.ts'

const MODEL = 'openai/gpt-4o-mini'
const ROUNDS = 3
/** At least so many calls are recorded between two rotations. */
const CALLS_BETWEEN = 20

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const operator = (command: string, input: object) => harness.weir(command, { ...input })
const rotate = (kind: string) => operator('rotate', { kind })
const tokenOf = async (): Promise<string> => String((await operator('token', {})).token)

async function web(token: string): Promise<number> {
  const answer = await fetch(`${harness.url}/api/web/me`, { headers: { authorization: `Bearer ${token}` } })
  await answer.body?.cancel()
  return answer.status
}

const respond = (key: string, body: object): Promise<Response> =>
  fetch(`${harness.url}/v1/responses`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo/echo', ...body }),
  })

const idempotent = (key: string, name: string): Promise<Response> =>
  chat(harness, key, { model: MODEL, messages: hello }, { 'idempotency-key': name })

/** Makes calls of all kinds, one after the other, until stopped; collects every status that was not 200. */
function callOn(key: string, failed: unknown[]): () => Promise<number> {
  let [stopped, count] = [false, 0]
  async function loop(): Promise<void> {
    while (!stopped) {
      const stream = count % 2 === 0
      const answer = await (count % 5 === 4
        ? respond(key, { input: `turn ${count}` })
        : count % 5 === 3
          ? idempotent(key, `call-${count}`)
          : chat(harness, key, { model: MODEL, messages: hello, stream }))
      const text = await answer.text()
      const isComplete = !stream || count % 5 > 2 || text.includes('[DONE]')
      if (answer.status !== 200 || !isComplete) failed.push([count, answer.status, text])
      count++
    }
  }
  const looping = loop()
  return async () => {
    stopped = true
    await looping
    return count
  }
}

/** A call whose bodies are stored, which is best effort. */
async function callWithStoredBodies(key: string): Promise<string> {
  for (;;) {
    const answer = await chat(harness, key, { model: MODEL, messages: hello })
    await answer.text()
    const call = answer.headers.get('x-request-id')!
    if (
      await operator('bodies', { call }).then(
        () => true,
        () => false,
      )
    )
      return call
  }
}

test('all three secrets are rotated several times under load', async () => {
  const keys = await Promise.all(Array.from({ length: 12 }, () => harness.key({ qpm: 100_000 })))
  await operator('keys set', { key: keys[0], bodies: 'on' })
  const ends = Promise.withResolvers<void>()
  const held = keys.slice(0, 6).map(key => {
    harness.upstream.plan(pausedStream(['from before '], ends.promise))
    return openCall(harness, key, { stream: true })
  })
  await Promise.all(
    held.map(caller => caller.until(({ text }) => text.includes('from before'), 'the stream has started')),
  )
  const codes = (await operator('codes create', { count: '1', amount: '3' })).codes as string[]
  const tokens = [await tokenOf()]
  const before = { stored: (await (await respond(keys[1]!, { input: 'Keep this' })).json()) as { id: string } }
  const first = await idempotent(keys[2]!, 'before')
  const firstText = await first.text()
  const storedId = await callWithStoredBodies(keys[0]!)

  const failed: unknown[] = []
  const loops = keys.map(key => callOn(key, failed))
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of kinds) {
      const marks = marksIn(harness.folder, kind)
      const count = harness.recordCount()
      expect(await rotate(kind)).toMatchObject({ rotated: kind, older: round + 1 })
      expect(marksIn(harness.folder, kind)).toEqual([expect.any(String), ...marks])
      tokens.push(await tokenOf())
      // Tokens that were made with the former and the current secrets, at each step.
      expect(await Promise.all(tokens.map(web))).toEqual(tokens.map(() => 200))
      await until(() => harness.recordCount() > count + CALLS_BETWEEN, 'calls go on')
    }
  }
  const counts = await Promise.all(loops.map(stop => stop()))
  ends.resolve()
  const answered = await Promise.all(held.map(caller => caller.whole()))
  expect(failed).toEqual([])
  expect(answered.map(({ status, text }) => [status, text.includes('[DONE]')])).toEqual(held.map(() => [200, true]))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(ROUNDS * kinds.length * CALLS_BETWEEN)

  const replayed = await idempotent(keys[2]!, 'before')
  expect([replayed.headers.get('x-weir-replayed'), await replayed.text()]).toEqual([
    first.headers.get('x-request-id'),
    firstText,
  ])
  const headers = { authorization: `Bearer ${keys[1]!}` }
  const stored = await fetch(`${harness.url}/v1/responses/${before.stored.id}`, { headers })
  expect([stored.status, await stored.text()]).toEqual([200, expect.stringContaining('Keep this')])
  const bodies = await operator('bodies', { call: storedId })
  expect(JSON.stringify(bodies.request)).toContain('Hello, river')
  expect(await operator('codes redeem', { code: codes[0], account: keys[3] })).toMatchObject({ amount: '3.00' })

  const [newest] = marksIn(harness.folder, 'encryption')
  const [pepper] = marksIn(harness.folder, 'pepper')
  await until(() => Object.keys(sealedWith(harness.folder)).join() === newest, 'all is sealed anew')
  await until(() => keysWith(harness.folder)[pepper!] === keys.length, 'all keys are digested anew')
  await until(() => bodiesWith(harness.folder).join() === newest, 'so are bodies')
  const rotated = read<{ target: string }>(harness.folder, "SELECT target FROM audit WHERE action = 'noteSecrets'")
  expect(rotated).toHaveLength(ROUNDS * kinds.length)
  for (const text of [...harness.logs, JSON.stringify(read(harness.folder, 'SELECT * FROM audit'))]) {
    for (const kind of kinds) for (const secret of secretsIn(harness.folder, kind)) expect(text).not.toContain(secret)
  }
})
