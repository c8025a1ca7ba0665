// References to things at an upstream work only for the account that created them. For others they are a 404, in every
// dialect, at every place in a request, and before anything goes upstream.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { says, sendsEvents } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

/** All services that the calls below use, so that none of them is refused for its price. */
const included = [
  ...['knowledge_base', 'retrieval', 'prompt', 'container', 'fileSearch', 'code_interpreter:container'],
  ...['shell:container', 'web_fetch', 'data_sources', 'knowledge_search'],
]
const fees = { perImage: '0.01', perSecond: '0.01', perSearch: '0.001', perFileSearch: '0.001', perCodeSession: '0.01' }
const price = { input: '1', output: '2', ...fees, included }
const models = [{ id: 'echo', contextTokens: 8_192, outputTokensMax: 4_096, price }]
const chat = { 'openai-chat': '/v1/chat/completions' }
const messages = { 'anthropic-messages': '/v1/messages' }
const everything = {
  ...chat,
  ...messages,
  'openai-responses': '/v1/responses',
  'ark': '/api/v3/chat/completions',
  'ark-responses': '/api/v3/responses',
  'gemini': '/v1beta/models/{model}:generateContent',
  'openai-images': '/v1/images/generations',
  'openai-image-edits': '/v1/images/edits',
  'openai-transcription': '/v1/audio/transcriptions',
  'openai-speech': '/v1/audio/speech',
  'openai-embeddings': '/v1/embeddings',
  'ark-multimodal-embeddings': '/api/v3/embeddings/multimodal',
  'ark-context-create': '/api/v3/context/create',
  'ark-context-chat': '/api/v3/context/chat/completions',
  'ark-bots': '/api/v3/bots/chat/completions',
  'ark-tasks': '/api/v3/contents/generations/tasks',
  'ark-images': '/api/v3/images/generations',
}

const provider = (id: string, speaks: object, more: object = {}) => ({
  id,
  name: id,
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: `${id.toUpperCase()}_KEY`,
  baseUrlEnv: `${id.toUpperCase()}_URL`,
  speaks,
  sign: 'bearer',
  models,
  ...more,
})

/** A session is a label here. */
const labels = { can: { labelsSessions: true } }
const keeps = { can: { keepsResponses: true, keepsThreads: true } }
const counts = { counts: { 'anthropic-messages': '/v1/messages/count_tokens' } }
/** At `well` every call is translated into Gemini, except those of the model that creates files. */
const wellModels = [
  { ...models[0], speaks: ['gemini'] },
  { ...models[0], id: 'maker', speaks: ['openai-responses'] },
]
const wellSpeaks = { 'gemini': everything.gemini, 'openai-responses': '/v1/responses' }
const wellCounts = { counts: { gemini: '/v1beta/models/{model}:countTokens' } }
/** One provider of all dialects, and others that only get translated calls. */
const providers = [
  provider('well', wellSpeaks, { ...keeps, ...wellCounts, models: wellModels }),
  provider('pond', everything, { ...keeps, ...counts }),
  provider('brook', chat),
  provider('moor', chat, labels),
  provider('creek', messages),
]

let harness: Harness
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-references-'))
  for (const one of providers) writeFileSync(join(folder, `${one.id}.json`), JSON.stringify(one))
  const base = { WEIR_PROVIDERS: folder, WEIR_DRAIN_SECONDS: '0' }
  harness = await startHarness({
    env: {
      ...base,
      POND_KEY: 'sk-1,sk-2,sk-3',
      BROOK_KEY: 'b',
      MOOR_KEY: 'm',
      CREEK_KEY: 'c',
      WELL_KEY: 'w-1,w-2,w-3',
    },
    upstreamEnv: url => ({ POND_URL: url, BROOK_URL: url, MOOR_URL: url, CREEK_URL: url, WELL_URL: url }),
  })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Json = Record<string, unknown>
type Answer = { readonly status: number; readonly json: Json; readonly text: string }

async function post(key: string, path: string, body: Json | FormData | string, headers = {}): Promise<Answer> {
  const isForm = body instanceof FormData
  const type = isForm ? {} : { 'content-type': 'application/json' }
  const init = { method: 'POST', headers: { authorization: `Bearer ${key}`, ...type, ...headers } }
  const sent = isForm || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(harness.url + path, { ...init, body: sent })
  const text = await response.text()
  return { status: response.status, text, json: text.startsWith('{') ? (JSON.parse(text) as Json) : {} }
}

const sent = () => harness.upstream.requests.length
const lastKey = () => harness.upstream.requests.at(-1)!.headers.get('authorization')

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
const part = (one: unknown) => user([{ type: 'text', text: 'x' }, one])
const item = (one: unknown) => ({ input: [{ role: 'user', content: 'x' }, one] })
const parts = (one: unknown) => ({ contents: [{ role: 'user', parts: [{ text: 'x' }, one] }] })
const form = (fields: Record<string, string>) => fields

type Case = readonly [name: string, kind: keyof typeof calls, more: Json]

