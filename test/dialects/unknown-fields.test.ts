// No codec drops anything silently: an unknown field or part, anywhere in a request or an answer of any dialect, is reported
// as lost, refused, or carried.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../../src/base/errors.ts'
import type { Call } from '../../src/protocols/neutral/call.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Harness } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { rawCallers, requestOf } from './raw-callers.ts'
import { plainJson, streamedJson } from './reasons.ts'
import { richRequest } from './rich-requests.ts'
import { openTranslation, translateStream, translateWhole } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

type Json = Record<string, unknown>

/** Fields whose content belongs to the caller or the model, or is carried as a whole. */
const OPAQUE = new RegExp(
  [
    ...['metadata', 'labels', 'logit_bias', 'schema', 'parameters', 'input_schema', 'responseSchema', 'args', 'input'],
    ...['response', 'extra_content', 'usage', 'usageMetadata', 'logprobs', 'logprobsResult'],
    ...['safetySettings', 'caller', 'diagnostics', 'thread', 'container'],
  ]
    .map(name => `\\.${name}$`)
    .join('|'),
)
/** A response repeats these fields of the request. */
const ECHO = /^(\.response)?\.(reasoning|text)$/
/** Names from OPAQUE that are read at the top level: the input of a request, and the response of an event. */
const READ = /^\.(input|response)$/

type Path = readonly (string | number)[]

interface Place {
  readonly path: Path
  readonly isList: boolean
}

/** The paths of all objects and lists of objects. */
function* places(value: unknown, isAnswer: boolean, path: Path = []): Iterable<Place> {
  if (typeof value !== 'object' || value === null) return
  const at = path.map(step => (typeof step === 'number' ? '' : `.${step}`)).join('')
  if (isAnswer && ECHO.test(at)) return
  if (path.length > 0 && OPAQUE.test(at) && !READ.test(at)) return
  if (!Array.isArray(value)) yield { path, isList: false }
  else if (value.some(one => typeof one === 'object' && one !== null)) yield { path, isList: true }
  for (const [name, inner] of Object.entries(value)) {
    yield* places(inner, isAnswer, [...path, Array.isArray(value) ? Number(name) : name])
  }
}

/** A copy with an unknown field or part at this place. */
function withUnknown(value: unknown, { path, isList }: Place): Json {
  const copy = structuredClone(value) as Json
  let at = copy as unknown as Record<string | number, unknown>
  for (const step of path) at = at[step] as typeof at
  if (isList) (at as unknown as unknown[]).push({ type: 'x_unheard', x_unheard: { deep: 1 } })
  else at.x_unheard = { deep: 1 }
  return copy
}

/** Lists to which no unknown part is added: another member would be another choice, tool or message. */
const NO_LIST = /^(choices|candidates|messages|contents|safetySettings|stop|tool_calls|functionDeclarations)$/

const placesOf = (value: unknown, isAnswer: boolean): readonly Place[] =>
  [...places(value, isAnswer)].filter(({ path, isList }) => !isList || !NO_LIST.test(String(path.at(-1))))

const pairs = dialects.flatMap(from => dialects.filter(to => to !== from).map(to => [from, to] as const))

function lossesOfRequest(from: Dialect, to: Dialect, json: Json): readonly string[] | 'refused' {
  const losses = new Losses()
  try {
    const call = { json, dialect: from, stream: false, choices: 1, recall: () => [] } as unknown as Call
    const input = protocols[from].codec.readConversation(call)
    losses.addAll(input.lostFields)
    protocols[to].codec.writeConversation(input, {
      model: 'm',
      traits: {},
      outputTokensMax: 4_096,
      cap: undefined,
      capField: 'max_tokens',
      askUsage: false,
      origin: 'o',
      media: new Map(),
      notes: { losses, renamed: new Map() },
    })
  } catch (fault) {
    if (fault instanceof Refusal) return 'refused'
    throw fault
  }
  return losses.codes
}

