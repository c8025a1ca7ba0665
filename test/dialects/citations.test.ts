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
  const placed = list(supports).flatMap(({ segment, groundingChunkIndices }) => {
    const { startIndex, endIndex } = segment as Json
    return (groundingChunkIndices as number[]).map(index => {
      const { uri, title } = sources[index]!
      return { url: uri, title, start: startIndex, end: endIndex }
    })
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
  return { answers, cited: citedIn[caller](answers), losses: String(harness.lastRecord()!.loss ?? '') }
}

/** The fields of a citation that a dialect does not have. */
const lacking: Readonly<Record<Dialect, readonly string[]>> = {
  'openai-chat': [],
  'ark': [],
  'openai-responses': ['citations.cited_text'],
  'anthropic-messages': ['citations.start_index', 'citations.end_index'],
  'gemini': ['citations.cited_text'],
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
        expect(result.losses).toBe(lacking[caller].join(','))
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

  test('of DashScope and Hunyuan are cited by the number of the result', async () => {
    const results = [
      { index: 2, title: 'B', url: second, site_name: 'x' },
      { index: 1, title: 'A', url: first },
    ]
    for (const marker of ['[2]', '[ref_2]']) {
      const message = { content: `Wet ${marker}.` }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      const searched = { ...head, search_info: { search_results: results }, choices }
      const { cited, losses } = await ask('openai-responses', 'openai-chat', searched)
      expect(losses).toBe('')
      expect(cited).toEqual([
        { url: second, title: 'B', start: 4, end: 4 + marker.length },
        { url: first, title: 'A', start: 0, end: message.content.length },
      ])
    }
    const searched = { ...whole, search_info: { search_results: [], mindmap: 'x' } }
    const { losses } = await ask('openai-responses', 'openai-chat', searched)
    expect(losses).toBe('answer.search_info.mindmap,citations.cited_text')
  })

  test('are limited in number, and more are reported as lost', async () => {
    const urls = (length: number) => Array.from({ length }, (_, at) => `https://a.example/${at}`)
    const plain = { ...head, choices: [{ index: 0, message: { content: 'Wet.' }, finish_reason: 'stop' }] }
    const limited = await ask('gemini', 'openai-chat', { ...plain, citations: urls(256) })
    expect([limited.cited.length, limited.losses]).toEqual([256, ''])
    const many: readonly Json[] = [
      { ...plain, citations: urls(257) },
      { ...plain, search_results: urls(257).map(url => ({ url })) },
    ]
    for (const answer of many) {
      const { cited, losses } = await ask('gemini', 'openai-chat', answer)
      expect([cited.length <= 256, losses]).toEqual([true, 'citations'])
    }
    // The dialect of this caller has no limit, so that only the limit of markers counts.
    const marked = (count: number): Json => {
      const message = { content: 'Wet [1].'.repeat(count) }
      return { ...head, citations: [first], choices: [{ index: 0, message, finish_reason: 'stop' }] }
    }
    const lost = async (count: number) => (await ask('anthropic-messages', 'openai-chat', marked(count))).losses
    expect((await lost(255)).split(',')).toEqual([...lacking['anthropic-messages']])
    expect((await lost(257)).split(',')).toEqual(['citations', ...lacking['anthropic-messages']])
  })

  test('of an answer without text are reported as lost', async () => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const choices = [{ index: 0, message: { content: null, tool_calls }, finish_reason: 'tool_calls' }]
    const calling = { ...whole, choices }
    expect((await ask('anthropic-messages', 'openai-chat', calling)).losses).toContain('citations')
  })

  test('are not reported as lost if there are none', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    const chunks = [{ content: 'Wet.' }, { tool_calls: [call] }, {}].map((delta, at) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: at < 2 ? null : 'tool_calls' }],
    }))
    expect((await ask('gemini', 'openai-chat', [...chunks, '[DONE]'])).losses).toBe('')
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
    async (kind, metadata, expected) => {
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
          // A page that the model has read has no place in the answer.
          const isPlaced = kind !== 'urlContextMetadata'
          const lost = caller === 'anthropic-messages' && isPlaced ? lacking[caller].join(',') : ''
          expect({ said: upstreamAnswer, cited, losses }).toEqual({ said: upstreamAnswer, cited: placed, losses: lost })
          expect(JSON.stringify(answers)).toContain('Spain')
        }
      }
    },
  )

  const support = (partIndex: number | undefined, words: string, chunk = 0): Json => ({
    segment: { ...(partIndex !== undefined && { partIndex }), startIndex: 0, endIndex: words.length, text: words },
    groundingChunkIndices: [chunk],
  })
  const [urlA, urlB] = ['https://a.example/A', 'https://b.example/B']
  const chunks = [{ web: { uri: urlA, title: 'A' } }, { web: { uri: urlB, title: 'B' } }]
  const code = { executableCode: { language: 'PYTHON', code: '1' } }
  const [textA, textB] = [{ text: 'Äpfel.' }, { text: 'Birnen, ja.' }]
  const supports = [
    { segment: { startIndex: 0, endIndex: 7, text: 'Äpfel.' }, groundingChunkIndices: [0] },
    { ...support(2, 'Birnen', 1) },
  ]
  const both = { groundingMetadata: { groundingChunks: chunks, groundingSupports: supports } }
  const placedBoth: readonly Citation[] = [
    { url: urlA, title: 'A', start: 0, end: 6 },
    { url: urlB, title: 'B', start: 6, end: 12 },
  ]

  test('are cited at the part that they name', async () => {
    const wholes = [
      candidate([textA, code, textB], { ...both, finishReason: 'STOP' }),
      // A stream of one chunk, and one whose metadata come before the texts are complete.
      [candidate([textA, code, textB], { ...both, finishReason: 'STOP' })],
      [candidate([textA], both), candidate([code]), candidate([textB]), end],
      [
        candidate([textA]),
        candidate([code], both),
        candidate([{ text: 'Birnen,' }]),
        candidate([{ text: ' ja.' }]),
        end,
      ],
    ]
    for (const upstreamAnswer of wholes) {
      const { cited, losses } = await ask('openai-chat', 'gemini', upstreamAnswer)
      expect({ said: upstreamAnswer, cited }).toEqual({ said: upstreamAnswer, cited: placedBoth })
      expect(losses).toBe('executablecode')
    }
    // Each text of Responses has its own annotations.
    const { answers } = await ask('openai-responses', 'gemini', wholes[0] as Json)
    const texts = list(answers[0]!.output).flatMap(({ content }) => list(content))
    expect(texts.map(({ text: words, annotations }) => [words, list(annotations).map(one => one.url)])).toEqual([
      ['Äpfel.', [urlA]],
      ['Birnen, ja.', [urlB]],
    ])
  })

  test('are cited in neighbouring parts, and after a thought', async () => {
    const neighbours = { groundingMetadata: { groundingChunks: chunks, groundingSupports: [support(1, 'Birnen', 1)] } }
    const joined = await ask(
      'openai-chat',
      'gemini',
      candidate([textA, textB], { ...neighbours, finishReason: 'STOP' }),
    )
    expect([joined.cited, joined.losses]).toEqual([[placedBoth[1]!], ''])
    const thought = { text: 'Hm.', thought: true }
    for (const partIndex of [undefined, 0, 1]) {
      const metadata = { groundingChunks: chunks, groundingSupports: [support(partIndex, 'Birnen', 1)] }
      const more = { groundingMetadata: metadata, finishReason: 'STOP' }
      const { cited, losses } = await ask('openai-chat', 'gemini', candidate([thought, textB], more))
      expect([cited, losses]).toEqual([[{ url: urlB, title: 'B', start: 0, end: 6 }], ''])
    }
  })

  test('are reported as lost if their part does not exist, or is written already', async () => {
    const none = { groundingMetadata: { groundingChunks: chunks, groundingSupports: [support(7, 'Birnen', 1)] } }
    const nowhere = await ask(
      'openai-chat',
      'gemini',
      candidate([textA, code, textB], { ...none, finishReason: 'STOP' }),
    )
    expect([nowhere.cited, nowhere.losses.split(',')]).toEqual([[], expect.arrayContaining(['citations'])])
    const late = [
      candidate([textA]),
      candidate([code]),
      candidate([textB]),
      candidate([], { ...both, finishReason: 'STOP' }),
    ]
    const { cited, losses } = await ask('openai-chat', 'gemini', late)
    expect([cited, losses.split(',')]).toEqual([[placedBoth[1]!], expect.arrayContaining(['citations'])])
  })

  test('are limited in number, and more are reported as lost', async () => {
    const many = Array.from({ length: 300 }, (_, at) => ({ web: { uri: `https://a.example/${at}`, title: 'T' } }))
    const few = Array.from({ length: 300 }, (_, at) => support(0, 'Äpfe'.slice(0, at % 4)))
    const urlMetadata = many.map(({ web }) => ({
      retrievedUrl: web.uri,
      urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_SUCCESS',
    }))
    const tooMany: readonly Json[] = [
      { groundingMetadata: { groundingChunks: many } },
      { groundingMetadata: { groundingChunks: many, groundingSupports: few } },
      { citationMetadata: { citations: many.map(({ web }) => web) } },
      { urlContextMetadata: { urlMetadata } },
    ]
    for (const metadata of tooMany) {
      const answer = candidate([textA], { ...metadata, finishReason: 'STOP' })
      const { cited, losses } = await ask('openai-responses', 'gemini', answer)
      expect([cited.length <= 256, losses]).toEqual([true, 'citations'])
    }
  })

  test('are reported as lost if there is no text', async () => {
    const [[, metadata]] = kinds as [readonly [string, Json, unknown]]
    const upstreamAnswer = [candidate(parts.call, metadata), end]
    expect((await ask('openai-chat', 'gemini', upstreamAnswer)).losses).toContain('citations')
  })
})

