// What a channel sends otherwise than its callers ask, in every dialect, and how long it may take: told to the caller,
// written down, and nothing else of a request changed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildFramesTo, frameSteps, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { scripted } from '../../tools/fake-upstream/script.ts'
import { speech } from '../dialects/speaking.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects, spoken } from '../dialects/upstreams.ts'
import type { ChannelDesk } from './desk.ts'
import { at, defineProvider, idsOf, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
const idOf = new Map<Dialect, string>()
const providerOf = (dialect: Dialect): string => `up-${dialect}`

beforeAll(async () => {
  desk = await openChannelDesk()
  for (const dialect of dialects) {
    const { base, paths } = spoken[dialect]
    const more = { baseUrl: desk.harness.upstream.url + base, speaks: { [dialect]: paths } }
    const defined = await defineProvider(desk, providerOf(dialect), more)
    expect([dialect, defined.status, defined.text]).toEqual([dialect, 201, defined.text])
    const made = await desk.ask('POST', 'web/channels', { provider: providerOf(dialect), credentials: ['k'] })
    idOf.set(dialect, idsOf(made)[0]!)
  }
})
afterAll(() => desk.stop())

const change = (dialect: Dialect, body: object) => desk.ask('PATCH', at(idOf.get(dialect)!), body)

async function send(dialect: Dialect, more: string, headers: Record<string, string> = {}): Promise<Response> {
  const asked = { model: `${providerOf(dialect)}/echo`, stream: false }
  const body = JSON.stringify(speech[dialect].body(asked)).replace(/\}$/, `${more}}`)
  return await fetch(desk.harness.url + speech[dialect].path(asked), {
    method: 'POST',
    headers: { 'authorization': `Bearer ${desk.key}`, 'content-type': 'application/json', ...headers },
    body,
  })
}

const went = () => desk.harness.upstream.requests.at(-1)!
const bodyOf = () => Buffer.from(went().body).toString('utf8')

/** Set, filled in and left out, as each dialect has them; and what a caller sends. */
const cases: Readonly<Record<Dialect, { set: string; fill: string; drop: string; asks: string }>> = {
  'openai-chat': { set: 'temperature', fill: 'top_p', drop: 'seed', asks: ', "temperature" : 0.9 ,"seed": 7' },
  'openai-responses': { set: 'temperature', fill: 'top_p', drop: 'user', asks: ', "temperature" : 0.9 ,"user": "u"' },
  'anthropic-messages': { set: 'temperature', fill: 'top_p', drop: 'top_k', asks: ', "temperature" : 0.9 ,"top_k": 7' },
  'gemini': {
    set: 'generationConfig.temperature',
    fill: 'generationConfig.topP',
    drop: 'safetySettings',
    asks: ',"safetySettings":[], "generationConfig":{"maxOutputTokens":20 , "temperature" : 0.9}',
  },
  'ark': { set: 'temperature', fill: 'top_p', drop: 'seed', asks: ', "temperature" : 0.9 ,"seed": 7' },
}

