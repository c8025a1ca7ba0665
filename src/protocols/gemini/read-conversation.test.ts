// Tests how a request is read into a conversation, field by field, and which fields are recorded as losses.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import { Readings } from '../../../test/support/readings.ts'
import { Refusal } from '../../base/errors.ts'
import type { Conversation, ConversationPart } from '../neutral/conversation.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import type { FieldTable } from '../request/fields.ts'
import {
  callFields,
  configFields,
  functionCallingFields,
  functionFields,
  partFields,
  requestFields,
  resultFields,
  searchFields,
  thinkingFields,
  toolConfigFields,
} from './fields.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'

const requestHead: RequestHead = {
  path: '/v1beta/models/a/b:generateContent',
  query: () => null,
  header: () => undefined,
}
const greeting = [{ role: 'user', parts: [{ text: 'hi' }] }]
const readBody = (body: object): Conversation =>
  readConversation(readCall(Buffer.from(JSON.stringify(body)), requestHead))
const read = (more: object): Conversation => readBody({ contents: greeting, ...more })
const partsOf = (...parts: readonly object[]): readonly ConversationPart[] =>
  read({ contents: [{ role: 'model', parts }] }).messages[0]!.parts
const config = (generationConfig: object): Conversation => read({ generationConfig })

describe('messages:', () => {
  test('instructions come first, and content without a role is of the user', () => {
    const { messages } = read({
      systemInstruction: { role: 'user', parts: [{ text: 'be' }, { text: 'kind' }] },
      contents: [{ parts: [{ text: 'a' }] }, { role: 'model', parts: [{ text: 'b' }] }],
    })
    expect(messages.map(message => [message.role, message.parts.length])).toEqual([
      ['system', 2],
      ['user', 1],
      ['assistant', 1],
    ])
    expect(read({ system_instruction: 'plain' }).messages[0]).toMatchObject({ role: 'system' })
  })

  test('tool calls without ids are paired with their results by name, in order, and always the same way', () => {
    const call = (name: string, id?: string) => ({ functionCall: { name, args: { of: name }, ...(id && { id }) } })
    const result = (name: string, output: string) => ({ functionResponse: { name, response: { output } } })
    const contents = [
      ...greeting,
      { role: 'model', parts: [call('f'), call('g', 'call_2'), call('f')] },
      { role: 'user', parts: [result('f', '1'), result('f', '2'), result('g', '3'), { text: 'and?' }] },
    ]
    const { messages } = read({ contents })
    expect(messages.map(message => message.role)).toEqual(['user', 'assistant', 'tool', 'user'])
    const ids = messages[1]!.parts.map(part => (part.kind === 'call' ? part.id : ''))
    expect(ids).toEqual(['call_1', 'call_2', 'call_3'])
    const answers = messages[2]!.parts.map(part => (part.kind === 'result' ? part.callId : ''))
    expect(answers).toEqual(['call_1', 'call_3', 'call_2'])
    expect(read({ contents })).toEqual(read({ contents }))
  })

  test.each(['user', 'function', 'tool'])('tool results of the role %s are read', role => {
    const contents = [
      { role: 'model', parts: [{ functionCall: { id: 'x', name: 'f' } }, { functionCall: { id: 'y', name: 'f' } }] },
      {
        role,
        parts: [
          { functionResponse: { id: 'y', name: 'f', response: { error: 'no' } } },
          { functionResponse: { id: 'x', name: 'f', response: { a: 1 }, parts: [{ inlineData: image }] } },
          { functionResponse: { name: 'lost', response: {} } },
        ],
      },
    ]
    const results = read({ contents }).messages[1]!.parts
    const errorText = [{ kind: 'text' as const, text: 'no' }]
    expect(results[0]).toEqual({ kind: 'result', callId: 'y', name: 'f', parts: errorText, failed: true })
    expect(results[1]).toMatchObject({ callId: 'x', parts: [{ kind: 'text', text: '{"a":1}' }, { kind: 'image' }] })
    expect(results[2]).toMatchObject({ callId: 'call_1', name: 'lost' })
  })

  const image = { mimeType: 'image/png', data: 'AAAA' }
})