const calls = {
  'chat': ['/v1/chat/completions', user('x')],
  'messages': ['/v1/messages', { ...user('x'), max_tokens: 5 }],
  'count': ['/v1/messages/count_tokens', user('x')],
  'responses': ['/v1/responses', { input: 'x' }],
  'responses count': ['/v1/responses/input_tokens', { input: 'x' }],
  'gemini count': ['/v1beta/models/{model}:countTokens', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
  'gemini': ['/v1beta/models/{model}:generateContent', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
  'ark': ['/api/v3/chat/completions', user('x')],
  'ark responses': ['/api/v3/responses', { input: 'x' }],
  'context': ['/api/v3/context/chat/completions', user('x')],
  'bots': ['/api/v3/bots/chat/completions', user('x')],
  'tasks': ['/api/v3/contents/generations/tasks', { content: [{ type: 'text', text: 'x' }] }],
  'images': ['/v1/images/generations', { prompt: 'x' }],
  'ark images': ['/api/v3/images/generations', { prompt: 'x' }],
  'speech': ['/v1/audio/speech', { input: 'x', voice: 'alloy' }],
  'vectors': ['/api/v3/embeddings/multimodal', {}],
  'edits': ['/v1/images/edits', { prompt: 'x' }],
  'transcription': ['/v1/audio/transcriptions', {}],
} as const satisfies Record<string, readonly [string, Json]>

const forms: readonly string[] = ['edits', 'transcription']
const pathOf = (kind: keyof typeof calls, model: string) => calls[kind][0].replace('{model}', model)

function bodyOf(kind: keyof typeof calls, more: Json, model = 'pond/echo'): Json | FormData {
  const json = { model, ...(calls[kind][1] as Json), ...more }
  if (kind === 'gemini' || kind === 'gemini count') return { ...json, model: undefined }
  if (!forms.includes(kind)) return json
  const body = new FormData()
  for (const [name, value] of Object.entries(json)) body.append(name, String(value))
  body.append(kind === 'edits' ? 'image' : 'file', new File(['abc'], 'x.wav', { type: 'audio/wav' }))
  return body
}

const mask = { type: 'image_generation', input_image_mask: { file_id: 'f' } }
const referenceCases: readonly Case[] = [
  ['a file', 'chat', part({ type: 'file', file: { file_id: 'file-1' } })],
  ['a file of a result', 'chat', { messages: [{ role: 'tool', tool_call_id: 'a', content: [{ file_id: 'f' }] }] }],
  ['an earlier sound', 'chat', { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }],
  ['a voice', 'chat', { modalities: ['audio'], audio: { format: 'wav', voice: { id: 'voice_1' } } }],
  ['a file of another scheme', 'chat', part({ type: 'image_url', image_url: { url: 'asset://asset-1' } })],
  ['a file of the server', 'chat', part({ type: 'image_url', image_url: { url: 'FILE:///etc/passwd' } })],
  ['a text that is a file', 'chat', { messages: [{ role: 'system', content: 'fileid://file-1' }] }],
  ['a data source', 'chat', { data_sources: [{ type: 'azure_search', parameters: { index_name: 'x' } }] }],
  ['a knowledge base', 'chat', { tools: [{ type: 'retrieval', retrieval: { knowledge_id: 'k' } }] }],
  ['an answer', 'chat', { previous_response_id: 'resp_1' }],
  ['a file', 'messages', part({ type: 'document', source: { type: 'file', file_id: 'file_1' } })],
  ['an upload', 'messages', part({ type: 'container_upload', file_id: 'file_1' })],
  [
    'a file in a result',
    'messages',
    part({
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'image', source: { type: 'file', file_id: 'file_1' } }],
    }),
  ],
  ['a container', 'messages', { container: 'container_1' }],
  ['a container as an object', 'messages', { container: { id: 'container_1' } }],
  ['a skill', 'messages', { container: { skills: [{ type: 'custom', skill_id: 'skill_1' }] } }],
  ['a skill without a type', 'messages', { container: { skills: [{ skill_id: 'skill_1' }] } }],
  ['a message', 'messages', { diagnostics: { previous_message_id: 'msg_1' } }],
  ['a file', 'count', part({ type: 'document', source: { type: 'file', file_id: 'file_1' } })],
  ['a container', 'count', { container: 'container_1' }],
  ['an item', 'responses', item({ type: 'item_reference', id: 'msg_1' })],
  ['an item without a type', 'responses', item({ id: 'msg_1' })],
  ['an item with the type null', 'responses', item({ type: null, id: 'msg_1' })],
  ['thoughts by their id', 'responses', item({ type: 'reasoning', id: 'rs_1', summary: [] })],
  ['a picture by its id', 'responses', item({ type: 'image_generation_call', id: 'ig_1' })],
  ['a message by its id', 'responses', item({ type: 'message', role: 'assistant', id: 'msg_1', content: [] })],
  ['an approval', 'responses', item({ type: 'mcp_approval_response', approve: true, approval_request_id: 'mcpr_1' })],
  ['a prompt', 'responses', { prompt: { id: 'pmpt_1' } }],
  ['a file', 'responses', item({ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] })],
  ['a picture', 'responses', item({ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] })],
  [
    'a file in a result',
    'responses',
    item({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'file-1' }] }),
  ],
  ['a vector store', 'responses', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }],
  ['a container', 'responses', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }],
  ['files of a container', 'responses', { tools: [{ type: 'code_interpreter', container: { file_ids: ['f'] } }] }],
  ['a shell', 'responses', { tools: [{ type: 'shell', environment: { container_id: 'cntr_1' } }] }],
  ['a skill', 'responses', { tools: [{ type: 'shell', environment: { skills: [{ skill_id: 'skill_1' }] } }] }],
  ['a mask', 'responses', { tools: [mask] }],
  ['a mask in tools that an item adds', 'responses', item({ type: 'additional_tools', tools: [mask] })],
  ['a mask in tools of tools', 'responses', { tools: [{ type: 'namespace', name: 'n', tools: [mask] }] }],
  [
    'a container of earlier code',
    'responses',
    item({
      type: 'code_interpreter_call',
      id: 'ci_1',
      code: '',
      container_id: 'cntr_1',
      status: 'completed',
      encrypted_content: 'x',
    }),
  ],
  ['a conversation', 'responses', { conversation: 'conv_1' }],
  ['an earlier answer', 'responses', { previous_response_id: 'resp_1' }],
  ['a cache', 'gemini', { cachedContent: 'cachedContents/1' }],
  ['a cache in the other spelling', 'gemini', { cached_content: 'cachedContents/1' }],
  ['a file', 'gemini', parts({ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/1' } })],
  ['a file by its name', 'gemini', parts({ file_data: { file_uri: 'files/1' } })],
  ['a bucket', 'gemini', parts({ fileData: { fileUri: 'gs://bucket/1' } })],
  [
    'a file in a result',
    'gemini',
    parts({ functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: 'gs://bucket/1' } }] } }),
  ],
  ['a store', 'gemini', { tools: [{ fileSearch: { fileSearchStoreNames: ['fileSearchStores/1'] } }] }],
  ['a search of the operator', 'gemini', { tools: [{ retrieval: { vertexAiSearch: { datastore: 'projects/x' } } }] }],
  ['a file', 'ark', part({ type: 'image_url', image_url: { file_id: 'file-1' } })],
  ['a film', 'ark', part({ type: 'video_url', video_url: { fileId: 'file-1' } })],
  ['a file', 'ark responses', item({ role: 'user', content: [{ type: 'input_video', file_id: 'file-1' }] })],
  ['an item', 'ark responses', item({ type: 'item_reference', id: 'msg_1' })],
  ['a knowledge base', 'ark responses', { tools: [{ type: 'knowledge_search', knowledge_resource_id: 'kb-1' }] }],
  ['a context', 'context', { context_id: 'ctx-1' }],
  ['a file', 'bots', part({ type: 'file', file: { file_id: 'file-1' } })],
  ['an asset', 'tasks', { content: [{ type: 'image_url', image_url: { url: 'asset://asset-1' } }] }],
  ['a file', 'tasks', { content: [{ type: 'image_url', image_url: { file_id: 'file-1' } }] }],
  ['a picture', 'images', { images: [{ file_id: 'file-1' }] }],
  ['an asset', 'ark images', { image: 'asset://asset-1' }],
  ['one asset of several', 'ark images', { image: ['https://x/y.png', 'asset://asset-1'] }],
  ['a voice', 'speech', { voice: { id: 'voice_1' } }],
  ['a file', 'vectors', { input: [{ type: 'image_url', image_url: { file_id: 'file-1' } }] }],
  ['a file', 'edits', form({ file_id: 'file-1' })],
  ['a file in brackets', 'edits', form({ 'image[0][file_id]': 'file-1' })],
  ['a file', 'transcription', form({ file_id: 'file-1' })],
  ['an item that seems sealed', 'responses', item({ type: 'item_reference', id: 'msg_1', encrypted_content: 'x' })],
  ['an item that seems sealed', 'ark responses', item({ type: 'item_reference', id: 'i', encrypted_content: 'x' })],
  ['an item by a second id', 'responses', item({ type: 'item_reference', id: '', ID: 'msg_1' })],
  [
    'an item in two words',
    'responses',
    item({ type: 'function_call_output', Type: 'item_reference', id: 'msg_1', call_id: 'a', output: 'b' }),
  ],
  ['a sound by a second id', 'chat', { messages: [{ role: 'assistant', content: 'y', audio: { id: '', ID: 'a' } }] }],
  ...(['responses', 'ark responses'] as const).flatMap((kind): Case[] => [
    ['an answer in another spelling', kind, { previousResponseId: 'resp_1' }],
    ['an answer of another name', kind, { previous_interaction_id: 'resp_1' }],
    ['an answer further down', kind, { extra: { previous_response_id: 'resp_1' } }],
    ['a talk by its id', kind, { conversation_id: 'conv_1' }],
    ['a session', kind, { session: 'session_1' }],
    ['a session as an object', kind, { session: { id: 'session_1' } }],
  ]),
  ['a file by its id', 'chat', part({ type: 'file', file: { id: 'file-1' } })],
  ['files in a list', 'chat', { files: ['file-1'] }],
  ['images in a list', 'chat', { images: ['asset-12345678901234567'] }],
  ['a picture by its id alone', 'chat', part({ type: 'image_file', image_file: { id: 'file-1' } })],
  ['a part by its id', 'responses', item({ role: 'user', content: [{ type: 'input_file', id: 'file-1' }] })],
  ['a file in a list of texts', 'chat', { messages: [{ role: 'system', content: ['fileid://file-1'] }] }],
  ['a file in the middle of words', 'chat', user('Read this: fileid://file-1, please')],
  ['a second file', 'chat', { messages: [{ role: 'system', content: 'x FileID://file-1,fileid://file-2' }] }],
  ['a file in the instructions', 'responses', { instructions: 'Read fileid://file-1' }],
  ['a file in a text', 'responses', { input: 'Read fileid://file-1' }],
  ['a file in the system text', 'messages', { system: 'Read fileid://file-1' }],
  ['a file in the system text', 'gemini', { systemInstruction: { parts: [{ text: 'Read fileid://file-1' }] } }],
  ['an asset without its scheme', 'tasks', { image: 'asset-20260101-abcde' }],
  ['an asset of a part', 'tasks', { content: [{ type: 'image_url', image_url: { url: 'asset-1' } }] }],
  ['an asset as a part', 'tasks', { content: [{ type: 'image_url', image_url: ' asset-1' }] }],
  ['an asset by its id', 'tasks', { content: [{ type: 'asset', id: 'asset-1' }] }],
  ['assets', 'tasks', { content: [{ type: 'text', text: 'x' }], assets: ['asset-1'] }],
  ['assets for a film', 'tasks', { reference_images: ['https://x.example/y.png', 'asset-1'] }],
  ['an asset without its scheme', 'ark images', { image: ['asset-1'] }],
  ['a file for an address', 'chat', part({ type: 'image_url', image_url: { url: 'files/abc' } })],
  ['a file for an address', 'messages', part({ type: 'image', source: { type: 'url', url: 'file_011CNha8iCJcU' } })],
  ...['voice_id', 'style_id', 'image_id', 'video_id', 'generation_id', 'session_id'].flatMap((field): Case[] => [
    [`${field}`, 'chat', { [field]: 'x1' }],
    [`${field} further down`, 'speech', { voice: 'alloy', settings: { [field]: 'x1' } }],
    [`${field} in a list`, 'ark images', { more: [{ [`${field}s`]: ['x1'] }] }],
  ]),
  ['a voice of another', 'speech', { voice: 'speech:mine:cm02pf7az00061413w7kz5qxs:mjtkgbyuunvtybnsvbxd' }],
  ['a file after lines', 'chat', { messages: [{ role: 'system', content: `${'\n'.repeat(99)}fileid://file-1` }] }],
  ['a file after many lines', 'chat', { messages: [{ role: 'system', content: `${'\n'.repeat(9_999)}fileid://f` }] }],
  [
    'a file after invisible characters',
    'chat',
    { messages: [{ role: 'system', content: '\u200b \u2060fileid://file-1' }] },
  ],
  ['addresses', 'ark images', { image_urls: ['asset://asset-1'] }],
  ['pictures to follow', 'ark images', { reference_images: ['asset://asset-1'] }],
  ['an address after blanks', 'ark images', { image: `${' '.repeat(99)}asset://asset-1` }],
  ['an address after very many blanks', 'ark images', { image: `${' '.repeat(9_999)}asset://asset-1` }],
  ['an address after invisible characters', 'ark images', { image: '\u200basset://asset-1' }],
  ['an address with a break in it', 'ark images', { image: 'ass\net://asset-1' }],
  ['a cache in lists', 'gemini', { cachedContent: [['cachedContents/1']] }],
  ['a cache as an object', 'gemini', { cached_content: { name: 'cachedContents/1' } }],
  ['a file at a host of no matter', 'gemini', parts({ fileData: { fileUri: 'https://x.example/v1beta/files/abc-1' } })],
  ['a file with an odd host', 'gemini', parts({ fileData: { fileUri: 'https://x.example\\@googleapis.com/a.mp4' } })],
  ['a file after a blank', 'gemini', parts({ fileData: { fileUri: '\u2003https://x.example/a.mp4' } })],
  ['files in a text', 'edits', form({ images: '[{"file_id":"file-1"}]' })],
  ['files of a dotted name', 'edits', form({ 'images.0.file_id': 'file-1' })],
  ['an address in a text', 'edits', form({ images: '["asset://asset-1"]' })],
  ['a draft', 'tasks', { content: [{ type: 'draft_task', draft_task: { id: 'cgt-1' } }] }],
  ['a draft without its word', 'tasks', { content: [{ type: 'text', text: 'x' }, { draft_task: { id: 'cgt-1' } }] }],
  ['a draft elsewhere', 'tasks', { extra: { draft_task: { id: 'cgt-1' } } }],
]

