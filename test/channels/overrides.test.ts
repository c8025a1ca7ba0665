// A channel may override fields and headers of a request, in every dialect, and set shorter timeouts. The caller sees the
// overrides in a header, the record keeps them, and every other byte of the request stays.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildFramesTo, frameSteps, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { scripted } from '../../tools/fake-upstream/script.ts'
import { rawCallers } from '../dialects/raw-callers.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialectPaths, dialects } from '../dialects/upstreams.ts'
import type { ChannelSetup } from './channel-setup.ts'
import { callModel, channelPath, defineProvider, idsOf, startChannelSetup } from './channel-setup.ts'

let setup: ChannelSetup
/** The clock of the gateway, which only the tests of timeouts move. */
let nowMs = 0
const idOf = new Map<Dialect, string>()
const providerOf = (dialect: Dialect): string => `up-${dialect}`

beforeAll(async () => {
  setup = await startChannelSetup({ world: { clock: { nowMs: () => nowMs, dateMs: Date.now } } })
  for (const dialect of dialects) {
    const { base, paths } = dialectPaths[dialect]
    const more = { baseUrl: setup.harness.upstream.url + base, speaks: { [dialect]: paths } }
    const defined = await defineProvider(setup, providerOf(dialect), more)
    expect([dialect, defined.status, defined.text]).toEqual([dialect, 201, defined.text])
    const created = await setup.ask('POST', 'web/channels', { provider: providerOf(dialect), credentials: ['k'] })
    idOf.set(dialect, idsOf(created)[0]!)
  }
})
afterAll(() => setup.stop())

const change = (dialect: Dialect, body: object) => setup.ask('PATCH', channelPath(idOf.get(dialect)!), body)

async function send(dialect: Dialect, more: string, headers: Record<string, string> = {}): Promise<Response> {
  const request = { model: `${providerOf(dialect)}/echo`, stream: false }
  const body = JSON.stringify(rawCallers[dialect].body(request)).replace(/\}$/, `${more}}`)
  return await fetch(setup.harness.url + rawCallers[dialect].path(request), {
    method: 'POST',
    headers: { 'authorization': `Bearer ${setup.key}`, 'content-type': 'application/json', ...headers },
    body,
  })
}

const lastRequest = () => setup.harness.upstream.requests.at(-1)!
const lastBody = () => Buffer.from(lastRequest().body).toString('utf8')

/** For each dialect: a field to set, one to fill in, one to remove, and the fields that the caller sends. */
const cases: Readonly<Record<Dialect, { set: string; fill: string; remove: string; callerFields: string }>> = {
  'openai-chat': {
    set: 'temperature',
    fill: 'top_p',
    remove: 'seed',
    callerFields: ', "temperature" : 0.9 ,"seed": 7',
  },
  'openai-responses': {
    set: 'temperature',
    fill: 'top_p',
    remove: 'user',
    callerFields: ', "temperature" : 0.9 ,"user": "u"',
  },
  'anthropic-messages': {
    set: 'temperature',
    fill: 'top_p',
    remove: 'top_k',
    callerFields: ', "temperature" : 0.9 ,"top_k": 7',
  },
  'gemini': {
    set: 'generationConfig.temperature',
    fill: 'generationConfig.topP',
    remove: 'safetySettings',
    callerFields: ',"safetySettings":[], "generationConfig":{"maxOutputTokens":20 , "temperature" : 0.9}',
  },
  'ark': { set: 'temperature', fill: 'top_p', remove: 'seed', callerFields: ', "temperature" : 0.9 ,"seed": 7' },
}