describe('parts are read:', () => {
  test('P25: signatures of calls, and thoughts in several pieces, which become one', () => {
    const packed = packReasoningState({ form: 'signature', value: 'S', origin: 'o' })
    const parts = partsOf(
      { text: 'Let me', thought: true },
      { text: ' think.', thought: true },
      { text: '', thought: true, thoughtSignature: packed },
      { text: 'Hel' },
      { text: 'lo' },
      { functionCall: { id: 'c', name: 'f', args: { a: 1 } }, thoughtSignature: 'AbCd' },
      { functionCall: { id: 'd', name: 'f' }, thought_signature: 'skip_thought_signature_validator' },
      { text: '', thoughtSignature: 'EfGh' },
    )
    expect(parts).toEqual([
      { kind: 'reasoning', text: 'Let me think.', sealed: { form: 'signature', value: 'S', origin: 'o' } },
      { kind: 'text', text: 'Hello' },
      { kind: 'call', id: 'c', name: 'f', arguments: '{"a":1}', sealed: { form: 'thought', value: 'AbCd' } },
      { kind: 'call', id: 'd', name: 'f', arguments: '{}' },
      { kind: 'reasoning', text: '', sealed: { form: 'thought', value: 'EfGh' } },
    ])
  })

  const media: readonly (readonly [object, object])[] = [
    [
      { inline_data: { mime_type: 'image/png', data: '-_A=' } },
      { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: '+/A=' } },
    ],
    [
      { inlineData: { mimeType: 'application/pdf', data: 'AAAA', displayName: 'a.pdf' } },
      { kind: 'file', name: 'a.pdf', source: { at: 'inline', mime: 'application/pdf', base64: 'AAAA' } },
    ],
    [
      { fileData: { fileUri: 'https://x.example/a.mp3', mimeType: 'audio/mp3' } },
      { kind: 'audio', source: { at: 'url', url: 'https://x.example/a.mp3', mime: 'audio/mp3' } },
    ],
    [
      { fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x', mimeType: 'image/png' } },
      {
        kind: 'image',
        source: { at: 'provider', id: 'https://generativelanguage.googleapis.com/v1beta/files/x', mime: 'image/png' },
      },
    ],
    [
      { fileData: { fileUri: 'https://youtu.be/x' } },
      { kind: 'video', source: { at: 'url', url: 'https://youtu.be/x' } },
    ],
    [
      { inlineData: { mimeType: 'image/png', data: 'AAAA' }, mediaResolution: { level: 'MEDIA_RESOLUTION_HIGH' } },
      { kind: 'image', detail: 'high', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } },
    ],
    [
      { executableCode: { language: 'PYTHON', code: '1' } },
      {
        kind: 'native',
        dialect: 'gemini',
        what: 'executableCode',
        value: { executableCode: { language: 'PYTHON', code: '1' } },
      },
    ],
  ]
  test.each(media)('%j', (part, expected) => {
    expect(partsOf(part)).toEqual([expected as ConversationPart])
  })
})

describe('tools are read:', () => {
  test('P27: an OpenAPI schema becomes JSON Schema', () => {
    const parameters = {
      type: 'OBJECT',
      properties: {
        list: { type: 'ARRAY', items: { type: 'STRING', nullable: true, enum: ['a'] }, min_items: '2' },
        type: { type: 'INTEGER', format: 'int32', example: 5 },
        either: { any_of: [{ type: 'STRING' }, { type: 'NUMBER' }], nullable: true },
      },
      required: ['list'],
      propertyOrdering: ['type', 'list'],
    }
    const [tool] = read({ tools: [{ function_declarations: [{ name: 'f', description: 'd', parameters }] }] }).tools
    expect(tool).toEqual({
      kind: 'function',
      name: 'f',
      description: 'd',
      schema: {
        type: 'object',
        properties: {
          type: { type: 'integer', format: 'int32', examples: [5] },
          list: { type: 'array', items: { type: ['string', 'null'], enum: ['a', null] }, minItems: 2 },
          either: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
        },
        required: ['list'],
      },
    })
    expect(JSON.stringify(tool)).toContain('{"type":{"type":"integer"')
  })

  test('JSON Schema is kept, a search is read, and tools that only Google has are native', () => {
    const schema = { type: 'object', properties: { snake_case: { const: 1 } } }
    const { tools } = read({
      tools: [
        { functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }, { name: 'g' }] },
        { googleSearch: {}, codeExecution: {} },
      ],
    })
    expect(tools).toEqual([
      { kind: 'function', name: 'f', schema },
      { kind: 'function', name: 'g' },
      { kind: 'search' },
      { kind: 'native', dialect: 'gemini', what: 'codeExecution', value: { codeExecution: {} } },
    ])
  })

  const choices: readonly (readonly [object, object | undefined])[] = [
    [{}, undefined],
    [{ mode: 'AUTO' }, { mode: 'auto' }],
    [{ mode: 'any' }, { mode: 'required' }],
    [
      { mode: 'ANY', allowedFunctionNames: ['f'] },
      { mode: 'required', names: ['f'] },
    ],
    [{ mode: 'NONE' }, { mode: 'none' }],
    [
      { mode: 'VALIDATED', allowed_function_names: ['f'] },
      { mode: 'auto', names: ['f'] },
    ],
  ]
  test.each(choices)('choice %j', (functionCallingConfig, choice) => {
    expect(read({ toolConfig: { functionCallingConfig } }).toolChoice as object | undefined).toEqual(choice)
  })
})