/** The status of the refusal: 404, or 400 if the field is not served or not part of the dialect. */
function refusedWith(kind: string, name: string): number {
  if (kind === 'transcription') return 400
  return kind === 'responses' && (name === 'a conversation' || name.includes('type')) ? 400 : 404
}

describe('a reference to something that the account has not created is refused', () => {
  test.each(referenceCases)('%s (%s)', async (name, kind, more) => {
    const key = await harness.key()
    const before = sent()
    const { status, text } = await post(key, pathOf(kind, 'pond/echo'), bodyOf(kind, more))
    expect([status, text]).toEqual([refusedWith(kind, name), expect.stringContaining('error')])
    expect(sent()).toBe(before)
    expect((await harness.balance(key)).held).toBe('0.00')
  })

  const file = part({ type: 'file', file: { file_id: 'X' } })
  const adviceCases: readonly (readonly [...Case, string])[] = [
    ['a file', 'chat', file, 'names a stored file: send its content again (an address begins with https://), or'],
    ['an item', 'responses', item({ type: 'item_reference', id: 'X' }), 'names a stored item: send its content again'],
    ['a container', 'messages', { container: 'X' }, 'names a stored container: leave it out, or use a key of'],
    ['an asset', 'ark images', { image: 'asset://X' }, 'is not a public address: begin it with https://'],
  ]
  test.each(adviceCases)('%s (%s): the error has advice', async (_name, kind, more, says) => {
    const { status, text } = await post(await harness.key(), pathOf(kind, 'pond/echo'), bodyOf(kind, more))
    expect([status, text]).toEqual([404, expect.stringContaining(says)])
  })

  const long = { pad: 'x'.repeat(70_000) }
  const inJson = referenceCases.filter(([, kind]) => !forms.includes(kind))
  test.each(inJson)('%s (%s), also in a large body', async (name, kind, more) => {
    const before = sent()
    const body = bodyOf(kind, { ...more, ...long })
    const { status, text } = await post(await harness.key(), pathOf(kind, 'pond/echo'), body)
    expect([status, text]).toEqual([refusedWith(kind, name), expect.stringContaining('error')])
    expect(sent()).toBe(before)
  })

  const optional = ['thoughts by their id', 'a picture by its id', 'a message by its id', 'a message']
  const translated = referenceCases.filter(
    ([name, kind]) => ['chat', 'messages', 'responses', 'gemini'].includes(kind) && !optional.includes(name),
  )
  test.each(translated)('%s (%s), also in a translated call', async (name, kind, more) => {
    const model = kind === 'chat' ? 'creek/echo' : 'brook/echo'
    const key = await harness.key()
    const before = sent()
    const { status, text } = await post(key, pathOf(kind, model), bodyOf(kind, more, model))
    expect([status, text]).toEqual([refusedWith(kind, name), expect.stringContaining('error')])
    expect(sent()).toBe(before)
  })

  const spellings: readonly [string, string][] = [
    ['other letters', '{"File_ID":"f"}'],
    ['no underscore', '{"fileId":"f"}'],
    ['an escape', '{"file\\u005fid":"f"}'],
    ['a long s and others', '{"ſkill_id":"f"}'],
    ['a number', '{"file_id":7}'],
    ['a list', '{"file_ids":["f"]}'],
    ['twice, and the last is empty', '{"file_id":"f","file_id":null}'],
    ['twice, one above the other', '{"file":{"file_id":"f"},"file":"x"}'],
    ['twice, with an escape', '{"fil\\u0065_id":"f","file_id":""}'],
    ['under deep lists', '{"a":[[[{"b":{"file_id":"f"}}]]]}'],
    ['beside what looks like a call of a tool', '{"type":"tool_use","content":[{"file_id":"f"}]}'],
    ['an address twice', '{"type":"image_url","image_url":{"url":"asset://f","url":"https://x.example/a.png"}}'],
    ['a text twice', '{"type":"text","text":"fileid://f","text":"x"}'],
    ['an id twice', '{"type":"file","file":{"id":"f","id":""}}'],
    ['a long body', `{"pad":"${'x'.repeat(70_000)}","file_id":"f","file_id":null}`],
    ['a long body with an escape', `{"pad":"${'x'.repeat(70_000)}","a":{"fil\\u0065_id":"f"},"a":1}`],
  ]
  test.each(spellings)('in any spelling: %s', async (_name, text) => {
    const key = await harness.key()
    const before = sent()
    const content = `[{"type":"text","text":"x"},${text}]`
    const body = `{"model":"pond/echo","max_tokens":5,"messages":[{"role":"user","content":${content}}]}`
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      expect([400, 404]).toContain((await post(key, path, body)).status)
    }
    expect(sent()).toBe(before)
  })

  const draftSpellings: readonly Json[] = [
    { Type: 'draft_task', draft_task: { id: 'cgt-1' } },
    { type: 'text', text: 'x', Type: 'draft_task', draft_task: { id: 'cgt-1' } },
    { type: 'draft_task', draftTask: { id: 'cgt-1' } },
    { type: 'draft_task', draft_task: { id: 'cgt-1', ID: 'cgt-2' } },
  ]
  test.each(draftSpellings)('as a draft in another spelling: %j', async one => {
    const key = await harness.key()
    const before = sent()
    const body = bodyOf('tasks', { content: [{ type: 'text', text: 'x' }, one] })
    expect((await post(key, pathOf('tasks', 'pond/echo'), body)).status).toBe(400)
    expect(sent()).toBe(before)
  })

  const formCases: readonly [name: string, texts: readonly string[]][] = [
    ['images', ['[{"file_id":"file-1"}]', 'x']],
    ['images', ['[{"file_id":"file-1","file_id":null}]']],
    ['image', ['asset://asset-1', 'https://x.example/a.png']],
    ['images', ['[{"file_id":"file-1","n":NaN}]']],
  ]
  test.each(formCases)('in a form field: %s, %j', async (name, texts) => {
    const key = await harness.key()
    const before = sent()
    const body = bodyOf('edits', {}) as FormData
    for (const text of texts) body.append(name, text)
    expect((await post(key, '/v1/images/edits', body)).status).toBe(400)
    expect(sent()).toBe(before)
  })

  test('if there are too many of them; the same reference counts once', async () => {
    const key = await harness.key()
    const before = sent()
    const files = (count: number, id: (at: number) => string) =>
      user(Array.from({ length: count }, (_, at) => ({ type: 'file', file: { file_id: id(at) } })))
    const status = async (more: Json) => (await post(key, '/v1/chat/completions', bodyOf('chat', more))).status
    expect(await status(files(2_001, at => `file-${at}`))).toBe(400)
    expect(await status(files(2_001, () => 'file-1'))).toBe(404)
    expect(await status(user('fileid://file-1 '.repeat(2_000)))).toBe(404)
    expect(await status(user('fileid://file-1 '.repeat(2_001)))).toBe(400)
    expect(sent()).toBe(before)
  })

  test('in a dry call, which reports the same error', async () => {
    const key = await harness.key()
    const body = bodyOf('chat', part({ type: 'file', file: { file_id: 'file-1' } }))
    const { json } = await post(key, '/v1/chat/completions', body, { 'x-weir-explain': 'dry' })
    expect(JSON.stringify(json)).toContain('file_unknown')
  })

  test('in a background call', async () => {
    const key = await harness.key()
    const before = sent()
    const more = { ...item({ type: 'item_reference', id: 'msg_1' }), background: true }
    expect((await post(key, '/v1/responses', bodyOf('responses', more))).status).toBe(404)
    expect(sent()).toBe(before)
  })

  test('in a compacted conversation', async () => {
    const key = await harness.key()
    const picture = item({ type: 'image_generation_call', id: 'ig_1', result: null, status: 'completed' })
    const packed = await post(key, '/v1/responses/compact', { model: 'pond/echo', ...picture })
    expect(packed.status).toBe(200)
    const before = sent()
    expect((await post(key, '/v1/responses', bodyOf('responses', { input: packed.json.output }))).status).toBe(404)
    expect(sent()).toBe(before)
  })
})

