// Tests the other endpoints of the fake upstream: models, counts, embeddings, images, audio, texts, video tasks and
// stored responses.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { answer, fail } from './answers.ts'
import { modelIds } from './demo-models.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await startFakeUpstream()
})
afterEach(() => upstream.stop())

const apiKey = 'sk-test'
const openAi = () => new OpenAI({ apiKey, baseURL: `${upstream.url}/v1`, maxRetries: 0 })
const anthropic = () => new Anthropic({ apiKey, baseURL: upstream.url, maxRetries: 0 })
const google = () => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: upstream.url } }).models

type Json = Readonly<Record<string, unknown>>
async function sendJson(method: string, path: string, body?: object): Promise<{ status: number; json: Json }> {
  const response = await fetch(upstream.url + path, { method, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, json: (text === '' ? {} : JSON.parse(text)) as Json }
}

describe('models', () => {
  test('are listed in each dialect', async () => {
    const lists = [[], [], []] as string[][]
    for await (const model of openAi().models.list()) lists[0]!.push(model.id)
    for await (const model of anthropic().models.list()) lists[1]!.push(model.id)
    for await (const model of await google().list()) lists[2]!.push(model.name!)
    expect(lists).toEqual([[...modelIds], [...modelIds], modelIds.map(id => `models/${id}`)])
    expect((await sendJson('GET', '/api/v3/models')).json.data).toHaveLength(modelIds.length)
    expect((await google().get({ model: 'echo' })).displayName).toBe('echo')
    expect(
      (
        await openAi()
          .models.retrieve('nobody')
          .catch(error => error)
      ).status,
    ).toBe(404)
  })

  test('report which images they received, in every dialect', async () => {
    const data = Buffer.from('picture').toString('base64')
    const url = `data:image/png;base64,${data}`
    const answers = await Promise.all([
      openAi()
        .chat.completions.create({
          model: 'see',
          messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
        })
        .then(reply => reply.choices[0]!.message.content),
      openAi()
        .responses.create({
          model: 'see',
          input: [{ role: 'user', content: [{ type: 'input_image', image_url: url, detail: 'auto' }] }],
        })
        .then(reply => reply.output_text),
      anthropic()
        .messages.create({
          model: 'see',
          max_tokens: 50,
          messages: [
            {
              role: 'user',
              content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
            },
          ],
        })
        .then(reply => reply.content[0]!.type === 'text' && reply.content[0].text),
      google()
        .generateContent({ model: 'see', contents: [{ inlineData: { mimeType: 'image/png', data } }] })
        .then(reply => reply.text),
    ])
    expect(new Set(answers)).toEqual(new Set(['I see 1: image/png of 7 bytes']))
  })

  test('answer in JSON on request', async () => {
    const reply = await openAi().chat.completions.create({
      model: 'json',
      messages: [{ role: 'user', content: 'JSON' }],
      response_format: { type: 'json_object' },
    })
    const config = { responseMimeType: 'application/json' }
    const other = await google().generateContent({ model: 'json', contents: 'hi', config })
    expect([reply.choices[0]!.message.content, other.text]).toEqual(['{"echo":"JSON"}', '{"echo":"hi"}'])
  })
})

test('words are counted in each dialect', async () => {
  const messages = [{ role: 'user' as const, content: 'one two three' }]
  const counted = await anthropic().messages.countTokens({ model: 'echo', system: 'be brief', messages })
  expect(counted.input_tokens).toBe(5)
  expect((await google().countTokens({ model: 'echo', contents: 'one two' })).totalTokens).toBe(2)
  expect((await openAi().responses.inputTokens.count({ model: 'echo', input: 'one two' })).input_tokens).toBe(2)
  const { json } = await sendJson('POST', '/api/v3/tokenization', { model: 'echo', text: ['one two', 'x'] })
  expect(json.data).toMatchObject([
    {
      total_tokens: 2,
      offset_mapping: [
        [0, 3],
        [4, 7],
      ],
    },
    { total_tokens: 1 },
  ])
})

describe('embeddings', () => {
  test('P35: are the same in base64 and as numbers, in both SDKs', async () => {
    const openAi6 = new OpenAI6({ apiKey, baseURL: `${upstream.url}/v1` }) as unknown as OpenAI
    const request = { model: 'echo', input: ['a b', 'c'], dimensions: 4 }
    const [base64, base64Six, asNumbers] = await Promise.all([
      openAi().embeddings.create(request),
      openAi6.embeddings.create(request),
      openAi().embeddings.create({ ...request, encoding_format: 'float' }),
    ])
    expect(base64.data[0]!.embedding).toHaveLength(4)
    expect([base64.data, base64.data]).toEqual([base64Six!.data, asNumbers!.data])
    expect(base64.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  })

  test('of Gemini, and of several kinds of input, have their dimensions and usage', async () => {
    const config = { outputDimensionality: 3 }
    const reply = await google().embedContent({ model: 'echo', contents: ['a', 'b'], config })
    expect(reply.embeddings!.map(vector => vector.values!.length)).toEqual([3, 3])
    const input = [
      { type: 'text', text: 'a b' },
      { type: 'image_url', image_url: { url: 'https://x.invalid' } },
    ]
    const { json } = await sendJson('POST', '/api/v3/embeddings/multimodal', { model: 'echo', input })
    expect(json).toMatchObject({ data: { object: 'embedding' }, usage: { total_tokens: 12 } })
  })
})

describe('images and audio', () => {
  test('are generated', async () => {
    const generated = await openAi().images.generate({ model: 'gpt-image-1', prompt: 'a dot', n: 2 })
    expect([generated.data!.length, generated.usage!.total_tokens]).toEqual([2, 202])
    const image = new File(['picture'], 'a.png', { type: 'image/png' })
    const edited = await openAi().images.edit({ model: 'gpt-image-1', image, prompt: 'a dot' })
    expect(edited.usage).toMatchObject({ input_tokens: 102, input_tokens_details: { image_tokens: 100 } })
    const speech = await openAi().audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'one two' })
    expect([speech.headers.get('content-type'), (await speech.arrayBuffer()).byteLength]).toEqual(['audio/mpeg', 128])
  })

  test('are transcribed', async () => {
    const file = new File(['x'.repeat(100)], 'a.wav', { type: 'audio/wav' })
    const transcript = await openAi().audio.transcriptions.create({ model: 'gpt-4o-transcribe', file })
    expect(transcript).toMatchObject({ text: 'I hear 100 bytes of a.wav', usage: { type: 'tokens' } })
    const timed = await openAi().audio.transcriptions.create({ model: 'whisper-1', file })
    expect(timed.usage!.type).toBe('duration')
  })

  test('of Ark can fail one by one', async () => {
    const many = { sequential_image_generation: 'auto', sequential_image_generation_options: { max_images: 3 } }
    const { json } = await sendJson('POST', '/api/v3/images/generations', { model: 'm', prompt: 'fail', ...many })
    expect(json).toMatchObject({ data: [{}, {}, { error: {} }], usage: { generated_images: 2 } })
  })
})

