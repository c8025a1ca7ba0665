// Schemas of answers and of strict tools reach the upstream in the form that it accepts, and a schema that it cannot hold
// the model to is asked for in another way. What does not bind the model is reported.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Json } from '../../src/protocols/request/json-type.ts'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects()
  key = await harness.key()
})
afterAll(() => harness.stop())

interface Sent {
  readonly status: number
  readonly losses: string | null
  readonly body: Json
}

const messages = [{ role: 'user', content: 'Hello' }]

const send = (upstream: Dialect, fields: object): Promise<Sent> =>
  post('/v1/chat/completions', { model: modelOf(upstream), messages, ...fields })

const sendGemini = (upstream: Dialect, fields: object): Promise<Sent> =>
  post(`/v1beta/models/${modelOf(upstream)}:generateContent`, {
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    ...fields,
  })

const sendMessages = (upstream: Dialect, fields: object): Promise<Sent> =>
  post('/v1/messages', { model: modelOf(upstream), max_tokens: 99, messages, ...fields })

async function post(path: string, body: object): Promise<Sent> {
  const answer = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await answer.text()
  const sent = harness.upstream.requests.at(-1)!.json() as Json
  return { status: answer.status, losses: answer.headers.get('x-weir-loss'), body: sent }
}

const formatOf = (schema: Json) => ({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } })
const strictTool = (parameters: Json) => ({
  tools: [{ type: 'function', function: { name: 'f', strict: true, parameters } }],
})
const objectOf = (properties: Json): Json => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const text = { type: 'string' }
const map = objectOf({ scores: { type: 'object', additionalProperties: { type: 'number' } } })
const tree = objectOf({ children: { type: 'array', items: { $ref: '#' } } })
const union = objectOf({ car: { oneOf: [objectOf({ a: text }), objectOf({ b: text })] } })

test.each<readonly [string, Dialect, string]>([
  ['says nothing of JSON', 'openai-chat', 'Be brief.'],
  ['says nothing of JSON', 'openai-responses', 'Be brief.'],
  ['mentions JSON in its instructions', 'openai-chat', 'Answer in JSON.'],
  ['mentions JSON in its instructions', 'openai-responses', 'Answer in JSON.'],
])('the JSON mode of a request that %s is accepted by %s', async (_name, upstream, system) => {
  const { status, losses } = await sendGemini(upstream, {
    systemInstruction: { parts: [{ text: system }] },
    generationConfig: { responseMimeType: 'application/json' },
  })
  expect([status, losses]).toEqual([200, null])
})

test.each(['openai-chat', 'openai-responses'] as const)(
  '%s is told in words of an answer that is a list',
  async upstream => {
    const responseSchema = { type: 'ARRAY', items: { type: 'STRING' } }
    const generationConfig = { responseMimeType: 'application/json', responseSchema }
    const { status, losses, body } = await sendGemini(upstream, { generationConfig })
    expect([status, losses, body.response_format ?? body.text]).toEqual([200, 'response_format.json_schema', undefined])
    expect(JSON.stringify(body)).toContain(
      JSON.stringify('nothing but JSON that matches this JSON schema').slice(1, -1),
    )
  },
)

test.each(['openai-chat', 'openai-responses'] as const)(
  '%s gets an object for a reference at the root',
  async upstream => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
    const responseJsonSchema = { $ref: '#/$defs/node', $defs: { node } }
    const { body } = await sendGemini(upstream, {
      generationConfig: { responseMimeType: 'application/json', responseJsonSchema },
    })
    const chat = body.response_format as { readonly json_schema: Json } | undefined
    const responses = body.text as { readonly format: Json } | undefined
    expect((chat?.json_schema ?? responses?.format)?.schema).toEqual({ ...node, $defs: { node } })
  },
)

