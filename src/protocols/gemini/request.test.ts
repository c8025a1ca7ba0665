// Tests what is read from a request, what is refused, and what is replaced in its bytes.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { openFraming } from './framing.ts'
import { readCall, writeCall } from './request.ts'

const asks = (path: string, query: Readonly<Record<string, string>> = {}): RequestHead => ({
  path,
  query: name => query[name] ?? null,
  header: () => undefined,
})
const plain = asks('/v1beta/models/a/b:generateContent')
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const bytes = (json: unknown): Buffer => Buffer.from(typeof json === 'string' ? json : JSON.stringify(json))
const read = (more: object = {}, asked: RequestHead = plain): Call => readCall(bytes({ contents, ...more }), asked)

function refusalOf(act: () => unknown): Refusal {
  try {
    act()
  } catch (fault) {
    if (fault instanceof Refusal) return fault
    throw fault
  }
  throw new Error('it was not refused')
}

describe('reads', () => {
  test('the model of the path, and that usage is always shown', () => {
    expect(read()).toMatchObject({ model: 'a/b', stream: false, wantsUsage: true, choices: 1, dialect: 'gemini' })
    expect(read().outputTokensMax).toBeUndefined()
  })

  test('P13: a stream is an array unless server-sent events are asked for', () => {
    const path = '/v1beta/models/a/b:streamGenerateContent'
    expect(read({}, asks(path, { alt: 'sse' }))).toMatchObject({ stream: true })
    expect(read({}, asks(path, { alt: 'sse' })).framing).toBeUndefined()
    expect(read({}, asks(path, { $alt: 'sse' })).framing).toBeUndefined()
    expect(read({}, asks(path))).toMatchObject({ stream: true, framing: 'array' })
    expect(read({}, asks(path, { alt: 'json' }))).toMatchObject({ stream: true, framing: 'array' })
  })

  test('a stream for an SDK that fails on comments has none', () => {
    const path = '/v1beta/models/a/b:streamGenerateContent'
    const by = (client: string): RequestHead => ({ ...asks(path, { alt: 'sse' }), header: () => client })
    const call = read({}, by('genai-js/0.24.1'))
    expect(call).toMatchObject({ stream: true, framing: 'bare' })
    expect(openFraming(call)?.comment).toBe('')
    expect(openFraming(call)?.element('{\n}')).toBe('data: { }\n\n')
    for (const client of ['google-genai-sdk/1.30.0 gl-node/v20.20.2', 'google-genai-sdk/1.40.0 gl-go/go1.24.0']) {
      expect(read({}, by(client)).framing).toBe('bare')
    }
    for (const client of ['google-genai-sdk/2.32.0 gl-node/v24', 'google-genai-sdk/1.34.0 gl-node/web']) {
      expect(read({}, by(client)).framing).toBeUndefined()
    }
    expect(read({}, { ...plain, header: () => 'genai-js/0.24.1' }).framing).toBeUndefined()
  })

  test('both spellings, and a mix of them', () => {
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

  test('a single content where a list is meant', () => {
    expect(read({ contents: contents[0]! }).model).toBe('a/b')
  })
})

describe('refuses', () => {
  const rows: readonly (readonly [string, unknown, string, string])[] = [
    ['no contents', {}, 'field_missing', 'contents'],
    ['contents that are empty', { contents: [] }, 'field_invalid', 'contents'],
    ['contents that are texts', { contents: ['hi'] }, 'field_invalid', 'contents[0]'],
    ['a list', [], 'body_not_object', ''],
    ['what is no JSON', '{', 'json_invalid', ''],
    ['a config that is none', { contents, generationConfig: 5 }, 'field_invalid', 'generationConfig'],
    ['a cap in words', { contents, generationConfig: { maxOutputTokens: '5' } }, 'field_invalid', 'maxOutputTokens'],
    [
      'a model for its router',
      { contents, generationConfig: { routingConfig: { manualMode: { modelName: 'x' } } } },
      'field_invalid',
      'generationConfig.routingConfig',
    ],
    [
      'the same by the other spelling',
      { contents, generation_config: { routing_config: { autoMode: {} } } },
      'field_invalid',
      'generationConfig.routingConfig',
    ],
    [
      'how to choose a model',
      { contents, generationConfig: { modelConfig: { featureSelectionPreference: 1 } } },
      'field_invalid',
      'generationConfig.modelConfig',
    ],
    ['a router at the top', { contents, routing_config: { autoMode: {} } }, 'field_invalid', 'routingConfig'],
    ['no candidates', { contents, generationConfig: { candidateCount: 0 } }, 'field_invalid', 'candidateCount'],
    ['two spellings', { contents, serviceTier: 'a', service_tier: 'b' }, 'field_duplicate', 'serviceTier'],
    ['two configs', { contents, generationConfig: {}, generation_config: {} }, 'field_duplicate', 'generationConfig'],
    ['odd capitals', { contents, GenerationConfig: {} }, 'field_duplicate', 'generationConfig'],
    [
      'two spellings of the cap',
      { contents, generationConfig: { maxOutputTokens: 5, max_output_tokens: 500 } },
      'field_duplicate',
      'generationConfig.maxOutputTokens',
    ],
    [
      'the cap twice',
      '{"contents":[{"parts":[]}],"generationConfig":{"maxOutputTokens":5,"maxOutputTokens":500}}',
      'field_duplicate',
      'generationConfig.maxOutputTokens',
    ],
    ['contents twice', '{"contents":[{}],"contents":[{}]}', 'field_duplicate', 'contents'],
  ]

  test.each(rows)('%s', (_name, body, ...[code, param]) => {
    const refusal = refusalOf(() => readCall(bytes(body), plain))
    expect([refusal.code as string, refusal.extras.param ?? '']).toEqual([code, param])
  })

  test('another method', () => {
    const refusal = refusalOf(() => readCall(bytes({ contents }), asks('/v1beta/models/a/b:countTokens')))
    expect(refusal.code).toBe('path_unknown')
  })
})

describe('measures the input', () => {
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
    'another tool of the provider is named: %s',
    name => {
      const call = read({ tools: [{ functionDeclarations: [], computerUse: {}, [name]: {} }] })
      const camel = name.replace(/_(.)/g, (_all, letter: string) => letter.toUpperCase())
      expect([call.textOnly, call.searchesMax, call.services]).toEqual([false, 0, [{ name: camel }]])
    },
  )

  test('functions of the caller leave the input text only', () => {
    expect(read({ tools: [{ function_declarations: [{ name: 'f' }] }] })).toMatchObject({ textOnly: true })
  })
})

describe('writes', () => {
  const target: CallTarget = { model: 'up', askUsage: true, capField: 'max_tokens' }
  const written = (body: string, more: Partial<CallTarget> = {}): string =>
    Buffer.from(writeCall(readCall(bytes(body), plain), { ...target, ...more })).toString()

  test('the same bytes', () => {
    const body = '{ "contents" : [{"parts":[{"text":"h\\u0069"}]}], "new": 12345678901234567890 }'
    expect(written(body)).toBe(body)
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
  test.each(caps)('a cap into %s', (body, wanted) => {
    expect(written(body, { cap: 9 })).toBe(wanted)
  })

  test('the model, where the body has one', () => {
    expect(written(`{"model":"models/a/b",${head}}`)).toBe(`{"model":"models/up",${head}}`)
  })

  test('without reasoning state of other origins, and with that of its own', () => {
    const foreign = packReasoningState({ form: 'signature', value: 'S', origin: 'there' })
    const own = packReasoningState({ form: 'thought', value: 'T', origin: 'here' })
    const elsewhere = packReasoningState({ form: 'thought', value: 'T', origin: 'there' })
    const parts = [
      { text: 'hm', thought: true, thoughtSignature: foreign },
      { text: '', thought: true, thought_signature: foreign },
      { functionCall: { name: 'f' }, thoughtSignature: foreign },
      { functionCall: { name: 'g' }, thoughtSignature: own },
      { text: 'x', thoughtSignature: 'AbCd' },
      { text: 'y', thoughtSignature: elsewhere },
    ]
    const body = { contents: [{ role: 'model', parts }, { parts: [{ thoughtSignature: foreign }] }] }
    const clean = JSON.parse(written(JSON.stringify(body), { origin: 'here', cap: 9 })) as object
    expect(clean).toEqual({
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
