// Tests the default answers of the fake upstream as the official SDKs read them, and its requests on a raw socket.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { fail } from './answers.ts'
import { chatPost, rawClient, readReply } from './raw-client.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await startFakeUpstream()
})
afterEach(() => upstream.stop())

const user = (content: string) => [{ role: 'user' as const, content }]
const clock = { type: 'function' as const, function: { name: 'clock', parameters: {} } }
const sdk = () => new OpenAI({ apiKey: 'sk-test', baseURL: `${upstream.url}/v1`, maxRetries: 0 })
const sdk6 = () => new OpenAI6({ apiKey: 'sk-test', baseURL: `${upstream.url}/v1`, maxRetries: 0 }) as unknown as OpenAI
const isComplete = (received: string) => received.endsWith('0\r\n\r\n')

async function post(body: unknown): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(`${upstream.url}/v1/chat/completions`, { method: 'POST', body: text })
}

/** The complete answer to one request as it is received on the socket. */
async function receive(body: unknown, isDone: (received: string) => boolean = isComplete): Promise<string> {
  const client = await rawClient(upstream.url)
  client.send(chatPost(body))
  const received = await client.until(isDone)
  client.close()
  return received
}

function eventsOf(received: string): readonly string[] {
  const body = received.slice(received.indexOf('\r\n\r\n') + 4)
  const text = body.replace(/(^|\r\n)[0-9a-f]+\r\n/g, '')
  return [...text.matchAll(/^data: (.*)$/gm)].map(match => match[1]!)
}

describe.each([
  ['openai 7', sdk],
  ['openai 6', sdk6],
] as const)('the default answers, read by %s:', (_name, client) => {
  test('a plain answer is read', async () => {
    const reply = await client().chat.completions.create({ model: 'echo', messages: user('Grüße an alle') })
    expect(reply.choices[0]!.message.content).toBe('Grüße an alle')
    expect(reply.choices[0]!.finish_reason).toBe('stop')
    expect(reply.usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 3,
      total_tokens: 6,
      prompt_tokens_details: { cached_tokens: 0 },
    })
  })

  test('the strict helper accepts a stream of several choices', async () => {
    const stream = client().chat.completions.stream({
      model: 'lorem',
      messages: user('x'),
      n: 2,
      max_tokens: 3,
      stream_options: { include_usage: true },
    })
    const reply = await stream.finalChatCompletion()
    expect(reply.choices.map(choice => choice.message.content)).toEqual(['Lorem ipsum dolor', 'Lorem ipsum dolor'])
    expect(reply.choices.map(choice => choice.finish_reason)).toEqual(['length', 'length'])
    expect(reply.usage!.completion_tokens).toBe(6)
  })

  test('the strict helper accepts a tool call', async () => {
    const requestBody = { model: 'echo', messages: user('please use clock now'), tools: [clock] }
    const [plain, stream] = await Promise.all([
      client().chat.completions.create(requestBody),
      client().chat.completions.stream(requestBody).finalChatCompletion(),
    ])
    for (const reply of [plain, stream]) {
      const call = reply.choices[0]!.message.tool_calls![0]!
      expect(reply.choices[0]!.finish_reason).toBe('tool_calls')
      expect(call.type === 'function' && [call.function.name, call.function.arguments]).toEqual(['clock', '{}'])
    }
  })

  test('an error and the list of models are read', async () => {
    const fault = await client()
      .chat.completions.create({ model: 'echo', messages: user('x'), n: 0 })
      .catch(e => e)
    expect([fault.status, fault.type, fault.param]).toEqual([400, 'invalid_request_error', 'n'])
    const ids: string[] = []
    for await (const model of client().models.list()) ids.push(model.id)
    expect(ids).toEqual(['echo', 'lorem', 'slow', 'think', 'json', 'see'])
  })
})