test.each([
  ['an open map', map],
  ['recursion', tree],
])('%s is asked of Anthropic by a tool, as the caller wrote it', async (_name, schema) => {
  const { status, losses, body } = await send('anthropic-messages', formatOf(schema))
  expect([status, losses, body.output_config]).toEqual([200, 'response_format.schema', undefined])
  expect(body.tools).toMatchObject([{ name: 'json_answer', input_schema: schema }])
  expect(body.tool_choice).toMatchObject({ type: 'tool', name: 'json_answer' })
})

test.each([
  ['the model thinks', { ...formatOf(map), reasoning_effort: 'low' }],
  ['the answer is a list', formatOf({ type: 'array', items: map })],
  ['the answer is one of several objects', formatOf({ anyOf: [map, union] })],
])('an open map is asked of Anthropic in words if %s', async (_name, fields) => {
  const { status, losses, body } = await send('anthropic-messages', fields)
  expect([status, losses, body.tools]).toEqual([200, 'response_format', undefined])
  expect(JSON.stringify(body.system)).toContain('additionalProperties')
})

test('alternatives reach Anthropic as anyOf', async () => {
  const converted = objectOf({ car: { anyOf: [objectOf({ a: text }), objectOf({ b: text })] } })
  const format = await send('anthropic-messages', formatOf(union))
  expect([format.losses, format.body.output_config]).toEqual([
    null,
    { format: { type: 'json_schema', schema: converted } },
  ])
  const tool = await send('anthropic-messages', strictTool(union))
  expect([tool.losses, tool.body.tools]).toEqual([null, [{ name: 'f', input_schema: converted, strict: true }]])
})

test.each([
  ['an open map', map],
  ['recursion', tree],
])('a tool with %s is not strict at Anthropic', async (_name, schema) => {
  const { losses, body } = await send('anthropic-messages', strictTool(schema))
  expect([losses, body.tools]).toEqual(['tools.strict', [{ name: 'f', input_schema: schema }]])
})

test('a tool whose arguments are not all known is not strict at Anthropic', async () => {
  const parameters = { anyOf: [objectOf({ a: text }), { $ref: '#' }] }
  const { losses, body } = await send('anthropic-messages', strictTool(parameters))
  const schema = { type: 'object', properties: { a: text }, additionalProperties: true }
  expect([losses, body.tools]).toEqual(['tools.strict, tools.schema', [{ name: 'f', input_schema: schema }]])
})

test('a strict tool without parameters stays strict at Anthropic', async () => {
  const { losses, body } = await send('anthropic-messages', strictTool({ type: 'object' }))
  const none = { type: 'object', properties: {}, additionalProperties: false }
  expect([losses, body.tools]).toEqual([null, [{ name: 'f', input_schema: none, strict: true }]])
})

test('Google gets no fields beside a reference, and no list of booleans', async () => {
  const schema = { ...objectOf({ a: { $ref: '#/$defs/a', title: 'A' } }), $defs: { a: objectOf({ b: text }) } }
  const reference = await send('gemini', formatOf(schema))
  const expected = { ...objectOf({ a: { $ref: '#/$defs/a' } }), $defs: { a: objectOf({ b: text }) } }
  expect([reference.losses, reference.body.generationConfig]).toMatchObject([null, { responseJsonSchema: expected }])
  const constant = await send('gemini', formatOf(objectOf({ a: { type: 'boolean', const: true } })))
  expect([constant.losses, constant.body.generationConfig]).toMatchObject([
    'response_format.schema',
    { responseJsonSchema: { properties: { a: { type: 'boolean', description: '{enum: [true]}' } } } },
  ])
  expect(JSON.stringify(constant.body)).not.toContain('"enum"')
})

test('a limit that does not bind the model of Google is a loss, if the caller wants the model to be bound', async () => {
  const limited = objectOf({ a: { type: 'string', pattern: '^a' } })
  expect((await send('gemini', formatOf(limited))).losses).toBe('response_format.schema')
  expect((await send('gemini', strictTool(limited))).losses).toBe('tools.schema')
  const loose = { tools: [{ type: 'function', function: { name: 'f', parameters: limited } }] }
  expect((await send('gemini', loose)).losses).toBeNull()
})