/** A URL of a file, in every field of a conversation that may have one. */
const fileUrlCases = (url: string): readonly Case[] => {
  const result = { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: { type: 'url', url } }] }
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] }
  const [question, answered] = [
    { role: 'user', content: 'x' },
    { role: 'user', content: [result] },
  ]
  return [
    ['a picture', 'chat', part({ type: 'image_url', image_url: { url } })],
    ['a picture without an object', 'chat', part({ type: 'image_url', image_url: url })],
    ['a video', 'chat', part({ type: 'video_url', video_url: { url } })],
    ['a file', 'chat', part({ type: 'file', file: { file_url: url } })],
    ['a picture', 'messages', part({ type: 'image', source: { type: 'url', url } })],
    ['a document', 'messages', part({ type: 'document', source: { type: 'url', url } })],
    ['a picture in a result', 'messages', { messages: [question, call, answered] }],
    ['a picture', 'responses', item({ role: 'user', content: [{ type: 'input_image', image_url: url }] })],
    ['a file', 'responses', item({ role: 'user', content: [{ type: 'input_file', file_url: url }] })],
    ['a picture', 'ark', part({ type: 'image_url', image_url: { url } })],
    ['a video', 'ark', part({ type: 'video_url', video_url: { url } })],
    ['a picture', 'ark responses', item({ role: 'user', content: [{ type: 'input_image', image_url: url }] })],
    ['a file', 'gemini', parts({ fileData: { fileUri: url, mimeType: 'image/png' } })],
    ['a picture', 'count', part({ type: 'image', source: { type: 'url', url } })],
    ['a picture', 'responses count', item({ role: 'user', content: [{ type: 'input_image', image_url: url }] })],
    ['a file', 'gemini count', parts({ fileData: { fileUri: url, mimeType: 'image/png' } })],
  ]
}