describe('by default,', () => {
  test('a stream has usage only on request, and then null in the other chunks', async () => {
    const requestBody = { model: 'echo', stream: true, messages: user('a b') }
    const without = eventsOf(await receive(requestBody))
    expect(without.some(data => data.includes('usage'))).toBe(false)
    const events = eventsOf(await receive({ ...requestBody, stream_options: { include_usage: true } }))
    const chunks = events.slice(0, -1).map(data => JSON.parse(data))
    expect(events.at(-1)).toBe('[DONE]')
    expect(chunks.slice(0, -1).map(part => part.usage)).toEqual([null, null, null, null])
    expect([chunks.at(-1).choices, chunks.at(-1).usage.total_tokens]).toEqual([[], 4])
    expect(new Set(chunks.map(part => `${part.id} ${part.created} ${part.model}`)).size).toBe(1)
    expect(chunks[0].choices[0].delta.role).toBe('assistant')
  })

  test('text parts are echoed, and the words of all messages are counted', async () => {
    const parts = [
      { type: 'text', text: 'one ' },
      { type: 'image_url', image_url: {} },
      { type: 'text', text: 'two' },
    ]
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: parts },
    ]
    const reply = await readReply(await post({ model: 'whatever', messages }))
    expect([reply.choices[0]!.message.content, reply.usage.prompt_tokens]).toEqual(['one two', 4])
  })

  test('a tool is called if its whole name is mentioned, and not again after its result', async () => {
    const tools = [{ type: 'function', function: { name: 'clock_two' } }, clock]
    const call = { id: 'c1', type: 'function', function: { name: 'clock', arguments: '{}' } }
    const toolMessages = [
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: '12:00' },
    ]
    const requestBody = { model: 'echo', tools, messages: [...user('use clock'), ...toolMessages] }
    const after = await readReply(await post(requestBody))
    expect(after.choices[0]!.message.content).toBe('use clock')
    const before = await readReply(await post({ ...requestBody, messages: user('use clock_two') }))
    expect(before.choices[0]!.message.tool_calls![0]!.function.name).toBe('clock_two')
  })

  test('the slow model waits', async () => {
    const start = performance.now()
    await (await post({ model: 'slow', messages: user('x') })).text()
    expect(performance.now() - start).toBeGreaterThan(490)
    const streaming = performance.now()
    await (await post({ model: 'slow', stream: true, max_tokens: 2, messages: user('x') })).text()
    expect(performance.now() - streaming).toBeGreaterThan(190) // the stream has five events
  })

  test.each([
    ['not json', 400, 'invalid_request_error'],
    [[], 400, 'invalid_request_error'],
    [{ model: 'echo' }, 400, 'invalid_request_error'],
    [{ model: 'echo', messages: [], max_tokens: 0 }, 400, 'invalid_request_error'],
  ])('the body %j is refused', async (body, status, type) => {
    const response = await post(body)
    expect([response.status, (await readReply(response)).error!.type]).toEqual([status, type])
  })

  test('an unknown path gets 404', async () => {
    expect((await fetch(`${upstream.url}/v1/nothing`)).status).toBe(404)
    expect((await fetch(`${upstream.url}/v1/chat/completions`)).status).toBe(404)
  })

  test('the same requests get the same bytes', async () => {
    const other = await startFakeUpstream()
    const requestBody = { model: 'echo', messages: user('x') }
    const body = await (await post(requestBody)).text()
    const again = await fetch(`${other.url}/chat/completions`, { method: 'POST', body: JSON.stringify(requestBody) })
    expect(await again.text()).toBe(body)
    await other.stop()
  })
})

describe('requests to the fake upstream', () => {
  test('are recorded as they were received', async () => {
    const next = upstream.nextRequest()
    await fetch(`${upstream.url}/a?b=c`, { method: 'PUT', headers: { 'X-One': 'Two' }, body: '{"a":1}' })
    const request = await next
    expect([request.method, request.path, request.headers.get('x-one')]).toEqual(['PUT', '/a?b=c', 'Two'])
    expect(request.rawHead.startsWith('PUT /a?b=c HTTP/1.1\r\n')).toBe(true)
    expect(request.json()).toEqual({ a: 1 })
    expect(upstream.requests).toEqual([request])
  })

  test('are read in chunks, byte by byte, and one after another on one socket', async () => {
    const client = await rawClient(upstream.url)
    upstream.plan(fail(400), fail(404), fail(403))
    const chunked = '3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n'
    for (const character of `POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`) client.send(character)
    client.send('GET /second HTTP/1.1\r\n\r\nPOST /third HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi')
    const received = await client.until(text => text.split('HTTP/1.1').length === 4 && text.endsWith('}}'))
    expect([...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(match => match[1])).toEqual(['400', '404', '403'])
    const seen = upstream.requests.map(request => [request.path, new TextDecoder().decode(request.body)])
    expect(seen).toEqual([
      ['/', 'abc0123456789'],
      ['/second', ''],
      ['/third', 'hi'],
    ])
    expect(new Set(upstream.requests.map(request => request.connection)).size).toBe(1)
    expect(upstream.openSockets).toBe(1)
    client.close()
  })

  test.each([
    ['431', `GET / HTTP/1.1\r\nX: ${'x'.repeat(65 * 1024)}`],
    ['413', 'POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n'],
    ['400', 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
    ['400', 'nonsense\r\n\r\n'],
  ])('beyond the bounds are refused with %s', async (status, text) => {
    const client = await rawClient(upstream.url)
    client.send(text)
    expect(await client.ending).toBe('FIN')
    expect(client.received.split(' ')[1]).toBe(status)
    client.close()
  })

  test('that cannot be read are refused also on a reused socket', async () => {
    const client = await rawClient(upstream.url)
    client.send('GET /models HTTP/1.1\r\n\r\n')
    await client.until(text => text.endsWith(']}'))
    client.send('nonsense\r\n\r\n')
    expect(await client.ending).toBe('FIN')
    expect(client.received).toContain('HTTP/1.1 400 ')
    client.close()
  })

  test('are recorded up to a maximum number', async () => {
    const none = await startFakeUpstream({ keepRequests: 0 })
    const two = await startFakeUpstream({ keepRequests: 2 })
    for (const path of ['/1', '/2', '/3']) await Promise.all([fetch(none.url + path), fetch(two.url + path)])
    expect([none.requests.length, two.requests.map(request => request.path).join()]).toEqual([0, '/2,/3'])
    await Promise.all([none.stop(), two.stop()])
  })

  test('with Expect get 100 Continue', async () => {
    const client = await rawClient(upstream.url)
    client.send('POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    await client.until(text => text === 'HTTP/1.1 100 Continue\r\n\r\n')
    client.send('hi')
    expect(await client.until(text => text.includes('404'))).toContain('\r\n\r\nHTTP/1.1 404 ')
    client.close()
  })
})
