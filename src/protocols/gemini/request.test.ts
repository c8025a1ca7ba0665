// Tests what is read from a request, what is refused, and what is replaced in its bytes.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { openFraming } from './framing.ts'
import { readCall, writeCall } from './request.ts'

const headFor = (path: string, query: Readonly<Record<string, string>> = {}): RequestHead => ({
  path,
  query: name => query[name] ?? null,
  header: () => undefined,
})
const plainHead = headFor('/v1beta/models/a/b:generateContent')
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const bytes = (json: unknown): Buffer => Buffer.from(typeof json === 'string' ? json : JSON.stringify(json))
const read = (more: object = {}, head: RequestHead = plainHead): Call => readCall(bytes({ contents, ...more }), head)

function refusalOf(act: () => unknown): Refusal {
  try {
    act()
  } catch (fault) {
    if (fault instanceof Refusal) return fault
    throw fault
  }
  throw new Error('not refused')
}

describe('reads', () => {
  test('the model of the path, and always reports usage', () => {
    expect(read()).toMatchObject({ model: 'a/b', stream: false, wantsUsage: true, choices: 1, dialect: 'gemini' })
    expect(read().outputTokensMax).toBeUndefined()
  })

  test('P13: a stream as an array unless server-sent events are requested', () => {
    const path = '/v1beta/models/a/b:streamGenerateContent'
    expect(read({}, headFor(path, { alt: 'sse' }))).toMatchObject({ stream: true })
    expect(read({}, headFor(path, { alt: 'sse' })).framing).toBeUndefined()
    expect(read({}, headFor(path, { $alt: 'sse' })).framing).toBeUndefined()
    expect(read({}, headFor(path))).toMatchObject({ stream: true, framing: 'array' })
    expect(read({}, headFor(path, { alt: 'json' }))).toMatchObject({ stream: true, framing: 'array' })
  })

  test('a stream of an SDK that fails on comments as one without comments', () => {
    const path = '/v1beta/models/a/b:streamGenerateContent'
    const headOf = (client: string): RequestHead => ({ ...headFor(path, { alt: 'sse' }), header: () => client })
    const call = read({}, headOf('genai-js/0.24.1'))
    expect(call).toMatchObject({ stream: true, framing: 'bare' })
    expect(openFraming(call)?.comment).toBe('')
    expect(openFraming(call)?.element('{\n}')).toBe('data: { }\n\n')
    for (const client of ['google-genai-sdk/1.30.0 gl-node/v20.20.2', 'google-genai-sdk/1.40.0 gl-go/go1.24.0']) {
      expect(read({}, headOf(client)).framing).toBe('bare')
    }
    for (const client of ['google-genai-sdk/2.32.0 gl-node/v24', 'google-genai-sdk/1.34.0 gl-node/web']) {
      expect(read({}, headOf(client)).framing).toBeUndefined()
    }
    expect(read({}, { ...plainHead, header: () => 'genai-js/0.24.1' }).framing).toBeUndefined()
  })

  test('camel case, snake case, and a mix of them', () => {
    const rows = [
      { generationConfig: { maxOutputTokens: 5, candidateCount: 2 }, serviceTier: 'flex' },
      { generation_config: { max_output_tokens: 5, candidate_count: 2 }, service_tier: 'flex' },
      { generation_config: { maxOutputTokens: 5, candidate_count: 2 }, serviceTier: 'flex' },
    ]
    for (const row of rows) expect(read(row)).toMatchObject({ outputTokensMax: 5, choices: 2, serviceClass: 'flex' })
  })

  test('labels as tags', () => {
    expect(read({ labels: { team: 'search' } }).tags).toEqual({ team: 'search' })
  })

  test('a single content as a list of one', () => {
    expect(read({ contents: contents[0]! }).model).toBe('a/b')
  })
})