describe('a URL that Google reads with the credential of the call is a reference in every dialect:', () => {
  const google = 'generativelanguage.googleapis.com'
  const mine = `https://${google}/v1beta/files/mine-1`

  test.each(fileUrlCases(mine))('%s (%s): only for the account that created the file', async (_name, kind, more) => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const annotations = [{ type: 'file_citation', file_id: mine, filename: 'x', index: 0 }]
    const content = [{ type: 'output_text', text: 'Hi', annotations }]
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
    const output = [{ type: 'message', id: 'msg_well', role: 'assistant', status: 'completed', content }]
    const made = {
      id: 'resp_well',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'maker',
      output,
      usage,
    }
    harness.upstream.plan(says(made))
    expect((await post(alice, '/v1/responses', { model: 'well/maker', input: 'x' })).status).toBe(200)
    const credential = lastKey()
    const body = bodyOf(kind, more, 'well/echo')
    for (let at = 0; at < 3; at++) {
      if (kind.endsWith('count')) harness.upstream.plan(says({ totalTokens: 9 }))
      expect((await post(alice, pathOf(kind, 'well/echo'), body)).status).toBe(200)
      expect(lastKey()).toBe(credential)
      expect(harness.upstream.requests.at(-1)!.body.toString()).toContain(`"fileUri":"${mine}"`)
    }
    const before = sent()
    expect((await post(bob, pathOf(kind, 'well/echo'), body)).status).toBe(404)
    expect(sent()).toBe(before)
  })

  const spellings: readonly string[] = [
    `https://${google}/v1beta/files/yours`,
    `http://${google}/v1/files/yours`,
    `https://${google}/v1alpha/files/yours`,
    `https://${google}/download/v1beta/files/yours:download?alt=media`,
    `https://${google}/v1beta/%66iles%2Fyours`,
    `https://${google}/v1beta/x/../files/yours#x`,
    `HTTPS://${google.toUpperCase()}/v1beta/files/yours`,
    `https://${google}./v1beta/files/yours`,
    `https://${google}:443/v1beta/files/yours`,
    `https://${google}:8443/v1beta/files/yours`,
    `https://someone:secret@${google}/v1beta/files/yours`,
    `https://${google}@x.example/v1beta/files/yours`,
    `https://${'u'.repeat(5_000)}@${google}/v1beta/files/yours`,
    `https://%67enerativelanguage.googleapis.com/v1beta/files/yours`,
    'https://generativelanguage\u3002googleapis\u3002com/v1beta/files/yours',
    `https:/${google}/v1beta/files/yours`,
    `https:\\\\${google}\\v1beta\\files\\yours`,
    `https://x.example\\@${google}/v1beta/files/yours`,
    'https://x.example\\@generative\nlanguage.googleapis.com/v1beta/files/yours',
    `https://${google}${'.'.repeat(300)}/v1beta/files/yours`,
    `https://${'\u00ad'.repeat(300)}${google}/v1beta/files/yours`,
    `https://${'%C2%AD'.repeat(50)}${google}/v1beta/files/yours`,
    ` https://${google}/v1beta/files/yours`,
    `ht\ntps://${google}/v1beta/files/yours`,
    'https://generativelanguage.mtls.googleapis.com/v1beta/files/yours',
    'https://aiplatform.googleapis.com/v1/projects/p/locations/global/files/yours',
    'https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/ragCorpora/1/ragFiles/2',
    'https://aiplatform.eu.rep.googleapis.com/v1/projects/p/x',
    'https://storage.cloud.google.com/bucket/yours.png',
    'gs://bucket/yours.png',
    'GS://bucket/yours.png',
    'files/yours',
  ]
  test.each(spellings)('in any spelling: %s', async url => {
    const before = sent()
    for (const [name, kind, more] of fileUrlCases(url)) {
      for (const model of ['well/echo', 'pond/echo']) {
        const { status } = await post(await harness.key(), pathOf(kind, model), bodyOf(kind, more, model))
        expect([name, kind, model, status]).toEqual([name, kind, model, 404])
      }
    }
    expect(sent()).toBe(before)
  })

  test('in an earlier turn, and in a large body', async () => {
    const before = sent()
    const key = await harness.key()
    const url = `https://${google}/v1beta/files/yours`
    const images = [{ type: 'image_url', image_url: { url } }]
    const turn = { messages: [{ role: 'assistant', content: 'x', images }, ...user('x').messages] }
    for (const more of [turn, { ...part(images[0]), pad: 'x'.repeat(70_000) }]) {
      expect((await post(key, '/v1/chat/completions', bodyOf('chat', more, 'well/echo'))).status).toBe(404)
    }
    expect(sent()).toBe(before)
  })

  const open: readonly string[] = [
    'https://firebasestorage.googleapis.com/v0/b/app/o/cat.png?alt=media',
    'https://storage.googleapis.com/bucket/files/cat',
    'https://www.google.com/images/cat.png',
    `https://${google}.x.example/v1beta/files/cat`,
    `https://x.example/files/cat?of=${google}`,
    'https://cdn.x.example/@someone/cat.png',
  ]
  test.each(open)('not a URL that anybody can read: %s', async url => {
    const body = bodyOf('chat', part({ type: 'image_url', image_url: { url } }))
    expect((await post(await harness.key(), '/v1/chat/completions', body)).status).toBe(200)
  })

  test('a URL of a file at the host of the channel is a reference, too', async () => {
    const before = sent()
    const { hostname } = new URL(harness.upstream.url)
    const urls = [
      `http://${hostname}/v1/files/file-1`,
      `http://${hostname}:9/v1/files/file-1/content`,
      `http://someone:secret@${hostname}/v1/files/file-1`,
      // Parsers find different hosts in these.
      `http://x.example\\@${hostname}/v1/files/file-1`,
      `http://x.example\\\n@${hostname}/v1/files/file-1`,
      `http://${hostname}@someone@x.example/v1/files/file-1`,
      `http://${hostname}\u0000@x.example/v1/files/file-1`,
      `http://[x@${hostname}/v1/files/file-1`,
    ]
    for (const url of urls) {
      const body = bodyOf('chat', part({ type: 'image_url', image_url: { url } }))
      expect([url, (await post(await harness.key(), '/v1/chat/completions', body)).status]).toEqual([url, 404])
    }
    expect(sent()).toBe(before)
    const elsewhere = [`http://${hostname}:9/pictures/cat.png`, 'https://someone:secret@x.example/a b/files/cat']
    for (const url of elsewhere) {
      const body = bodyOf('chat', part({ type: 'image_url', image_url: { url } }))
      expect([url, (await post(await harness.key(), '/v1/chat/completions', body)).status]).toEqual([url, 200])
    }
  })
})

