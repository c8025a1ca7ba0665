// The split of a stream into chunks and its line endings do not matter: in every dialect, native and translated, the caller
// gets each event once.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildFramesTo, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, reset, script, scripted, split } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { CallerDialect, Json } from './raw-callers.ts'
import { callers, eventsOfBody, rawCallers, requestOf } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
  key = await harness.key({ qpm: 100_000, credit: '1000' })
})
afterAll(() => harness.stop())

interface StreamFormat {
  readonly ending?: string
  readonly size?: number
  /** Changes the text of the whole stream. */
  change?(text: string): string
}

const same = (text: string): string => text

/** A stream in the dialect of the request, with these line endings and chunk sizes. */
const streamWith = (
  pieces: readonly string[],
  { ending = '\n', size = 1 << 20, change = same }: StreamFormat,
): Script =>
  scripted(function* steps(request) {
    const text = Array.from(buildFramesTo(request, pieces), formatEvent).join('')
    yield streamHead
    yield* split(change(text.replaceAll('\n', ending)), size)
    yield end
  })

async function ask(callerDialect: CallerDialect, upstream: Dialect, script: Script): Promise<string> {
  harness.upstream.plan(script)
  const caller = openRaw(harness.url, requestOf(callerDialect, key, { model: modelOf(upstream), stream: true }))
  await caller.whole()
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return `${caller.status} ${caller.text}`
}

async function textOf(callerDialect: CallerDialect, upstream: Dialect, script: Script): Promise<string> {
  const [, status, body] = /^(\d+) (.*)$/s.exec(await ask(callerDialect, upstream, script))!
  expect([status, body]).toEqual(['200', body])
  // Events without data must not reach the caller: an SDK would fail to parse them.
  return rawCallers[callerDialect].completed(eventsOfBody(callerDialect, body!))
}

const pairs = callers.flatMap(callerDialect => dialects.map(upstream => [callerDialect, upstream] as const))
const endings = ['\n', '\r\n', '\r']

describe.each(pairs)('a stream of %s on %s', (callerDialect, upstream) => {
  test.each(endings)('with the line ending %j can be split anywhere', async ending => {
    for (const size of [1 << 20, 1, 7]) {
      expect(await textOf(callerDialect, upstream, streamWith(['Hel', 'lo'], { ending, size }))).toBe('Hello')
    }
  })

  test.each(endings)('of one event with the line ending %j is delivered once', async ending => {
    for (const size of [1 << 20, 1]) {
      expect(await textOf(callerDialect, upstream, streamWith(['Hello'], { ending, size }))).toBe('Hello')
    }
  })

  test('needs no blank line after its last event', async () => {
    for (const rest of ['', '\n', '\r', '\r\n']) {
      const change = (text: string): string => text.trimEnd() + rest
      expect(await textOf(callerDialect, upstream, streamWith(['Hel', 'lo'], { change }))).toBe('Hello')
    }
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed' })
  })

  test('that is cut in its last event is failed', async () => {
    // Cut in the middle of the text, before the finish reason.
    const change = (text: string): string => text.slice(0, text.indexOf('THERE') + 3)
    const [, body] = /^200 (.*)$/s.exec(
      await ask(callerDialect, upstream, streamWith(['Hel', 'lo', 'THERE'], { change })),
    )!
    rawCallers[callerDialect].failed(eventsOfBody(callerDialect, body!))
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed' })
  })

  test('may contain a byte order mark, comments, other fields and empty events', async () => {
    const change = (text: string): string =>
      `\ufeff${text.replaceAll('\n\n', '\n\n: c\n\ndata:\n\nevent: x\nid: 1\nretry: 5\n\ndata: \n\n')}`
    expect(await textOf(callerDialect, upstream, streamWith(['Hel', 'lo'], { change }))).toBe('Hello')
  })
})

