// Citations reach callers of every dialect, wherever and in whichever order the upstream sends them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import type { Json } from './raw-callers.ts'
import { eventsOfBody, requestOf } from './raw-callers.ts'
import { plainJson, streamedJson } from './reasons.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key({ credit: '1000', qpm: 100_000 })
})
afterAll(() => harness.stop())

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])

interface Citation {
  readonly url?: unknown
  readonly title?: unknown
  readonly start?: unknown
  readonly end?: unknown
}

const annotated = (annotation: Json): Citation => {
  const { url, title, start_index: start, end_index: end } = (annotation.url_citation ?? annotation) as Json
  return { url, title, start, end }
}

function grounded(candidate: Json | undefined): readonly Citation[] {
  const { groundingChunks: chunks, groundingSupports: supports } = (candidate?.groundingMetadata ?? {}) as Json
  const sources = list(chunks).map(({ web, retrievedContext }) => (web ?? retrievedContext) as Json)
  const placed = list(supports).map(({ segment, groundingChunkIndices }) => {
    const { startIndex, endIndex } = segment as Json
    const { uri, title } = sources[(groundingChunkIndices as [number])[0]]!
    return { url: uri, title, start: startIndex, end: endIndex }
  })
  return placed.length > 0 ? placed : sources.map(({ uri, title }) => ({ url: uri, title }))
}

/** The citations of one answer, plain or as events. */
const citedIn: Readonly<Record<Dialect, (answers: readonly Json[]) => readonly Citation[]>> = {
  'openai-chat': answers =>
    answers
      .flatMap(({ choices }) => list(choices))
      .flatMap(({ message, delta }) => list(((message ?? delta) as Json).annotations))
      .map(annotated),
  'ark': answers => citedIn['openai-chat'](answers),
  'openai-responses': answers => {
    const whole = answers.map(json => (isLast(json) ? (json.response as Json) : json)).findLast(({ output }) => output)
    const parts = list(whole?.output).flatMap(({ content }) => list(content))
    return parts.flatMap(part => list(part.annotations)).map(annotated)
  },
  'anthropic-messages': answers =>
    answers
      .flatMap(({ content, delta }) => [
        ...list(content).flatMap(block => list(block.citations)),
        ...((delta as Json | undefined)?.citation === undefined ? [] : [(delta as Json).citation as Json]),
      ])
      .map(({ url, title }) => ({ url, title })),
  'gemini': answers =>
    grounded(
      answers
        .flatMap(({ candidates }) => list(candidates))
        .find(candidate => candidate.groundingMetadata !== undefined),
    ),
}

const isLast = ({ type }: Json): boolean => type === 'response.completed' || type === 'response.incomplete'

interface Result {
  readonly cited: readonly Citation[]
  readonly losses: string
  readonly answers: readonly Json[]
}

/** Delivers one answer of an upstream, plain or as events, to a caller of a dialect. */
async function ask(
  caller: Dialect,
  upstream: Dialect,
  upstreamAnswer: Json | readonly (Json | string)[],
): Promise<Result> {
  const stream = Array.isArray(upstreamAnswer)
  harness.upstream.plan(stream ? streamedJson(upstreamAnswer as readonly Json[]) : plainJson(upstreamAnswer as Json))
  const request = requestOf(caller, key, { model: modelOf(upstream), stream })
  const answer = await rawRequest(harness.url, request)
  expect([answer.status, String(answer.body)]).toEqual([200, expect.any(String)])
  await harness.idle()
  const bodies = stream ? eventsOfBody(caller, answer.body).filter(data => data.startsWith('{')) : [String(answer.body)]
  const answers = bodies.map(body => JSON.parse(body) as Json)
  return { answers, cited: citedIn[caller](answers), losses: String(harness.records().at(-1)!.loss ?? '') }
}

const others = (upstream: Dialect): readonly Dialect[] => dialects.filter(dialect => dialect !== upstream)