describe('citations of anthropic-messages', () => {
  const citation = { type: 'web_search_result_location', url: 'https://a.example', title: 'A', encrypted_index: 'x' }
  const usage = { input_tokens: 7, output_tokens: 5 }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude' }
  const delta = (piece: Json): Json => ({ type: 'content_block_delta', index: 0, delta: piece })
  /** Streams of a web search have the citation of a block before its text. */
  const streams = (texts: readonly string[], citedAfter: number): readonly Json[] => {
    const deltas = texts.map(text => delta({ type: 'text_delta', text }))
    const cited = delta({ type: 'citations_delta', citation: { ...citation, cited_text: 'words' } })
    return [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: [] } },
      ...deltas.toSpliced(citedAfter, 0, cited),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ]
  }

  test.each([['openai-chat'], ['openai-responses'], ['gemini'], ['ark']] as const)(
    'are for a caller of %s about the whole text, also if the stream has them before it',
    async caller => {
      for (const citedAfter of [0, 1, 2]) {
        const { cited } = await ask(caller, 'anthropic-messages', streams(['Water ', 'is wet.'], citedAfter))
        expect(cited).toEqual([{ url: 'https://a.example', title: 'A', start: 0, end: 13 }])
      }
    },
  )
})

describe('words of a source are not words of the answer', () => {
  const url = 'https://a.example'
  const cited = { type: 'web_search_result_location', url, title: 'A', cited_text: 'c', encrypted_index: 'x' }
  const blocks = [
    { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
    { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
  ]
  const head = { id: 'm', type: 'message', role: 'assistant', model: 'm' }
  const usage = { input_tokens: 1, output_tokens: 1 }
  const whole = {
    ...head,
    content: [...blocks, { type: 'text', text: 'Paris.', citations: [cited] }],
    ...{ stop_reason: 'end_turn', usage },
  }
  const events: readonly Json[] = [
    { type: 'message_start', message: { ...head, content: [], usage } },
    ...blocks.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'content_block_start', index: 2, content_block: { type: 'text', text: '', citations: [] } },
    { type: 'content_block_delta', index: 2, delta: { type: 'citations_delta', citation: cited } },
    ...['Par', 'is.'].map(text => ({ type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index: 2 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]

  test('for a caller of Gemini, who gets the part and the words of the answer', async () => {
    for (const upstreamAnswer of [whole, events]) {
      const { answers } = await ask('gemini', 'anthropic-messages', upstreamAnswer)
      const [candidate] = list(answers.at(-1)!.candidates)
      expect(candidate!.groundingMetadata).toEqual({
        groundingChunks: [{ web: { uri: url, title: 'A' } }],
        groundingSupports: [{ segment: { startIndex: 0, endIndex: 6, text: 'Paris.' }, groundingChunkIndices: [0] }],
      })
    }
  })

  test('for a caller of Messages, who gets only words of the source', async () => {
    const groundingChunks = [{ web: { uri: url, title: 'A' } }, { retrievedContext: { uri: `${url}/2`, text: 'c' } }]
    const segment = { endIndex: 5, text: 'Paris' }
    const candidate = {
      ...{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [{ text: 'Paris.' }] } },
      groundingMetadata: { groundingChunks, groundingSupports: [{ segment, groundingChunkIndices: [0, 1] }] },
    }
    const { answers, losses } = await ask('anthropic-messages', 'gemini', { candidates: [candidate] })
    const [block] = list(answers[0]!.content)
    expect(list(block!.citations).map(one => [one.url, one.cited_text])).toEqual([
      [url, ''],
      [`${url}/2`, 'c'],
    ])
    expect(losses).toBe(lacking['anthropic-messages'].join(','))
  })
})

describe('each field of a citation is delivered or reported:', () => {
  const [url, title, words, text] = ['https://a.example/1', 'A title', 'quoted words', 'Paris is large.']
  const geminiAnswer: Json = {
    candidates: [
      {
        ...{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [{ text }] } },
        groundingMetadata: {
          groundingChunks: [{ retrievedContext: { uri: url, title, text: words } }],
          groundingSupports: [{ segment: { startIndex: 3, endIndex: 9 }, groundingChunkIndices: [0] }],
        },
      },
    ],
  }
  const url_citation = { url, title, content: words, start_index: 3, end_index: 9 }
  const message = { role: 'assistant', content: text, annotations: [{ type: 'url_citation', url_citation }] }
  const chatAnswer: Json = {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
  }
  /** Each field with its value, and the code of its loss. Numbers are searched with the names that dialects give them. */
  const fields: readonly (readonly [RegExp, code: string])[] = [
    [/https:\/\/a\.example\/1/, 'citations.url'],
    [/A title/, 'citations.title'],
    [/quoted words/, 'citations.cited_text'],
    [/"start_?index":3/i, 'citations.start_index'],
    [/"end_?index":9/i, 'citations.end_index'],
  ]
  const rows = [
    ...others('gemini').map(caller => [caller, 'gemini', geminiAnswer] as const),
    ...others('openai-chat').map(caller => [caller, 'openai-chat', chatAnswer] as const),
  ]

  test.each(rows)('%s gets a citation of %s', async (caller, upstream, upstreamAnswer) => {
    const { answers, losses } = await ask(caller, upstream, upstreamAnswer)
    const delivered = JSON.stringify(answers)
    for (const [value, code] of fields)
      expect([code, value.test(delivered)]).toEqual([code, !lacking[caller].includes(code)])
    expect(losses).toBe(lacking[caller].join(','))
  })
})

describe('files that an answer cites reach Gemini as documents of the caller:', () => {
  const file = { type: 'file_citation', file_id: 'file-1', filename: 'report.pdf', index: 3 }
  const response = (annotations: readonly Json[]): Json => ({
    id: 'r',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'See it.', annotations }],
      },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  })
  const chatAnswer = (annotations: readonly Json[]): Json => ({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'See it.', annotations }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  })
  const page = { url: 'https://a.example/1', title: 'A', start_index: 0, end_index: 3 }
  const rows: readonly (readonly [Dialect, Json])[] = [
    ['openai-responses', response([file, { type: 'url_citation', ...page }])],
    [
      'openai-chat',
      chatAnswer([
        { type: 'file_citation', file_citation: { file_id: 'file-1', filename: 'report.pdf' } },
        { type: 'url_citation', url_citation: page },
      ]),
    ],
  ]

  test.each(rows)('of %s', async (upstream, answer) => {
    const { answers, losses } = await ask('gemini', upstream, answer)
    const [candidate] = list(answers[0]!.candidates)
    expect(candidate!.groundingMetadata).toEqual({
      groundingChunks: [{ retrievedContext: { title: 'report.pdf' } }, { web: { uri: page.url, title: 'A' } }],
      groundingSupports: [
        { segment: { startIndex: 0, endIndex: 7, text: 'See it.' }, groundingChunkIndices: [0] },
        { segment: { startIndex: 0, endIndex: 3, text: 'See' }, groundingChunkIndices: [1] },
      ],
    })
    expect(losses).toBe('')
  })

  test('a file without a name is named by its id, and one without both is reported as lost', async () => {
    const { answers, losses } = await ask('gemini', 'openai-responses', response([{ ...file, filename: undefined }]))
    expect(JSON.stringify(answers)).toContain('{"retrievedContext":{"title":"file-1"}}')
    expect(losses).toBe('')
    const unnamed = await ask('gemini', 'openai-responses', response([{ type: 'file_citation', index: 3 }]))
    expect(unnamed.losses).toBe('citations')
  })

  test('more than 256 are reported as lost, in one text and in several', async () => {
    const citation = { type: 'web_search_result_location', url: 'https://a.example/1', title: 'T', cited_text: 'c' }
    const block = { type: 'text', text: 'See.', citations: Array.from({ length: 200 }, () => citation) }
    const usage = { input_tokens: 1, output_tokens: 1 }
    const head = { id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', usage }
    const { losses } = await ask('gemini', 'anthropic-messages', { ...head, content: [block, block] })
    expect(losses.split(',')).toEqual(['citations', ...lacking.gemini])
    const many = Array.from({ length: 257 }, () => file)
    expect((await ask('gemini', 'openai-responses', response(many))).losses).toBe('citations')
  })
})