describe('refuses', () => {
  const rows: readonly (readonly [string, unknown, string, string])[] = [
    ['no contents', {}, 'field_missing', 'contents'],
    ['contents that are empty', { contents: [] }, 'field_invalid', 'contents'],
    ['contents that are strings', { contents: ['hi'] }, 'field_invalid', 'contents[0]'],
    ['a body that is a list', [], 'body_not_object', ''],
    ['invalid JSON', '{', 'json_invalid', ''],
    ['a config that is not an object', { contents, generationConfig: 5 }, 'field_invalid', 'generationConfig'],
    [
      'a cap that is a string',
      { contents, generationConfig: { maxOutputTokens: '5' } },
      'field_invalid',
      'maxOutputTokens',
    ],
    [
      'a routing config',
      { contents, generationConfig: { routingConfig: { manualMode: { modelName: 'x' } } } },
      'field_invalid',
      'generationConfig.routingConfig',
    ],
    [
      'a routing config in snake case',
      { contents, generation_config: { routing_config: { autoMode: {} } } },
      'field_invalid',
      'generationConfig.routingConfig',
    ],
    [
      'a model config',
      { contents, generationConfig: { modelConfig: { featureSelectionPreference: 1 } } },
      'field_invalid',
      'generationConfig.modelConfig',
    ],
    [
      'a routing config at the top level',
      { contents, routing_config: { autoMode: {} } },
      'field_invalid',
      'routingConfig',
    ],
    ['no candidates', { contents, generationConfig: { candidateCount: 0 } }, 'field_invalid', 'candidateCount'],
    ['both spellings of a field', { contents, serviceTier: 'a', service_tier: 'b' }, 'field_duplicate', 'serviceTier'],
    [
      'both spellings of the config',
      { contents, generationConfig: {}, generation_config: {} },
      'field_duplicate',
      'generationConfig',
    ],
    ['a field name in unexpected case', { contents, GenerationConfig: {} }, 'field_duplicate', 'generationConfig'],
    [
      'both spellings of the cap',
      { contents, generationConfig: { maxOutputTokens: 5, max_output_tokens: 500 } },
      'field_duplicate',
      'generationConfig.maxOutputTokens',
    ],
    [
      'the cap twice',
      '{"contents":[{"parts":[]}],"generationConfig":{"maxOutputTokens":5,"maxOutputTokens":500}}',
      'field_duplicate',
      'maxOutputTokens',
    ],
    ['contents twice', '{"contents":[{}],"contents":[{}]}', 'field_duplicate', 'contents'],
  ]

  test.each(rows)('%s', (_name, body, ...[code, param]) => {
    const refusal = refusalOf(() => readCall(bytes(body), plainHead))
    expect([refusal.code as string, refusal.extras.param ?? '']).toEqual([code, param])
  })

  test('another method', () => {
    const refusal = refusalOf(() => readCall(bytes({ contents }), headFor('/v1beta/models/a/b:countTokens')))
    expect(refusal.code).toBe('path_unknown')
  })
})

describe('measures the input:', () => {
  const withPart = (part: object): Call => read({ contents: [{ parts: [{ text: 'hi' }, part] }] })
  const image = 'A'.repeat(100_000)

  const texts = [
    { text: 'x', thought: true, thoughtSignature: 'AbCd' },
    { functionCall: { name: 'f', args: {} } },
    { functionResponse: { name: 'f', response: { output: 'x' } } },
    { function_response: { name: 'f', response: {} } },
  ]
  test.each(texts)('text: %j', part => {
    const call = withPart(part)
    expect(call).toMatchObject({ textOnly: true, searchesMax: 0, inputBytes: call.bodyBytes })
  })

  const media = [
    { inlineData: { mimeType: 'image/png', data: image } },
    { inline_data: { mime_type: 'image/png', data: image } },
    { functionResponse: { name: 'f', response: {}, parts: [{ inlineData: { mimeType: 'image/png', data: image } }] } },
    { fileData: { fileUri: 'https://x.example/cat.png' } },
    { somethingNew: {} },
  ]
  test.each(media)('not text: %j', part => {
    const call = withPart(part)
    expect(call.textOnly).toBe(false)
    expect(call.inputBytes).toBeLessThan(10_000)
  })

  test.each([{ cachedContent: 'cachedContents/x' }, { continuationToken: 'AA==' }])(
    'input outside of the body: %j',
    more => {
      expect(read(more)).toMatchObject({ textOnly: false, searchesMax: 0 })
    },
  )

  test.each(['googleSearch', 'google_search', 'googleSearchRetrieval'])('a search: %s', name => {
    const call = read({ tools: [{ functionDeclarations: [] }, { [name]: {} }] })
    expect([call.textOnly, call.searchesMax, call.services]).toEqual([false, 10, undefined])
  })

  test.each(['urlContext', 'code_execution', 'googleMaps', 'enterprise_web_search', 'ofALaterDay'])(
    'another tool of the provider is a named service: %s',
    name => {
      const call = read({ tools: [{ functionDeclarations: [], computerUse: {}, [name]: {} }] })
      const camel = name.replace(/_(.)/g, (_all, letter: string) => letter.toUpperCase())
      expect([call.textOnly, call.searchesMax, call.services]).toEqual([false, 0, [{ name: camel }]])
    },
  )

  test("the caller's functions are text", () => {
    expect(read({ tools: [{ function_declarations: [{ name: 'f' }] }] })).toMatchObject({ textOnly: true })
  })
})