const others = ['openai-chat', 'openai-responses', 'anthropic-messages', 'ark'] as const

test.each(others)("a list of integers in Google's form reaches %s as integers", async upstream => {
  const google = { type: 'INTEGER', format: 'enum', enum: ['101', '201', '301'] }
  const parameters = { type: 'OBJECT', properties: { level: google }, required: ['level'] }
  const written = '"level":{"type":"integer","enum":[101,201,301]}'
  const tool = await sendGemini(upstream, { tools: [{ functionDeclarations: [{ name: 'f', parameters }] }] })
  expect([tool.status, tool.losses, JSON.stringify(tool.body.tools)]).toEqual([
    200,
    null,
    expect.stringContaining(written),
  ])
  const format = await sendGemini(upstream, {
    generationConfig: { responseMimeType: 'application/json', responseSchema: parameters },
  })
  expect([format.status, format.losses, JSON.stringify(format.body)]).toEqual([
    200,
    null,
    expect.stringContaining(written),
  ])
})

const refused = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

describe.each(refused)('tools of Gemini reach %s', upstream => {
  const sendTool = async (parametersJsonSchema: Json) => {
    const tools = [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }]
    const { status, losses, body } = await sendGemini(upstream, { tools })
    const tool = (body.tools as readonly Json[])[0]!
    const { parameters, input_schema: schema = parameters } = (tool.function ?? tool) as Json
    return { status, losses, written: JSON.stringify(schema) }
  }

  test('with an object at the root, which is reported', async () => {
    const schema = { oneOf: [objectOf({ a: text }), objectOf({ a: text, b: text })], description: 'd' }
    const expected = {
      description: 'd',
      type: 'object',
      properties: { a: text, b: text },
      required: ['a'],
    }
    expect(await sendTool(schema)).toEqual({ status: 200, losses: 'tools.schema', written: JSON.stringify(expected) })
  })

  test('with properties, even if there are none', async () => {
    const written = JSON.stringify({ type: 'object', properties: {} })
    expect(await sendTool({ type: 'object' })).toEqual({ status: 200, losses: null, written })
  })

  test('byte for byte if they need no change', async () => {
    const list = { type: 'array', items: { $ref: '#/$defs/item' } }
    const schema = {
      description: 'd',
      type: 'object',
      properties: { list, either: { anyOf: [text, { type: 'object' }] }, map: { type: 'object' } },
      $defs: { item: { oneOf: [text, { type: 'null' }], title: 'Item' } },
      additionalProperties: true,
    }
    expect(await sendTool(schema)).toEqual({ status: 200, losses: null, written: JSON.stringify(schema) })
  })
})

/** Sends a strict tool in the other dialect of OpenAI, so that it is translated. */
const sendOfOpenai = (upstream: Dialect, parameters: Json): Promise<Sent> =>
  upstream === 'openai-responses'
    ? send(upstream, strictTool(parameters))
    : post('/v1/responses', {
        model: modelOf(upstream),
        input: 'Hello',
        tools: [{ type: 'function', name: 'f', parameters, strict: true }],
      })

/** What the body says about the schema of the answer and about the first function, in the dialects of OpenAI. */
function readSchemas({ text, response_format, tools }: Json): Json {
  const format = (text as Json | undefined)?.format ?? (response_format as Json | undefined)?.json_schema
  const tool = (tools as readonly Json[] | undefined)?.[0]
  const { schema, strict } = (format ?? {}) as Json
  const { parameters, strict: isStrictTool } = ((tool?.function ?? tool) as Json | undefined) ?? {}
  return { schema, strict, parameters, isStrictTool }
}

const openaiDialects = [
  ['openai-chat', undefined],
  ['openai-responses', false],
  ['ark', undefined],
] as const