/** Whether the unknown field was refused or reported as lost, by its name or with its parent. */
const isReported = (losses: readonly string[] | 'refused', before: readonly string[]): boolean =>
  losses === 'refused' || losses.some(code => code.includes('unheard') || !before.includes(code))

describe.each(pairs)('a request of %s to an upstream of %s', (from, to) => {
  // Without a forced tool: if one tool must be called, the others need not be sent.
  const { stream: _stream, tool_choice: _choice, ...plain } = richRequest[from]('p/m') as Json
  const auto = { toolConfig: { functionCallingConfig: { mode: 'AUTO' } } }
  const request = { ...plain, ...(from === 'gemini' ? auto : {}) }

  test('reports, refuses or carries an unknown field anywhere', () => {
    const before = lossesOfRequest(from, to, structuredClone(request)) as readonly string[]
    expect(before).not.toBe('refused' as never)
    // The setting of a document is lost as a whole.
    const found = placesOf(request, false).filter(({ path, isList }) => path.at(-1) !== 'citations' || isList)
    expect(found.length).toBeGreaterThan(10)
    const unreported = found.filter(
      place => !isReported(lossesOfRequest(from, to, withUnknown(request, place)), before),
    )
    expect(unreported.map(({ path }) => path.join('.'))).toEqual([])
  })
})

const folder = join(import.meta.dir, 'golden', 'upstream')
const wholeOf = (dialect: Dialect): Json => JSON.parse(readFileSync(join(folder, `${dialect}.json`), 'utf8')) as Json
const eventsOf = (dialect: Dialect): readonly string[] =>
  readFileSync(join(folder, `${dialect}.sse`), 'utf8')
    .split(/\r?\n\r?\n/)
    .filter(event => event.includes('data:'))

const url = 'https://a.example/1'
const webCitation = { type: 'web_search_result_location', url, title: 'A', cited_text: 'c', encrypted_index: 'x' }
const documentCitation = { type: 'search_result_location', source: url, title: 'A', cited_text: 'c' }
const urlCitation = { url, title: 'A', start_index: 0, end_index: 1 }

/**
 * A text with citations of each kind that the dialect has, as a message of an answer and of a request. Requests of Gemini
 * have no citations.
 */
const citedTexts: Readonly<Partial<Record<Dialect, { answer: Json; request?: Json }>>> = {
  'openai-chat': {
    answer: {
      ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: {
            role: 'assistant',
            content: 'Hello',
            annotations: [
              { type: 'url_citation', url_citation: urlCitation },
              { type: 'file_citation', file_citation: { file_id: 'file-1', filename: 'x.pdf' } },
            ],
          },
        },
      ],
    },
    request: {
      model: 'p/m',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello', annotations: [{ type: 'url_citation', url_citation: urlCitation }] },
        { role: 'user', content: 'Go on' },
      ],
    },
  },
  'anthropic-messages': {
    answer: {
      ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' },
      content: [{ type: 'text', text: 'Hello', citations: [webCitation, documentCitation] }],
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    request: {
      model: 'p/m',
      max_tokens: 5,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'text', text: 'Hello', citations: [webCitation] }] },
        { role: 'user', content: 'Go on' },
      ],
    },
  },
  'openai-responses': {
    answer: {
      ...{ id: 'r', object: 'response', created_at: 1, model: 'm', status: 'completed' },
      output: [
        {
          ...{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' },
          content: [
            {
              type: 'output_text',
              text: 'Hello',
              annotations: [
                { type: 'url_citation', ...urlCitation },
                { type: 'file_citation', file_id: 'file-1', filename: 'x.pdf', index: 1 },
              ],
            },
          ],
        },
      ],
    },
    request: {
      model: 'p/m',
      input: [
        { role: 'user', content: 'Hi' },
        {
          ...{ type: 'message', role: 'assistant', id: 'msg_1', status: 'completed' },
          content: [{ type: 'output_text', text: 'Hello', annotations: [{ type: 'url_citation', ...urlCitation }] }],
        },
        { role: 'user', content: 'Go on' },
      ],
    },
  },
  'gemini': {
    answer: {
      ...{ modelVersion: 'm', responseId: 'r', usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } },
      candidates: [
        {
          ...{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [{ text: 'Hello' }] } },
          groundingMetadata: {
            groundingChunks: [
              { web: { uri: url, title: 'A' } },
              { maps: { uri: url, title: 'A', text: 'c' } },
              { image: { sourceUri: url, title: 'A' } },
              { retrievedContext: { uri: url, title: 'A', text: 'c', ragChunk: { text: 'c' } } },
            ],
            groundingSupports: [{ segment: { startIndex: 0, endIndex: 1 }, groundingChunkIndices: [0, 1, 2, 3] }],
          },
          citationMetadata: { citations: [{ startIndex: 0, endIndex: 1, uri: url, title: 'A' }] },
          urlContextMetadata: {
            urlMetadata: [{ retrievedUrl: url, urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_SUCCESS' }],
          },
        },
      ],
    },
  },
}