describe('a request without references passes', () => {
  const schema = { type: 'object', properties: { file_id: { type: 'string', default: 'x' } } }
  const harmless: readonly Case[] = [
    ['a field of a tool', 'chat', { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] }],
    [
      'arguments of a call',
      'messages',
      {
        messages: [
          { role: 'user', content: 'x' },
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 't', name: 'f', input: { file_id: 'x', thread: 'y' } }],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] },
        ],
      },
    ],
    ['labels', 'responses', { metadata: { file_id: 'x', conversation: 'y' } }],
    ['labels of Codex', 'responses', { client_metadata: { thread_id: 'x', session_id: 'y', turn_id: 'z' } }],
    ['a public address', 'gemini', parts({ fileData: { mimeType: 'video/mp4', fileUri: 'https://youtu.be/x' } })],
    ['a public address', 'chat', part({ type: 'image_url', image_url: { url: 'https://x.example/v1/files/1' } })],
    ['a picture in the request', 'chat', part({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })],
    ['a small picture', 'ark images', { image: 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7' }],
    ['words for media', 'ark images', { image: ['https://x.example/y.png'], response_mask: 'auto', audio: 'mp3' }],
    ['a voice for all', 'speech', { voice: 'FunAudioLLM/CosyVoice2-0.5B:alex' }],
    ['a voice for all', 'speech', { voice: 'en-US-Ava:DragonHDLatestNeural' }],
    [
      'addresses of a search',
      'chat',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: 'y', annotations: [{ url_citation: { url: 'x.example/y' } }] },
          { role: 'user', content: 'https://x.example/fileid' },
        ],
      },
    ],
    ['words of files', 'chat', user('{"file_id": "file-1"} and fileid:// alone')],
    [
      'ids of calls',
      'responses',
      {
        input: [
          { role: 'user', content: 'x' },
          { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' },
          { type: 'function_call_output', id: 'fco_1', call_id: 'c', output: 'y' },
        ],
      },
    ],
    ['a message with an id', 'responses', item({ type: 'message', id: 'msg_1', role: 'assistant', content: 'hello' })],
    ['a new container', 'messages', { container: { skills: [{ type: 'anthropic', skill_id: 'pptx' }] } }],
    ['nothing', 'messages', { container: null, thread: null }],
    ['a file of a site', 'gemini', parts({ fileData: { fileUri: 'https://x.example/files/report.pdf' } })],
    ['a text of blanks', 'chat', user(`${' '.repeat(9_999)}x`)],
    ['settings in a text', 'edits', form({ settings: '{"style":"x"}', prompt: '[{"file_id":"x"}]' })],
  ]
  test.each(harmless)('%s (%s)', async (_name, kind, more) => {
    const { status, text } = await post(await harness.key(), pathOf(kind, 'pond/echo'), bodyOf(kind, more))
    expect([status, text]).toEqual([200, expect.any(String)])
  })

  test('with a session, where it is a label', async () => {
    const body = bodyOf('chat', { session_id: 'mine' }, 'moor/echo')
    expect((await post(await harness.key(), '/v1/chat/completions', body)).status).toBe(200)
    expect(harness.upstream.requests.at(-1)!.body.toString()).toContain('"session_id":"mine"')
  })

  test('with encrypted thoughts, which the upstream checks', async () => {
    const before = sent()
    const more = item({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' })
    await post(await harness.key(), '/v1/responses', bodyOf('responses', more))
    expect(sent()).toBe(before + 1)
  })

  test('with duplicate fields in the own data of the caller', async () => {
    const turn = '{"role":"user","content":"x"}'
    for (const pad of ['', 'x'.repeat(70_000)]) {
      const body = `{"model":"pond/echo","pad":"${pad}","messages":[${turn}],"metadata":{"x":{"y":1},"x":2}}`
      expect((await post(await harness.key(), '/v1/chat/completions', body)).status).toBe(200)
    }
  })
})

