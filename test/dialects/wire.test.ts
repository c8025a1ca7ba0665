// How the bytes of a stream are cut, and how its lines end, means nothing: in every dialect, native and translated,
// the caller gets each event once.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildFramesTo, streamHead } from '../../tools/fake-upstream/answers.ts'
import { formatEvent } from '../../tools/fake-upstream/dialect.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, end, script, scripted, split } from '../../tools/fake-upstream/script.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { CallerDialect } from './raw-callers.ts'
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

interface Written {
  readonly ending?: string
  readonly size?: number
  /** Changes the text of the whole stream. */
  change?(text: string): string
}

const same = (text: string): string => text

/** The stream of an upstream of the dialect that it is asked in. */
const written = (pieces: readonly string[], { ending = '\n', size = 1 << 20, change = same }: Written): Script =>
  scripted(function* steps(request) {
    const text = Array.from(buildFramesTo(request, pieces), formatEvent).join('')
    yield streamHead
    yield* split(change(text.replaceAll('\n', ending)), size)
    yield end
  })

async function ask(speaker: CallerDialect, upstream: Dialect, script: Script): Promise<string> {
  harness.upstream.plan(script)
  const caller = openRaw(harness.url, requestOf(speaker, key, { model: modelOf(upstream), stream: true }))
  await caller.whole()
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  return `${caller.status} ${caller.text}`
}

async function textOf(speaker: CallerDialect, upstream: Dialect, script: Script): Promise<string> {
  const [, status, body] = /^(\d+) (.*)$/s.exec(await ask(speaker, upstream, script))!
  expect([status, body]).toEqual(['200', body])
  // Events of nothing pass nowhere: an SDK would parse them, and fail.
  return rawCallers[speaker].completed(eventsOfBody(speaker, body!))
}

const pairs = callers.flatMap(speaker => dialects.map(upstream => [speaker, upstream] as const))
const endings = ['\n', '\r\n', '\r']

describe.each(pairs)('%s on %s', (speaker, upstream) => {
  test.each(endings)('lines that end with %j, cut anywhere', async ending => {
    for (const size of [1 << 20, 1, 7]) {
      expect(await textOf(speaker, upstream, written(['Hel', 'lo'], { ending, size }))).toBe('Hello')
    }
  })

  test.each(endings)('one event, whose lines end with %j, is told once', async ending => {
    for (const size of [1 << 20, 1]) {
      expect(await textOf(speaker, upstream, written(['Hello'], { ending, size }))).toBe('Hello')
    }
  })

  test('the last event has no blank line behind it', async () => {
    for (const rest of ['', '\n', '\r', '\r\n']) {
      const change = (text: string): string => text.trimEnd() + rest
      expect(await textOf(speaker, upstream, written(['Hel', 'lo'], { change }))).toBe('Hello')
    }
    expect(harness.records().at(-1)).toMatchObject({ outcome: 'completed' })
  })

  test('the last event of a stream that is not over was cut', async () => {
    // In the middle of the text, long before anything says that the model is done.
    const change = (text: string): string => text.slice(0, text.indexOf('THERE') + 3)
    const [, body] = /^200 (.*)$/s.exec(await ask(speaker, upstream, written(['Hel', 'lo', 'THERE'], { change })))!
    rawCallers[speaker].failed(eventsOfBody(speaker, body!))
    expect(harness.records().at(-1)).toMatchObject({ outcome: 'upstream_failed' })
  })

  test('a byte order mark, comments, fields and events of nothing are passed over', async () => {
    const change = (text: string): string =>
      `\ufeff${text.replaceAll('\n\n', '\n\n: c\n\ndata:\n\nevent: x\nid: 1\nretry: 5\n\ndata: \n\n')}`
    expect(await textOf(speaker, upstream, written(['Hel', 'lo'], { change }))).toBe('Hello')
  })
})

/** Of all dialects only this one may say everything in one event, whose end is then the end of the stream. */
test.each(callers.map(one => [one]))('Gemini in one event, told to %s once', async speaker => {
  const content = { role: 'model', parts: [{ text: 'Hello' }] }
  const json = JSON.stringify({
    candidates: [{ content, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  })
  for (const rest of ['', '\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r', '\r\n\r\n']) {
    const one = script(streamHead, chunk(`data: ${json}${rest}`), end)
    expect([rest, await textOf(speaker, 'gemini', one)]).toEqual([rest, 'Hello'])
  }
  expect(harness.records().at(-1)).toMatchObject({ outcome: 'completed', output_tokens: 2 })
})