/** The fields of an answer or request that hold citations. */
const CITING = /citations|annotations|(grounding|citation|urlContext)Metadata/

const citedPairs = pairs.flatMap(([from, to]) => {
  const cited = citedTexts[from]
  return cited === undefined ? [] : [[from, to, cited] as const]
})

describe.each(citedPairs)('citations of %s for %s', (from, to, { answer, request }) => {
  test('in an answer: an unknown field is reported', () => {
    const before = lossesOfAnswer(from, to, answer)
    const found = placesOf(answer, true).filter(({ path }) => CITING.test(path.join()))
    expect(found.length).toBeGreaterThan(2)
    const unreported = found.filter(
      place =>
        !isReported(lossesOfAnswer(from, to, withUnknown(answer, place)), before) &&
        // A dialect that can cite only addresses has lost the file already, with the code of an unknown citation.
        !(place.isList && before.includes('citations')),
    )
    expect(unreported.map(({ path }) => path.join('.'))).toEqual([])
  })

  if (request === undefined) return
  test('in a request: an unknown field is reported', () => {
    const before = lossesOfRequest(from, to, structuredClone(request)) as readonly string[]
    const found = placesOf(request, false).filter(({ path }) => CITING.test(path.join()))
    const unreported = found.filter(place => {
      const losses = lossesOfRequest(from, to, withUnknown(request, place))
      // Where citations of the history are lost as a whole, their fields are, too.
      return !isReported(losses, before) && !before.includes('citations')
    })
    expect(unreported.map(({ path }) => path.join('.'))).toEqual([])
  })
})

test('the place of a citation in its source is reported as lost', () => {
  const page = { type: 'page_location', cited_text: 'c', document_title: 'A', start_page_number: 3, end_page_number: 4 }
  const { answer } = citedTexts['anthropic-messages']!
  const cited = { ...answer, content: [{ type: 'text', text: 'Hello', citations: [page] }] }
  const losses = lossesOfAnswer('anthropic-messages', 'gemini', cited)
  expect(losses).toEqual(['citations.start_page_number', 'citations.end_page_number'])
})

/** The losses that the translation of an answer reports. */
function lossesOfAnswer(from: Dialect, to: Dialect, input: Json | string): readonly string[] {
  const translation = openTranslation(from, to)
  if (typeof input === 'string') translateStream(from, translation, [Buffer.from(input)])
  else translateWhole(translation, input)
  return translation.translation.target.losses.codes
}

describe.each(pairs)('an answer of %s to a caller of %s', (from, to) => {
  test('reports or carries an unknown field anywhere', () => {
    const whole = wholeOf(from)
    const before = lossesOfAnswer(from, to, whole)
    const found = placesOf(whole, true)
    expect(found.length).toBeGreaterThan(4)
    const unreported = found.filter(place => !isReported(lossesOfAnswer(from, to, withUnknown(whole, place)), before))
    expect(unreported.map(({ path }) => path.join('.'))).toEqual([])
  })

  test('reports or carries an unknown field in any event', () => {
    const events = eventsOf(from)
    const before = lossesOfAnswer(from, to, `${events.join('\n\n')}\n\n`)
    const unreported: string[] = []
    events.forEach((event, at) => {
      const [head, data] = event.split(/data: ?/) as [string, string]
      if (!data.startsWith('{')) return
      const json = JSON.parse(data) as Json
      for (const place of placesOf(json, true)) {
        const changed = `${head}data: ${JSON.stringify(withUnknown(json, place))}`
        const losses = lossesOfAnswer(from, to, `${events.with(at, changed).join('\n\n')}\n\n`)
        if (!isReported(losses, before)) unreported.push(`${String(json.type ?? at)}: ${place.path.join('.')}`)
      }
    })
    expect(unreported).toEqual([])
  })
})