describe('writes a request', () => {
  const target: CallTarget = { model: 'up', askUsage: true, capField: 'max_tokens' }
  const writeBody = (body: string, more: Partial<CallTarget> = {}): string =>
    Buffer.from(writeCall(readCall(bytes(body), plainHead), { ...target, ...more })).toString()

  test('with the same bytes', () => {
    const body = '{ "contents" : [{"parts":[{"text":"h\\u0069"}]}], "new": 12345678901234567890 }'
    expect(writeBody(body)).toBe(body)
  })

  const head = '"contents":[{}]'
  const caps: readonly (readonly [string, string])[] = [
    [`{${head}}`, `{"generationConfig":{"maxOutputTokens":9},${head}}`],
    [`{${head},"generationConfig":null}`, `{${head},"generationConfig":{"maxOutputTokens":9}}`],
    [`{${head},"generationConfig":{}}`, `{${head},"generationConfig":{"maxOutputTokens":9}}`],
    [`{${head},"generation_config":{"seed":1}}`, `{${head},"generation_config":{"maxOutputTokens":9,"seed":1}}`],
    [`{${head},"generationConfig":{"max_output_tokens":50}}`, `{${head},"generationConfig":{"max_output_tokens":9}}`],
    [`{${head},"generationConfig":{"maxOutputTokens":5}}`, `{${head},"generationConfig":{"maxOutputTokens":5}}`],
    [`{${head},"generationConfig":{"maxOutputTokens":null}}`, `{${head},"generationConfig":{"maxOutputTokens":9}}`],
  ]
  test.each(caps)('with a cap into %s', (body, expected) => {
    expect(writeBody(body, { cap: 9 })).toBe(expected)
  })

  test('with the model of the upstream, if the body has a model', () => {
    expect(writeBody(`{"model":"models/a/b",${head}}`)).toBe(`{"model":"models/up",${head}}`)
  })

  test('without reasoning state of other origins, and with its own reasoning state', () => {
    const foreign = packReasoningState({ form: 'signature', value: 'S', origin: 'there' })
    const own = packReasoningState({ form: 'thought', value: 'T', origin: 'here' })
    const foreignThought = packReasoningState({ form: 'thought', value: 'T', origin: 'there' })
    const parts = [
      { text: 'hm', thought: true, thoughtSignature: foreign },
      { text: '', thought: true, thought_signature: foreign },
      { functionCall: { name: 'f' }, thoughtSignature: foreign },
      { functionCall: { name: 'g' }, thoughtSignature: own },
      { text: 'x', thoughtSignature: 'AbCd' },
      { text: 'y', thoughtSignature: foreignThought },
    ]
    const body = { contents: [{ role: 'model', parts }, { parts: [{ thoughtSignature: foreign }] }] }
    const sent = JSON.parse(writeBody(JSON.stringify(body), { origin: 'here', cap: 9 })) as object
    expect(sent).toEqual({
      contents: [
        {
          role: 'model',
          parts: [
            { text: 'hm', thought: true },
            { functionCall: { name: 'f' }, thoughtSignature: 'skip_thought_signature_validator' },
            { functionCall: { name: 'g' }, thoughtSignature: 'T' },
            { text: 'x', thoughtSignature: 'AbCd' },
            { text: 'y' },
          ],
        },
      ],
      generationConfig: { maxOutputTokens: 9 },
    })
  })
})