describe.each([...dialects])('in %s', dialect => {
  const { set, fill, drop, asks } = cases[dialect]
  const own = (): string => {
    const asked = speech[dialect].body({ model: `${providerOf(dialect)}/echo`, stream: false })
    const { generationConfig: _config, ...rest } = asked
    return JSON.stringify(dialect === 'gemini' ? rest : asked)
  }
  const ask = async (more: string): Promise<Response> => {
    const asked = { model: `${providerOf(dialect)}/echo`, stream: false }
    return await fetch(desk.harness.url + speech[dialect].path(asked), {
      method: 'POST',
      headers: { 'authorization': `Bearer ${desk.key}`, 'content-type': 'application/json' },
      body: own().replace(/\}$/, `${more}}`),
    })
  }

  test('fields are set, filled in and left out, and every other byte stays', async () => {
    const before = await ask(asks)
    expect([before.status, before.headers.get('x-weir-overrides')]).toEqual([200, null])
    const plain = bodyOf()
    const fields = { set: { [set]: 0.25 }, default: { [fill]: 0.5 }, remove: [drop] }
    const changed = await change(dialect, { parameters: { [dialect]: fields } })
    expect([changed.status, changed.text]).toEqual([200, changed.text])
    const response = await ask(asks)
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
    const inside = (name: string): string => name.split('.').at(-1)!
    const expected = plain
      .replace('"temperature" : 0.9', '"temperature" : 0.25')
      .replace(/,? ?"(seed|user|top_k)": [^},]*/, '')
      .replace(/,"safetySettings":\[\]/, '')
    const added = `,"${inside(fill)}":0.5}`
    const filled = dialect === 'gemini' ? expected.replace(/\}(\s*)\}$/, `${added}$1}`) : expected.replace(/\}$/, added)
    expect(bodyOf()).toBe(filled)
    const told = response.headers.get('x-weir-overrides')!.split(', ').sort()
    expect(told).toEqual([set, fill, drop].sort())
    const why = JSON.parse(desk.harness.records().at(-1)!.why as string) as { overrides: string[] }
    expect(why.overrides.toSorted()).toEqual(told)
  })

  test('what is as it should be already is left alone', async () => {
    const asked = asks.replace('0.9', '0.25').replace(/,"safetySettings":\[\]|,"(seed|user|top_k)": [^},]*/, '')
    const filled = dialect === 'gemini' ? asked.replace(/\}$/, ',"topP":1}') : `${asked},"top_p":1`
    const response = await ask(filled)
    expect([response.status, response.headers.get('x-weir-overrides')]).toEqual([200, null])
  })

  test('what a call is answered or billed by cannot be changed', async () => {
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

describe('headers', () => {
  test('are sent besides, and go before those of the caller', async () => {
    await change('anthropic-messages', {
      parameters: {},
      headers: { 'X-Team': 'river', 'anthropic-beta': 'of-the-channel', 'User-Agent': 'ours/1' },
    })
    const response = await send('anthropic-messages', '', { 'anthropic-beta': 'of-the-caller' })
    expect(response.status).toBe(200)
    const headers = went().headers
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
  ])('%j is not a channel’s to send', async name => {
    expect((await change('openai-chat', { headers: { [name]: 'v' } })).status).toBe(400)
  })

  test.each(['a\r\nx: y', 'a\nb', '\0', ' lead', 'trail ', '', 'é', 'x'.repeat(1_025)])(
    'a value of %j cannot be sent',
    async value => {
      expect((await change('openai-chat', { headers: { 'x-a': value } })).status).toBe(400)
    },
  )
})

test('a field that stands twice is what the channel says, wherever it is read', async () => {
  await change('openai-chat', { parameters: { 'openai-chat': { set: { temperature: 0 } } } })
  const response = await send('openai-chat', ',"temperature":1,"x":[{"a":1}],"temperature":2')
  expect(response.status).toBe(200)
  expect(bodyOf().match(/"temperature"/g)).toHaveLength(1)
  expect(JSON.parse(bodyOf())).toMatchObject({ temperature: 0 })
})

describe('a channel that may take less time', () => {
  let id: string
  beforeAll(async () => {
    const made = await desk.ask('POST', 'web/channels', { provider: providerOf('ark'), credentials: ['slow'] })
    id = idsOf(made)[0]!
    await change('ark', { disabled: true })
  })

  /** Says a little, and then nothing more. */
  const stalling = scripted(request => [
    streamHead,
    ...[...frameSteps(buildFramesTo(request, ['He', 'llo']))].slice(0, 2),
  ])

  test.each([
    ['firstContentSeconds', silence(), true, 504],
    ['totalSeconds', silence(), false, 504],
    ['betweenChunksSeconds', stalling, true, 200],
    ['totalSeconds', stalling, true, 200],
  ] as const)('by %s gives up sooner', async (name, script, stream, status) => {
    expect((await desk.ask('PATCH', at(id), { times: { [name]: 1 } })).status).toBe(200)
    desk.harness.upstream.plan(script)
    const sinceMs = performance.now()
    const response = await say(desk, `${providerOf('ark')}/echo`, { stream })
    const body = await response.text()
    expect([name, response.status, body.includes('upstream_too_slow')]).toEqual([name, status, true])
    expect(performance.now() - sinceMs).toBeLessThan(15_000)
    await desk.ask('POST', at(id, '/reset-health'))
  })

  test.each([{ totalSeconds: 0 }, { connectSeconds: 61 }, { totalSeconds: 1.5 }, { forever: 1 }])(
    'is not told %j',
    async times => {
      expect((await desk.ask('PATCH', at(id), { times })).status).toBe(400)
    },
  )
})