describe.each(openaiDialects)('a model of %s', (upstream, notStrict) => {
  const full = objectOf({ a: text, b: { type: ['integer', 'null'] } })
  const open = { type: 'object', properties: { a: text }, required: ['a'] }
  const optional = { ...full, required: ['a'] }
  const pattern = { ...objectOf({ a: text, b: { type: 'string', minLength: 1 } }) }
  const formatCall = (schema: Json) => ({ output_config: { format: { type: 'json_schema', schema } } })
  const toolCall = (schema: Json) => ({ tools: [{ name: 'f', input_schema: schema, strict: true }] })

  test.each<readonly [string, Json, Json]>([
    ['that fits', full, full],
    ['with objects that can be closed', open, objectOf({ a: text })],
  ])('is held to a schema of Anthropic %s', async (_name, schema, expected) => {
    const format = await sendMessages(upstream, formatCall(schema))
    expect([format.status, format.losses, readSchemas(format.body)]).toMatchObject([
      200,
      null,
      { schema: expected, strict: true },
    ])
    const tool = await sendMessages(upstream, toolCall(schema))
    expect([tool.status, tool.losses, readSchemas(tool.body)]).toMatchObject([
      200,
      null,
      { parameters: expected, isStrictTool: true },
    ])
  })

  test.each<readonly [string, Json]>([
    ['an optional property', optional],
    ['a limit that OpenAI refuses', pattern],
    ['an open map', map],
  ])('is not asked to be strict with %s, which is reported', async (_name, schema) => {
    const format = await sendMessages(upstream, formatCall(schema))
    expect([format.status, format.losses]).toEqual([200, 'response_format.schema'])
    expect(readSchemas(format.body)).toMatchObject({ schema, strict: notStrict })
    const tool = await sendMessages(upstream, toolCall(schema))
    expect([tool.status, tool.losses]).toEqual([200, 'tools.strict'])
    expect(readSchemas(tool.body)).toMatchObject({ parameters: schema, isStrictTool: notStrict })
  })

  test('is not asked to be strict with arguments that are not all known, which is reported', async () => {
    const schema = { $ref: '#/$defs/a', $defs: { a: { $ref: 'https://x.example/s' } }, additionalProperties: false }
    const parameters = { type: 'object', properties: {}, additionalProperties: true }
    for (const call of [() => sendMessages(upstream, toolCall(schema)), () => sendOfOpenai(upstream, schema)]) {
      const { status, losses, body } = await call()
      expect([status, losses]).toEqual([200, 'tools.schema, tools.strict'])
      expect(readSchemas(body)).toMatchObject({ parameters, isStrictTool: notStrict })
    }
  })

  test('may answer with lists of anything', async () => {
    const schema = { type: 'object', properties: { a: { type: 'array' } } }
    const written = { type: 'object', properties: { a: { type: 'array', items: {} } } }
    const { body } = await sendMessages(upstream, {
      ...formatCall(schema),
      tools: [{ name: 'f', input_schema: schema }],
    })
    expect(readSchemas(body)).toMatchObject({ schema: written, parameters: written })
  })

  test("is held to a schema in Google's form", async () => {
    const responseSchema = { type: 'OBJECT', properties: { a: { type: 'STRING' } }, required: ['a'] }
    const config = { responseMimeType: 'application/json', responseSchema }
    const { losses, body } = await sendGemini(upstream, { generationConfig: config })
    expect([losses, readSchemas(body)]).toMatchObject([null, { schema: objectOf({ a: text }), strict: true }])
    const loose = { ...config, responseSchema: { ...responseSchema, required: [] } }
    expect((await sendGemini(upstream, { generationConfig: loose })).losses).toBe('response_format.schema')
  })

  test('gets what a caller of OpenAI sends', async () => {
    const { losses, body } = await sendOfOpenai(upstream, optional)
    expect([losses, readSchemas(body)]).toMatchObject([null, { parameters: optional, isStrictTool: true }])
  })
})