describe.each([...dialects])('overrides in %s', dialect => {
  const { set, fill, remove, callerFields } = cases[dialect]
  const ownBody = (): string => {
    const request = rawCallers[dialect].body({ model: `${providerOf(dialect)}/echo`, stream: false })
    const { generationConfig: _config, ...rest } = request
    return JSON.stringify(dialect === 'gemini' ? rest : request)
  }
  const ask = async (more: string): Promise<Response> => {
    const request = { model: `${providerOf(dialect)}/echo`, stream: false }
    return await fetch(setup.harness.url + rawCallers[dialect].path(request), {
      method: 'POST',
      headers: { 'authorization': `Bearer ${setup.key}`, 'content-type': 'application/json' },
      body: ownBody().replace(/\}$/, `${more}}`),
    })
  }

  test('set, fill in and remove fields, and keep every other byte', async () => {
    const before = await ask(callerFields)
    expect([before.status, before.headers.get('x-weir-overrides')]).toEqual([200, null])
    const plain = lastBody()
    const fields = { set: { [set]: 0.25 }, default: { [fill]: 0.5 }, remove: [remove] }
    const changed = await change(dialect, { parameters: { [dialect]: fields } })
    expect([changed.status, changed.text]).toEqual([200, changed.text])
    const response = await ask(callerFields)
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
    const inside = (name: string): string => name.split('.').at(-1)!
    const expected = plain
      .replace('"temperature" : 0.9', '"temperature" : 0.25')
      .replace(/,? ?"(seed|user|top_k)": [^},]*/, '')
      .replace(/,"safetySettings":\[\]/, '')
    const added = `,"${inside(fill)}":0.5}`
    const filled = dialect === 'gemini' ? expected.replace(/\}(\s*)\}$/, `${added}$1}`) : expected.replace(/\}$/, added)
    expect(lastBody()).toBe(filled)
    const overridden = response.headers.get('x-weir-overrides')!.split(', ').sort()
    expect(overridden).toEqual([set, fill, remove].sort())
    const why = JSON.parse(setup.harness.lastRecord()!.why as string) as { overrides: string[] }
    expect(why.overrides.toSorted()).toEqual(overridden)
  })

  test('are not reported for fields that have the value already', async () => {
    const request = callerFields
      .replace('0.9', '0.25')
      .replace(/,"safetySettings":\[\]|,"(seed|user|top_k)": [^},]*/, '')
    const filled = dialect === 'gemini' ? request.replace(/\}$/, ',"topP":1}') : `${request},"top_p":1`
    const response = await ask(filled)
    expect([response.status, response.headers.get('x-weir-overrides')]).toEqual([200, null])
  })

  test('are refused for fields that decide the answer or its price', async () => {
    const fixed: Readonly<Record<Dialect, readonly string[]>> = {
      'openai-chat': ['model', 'Model', 'messages', 'stream', 'stream_options', 'n', 'max_tokens', 'tools', 'store'],
      'openai-responses': ['model', 'input', 'stream', 'max_output_tokens', 'tools', 'instructions', 'background'],
      'anthropic-messages': ['model', 'messages', 'system', 'stream', 'max_tokens', 'thinking', 'tools', 'speed'],
      'gemini': ['contents', 'tools', 'generationConfig', 'generation_config', 'generationConfig.maxOutputTokens'],
      'ark': ['model', 'messages', 'stream', 'max_completion_tokens', 'service_tier', 'stream_options.include_usage'],
    }
    const more = dialect === 'gemini' ? ['generation_config.candidate_count', 'systemInstruction'] : []
    for (const name of [...fixed[dialect], ...more]) {
      for (const fields of [{ set: { [name]: 1 } }, { default: { [name]: 1 } }, { remove: [name] }]) {
        const refused = await change(dialect, { parameters: { [dialect]: fields } })
        expect([name, refused.status, refused.error.code]).toEqual([name, 400, 'field_invalid'])
      }
    }
  })
})