describe('settings are read:', () => {
  test('each setting', () => {
    const { settings } = read({
      generationConfig: {
        temperature: 0.5,
        topP: 0.9,
        top_k: 40,
        candidateCount: 2,
        maxOutputTokens: 100,
        seed: 7,
        stopSequences: ['x'],
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        responseLogprobs: true,
        logprobs: 3,
      },
      serviceTier: 'standard',
      labels: { a: 'b' },
    })
    expect(settings).toEqual({
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      choices: 2,
      outputTokensMax: 100,
      seed: 7,
      stop: ['x'],
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      logprobs: 3,
      serviceClass: 'default',
      metadata: { a: 'b' },
      stream: false,
    })
  })

  const thinking: readonly (readonly [object, object | undefined])[] = [
    [{}, undefined],
    [{ thinkingBudget: 0 }, { budget: 0 }],
    [
      { thinking_budget: -1, include_thoughts: true },
      { adaptive: true, show: 'auto' },
    ],
    [{ thinkingBudget: 512 }, { budget: 512 }],
    [
      { thinkingLevel: 'high', includeThoughts: false },
      { effort: 'high', show: 'none' },
    ],
    [{ thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' }, undefined],
  ]
  test.each(thinking)('thinking %j', (thinkingConfig, expected) => {
    expect(config({ thinkingConfig }).reasoning as object | undefined).toEqual(expected)
  })

  const formats: readonly (readonly [object, object | undefined])[] = [
    [{ responseMimeType: 'text/plain' }, undefined],
    [{ responseMimeType: 'application/json' }, { kind: 'json' }],
    [
      { response_mime_type: 'application/json', response_schema: { type: 'STRING' } },
      { kind: 'schema', schema: { type: 'string' }, strict: true },
    ],
    [
      { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } },
      { kind: 'schema', schema: { type: 'object' }, strict: true },
    ],
  ]
  test.each(formats)('format %j', (fields, format) => {
    expect(config(fields).format as object | undefined).toEqual(format)
  })

  test('the media resolution, which applies to each image', () => {
    const contents = [{ parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }] }]
    const { messages } = read({ contents, generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW' } })
    expect(messages[0]!.parts[0]).toMatchObject({ detail: 'low' })
  })
})

describe('a loss is recorded:', () => {
  /** The path of a table in a request, the table, and a function that puts a field of the table there. */
  type TablePlace = readonly [path: string, table: FieldTable, put: (field: object) => object]
  const named = (field: object): object => ({ name: 'f', ...field })
  const inPart = (part: object): object => ({ contents: [{ parts: [part] }] })
  const tablePlaces: readonly TablePlace[] = [
    ['', requestFields, field => field],
    ['generationConfig', configFields, field => ({ generationConfig: field })],
    ['generationConfig.thinkingConfig', thinkingFields, field => ({ generationConfig: { thinkingConfig: field } })],
    ['toolConfig', toolConfigFields, field => ({ toolConfig: field })],
    [
      'toolConfig.functionCallingConfig',
      functionCallingFields,
      field => ({ toolConfig: { functionCallingConfig: field } }),
    ],
    ['tools.functionDeclarations', functionFields, field => ({ tools: [{ functionDeclarations: [named(field)] }] })],
    ['tools.googleSearch', searchFields, field => ({ tools: [{ googleSearch: field }] })],
    ['contents.parts', partFields, field => inPart({ text: 'x', ...field })],
    ['contents.parts.functionCall', callFields, field => inPart({ functionCall: named(field) })],
    ['contents.parts.functionResponse', resultFields, field => inPart({ functionResponse: named(field) })],
  ]
  const rows = tablePlaces.flatMap(([path, table, put]) => {
    const lost = Object.keys(table).filter(name => table[name] === 'lost')
    return [...lost, 'somethingNew'].map(name => [path, name, put] as const)
  })

  test.each(rows)('field %s.%s', (path, name, put) => {
    const snake = name.replace(/[A-Z]/g, capital => `_${capital.toLowerCase()}`)
    for (const spelling of [name, snake]) {
      expect(read(put({ [spelling]: { some: 'thing' } })).lostFields).toContain(path === '' ? name : `${path}.${name}`)
      expect(read(put({ [spelling]: null })).lostFields).toEqual([])
    }
  })

  test('values that other dialects cannot express', () => {
    expect(config({ responseModalities: ['TEXT'] }).lostFields).toEqual([])
    expect(read({ safetySettings: [] }).lostFields).toEqual([])
    expect(read({ safetySettings: [{}] }).lostFields).toEqual(['safetySettings'])
    expect(config({ responseModalities: ['TEXT', 'IMAGE'] }).lostFields).toEqual([
      'generationConfig.responseModalities',
    ])
    expect(config({ responseMimeType: 'text/x.enum' }).lostFields).toEqual(['generationConfig.responseMimeType'])
    const validated = { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } }
    expect(read(validated).lostFields).toEqual(['toolConfig.functionCallingConfig.validated'])
  })
})