/** Each answer whole and as a stream, with the losses for callers of other dialects. */
const message = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'm',
  usage: { input_tokens: 1, output_tokens: 1 },
}
const endedWith = (end: Json): readonly [Json, string] => {
  const start = { type: 'message_start', message: { ...message, content: [], stop_reason: null } }
  const events = [start, { type: 'message_delta', delta: end, usage: {} }, { type: 'message_stop' }]
  return [{ ...message, content: [], ...end }, events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')]
}
const refused = (more: Json) => endedWith({ stop_reason: 'refusal', stop_details: { type: 'refusal', ...more } })
const stopped = endedWith({ stop_reason: 'stop_sequence', stop_sequence: 'END' })
const candidateWith = (rating: Json): readonly [Json, string] => {
  const json = { candidates: [{ index: 0, finishReason: 'SAFETY', safetyRatings: [{ category: 'X', ...rating }] }] }
  return [json, `data: ${JSON.stringify(json)}\n\n`]
}
const promptWith = (rating: Json): readonly [Json, string] => {
  const json = { promptFeedback: { blockReason: 'SAFETY', safetyRatings: [{ category: 'X', ...rating }] } }
  return [json, `data: ${JSON.stringify(json)}\n\n`]
}

type AnswerRow = readonly [what: string, Dialect, Dialect, answer: readonly [Json, string], losses: readonly string[]]
const endings: readonly AnswerRow[] = [
  ['a refusal', 'anthropic-messages', 'openai-chat', refused({ explanation: 'no', category: null }), []],
  [
    'a refusal with a category',
    'anthropic-messages',
    'openai-chat',
    refused({ explanation: 'no', category: 'cyber' }),
    ['answer.stop_details.category'],
  ],
  [
    'a refusal with an unknown detail',
    'anthropic-messages',
    'gemini',
    refused({ x_unheard: 1 }),
    ['answer.stop_details.x_unheard'],
  ],
  ['a stop sequence', 'anthropic-messages', 'openai-chat', stopped, ['stop_sequence']],
  ['a stop sequence', 'anthropic-messages', 'ark', stopped, ['stop_sequence']],
  ['a stop sequence', 'anthropic-messages', 'gemini', stopped, ['stop_sequence']],
  ['ratings that block nothing', 'gemini', 'openai-chat', candidateWith({ probability: 'LOW', blocked: false }), []],
  [
    'a rating that blocks the answer',
    'gemini',
    'openai-chat',
    candidateWith({ probability: 'HIGH', blocked: true }),
    ['answer.candidates.safetyratings'],
  ],
  [
    'a rating that blocks the prompt',
    'gemini',
    'anthropic-messages',
    promptWith({ blocked: true }),
    ['answer.promptfeedback.safetyratings'],
  ],
]

test.each(endings)('why an answer ended is carried or reported: %s of %s for %s', (_what, from, to, ...rest) => {
  const [[whole, streamed], losses] = rest
  expect(lossesOfAnswer(from, to, whole)).toEqual(losses)
  expect(lossesOfAnswer(from, to, streamed)).toEqual(losses)
})

const words = [{ role: 'user', content: 'Hi' }]
const explicit = { prompt_cache_options: { mode: 'explicit' } }
const hour = { max_tokens: 5, cache_control: { type: 'ephemeral', ttl: '1h' } }
const coarse = [
  { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=', detail: 'low' },
]
const named = [{ role: 'developer', content: 'Be brief.', name: 'bob' }, ...words]

const settingRows: readonly (readonly [Dialect, Dialect, Json, readonly string[]])[] = [
  ['openai-chat', 'openai-responses', { messages: words, ...explicit }, []],
  ['openai-chat', 'anthropic-messages', { messages: words, ...explicit }, []],
  ['openai-chat', 'gemini', { messages: words, ...explicit }, ['prompt_cache_options']],
  ['openai-chat', 'ark', { messages: words, ...explicit }, ['prompt_cache_options']],
  ['openai-responses', 'openai-chat', { input: words, ...explicit }, ['prompt_cache_options']],
  ['anthropic-messages', 'openai-chat', { messages: words, ...hour }, ['cache_control']],
  ['anthropic-messages', 'ark', { messages: words, ...hour }, ['cache_control']],
  ['anthropic-messages', 'gemini', { messages: words, ...hour }, ['cache_control']],
  ['openai-responses', 'openai-chat', { input: [{ role: 'user', content: coarse }] }, ['file.detail']],
  ['openai-responses', 'ark', { input: [{ role: 'user', content: coarse }] }, ['file.detail']],
  ['openai-responses', 'anthropic-messages', { input: [{ role: 'user', content: coarse }] }, ['file.detail']],
  ['openai-chat', 'anthropic-messages', { messages: named }, ['messages.name']],
  ['openai-chat', 'gemini', { messages: named }, ['name']],
]

test.each(settingRows)('a setting of %s for %s is carried or reported: %j', (from, to, request, losses) => {
  expect(lossesOfRequest(from, to, { model: 'p/m', ...request })).toEqual(losses)
})

describe('at a gateway', () => {
  let harness: Harness
  let key: string
  beforeAll(async () => {
    harness = await startDialects()
    key = await harness.key({ credit: '1000', qpm: 100_000 })
  })
  afterAll(() => harness.stop())

  async function ask(caller: Dialect, upstream: Dialect, input: Json | readonly (Json | string)[]) {
    const stream = Array.isArray(input)
    harness.upstream.plan(stream ? streamedJson(input as Json[]) : plainJson(input as Json))
    const answer = await rawRequest(harness.url, requestOf(caller, key, { model: modelOf(upstream), stream }))
    await harness.idle()
    return { answer, body: String(answer.body), losses: String(harness.lastRecord()!.loss ?? '').split(',') }
  }

  /** Fields that vendors add to the chat dialect: each is carried, irrelevant, or reported as lost. */
  const vendors: readonly (readonly [place: 'top' | 'choice' | 'message', fields: Json, lost: readonly string[]])[] = [
    ['top', { related_questions: ['Why?'] }, ['answer.related_questions']],
    ['top', { images: [{ image_url: 'https://a.example/1.png' }] }, ['answer.images']],
    ['top', { videos: [{ url: 'https://a.example/1.mp4' }] }, ['answer.videos']],
    ['top', { system_fingerprint: 'fp_1', provider: 'X', time_info: { queue_time: 1 } }, []],
    ['top', { x_groq: { id: 'req_1' }, base_resp: { status_code: 0, status_msg: '' }, input_sensitive: false }, []],
    ['top', { input_sensitive: true }, ['answer.input_sensitive']],
    ['top', { prompt_filter_results: [{ content_filter_results: { hate: { filtered: false } } }] }, []],
    [
      'top',
      { prompt_filter_results: [{ content_filter_results: { jailbreak: { detected: true } } }] },
      ['answer.content_filter_results'],
    ],
    ['choice', { native_finish_reason: 'STOP', content_filter_results: { hate: { filtered: false } } }, []],
    ['choice', { content_filter_results: { hate: { filtered: true } } }, ['answer.content_filter_results']],
    ['choice', { moderation_hit_type: 'violence' }, ['answer.choices.moderation_hit_type']],
    ['message', { executed_tools: [{ type: 'search' }] }, ['answer.message.executed_tools']],
    ['message', { reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }] }, []],
    [
      'message',
      { reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] },
      ['answer.message.reasoning_details'],
    ],
  ]

  test.each(vendors)(
    'fields that a vendor adds to the %s of chat are carried or reported: %j',
    async (place, fields, lost) => {
      const at = (name: string): Json => (place === name ? fields : {})
      const message = { role: 'assistant', content: 'Hi', ...at('message') }
      const choice = { index: 0, finish_reason: 'stop', ...at('choice') }
      const whole = { id: 'c', ...at('top'), choices: [{ ...choice, message }] }
      const streamed = [{ id: 'c', ...at('top'), choices: [{ ...choice, delta: message }] }, '[DONE]']
      for (const input of [whole, streamed]) {
        const { losses, answer, body } = await ask('ark', 'openai-chat', input)
        expect([answer.status, losses]).toEqual([200, lost.length === 0 ? [''] : [...lost]])
        if (place === 'message' && 'reasoning' in fields) expect(body.split('Hm.').length).toBe(2)
        const native = await ask('openai-chat', 'openai-chat', input)
        const sent = input === whole ? whole : streamed[0]
        expect(native.body).toContain(JSON.stringify(sent))
      }
    },
  )

  test('thoughts in reasoning_details only are carried', async () => {
    const message = { content: 'Hi', reasoning_details: [{ type: 'reasoning.summary', summary: 'Hm.' }] }
    const { body } = await ask('ark', 'openai-chat', { choices: [{ index: 0, finish_reason: 'stop', message }] })
    expect(body).toContain('"reasoning_content":"Hm."')
  })

  test('a tool call in message_start is carried', async () => {
    const tool = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
    const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }
    const head = { id: 'm', type: 'message', role: 'assistant', model: 'm' }
    const start = (block: Json) => ({ type: 'message_start', message: { ...head, content: [block], usage: {} } })
    const end = [{ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: {} }, { type: 'message_stop' }]
    const { body, losses } = await ask('openai-chat', 'anthropic-messages', [start(tool), ...end])
    expect(body).toContain('"function":{"arguments":"{\\"a\\":1}"}')
    expect([body.includes('"finish_reason":"tool_calls"'), losses]).toEqual([true, ['']])
    const called = await ask('openai-chat', 'anthropic-messages', [start({ ...tool, caller }), ...end])
    expect(called.losses).toEqual(['answer.tool_use.caller'])
  })

  test('requests with losses are refused under strict', async () => {
    const post = (path: string, body: Json): Promise<Response> =>
      fetch(harness.url + path, {
        method: 'POST',
        headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'x-weir-translate': 'strict' },
        body: JSON.stringify(body),
      })
    const messages = [{ role: 'user', content: 'Hi' }]
    const hidden = { type: 'redacted_thinking', data: 'x' }
    const thought = { role: 'assistant', content: [hidden, { type: 'text', text: 'a' }] }
    const thinking = { max_tokens: 9, messages: [...messages, thought, ...messages] }
    const fileData = { fileUri: 'https://a.example/1.mp4', mimeType: 'video/mp4' }
    const mediaResolution = { level: 'MEDIA_RESOLUTION_LOW' }
    const film = { contents: [{ role: 'user', parts: [{ fileData, mediaResolution }] }] }
    const rows: readonly (readonly [string, Dialect, Json, string])[] = [
      ['/v1/chat/completions', 'anthropic-messages', { messages, prompt_cache_key: 'k' }, 'prompt_cache_key'],
      ['/v1/messages', 'openai-chat', thinking, 'reasoning_state'],
      ['/v1/messages', 'ark', thinking, 'reasoning_state'],
      [rawCallers.gemini.path({ model: modelOf('ark'), stream: false }), 'ark', film, 'mediaresolution'],
    ]
    for (const [path, upstream, body, code] of rows) {
      const answer = await post(path, { ...(path.includes('v1beta') ? {} : { model: modelOf(upstream) }), ...body })
      expect([path, answer.status, await answer.text()]).toEqual([path, 400, expect.stringContaining(code)])
    }
  })
})