describe('sources in an answer of openai-chat', () => {
  const text = 'Water is wet [1]. So is ice[2], they say [1][9].'
  const [first, second] = ['https://a.example/1', 'https://b.example/2']
  const top = {
    citations: [first, second],
    search_results: [
      { title: 'B', url: second, date: '2025-01-01', snippet: 'about ice' },
      { title: 'A', url: first, date: null },
    ],
  }
  const head = { id: 'c', object: 'chat.completion', created: 1, model: 'sonar' }
  const message = { role: 'assistant', content: text }
  const whole = { ...head, ...top, choices: [{ index: 0, message, delta: { content: '' }, finish_reason: 'stop' }] }
  /** Each chunk repeats the sources and the text so far. */
  const pieces = (...cuts: readonly number[]): readonly (Json | string)[] => {
    const ends = [...cuts, text.length]
    return [
      ...ends.map((end, at) => ({
        ...head,
        object: 'chat.completion.chunk',
        ...top,
        choices: [
          {
            index: 0,
            delta: { role: 'assistant', content: text.slice(ends[at - 1] ?? 0, end) },
            message: { role: 'assistant', content: text.slice(0, end) },
            finish_reason: end === text.length ? 'stop' : null,
          },
        ],
      })),
      '[DONE]',
    ]
  }
  const marks = [13, 41, 27].map(start => ({ start, end: start + 3 }))
  const expected: readonly Citation[] = [
    { url: first, title: 'A', ...marks[0] },
    { url: first, title: 'A', ...marks[1] },
    { url: second, title: 'B', ...marks[2] },
  ]

  test.each(others('openai-chat').map(caller => [caller]))(
    'reach %s at the positions of their markers',
    async caller => {
      // anthropic-messages has no positions of citations.
      const placed = caller === 'anthropic-messages' ? expected.map(({ url, title }) => ({ url, title })) : expected
      for (const upstreamAnswer of [whole, pieces(), pieces(14, 15, 28), pieces(...text.split('').keys())]) {
        const result = await ask(caller, 'openai-chat', upstreamAnswer)
        expect(result.cited).toEqual(placed)
        expect(result.losses).toBe('')
      }
      expect(
        JSON.stringify((await ask(caller, 'openai-chat', pieces(20))).answers).split('Water is wet').length - 1,
      ).toBe(caller === 'openai-responses' ? 5 : 1) // openai-responses repeats the text in its final events
    },
  )

  test('without markers cite the whole text', async () => {
    const plain = { ...whole, choices: [{ index: 0, message: { content: 'Wet.' }, finish_reason: 'stop' }] }
    const { cited } = await ask('openai-responses', 'openai-chat', plain)
    expect(cited).toEqual([
      { url: first, title: 'A', start: 0, end: 4 },
      { url: second, title: 'B', start: 0, end: 4 },
    ])
  })

  test('of other vendors are cited, with and without markers', async () => {
    const searched = {
      ...head,
      choices: [{ index: 0, message: { content: 'Wet [ref_2].' }, finish_reason: 'stop' }],
      web_search: [
        { refer: 'ref_1', title: 'A', link: first, content: 'c' },
        { refer: 'ref_2', title: 'B', link: second },
      ],
    }
    expect((await ask('openai-responses', 'openai-chat', searched)).cited).toEqual([
      { url: first, title: 'A', start: 0, end: 12 },
      { url: second, title: 'B', start: 4, end: 11 },
    ])
    const { cited } = await ask('anthropic-messages', 'openai-chat', searched)
    expect(cited.map(({ url }) => url)).toEqual([first, second])
  })

  test('are not cited twice if the message has annotations', async () => {
    const url_citation = { url: first, title: 'A', start_index: 0, end_index: 3 }
    const annotations = [{ type: 'url_citation', url_citation }]
    const both = { ...whole, choices: [{ index: 0, message: { content: 'Wet.', annotations }, finish_reason: 'stop' }] }
    const { cited } = await ask('openai-responses', 'openai-chat', { ...both, citations: [first], search_results: [] })
    expect(cited).toEqual([{ url: first, title: 'A', start: 0, end: 3 }])
  })

  test('are limited in number', async () => {
    const many = { ...whole, citations: Array.from({ length: 5_000 }, (_, at) => `https://a.example/${at}`) }
    expect((await ask('gemini', 'openai-chat', many)).cited.length).toBeLessThanOrEqual(256)
  })

  test('of an answer without text are reported as lost', async () => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const choices = [{ index: 0, message: { content: null, tool_calls }, finish_reason: 'tool_calls' }]
    const calling = { ...whole, choices }
    expect((await ask('anthropic-messages', 'openai-chat', calling)).losses).toContain('citations')
  })

  test('are cited also if they come before the text or between its chunks', async () => {
    const chunk = (delta: object, finish: string | null = null): Json => ({
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
    const note = { url: first, title: 'A', start_index: 0, end_index: 3 }
    const annotations = [{ type: 'url_citation', url_citation: note }]
    for (const at of [0, 1, 2]) {
      const upstreamAnswer = [chunk({ content: 'We' }), chunk({ content: 't.' })]
      const events = [...upstreamAnswer.toSpliced(at, 0, chunk({ annotations })), chunk({}, 'stop'), '[DONE]']
      const { cited, losses } = await ask('openai-responses', 'openai-chat', events)
      expect({ cited, losses }).toEqual({ cited: [{ url: first, title: 'A', start: 0, end: 3 }], losses: '' })
    }
  })
})

describe('the stream helper of the OpenAI SDK', () => {
  const texts = ['One ', 'two ', 'three']
  const citation = (at: number): Json => {
    return { type: 'web_search_result_location', url: `https://a.example/${at}`, title: `T${at}`, cited_text: 'c' }
  }
  const events: readonly Json[] = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [] } },
    ...texts.flatMap((text, index) => [
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
      ...[0, 1].map(at => ({
        type: 'content_block_delta',
        index,
        delta: { type: 'citations_delta', citation: citation(2 * index + at) },
      })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 1, output_tokens: 1 } },
    { type: 'message_stop' },
  ]

  test('reads all citations of a stream, because they come in one chunk', async () => {
    for (const Client of [OpenAI, OpenAI6 as unknown as typeof OpenAI]) {
      harness.upstream.plan(streamedJson(events))
      const client = new Client({ apiKey: key, baseURL: `${harness.url}/v1`, maxRetries: 0 })
      const model = modelOf('anthropic-messages')
      let lists = 0
      const stream = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'Hello' }] })
      stream.on('chunk', ({ choices: [choice] }) => void (choice?.delta && 'annotations' in choice.delta && lists++))
      const { content, annotations } = await stream.finalMessage()
      expect([content, lists]).toEqual(['One two three', 1])
      const places = annotations!.map(({ url_citation: at }) => [at.url.at(-1), at.start_index, at.end_index])
      expect(places as unknown).toEqual([
        ...[
          ['0', 0, 4],
          ['1', 0, 4],
          ['2', 4, 8],
          ['3', 4, 8],
          ['4', 8, 13],
          ['5', 8, 13],
        ],
      ])
    }
  })

  test('can tell several images of a stream apart', async () => {
    const inlineData = (data: string): Json => ({ inlineData: { mimeType: 'image/png', data } })
    const part = (one: Json): Json => ({ candidates: [{ index: 0, content: { role: 'model', parts: [one] } }] })
    const end = { candidates: [{ index: 0, finishReason: 'STOP' }] }
    const { answers } = await ask('openai-chat', 'gemini', [part(inlineData('AAAA')), part(inlineData('BBBB')), end])
    const images = answers.flatMap(({ choices }) => list(choices)).flatMap(({ delta }) => list((delta as Json).images))
    expect(images).toMatchObject([{ index: 0 }, { index: 1, image_url: { url: 'data:image/png;base64,BBBB' } }])
  })
})

