// The requests of agents, editors and libraries are answered, with an upstream of every dialect. Most were recorded by
// `scripts/proof/agents.ts --record test/agents/recorded`; the others are written from documentation.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordedRequest, Recording } from '../../scripts/proof/agents/record.ts'
import { nameOfRecording } from '../../scripts/proof/agents/record.ts'
import { trials } from '../../scripts/proof/agents/rows.ts'
import { programs } from '../../src/cli/programs/programs.ts'
import { dialects, modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { documented } from './documented.ts'

const FOLDER = join(import.meta.dir, 'recorded')
const model = {
  id: 'echo',
  contextTokens: 400_000,
  outputTokensMax: 64_000,
  price: { input: '1', output: '2', perSearch: '0.01' },
}

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startDialects({ models: [model] })
  key = await harness.key()
})
afterAll(() => harness.stop())

const read = (name: string): Recording => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Recording
const recordings = [
  ...readdirSync(FOLDER).map(name => [name, read(name)] as const),
  ...documented.map(one => [`${one.program}, documented`, one] as const),
]

test('every program has requests, and every recording is of the version that the proof runs', () => {
  const covered = new Set(recordings.map(([, { program }]) => program))
  expect(Object.keys(programs).filter(program => !covered.has(program))).toEqual([])
  expect(readdirSync(FOLDER).sort()).toEqual(trials.map(nameOfRecording).sort())
  expect(trials.map(trial => read(nameOfRecording(trial)).version)).toEqual(trials.map(({ version }) => version))
})

/** The model of the recording becomes one of this gateway, in the body or in the path. */
function send({ method, path, headers, body }: RecordedRequest, name: string): Promise<Response> {
  const rename = (text: string): string => text.replaceAll(/(up-[a-z-]+\/)?\bplayer\b/g, name)
  const credential = path.startsWith('/v1beta') ? { 'x-goog-api-key': key } : { authorization: `Bearer ${key}` }
  return fetch(harness.url + rename(path), {
    method,
    headers: { ...headers, ...credential },
    ...(body !== undefined && { body: rename(JSON.stringify(body)) }),
  })
}

/** How a whole answer looks in each dialect. */
const complete: Readonly<Record<string, RegExp>> = {
  '/v1/chat/completions': /"finish_reason":\s*"(stop|tool_calls)"/,
  '/v1/responses': /"status":\s*"completed"/,
  '/v1/messages': /"stop_reason":\s*"(end_turn|tool_use)"/,
  '/v1beta/models': /"finishReason":\s*"STOP"/,
  '/v1/models': /"object":\s*"list"/,
}
const lastOf: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'data: [DONE]',
  '/v1/responses': '"type":"response.completed"',
  '/v1/messages': '"type":"message_stop"',
  '/v1beta/models': '"finishReason":"STOP"',
}
const kindOf = (path: string): string => Object.keys(complete).find(start => path.startsWith(start))!

/** Responses may end with a mark like that of Chat, behind its last event. */
const lastEvent = (text: string, kind: string): string | undefined =>
  text
    .split('\n')
    .filter(
      line => line.startsWith('data:') && (kind === '/v1/chat/completions' || line !== lastOf['/v1/chat/completions']),
    )
    .at(-1)

const cases = recordings.flatMap(([name, { requests }]) =>
  dialects.map(upstream => [name, upstream, requests] as const),
)

test.each(cases)('%s on an upstream of %s', async (_name, upstream, requests) => {
  for (const request of requests) {
    const answer = await send(request, modelOf(upstream))
    const text = await answer.text()
    expect([answer.status, answer.status === 200 ? '' : text]).toEqual([200, ''])
    const kind = kindOf(request.path)
    expect(text).toMatch(complete[kind]!)
    if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) JSON.parse(text)
    else expect(lastEvent(text, kind)).toContain(lastOf[kind]!)
  }
})

/** What Cursor sends to `/chat/completions` for models with these words in their names, as others have reported. */
const foreign = [
  ['gpt', 'messages', { input: [{ role: 'user', content: 'hi' }], tools: [{ type: 'function', name: 'f' }] }],
  [
    'claude',
    'tools[0].type',
    {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] },
      ],
      tools: [{ name: 'f', description: 'f', input_schema: { type: 'object', properties: {} } }],
    },
  ],
] as const

test.each(foreign)(
  'Chat with the body of another dialect is refused, as the page says: %s',
  async (_word, param, body) => {
    for (const upstream of dialects) {
      const request = { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json' } }
      const answer = await send({ ...request, body: { model: 'player', stream: true, ...body } }, modelOf(upstream))
      const { error } = (await answer.json()) as { error: { param: string } }
      expect([answer.status, error.param]).toEqual([400, param])
    }
  },
)
