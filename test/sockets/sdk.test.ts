// Responses over WebSocket with OpenAI's own client, on upstreams of every dialect.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import type { ResponsesClientEvent, ResponsesServerEvent } from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { dialects, modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'

const ROOT = join(import.meta.dir, '..', '..')

let harness: Harness
beforeAll(async () => {
  harness = await startDialects()
})
afterAll(() => harness.stop())

const clientOf = (apiKey: string): OpenAI => new OpenAI({ apiKey, baseURL: `${harness.url}/v1`, maxRetries: 0 })
const open = async (): Promise<ResponsesWS> => new ResponsesWS(clientOf(await harness.key()))

type Created = Extract<ResponsesClientEvent, { type: 'response.create' }>

/** Sends a message and returns the events of its response. */
function ask(socket: ResponsesWS, fields: Omit<Created, 'type'>): Promise<readonly ResponsesServerEvent[]> {
  const events: ResponsesServerEvent[] = []
  const { promise, resolve, reject } = Promise.withResolvers<readonly ResponsesServerEvent[]>()
  const onEvent = (event: ResponsesServerEvent): void => {
    if (event.stream_id !== fields.stream_id) return
    events.push(event)
    if (event.type === 'response.completed') resolve(events)
  }
  socket.on('event', onEvent)
  socket.on('error', reject)
  socket.send({ type: 'response.create', ...fields })
  return promise.finally(() => {
    socket.off('event', onEvent)
    socket.off('error', reject)
  })
}

const completed = (events: readonly ResponsesServerEvent[]) =>
  (events.at(-1) as Extract<ResponsesServerEvent, { type: 'response.completed' }>).response