describe('with foreign-ids on, a reference of any account', () => {
  const setAll = async (value: string) => {
    const { data: channels } = (await harness.weir('channels list')) as { data: { id: string }[] }
    const ponds = channels.map(({ id }) => id).filter(id => id.startsWith('pond#'))
    for (const channel of ponds) await harness.weir('channels set', { channel, 'foreign-ids': value })
  }

  test('passes unchanged', async () => {
    await setAll('on')
    const key = await harness.key()
    for (const [, kind, more] of referenceCases) {
      if (!['chat', 'messages', 'gemini', 'ark'].includes(kind)) continue
      const before = sent()
      await post(key, pathOf(kind, 'pond/echo'), bodyOf(kind, more))
      expect([more, sent()]).toEqual([more, before + 1])
      const [, value] = Object.entries(more)[0]!
      expect(harness.upstream.requests.at(-1)!.body.toString()).toContain(JSON.stringify(value))
    }
    await setAll('off')
    expect((await post(key, '/v1/messages', bodyOf('messages', { container: 'c' }))).status).toBe(404)
  })

  test('goes only to the channels with this setting', async () => {
    await setAll('off')
    await harness.weir('channels set', { 'channel': 'pond#2', 'foreign-ids': 'on' })
    const key = await harness.key()
    for (let at = 0; at < 6; at++) {
      expect((await post(key, '/v1/messages', bodyOf('messages', { container: 'c' }))).status).toBe(200)
      expect(lastKey()).toBe('Bearer sk-2')
    }
    await setAll('off')
  })
})