describe('a request', () => {
  const part = (value: unknown): object => ({ contents: [{ parts: [value] }] })
  const rows: readonly object[] = [
    { contents: [{ role: 'system', parts: [{ text: 'x' }] }] },
    { contents: [{ role: 'user', parts: [] }] },
    part(null),
    part('hi'),
    part({}),
    part({ text: 5 }),
    part({ text: 'x', functionCall: { name: 'f' } }),
    part({ text: 'x', inline_data: { mimeType: 'image/png', data: 'AAAA' } }),
    part({ inlineData: { mimeType: 'image/png', data: 'not base64!' } }),
    part({ inlineData: { data: 'AAAA' } }),
    part({ inlineData: { mimeType: 'a/b', mime_type: 'c/d', data: 'AAAA' } }),
    part({ functionCall: { args: {} } }),
    part({ functionCall: { name: 'f', args: [] } }),
    part({ functionResponse: { name: 'f', response: 'text' } }),
    { generationConfig: { thinkingConfig: { thinkingBudget: 5, thinkingLevel: 'LOW' } } },
    { generationConfig: { thinkingConfig: { thinkingLevel: 'LOTS' } } },
    { generationConfig: { stopSequences: [5] } },
    { generationConfig: { temperature: 'hot' } },
    { toolConfig: { functionCallingConfig: { mode: 'MAYBE' } } },
    { tools: [{ functionDeclarations: [{}] }] },
    { tools: ['search'] },
    { systemInstruction: 5 },
  ]
  test.each(rows)('is refused with %j', more => {
    expect(() => read(more)).toThrow(Refusal)
  })

  test('with any fields is read, or refused by a Refusal', () => {
    const names = [partFields, configFields, requestFields, { parts: 'read', role: 'read' }].flatMap(Object.keys)
    const { tree } = fc.letrec(tie => ({
      tree: fc.oneof({ maxDepth: 5 }, fc.jsonValue(), tie('object'), fc.array(tie('tree'), { maxLength: 3 })),
      object: fc.dictionary(fc.constantFrom(...names), tie('tree'), { maxKeys: 4 }),
    }))
    const readings = new Readings()
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), tree, { maxKeys: 4 }), json =>
        readings.take(() => read(json)),
      ),
      { numRuns: 1_000 },
    )
    expect(readings.read).toBeGreaterThan(0)
  })
})

test('thirty thousand calls and results are read quickly', async () => {
  const calls = Array.from({ length: 30_000 }, () => ({ functionCall: { name: 'f' } }))
  const results = calls.map(() => ({ functionResponse: { name: 'f', response: {} } }))
  await expectCheap(10_000, () => {
    const { messages } = readBody({ contents: [{ role: 'model', parts: calls }, { parts: results }] })
    expect(messages[1]!.parts).toHaveLength(30_000)
  })
})