/** All permutations. */
function* orders<One>(things: readonly One[]): Iterable<readonly One[]> {
  if (things.length === 0) yield []
  for (const [at, thing] of things.entries()) {
    for (const rest of orders(things.toSpliced(at, 1))) yield [thing, ...rest]
  }
}

describe('sources in an answer of gemini', () => {
  const text = 'Spain won Euro 2024.'
  const url = 'https://a.example/1'
  const kinds: readonly (readonly [string, Json, readonly Citation[]])[] = [
    [
      'groundingMetadata',
      {
        groundingMetadata: {
          webSearchQueries: ['euro'],
          groundingChunks: [{ web: { uri: url, title: 'A' } }],
          groundingSupports: [{ segment: { startIndex: 0, endIndex: 5, text: 'Spain' }, groundingChunkIndices: [0] }],
        },
      },
      [{ url, title: 'A', start: 0, end: 5 }],
    ],
    [
      'citationMetadata',
      {
        citationMetadata: { citationSources: [{ startIndex: 6, endIndex: 9, uri: url }] },
      },
      [{ url, title: '', start: 6, end: 9 }],
    ],
    [
      'urlContextMetadata',
      {
        urlContextMetadata: {
          urlMetadata: [
            { retrievedUrl: url, urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_SUCCESS' },
            { retrievedUrl: 'https://a.example/2', urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_ERROR' },
          ],
        },
      },
      [{ url, title: '', start: 0, end: text.length }],
    ],
  ]
  const signature = 'c2lnbmF0dXJl'
  const parts = {
    text: [{ text }],
    signature: [{ text: '', thoughtSignature: signature }],
    thought: [{ text: 'Hm.', thought: true }],
    call: [{ functionCall: { name: 'f', args: {} } }],
    both: [{ text, thoughtSignature: signature }],
  }
  const candidate = (content: readonly Json[], more: Json = {}): Json => ({
    modelVersion: 'm',
    responseId: 'r',
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
    candidates: [{ index: 0, ...(content.length > 0 && { content: { role: 'model', parts: content } }), ...more }],
  })
  const end = candidate([], { finishReason: 'STOP' })

  test.each(kinds)(
    'in %s are cited in every order of text, signature and metadata',
    async (_kind, metadata, expected) => {
      const steps = [candidate(parts.text), candidate(parts.signature), candidate([], metadata)]
      const streams = [
        ...[...orders(steps)].map(order => [...order, end]),
        [candidate(parts.both, metadata), end],
        [candidate(parts.both), candidate([], metadata), end],
        [candidate(parts.both, { ...metadata, finishReason: 'STOP' })],
        [candidate(parts.thought), candidate(parts.both), candidate([], { ...metadata, finishReason: 'STOP' })],
        [candidate(parts.text), candidate(parts.call), candidate([], { ...metadata, finishReason: 'STOP' })],
        [candidate([{ text: text.slice(0, 9) }], metadata), candidate([{ text: text.slice(9) }]), end],
      ]
      const wholes = [parts.both, [...parts.text, ...parts.signature], [...parts.signature, ...parts.text]].map(whole =>
        candidate(whole, { ...metadata, finishReason: 'STOP' }),
      )
      for (const caller of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
        const placed =
          caller === 'anthropic-messages'
            ? expected.map(({ url: at, title }) => ({ url: at, title: title === '' ? null : title }))
            : expected
        for (const upstreamAnswer of [...streams, ...wholes]) {
          const { cited, losses, answers } = await ask(caller, 'gemini', upstreamAnswer)
          expect({ said: upstreamAnswer, cited, losses }).toEqual({ said: upstreamAnswer, cited: placed, losses: '' })
          expect(JSON.stringify(answers)).toContain('Spain')
        }
      }
    },
  )

  test('are reported as lost if there is no text', async () => {
    const [[, metadata]] = kinds as [readonly [string, Json, unknown]]
    const upstreamAnswer = [candidate(parts.call, metadata), end]
    expect((await ask('openai-chat', 'gemini', upstreamAnswer)).losses).toContain('citations')
  })
})