/** Only Gemini may send a whole answer in one event, whose end is then the end of the stream. */
test.each(callers.map(one => [one]))('a Gemini stream of one event is delivered to %s once', async callerDialect => {
  const content = { role: 'model', parts: [{ text: 'Hello' }] }
  const json = JSON.stringify({
    candidates: [{ content, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  })
  for (const rest of ['', '\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r', '\r\n\r\n']) {
    const one = script(streamHead, chunk(`data: ${json}${rest}`), end)
    expect([rest, await textOf(callerDialect, 'gemini', one)]).toEqual([rest, 'Hello'])
  }
  expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', output_tokens: 2 })
})

test('a candidate goes on while another one is finished', async () => {
  const candidate = (index: number, text: string, more: object = {}): string =>
    `data: ${JSON.stringify({ candidates: [{ index, content: { role: 'model', parts: [{ text }] }, ...more }] })}\n\n`
  const [one, two] = [candidate(0, 'one', { finishReason: 'STOP' }), candidate(1, 'two')]
  const last = candidate(1, 'last', { finishReason: 'STOP' })
  const rest = Promise.withResolvers<void>()
  harness.upstream.plan(script(streamHead, chunk(one), chunk(two), gate(rest.promise), chunk(last), end))
  const body = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { candidateCount: 2 } }
  const path = `/v1beta/models/${modelOf('gemini')}:streamGenerateContent?alt=sse`
  const caller = openRaw(
    harness.url,
    post(path, { 'x-goog-api-key': key, 'content-type': 'application/json' }, JSON.stringify(body)),
  )
  await caller.until(({ text }) => text.includes('two'), 'what the second candidate says')
  rest.resolve()
  expect((await caller.whole()).text).toBe(one + two + last)
  await harness.idle()
})

describe.each(callers.map(one => [one]))('a Gemini stream for a caller of %s', speaker => {
  const event = (text: string, more: object = {}): string =>
    `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, ...more }] })}\n\n`
  const stop = { finishReason: 'STOP' }
  const usage = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 }
  const last = `data: ${JSON.stringify({ candidates: [{ index: 0, ...stop }], usageMetadata: usage })}\n\n`
  const request = (stream = true) => requestOf(speaker, key, { model: modelOf('gemini'), stream })
  const { completed, failed, whole } = rawCallers[speaker]

  test('that says too early that it has finished is delivered as it arrives', async () => {
    const rest = Promise.withResolvers<void>()
    const early = chunk(event('', stop) + event('one ', stop) + event('two '))
    harness.upstream.plan(script(streamHead, early, gate(rest.promise), chunk(event('three') + last), end))
    const caller = openRaw(harness.url, request())
    await caller.until(({ text }) => text.includes('two'), 'what has been said')
    rest.resolve()
    expect(completed(eventsOfBody(speaker, (await caller.whole()).body))).toBe('one two three')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', output_tokens: 2 })
  })

  test('that breaks off after that is no complete answer', async () => {
    const broken = Promise.withResolvers<void>()
    harness.upstream.plan(script(streamHead, chunk(event('one ', stop) + event('two ')), gate(broken.promise), reset))
    const caller = openRaw(harness.url, request())
    await caller.until(({ text }) => text.includes('two'), 'what has been said')
    broken.resolve()
    const events = eventsOfBody(speaker, (await caller.whole()).body)
    // Callers of Gemini get the upstream's own events.
    if (speaker.startsWith('gemini')) expect(events.at(-1)).toStartWith('{"error"')
    else expect(failed(events)).toBeDefined()
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'upstream_failed' })
  })

  test('that ends with [DONE] is complete', async () => {
    for (const stream of speaker === 'gemini-array' ? [true] : [true, false]) {
      harness.upstream.plan(script(streamHead, chunk(event('Hi') + last + 'data: [DONE]\n\n'), end))
      const { status, body } = await openRaw(harness.url, request(stream)).whole()
      const said = stream ? completed(eventsOfBody(speaker, body)) : whole(JSON.parse(String(body)) as Json)
      expect([status, said]).toEqual([200, 'Hi'])
    }
    await harness.idle()
  })
})