describe('an account may reference what its answers contain:', () => {
  const message = (more: Json) => ({
    id: 'msg_up_1',
    type: 'message',
    role: 'assistant',
    model: 'echo',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
    ...more,
  })
  const output = [
    { type: 'reasoning', id: 'rs_fake_up_1', summary: [] },
    { type: 'code_interpreter_call', id: 'ci_up_1', code: '1', container_id: 'cntr_up_1', outputs: [] },
    {
      type: 'mcp_list_tools',
      id: 'mcpl_up_1',
      server_label: 's',
      tools: [{ name: 'x', input_schema: {}, annotations: { file_id: 'file-stolen', container_id: 'cntr_stolen' } }],
    },
    {
      type: 'message',
      id: 'msg_up_2',
      role: 'assistant',
      status: 'completed',
      content: [
        {
          type: 'output_text',
          text: 'Hi',
          annotations: [
            { type: 'container_file_citation', container_id: 'cntr_up_1', file_id: 'cfile_up_1', filename: 'x' },
          ],
        },
      ],
    },
  ]
  const response = (more: Json = {}) => ({
    id: 'resp_up_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'echo',
    output,
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    ...more,
  })

  async function expectPinned(key: string, kind: keyof typeof calls, more: Json): Promise<void> {
    for (let at = 0; at < 4; at++) {
      expect((await post(key, pathOf(kind, 'pond/echo'), bodyOf(kind, more))).status).toBe(200)
      expect(lastKey()).toBe(credential)
    }
  }
  let credential: string | undefined

  test.each([false, true])('containers of messages (streamed: %p)', async stream => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const id = `container_${stream}`
    const result = {
      type: 'bash_code_execution_tool_result',
      tool_use_id: 's',
      content: {
        type: 'bash_code_execution_result',
        stdout: '',
        stderr: '',
        return_code: 0,
        content: [{ type: 'bash_code_execution_output', file_id: `file_${stream}` }],
      },
    }
    const events = [
      { type: 'message_start', message: message({ content: [], stop_reason: null }) },
      { type: 'content_block_start', index: 0, content_block: result },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hi' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', container: { id } }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]
    const whole = message({ container: { id }, content: [result, { type: 'text', text: 'Hi' }] })
    harness.upstream.plan(stream ? sendsEvents(events) : says(whole))
    const tools = [{ type: 'web_fetch_20250910', name: 'web_fetch' }]
    const skills = [{ type: 'anthropic', skill_id: 'pptx' }]
    const body = bodyOf('messages', { container: { skills }, tools, stream })
    expect((await post(alice, '/v1/messages', body)).status).toBe(200)
    credential = lastKey()
    await expectPinned(alice, 'messages', { container: id })
    await expectPinned(alice, 'messages', part({ type: 'container_upload', file_id: `file_${stream}` }))
    for (const more of [{ container: id }, part({ type: 'container_upload', file_id: `file_${stream}` })]) {
      expect((await post(bob, '/v1/messages', bodyOf('messages', more))).status).toBe(404)
    }
  })

  test.each([false, true])('items and containers of responses (streamed: %p)', async stream => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const last = { type: 'response.completed', response: response() }
    harness.upstream.plan(stream ? sendsEvents([last]) : says(response()))
    expect((await post(alice, '/v1/responses', bodyOf('responses', { stream }))).status).toBe(200)
    credential = lastKey()
    const mine: readonly Json[] = [
      item({ type: 'item_reference', id: 'msg_up_2' }),
      item({ type: 'reasoning', id: 'rs_fake_up_1', summary: [] }),
      { tools: [{ type: 'code_interpreter', container: 'cntr_up_1' }] },
      { instructions: 'Read fileid://cfile_up_1 and sum it up' },
      item({ role: 'user', content: [{ type: 'input_file', file_id: 'cfile_up_1' }] }),
    ]
    for (const more of mine) {
      await expectPinned(alice, 'responses', more)
      expect((await post(bob, '/v1/responses', bodyOf('responses', more))).status).toBe(404)
    }
    // A foreign reference and an unknown one get the same error.
    const machine = (container: string) => bodyOf('responses', { tools: [{ type: 'code_interpreter', container }] })
    const [foreign, unknown] = [
      await post(bob, '/v1/responses', machine('cntr_up_1')),
      await post(bob, '/v1/responses', machine('cntr_nobody')),
    ]
    expect(foreign.json.error).toEqual(unknown.json.error)
    const stolen: readonly Json[] = [
      item({ role: 'user', content: [{ type: 'input_file', file_id: 'file-stolen' }] }),
      item({ ...output[1], encrypted_content: 'x', container_id: 'cntr_stolen' }),
    ]
    for (const more of stolen) expect((await post(alice, '/v1/responses', bodyOf('responses', more))).status).toBe(404)
  })

  test('no items of responses that the upstream does not store', async () => {
    const key = await harness.key()
    harness.upstream.plan(says(response({ store: false })))
    expect((await post(key, '/v1/responses', bodyOf('responses', { store: false }))).status).toBe(200)
    const more = item({ type: 'item_reference', id: 'msg_up_2' })
    expect((await post(key, '/v1/responses', bodyOf('responses', more))).status).toBe(404)
  })

  test('audio of chats', async () => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const audio = { id: 'audio_up_1', data: 'AAAA', transcript: 'Hi', expires_at: 1 }
    const choices = [{ index: 0, message: { role: 'assistant', content: null, audio }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    harness.upstream.plan(says({ id: 'c', object: 'chat.completion', created: 1, model: 'echo', choices, usage }))
    const body = bodyOf('chat', { modalities: ['text', 'audio'], audio: { format: 'wav', voice: 'alloy' } })
    expect((await post(alice, '/v1/chat/completions', body)).status).toBe(200)
    credential = lastKey()
    const next = {
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', audio: { id: 'audio_up_1' } },
        { role: 'user', content: 'y' },
      ],
    }
    await expectPinned(alice, 'chat', next)
    expect((await post(bob, '/v1/chat/completions', bodyOf('chat', next))).status).toBe(404)
  })

  test('contexts of Ark', async () => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const usage = { prompt_tokens: 1, completion_tokens: 0, total_tokens: 1 }
    harness.upstream.plan(says({ id: 'ctx-up-1', mode: 'session', model: 'echo', usage }))
    expect((await post(alice, '/api/v3/context/create', { model: 'pond/echo', ...user('x') })).status).toBe(200)
    credential = lastKey()
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    const body = bodyOf('context', { context_id: 'ctx-up-1' })
    for (let at = 0; at < 4; at++) {
      harness.upstream.plan(says({ choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }))
      expect((await post(alice, '/api/v3/context/chat/completions', body)).status).toBe(200)
      expect(lastKey()).toBe(credential)
    }
    const before = sent()
    expect((await post(bob, '/api/v3/context/chat/completions', body)).status).toBe(404)
    expect((await post(bob, '/api/v3/chat/completions', bodyOf('ark', { context_id: 'ctx-up-1' }))).status).toBe(404)
    expect(sent()).toBe(before)
  })
})
