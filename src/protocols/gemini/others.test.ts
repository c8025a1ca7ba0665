// Tests token counts, embeddings and lists of models.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { Conversation } from '../neutral/conversation.ts'
import { Losses } from '../neutral/losses.ts'
import type { ConversationTarget, RequestHead } from '../protocol.ts'
import { batchEmbedContents, embedContent } from './embeddings.ts'
import { writeModel, writeModelList } from './models.ts'
import { readConversation } from './read-conversation.ts'
import { readCount, readCountCall, writeCount, writeCountCall, writeCountConversation } from './token-count.ts'

const headFor = (verb: string): RequestHead => ({
  path: `/v1beta/models/a/b:${verb}`,
  query: () => null,
  header: () => undefined,
})
const bytes = (json: unknown): Buffer => Buffer.from(JSON.stringify(json))
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]

describe('P23: a token count', () => {
  const count = (json: unknown) => readCountCall(bytes(json), headFor('countTokens'))

  test('covers the whole request, in both forms and spellings', () => {
    const request = { model: 'models/a/b', contents, system_instruction: { parts: [{ text: 'be' }] } }
    for (const body of [{ generateContentRequest: request }, { generate_content_request: request }]) {
      const call = count(body)
      expect(readConversation(call).messages.map(message => message.role)).toEqual(['system', 'user'])
      expect(JSON.parse(writeCountCall(call, { model: 'up', askUsage: true, capField: 'max_tokens' }))).toEqual({
        generateContentRequest: { contents, systemInstruction: { parts: [{ text: 'be' }] }, model: 'models/up' },
      })
    }
    expect(count({ contents })).toMatchObject({ model: 'a/b', stream: false })
  })

  test('needs no cap, and is refused without contents', () => {
    for (const body of [{}, { generateContentRequest: {} }, { generateContentRequest: 5 }]) {
      expect(() => count(body)).toThrow(Refusal)
    }
    expect(() => readCountCall(bytes({ contents }), headFor('generateContent'))).toThrow('path_unknown')
  })

  test('is written for a conversation of another dialect', () => {
    const conversation: Conversation = {
      messages: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
      tools: [{ kind: 'function', name: 'f' }],
      settings: { stream: false },
      lostFields: [],
    }
    const target: ConversationTarget = {
      model: 'up',
      traits: {},
      outputTokensMax: undefined,
      cap: undefined,
      askUsage: true,
      origin: 'o',
      media: new Map(),
      notes: { losses: new Losses(), renamed: new Map() },
      capField: 'max_tokens',
    }
    expect(JSON.parse(writeCountConversation(conversation, target))).toEqual({
      generateContentRequest: { contents, tools: [{ functionDeclarations: [{ name: 'f' }] }], model: 'models/up' },
    })
  })

  test('is written and read', () => {
    expect(JSON.parse(writeCount({ tokens: 7 }))).toMatchObject({ totalTokens: 7 })
    expect(readCount(Buffer.from(writeCount({ tokens: 7, cached: 2 })))).toBe(7)
    for (const body of ['', '{}', '[]', '{"totalTokens":-1}', 'null']) {
      expect(readCount(Buffer.from(body))).toBeUndefined()
    }
  })
})