describe('headers of a channel', () => {
  test('are sent in addition, and replace those of the caller', async () => {
    await change('anthropic-messages', {
      parameters: {},
      headers: { 'X-Team': 'river', 'anthropic-beta': 'of-the-channel', 'User-Agent': 'ours/1' },
    })
    const response = await send('anthropic-messages', '', { 'anthropic-beta': 'of-the-caller' })
    expect(response.status).toBe(200)
    const headers = lastRequest().headers
    expect([headers.get('x-team'), headers.get('anthropic-beta')]).toEqual(['river', 'of-the-channel'])
    expect(headers.get('user-agent')).toBe('ours/1')
    expect(response.headers.get('x-weir-overrides')).toBe('anthropic-beta')
    const unasked = await send('anthropic-messages', '')
    expect(unasked.headers.get('x-weir-overrides')).toBeNull()
  })

  test.each([
    ...['Host', 'Connection', 'Content-Length', 'Transfer-Encoding', 'Upgrade', 'TE', 'Expect', 'Content-Type'],
    ...['Authorization', 'x-api-key', 'api-key', 'X-Goog-Api-Key', 'Cookie', 'Proxy-Authorization', 'X-Auth-Token'],
    ...['cf-access-client-secret', 'x-amz-date', 'a b', '', 'x:y', 'x\r\ny', 'é'],
  ])('may not include %j', async name => {
    expect((await change('openai-chat', { headers: { [name]: 'v' } })).status).toBe(400)
  })

  test.each(['a\r\nx: y', 'a\nb', '\0', ' lead', 'trail ', '', 'é', 'x'.repeat(1_025)])(
    'may not have the value %j',
    async value => {
      expect((await change('openai-chat', { headers: { 'x-a': value } })).status).toBe(400)
    },
  )
})

test('a field that occurs twice in a request does not pass the value of the channel', async () => {
  await change('openai-chat', { parameters: { 'openai-chat': { set: { temperature: 0 } } } })
  const twice = await send('openai-chat', ',"temperature":1,"x":[{"a":1}],"temperature":2')
  expect([twice.status, await twice.text()]).toEqual([400, expect.stringContaining('"code":"field_duplicate"')])
  expect((await send('openai-chat', ',"temperature":1')).status).toBe(200)
  expect(JSON.parse(lastBody())).toMatchObject({ temperature: 0 })
})

describe('a channel with its own timeouts', () => {
  let id: string
  beforeAll(async () => {
    const created = await setup.ask('POST', 'web/channels', { provider: providerOf('ark'), credentials: ['slow'] })
    id = idsOf(created)[0]!
    await change('ark', { disabled: true })
  })

  /** Sends some content, and then nothing more. */
  const stalling = scripted(request => [
    streamHead,
    ...[...frameSteps(buildFramesTo(request, ['He', 'llo']))].slice(0, 2),
  ])

  test.each([
    ['firstContentSeconds', silence(), true, 504],
    ['totalSeconds', silence(), false, 504],
    ['betweenChunksSeconds', stalling, true, 200],
    ['totalSeconds', stalling, true, 200],
  ] as const)('fails the call after its %s', async (name, script, stream, status) => {
    expect((await setup.ask('PATCH', channelPath(id), { times: { [name]: 1 } })).status).toBe(200)
    setup.harness.upstream.plan(script)
    const received = setup.harness.upstream.nextRequest()
    const calling = callModel(setup, `${providerOf('ark')}/echo`, { stream })
    await received
    // Time passes only when the upstream has sent what it sends, so that a slow machine does not end the call earlier.
    if (status === 200) await calling
    const passing = setInterval(() => (nowMs += 50), 1)
    try {
      const response = await calling
      const body = await response.text()
      expect([name, response.status, body.includes('upstream_too_slow')]).toEqual([name, status, true])
    } finally {
      clearInterval(passing)
    }
    await setup.ask('POST', channelPath(id, '/reset-health'))
  })

  test.each([{ totalSeconds: 0 }, { connectSeconds: 61 }, { totalSeconds: 1.5 }, { forever: 1 }])(
    'cannot be set to %j',
    async times => {
      expect((await setup.ask('PATCH', channelPath(id), { times })).status).toBe(400)
    },
  )
})