test('texts are completed, moderated and ranked', async () => {
  const request = { model: 'echo', prompt: 'one two' }
  expect((await openAi().completions.create(request)).choices[0]!.text).toBe('one two')
  let text = ''
  for await (const part of await openAi().completions.create({ ...request, stream: true }))
    text += part.choices[0]!.text
  expect(text).toBe('one two')
  const moderated = await openAi().moderations.create({ input: ['peace', 'violence'] })
  expect(moderated.results.map(result => result.flagged)).toEqual([false, true])
  const { json } = await sendJson('POST', '/v1/rerank', {
    model: 'r',
    query: 'red',
    documents: ['blue', 'red'],
    top_n: 1,
  })
  expect(json).toMatchObject({ results: [{ index: 1, relevance_score: 1 }] })
})

describe('video tasks', () => {
  const tasks = '/api/v3/contents/generations/tasks'
  const create = async (text: string) =>
    String((await sendJson('POST', tasks, { model: 'm', content: [{ type: 'text', text }], duration: 2 })).json.id)
  const getTask = async (id: string) => (await sendJson('GET', `${tasks}/${id}`)).json

  const endings = [
    ['a dot', 'succeeded'],
    ['please fail', 'failed'],
    ['please expire', 'expired'],
  ] as const
  test.each(endings)('with the prompt "%s" end with their status', async (text, end) => {
    const id = await create(text)
    const polls = [await getTask(id), await getTask(id), await getTask(id), await getTask(id)]
    expect(polls.map(task => task.status)).toEqual(['queued', 'running', end, end])
    const usage = { completion_tokens: 2_000, total_tokens: 2_000 }
    expect(polls.at(-1)!.usage).toEqual(end === 'succeeded' ? usage : undefined)
  })

  test('are listed, cancelled and deleted', async () => {
    const [waiting, running] = [await create('a'), await create('b')]
    await getTask(running)
    const queued = await sendJson('GET', `${tasks}?filter.status=queued`)
    expect(queued.json).toMatchObject({ total: 1, items: [{ id: waiting }] })
    expect((await sendJson('DELETE', `${tasks}/${running}`)).status).toBe(409)
    expect((await sendJson('DELETE', `${tasks}/${waiting}`)).status).toBe(200)
    expect((await getTask(waiting)).status).toBe('cancelled')
    await sendJson('DELETE', `${tasks}/${waiting}`)
    expect((await sendJson('GET', `${tasks}/${waiting}`)).status).toBe(404)
  })

  test('are stored up to a maximum number', async () => {
    const first = await create('a')
    for (let made = 0; made < 200; made++) await create('b')
    expect((await sendJson('GET', `${tasks}/${first}`)).status).toBe(404)
  })
})