describe('embeddings:', () => {
  const content = { parts: [{ text: 'x' }, { text: 'y' }] }
  const embedRequest = (more: object = {}) => ({ model: 'models/a/b', content, ...more })
  const read = (verb: string, body: object) => {
    const protocol = verb === 'batchEmbedContents' ? batchEmbedContents : embedContent
    return protocol.vectors.readRequest(protocol.readCall(bytes(body), headFor(verb)))
  }

  test('a single request and a batch are read', () => {
    const options = { taskType: 'RETRIEVAL_QUERY', output_dimensionality: 8, title: 't' }
    expect(read('embedContent', embedRequest(options))).toEqual({
      inputs: ['x\ny'],
      dimensions: 8,
      taskType: 'RETRIEVAL_QUERY',
      lostFields: ['title'],
    })
    const batch = { requests: [embedRequest(), embedRequest()] }
    expect(read('batchEmbedContents', batch)).toEqual({ inputs: ['x\ny', 'x\ny'], lostFields: [] })
  })

  const invalid: readonly (readonly [string, object])[] = [
    ['embedContent', {}],
    ['embedContent', { content: { parts: [] } }],
    ['embedContent', { content: { parts: [{ inlineData: {} }] } }],
    ['embedContent', embedRequest({ outputDimensionality: -1 })],
    ['batchEmbedContents', {}],
    ['batchEmbedContents', { requests: [] }],
    ['batchEmbedContents', { requests: [5] }],
    ['batchEmbedContents', { requests: [embedRequest(), embedRequest({ taskType: 'OTHER' })] }],
    ['generateContent', embedRequest()],
  ]
  test.each(invalid)('%s refuses %j', (verb, body) => {
    expect(() => read(verb, body)).toThrow(Refusal)
  })

  test('fields that cannot be translated pass unchanged to an upstream of the same dialect', () => {
    const requests = [
      embedRequest(),
      embedRequest({ taskType: 'OTHER' }),
      { content: { parts: [{ inlineData: { data: 'AA' } }] } },
    ]
    const call = batchEmbedContents.readCall(bytes({ requests }), headFor('batchEmbedContents'))
    expect(call).toMatchObject({ model: 'a/b', textOnly: false })
    const written = batchEmbedContents.writeCall(call, { model: 'up', askUsage: true, capField: 'max_tokens' })
    const renamed = requests.map(request => ('model' in request ? { ...request, model: 'models/up' } : request))
    expect(JSON.parse(Buffer.from(written).toString())).toEqual({ requests: renamed })
  })

  test('answers are read and written', () => {
    const call = batchEmbedContents.readCall(bytes({ requests: [embedRequest()] }), headFor('batchEmbedContents'))
    const { readResult, writeResult } = batchEmbedContents.vectors
    const found = {
      vectors: [
        [1, 2],
        [3, 4],
      ],
      tokens: 5,
    }
    expect(readResult(Buffer.from(writeResult(found, call)))).toEqual(found)
    expect(JSON.parse(embedContent.vectors.writeResult({ vectors: [[1]] }, call))).toEqual({
      embedding: { values: [1] },
    })
    expect(readResult(bytes({ embedding: { values: [1] } }))).toEqual({ vectors: [[1]] })
    for (const json of [5, {}, { embeddings: 5 }, { embeddings: [{}] }, { embeddings: [{ values: ['x'] }] }]) {
      expect(() => readResult(bytes(json))).toThrow(Refusal)
    }
  })

  const ofImage = { modality: 'IMAGE', tokenCount: 6 }
  const ofAudio = { modality: 'AUDIO', tokenCount: 3 }
  const ofText = { modality: 'TEXT', tokenCount: 1 }
  const reports: readonly (readonly [object, unknown])[] = [
    [{}, { input: 10, output: 0 }],
    [{ promptTokenDetails: [ofText] }, { input: 10, output: 0 }],
    [{ promptTokenDetails: [ofText, ofAudio, ofImage] }, { input: 1, inputAudio: 3, inputImage: 6, output: 0 }],
    [{ promptTokensDetails: [{ modality: 'VIDEO', tokenCount: 2 }, ofImage] }, { input: 2, inputImage: 8, output: 0 }],
    [{ promptTokenDetails: [ofImage, ofImage] }, 'nonsense'],
    [{ promptTokenDetails: [ofImage, { modality: 'TEXT', tokenCount: 5 }] }, 'nonsense'],
    [{ promptTokenDetails: [{ modality: 'AUDIO', tokenCount: 'x' }] }, 'nonsense'],
  ]
  test.each(reports)('the media of a usage report are read: %j', (details, expected) => {
    const usageMetadata = { promptTokenCount: 10, ...details }
    const answer = bytes({ embedding: { values: [1] }, usageMetadata })
    expect(embedContent.readAnswer(answer)?.usage).toEqual(expected as never)
  })

  test('a request for an upstream is written', () => {
    const target = { model: 'up', losses: new Losses() }
    const neutralRequest = { inputs: ['x'], dimensions: 8, lostFields: [] }
    const request = { model: 'models/up', content: { parts: [{ text: 'x' }] }, outputDimensionality: 8 }
    expect(JSON.parse(batchEmbedContents.vectors.writeRequest(neutralRequest, target))).toEqual({ requests: [request] })
    expect(JSON.parse(embedContent.vectors.writeRequest(neutralRequest, target))).toEqual(request)
    expect(() => embedContent.vectors.writeRequest({ ...neutralRequest, inputs: ['x', 'y'] }, target)).toThrow(Refusal)
  })
})

test('models are listed', () => {
  const limits = { contextTokens: 10, outputTokensMax: 5 }
  const model = { id: 'a/b', name: 'B', provider: 'a', ...limits, traits: { thinking: 'none' } } as const
  const listed = {
    name: 'models/a/b',
    version: '001',
    displayName: 'B',
    inputTokenLimit: 10,
    outputTokenLimit: 5,
    thinking: false,
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
  }
  expect(JSON.parse(writeModel(model))).toEqual(listed)
  expect(JSON.parse(writeModelList([model], { nextPageToken: 'n' }))).toEqual({ models: [listed], nextPageToken: 'n' })
  expect(JSON.parse(writeModelList([], {}))).toEqual({ models: [] })
})