const textOf = (events: readonly ResponsesServerEvent[]): string =>
  events.map(event => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')

describe.each(dialects)('on an upstream that speaks %s,', dialect => {
  const model = modelOf(dialect)

  test('the events are those of the stream over HTTP', async () => {
    const client = clientOf(await harness.key())
    const socket = new ResponsesWS(client)
    const events = await ask(socket, { model, input: 'one two three' })
    socket.close()
    const streamed: string[] = []
    for await (const event of await client.responses.create({ model, input: 'one two three', stream: true }))
      streamed.push(event.type)
    expect(events.map(({ type }) => type)).toEqual(streamed as (typeof events)[number]['type'][])
    expect(textOf(events)).toBe('one two three')
    await harness.idle()
    const [record, overHttp] = harness.records().slice(-2)
    for (const field of ['outcome', 'status', 'cost', 'input_tokens', 'output_tokens', 'dialect', 'streamed']) {
      expect([field, record![field]]).toEqual([field, overHttp![field]])
    }
    expect(record!.cost).toBeGreaterThan(0)
  })

  test('a conversation that is not stored continues on its connection', async () => {
    const socket = await open()
    const first = completed(await ask(socket, { model, input: 'My name is Ada', store: false }))
    const next = { model, input: 'And I', store: false, previous_response_id: first.id }
    const second = completed(await ask(socket, next))
    expect([second.output_text ?? textOfOutput(second), second.previous_response_id]).toEqual(['And I', first.id])
    const third = completed(await ask(socket, { ...next, input: 'Bye', previous_response_id: second.id }))
    socket.close()
    expect(lastUpstreamText()).toMatch(/My name is Ada[^]*My name is Ada[^]*And I[^]*And I[^]*Bye/)
    expect(third.previous_response_id).toBe(second.id)
  })

  test('a stored conversation continues on another connection', async () => {
    const key = await harness.key()
    const [one, other] = [new ResponsesWS(clientOf(key)), new ResponsesWS(clientOf(key))]
    const first = completed(await ask(one, { model, input: 'My name is Ada' }))
    const second = completed(await ask(other, { model, input: 'And I', previous_response_id: first.id }))
    expect(second.previous_response_id).toBe(first.id)
    expect(lastUpstreamText()).toMatch(/My name is Ada[^]*And I/)
    one.close()
    other.close()
  })
})

const textOfOutput = ({ output }: { output: readonly { type: string }[] }): string =>
  output
    .flatMap(item => (item.type === 'message' ? (item as unknown as { content: { text: string }[] }).content : []))
    .map(({ text }) => text)
    .join('')

const lastUpstreamText = (): string =>
  Buffer.from(harness.upstream.requests.findLast(({ method }) => method === 'POST')!.body).toString()

test('two streams of one connection run at the same time, and their events have the ids of the streams', async () => {
  const socket = await open()
  const model = modelOf('openai-chat')
  const [one, two] = await Promise.all([
    ask(socket, { model, input: 'first', stream_id: 'a' }),
    ask(socket, { model, input: 'second', stream_id: 'b' }),
  ])
  expect([textOf(one), textOf(two)]).toEqual(['first', 'second'])
  const fork = { model, input: 'third', stream_id: 'c', previous_response_id: completed(one).id }
  expect(textOf(await ask(socket, fork))).toBe('third')
  socket.close()
})

test('an event with the headers of the pipeline does not disturb the client', async () => {
  const options = { headers: { 'X-Weir-Comments': 'on' } } as ConstructorParameters<typeof ResponsesWS>[1]
  const socket = new ResponsesWS(clientOf(await harness.key()), options)
  const model = modelOf('anthropic-messages')
  const events = await ask(socket, { model, input: 'one two' })
  const told = events.filter(({ type }) => (type as string) === 'weir.headers') as unknown as { headers: object }[]
  expect(told.map(({ headers }) => headers)).toMatchObject([
    {
      'x-request-id': expect.stringMatching(/^req_/),
      'x-pipeline-auth': expect.stringMatching(/^pass \(\d+ms, tier=pro\)$/),
      'x-pipeline-ratelimit': expect.stringMatching(/^pass/),
      'x-pipeline-route': expect.stringMatching(/^pass \(\d+ms, up-anthropic-messages→echo\)$/),
      'x-pipeline-adapter': expect.stringMatching(/^done/),
      'x-pipeline-breakdown': expect.stringMatching(/^fwd=\d+ cost=\d+ deduct=\d+ record=0 bodies=0$/),
    },
    { 'x-pipeline-breakdown': expect.stringMatching(/^fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+$/) },
  ])
  expect(events.at(-1)!.type).toBe('response.completed')
  expect(textOf(events)).toBe('one two')
  socket.close()
})

test('a wrong key ends in an error of the client', async () => {
  const socket = new ResponsesWS(clientOf('wk-wrong'))
  const fault = await new Promise<Error>(resolve => socket.on('error', resolve))
  expect(fault.message).toContain('401')
})

test('a refused message is an error event, and the connection goes on', async () => {
  const socket = await open()
  const fault = (await ask(socket, { model: 'nothing/at-all', input: 'x' }).catch((error: unknown) => error)) as {
    error: { status: number; error: { code: string; headers: object } }
  }
  expect(fault.error).toMatchObject({ type: 'error', status: 404, error: { code: 'model_not_found' } })
  expect(fault.error.error.headers).toMatchObject({ 'x-pipeline-route': expect.stringMatching(/^fail/) })
  expect(textOf(await ask(socket, { model: modelOf('gemini'), input: 'still here' }))).toBe('still here')
  socket.close()
})

test('the example of the guide works', async () => {
  const page = readFileSync(join(ROOT, 'docs', 'guides', 'websocket.md'), 'utf8')
  const [, code] = /```js\n([^]*?)```/.exec(page)!
  const own = code!.replace('http://127.0.0.1:8080', harness.url).replace('demo/echo', modelOf('gemini'))
  const env = { ...process.env, KEY: await harness.key() }
  const child = spawn(process.execPath, ['-e', own], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', bytes => void (output += String(bytes)))
  const exitCode = await new Promise(resolve => child.on('close', resolve))
  expect([exitCode, output]).toEqual([0, 'Hello, river'])
})