describe('stored responses', () => {
  test('are continued, retrieved, listed and deleted', async () => {
    const first = await openAi().responses.create({ model: 'echo', input: 'one two' })
    const next = { model: 'echo', input: 'three', previous_response_id: first.id }
    const second = await openAi().responses.create(next)
    expect([second.usage!.input_tokens, second.previous_response_id]).toEqual([5, first.id])
    expect((await openAi().responses.retrieve(first.id)).output_text).toBe('one two')
    const items = []
    for await (const item of openAi().responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) items.push(item)
    expect(items.map(item => item.type)).toEqual(['message', 'message', 'message'])
    await openAi().responses.delete(first.id)
    const faults = await Promise.all([
      openAi()
        .responses.retrieve(first.id)
        .catch(error => error),
      openAi()
        .responses.create(next)
        .catch(error => error),
    ])
    expect(faults.map(fault => [fault.status, fault.code])).toEqual([
      [404, null],
      [400, 'previous_response_not_found'],
    ])
  })

  test('are not created for a request with store: false', async () => {
    const { id } = await openAi().responses.create({ model: 'echo', input: 'x', store: false })
    expect(
      (
        await openAi()
          .responses.retrieve(id)
          .catch(error => error)
      ).status,
    ).toBe(404)
  })

  test('have tool calls that are answered by their ids alone', async () => {
    const tools = [{ type: 'function' as const, name: 'clock', parameters: {}, strict: false }]
    const first = await openAi().responses.create({ model: 'think', input: 'use clock', tools })
    const call = first.output.find(item => item.type === 'function_call')!
    const input = [{ type: 'function_call_output' as const, call_id: call.call_id, output: '12:00' }]
    const request = { model: 'think', input, tools, previous_response_id: first.id }
    const second = await openAi().responses.create({ ...request, include: ['reasoning.encrypted_content'] })
    expect(second.output_text).toBe('state kept: use clock')
  })

  test('in the background advance with each retrieval, and can be cancelled', async () => {
    const start = () => openAi().responses.create({ model: 'echo', input: 'hi', background: true })
    const { id, status } = await start()
    const statuses = [status]
    for (let polls = 0; polls < 3; polls++) statuses.push((await openAi().responses.retrieve(id)).status)
    expect(statuses).toEqual(['queued', 'queued', 'in_progress', 'completed'])
    expect((await openAi().responses.cancel((await start()).id)).status).toBe('cancelled')
    let text = ''
    for await (const event of await openAi().responses.retrieve(id, { stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    expect(text).toBe('hi')
  })
})

test('a script answers in the dialect of the path by default, and a model in a path can be planned', async () => {
  upstream.plan(answer('planned', { reasoning: 'hm' }), fail(529))
  const request = { model: 'echo', max_tokens: 9, messages: [{ role: 'user' as const, content: 'x' }] }
  const reply = await anthropic().messages.create(request)
  expect(reply.content).toMatchObject([
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'planned' },
  ])
  const fault = await anthropic()
    .messages.create(request)
    .catch(error => error)
  expect([fault.status, fault.type]).toEqual([529, 'overloaded_error'])
  upstream.planModel('broken', fail(503))
  const refused = await google()
    .generateContent({ model: 'broken', contents: 'x' })
    .catch(error => error)
  expect([refused.status, refused.message]).toEqual([503, expect.stringContaining('UNAVAILABLE')])
})
