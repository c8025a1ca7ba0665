// Why a call goes where it goes: told beforehand to those who may know, and kept of every call.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fail } from '../../tools/fake-upstream/answers.ts'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { hello } from '../support/gateway.ts'
import { ask, explain, insider } from './dry.ts'

let harness: Harness
let operate: (command: string, input: Record<string, unknown>) => Promise<Record<string, unknown>>
let channels: readonly string[]
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' }, upstreamKeys: 'one-key,two-key,three-key' })
  operate = async (command, input) => (await harness.weir(command, input)) as Record<string, unknown>
  const listed = (await operate('channels list', {})).data as readonly { id: string }[]
  channels = listed.map(({ id }) => id).filter(id => id.startsWith('openai#'))
  const members = ['openai/gpt-4o-mini', 'then', modelOf('anthropic-messages'), 'then', modelOf('gemini')]
  await operate('routes set', { name: 'river', policy: 'least_busy', members })
})
afterAll(() => harness.stop())

const talk = (text: string, more: object = {}) => ({
  body: { model: 'river', messages: [{ role: 'user', content: text }], ...more },
})

/** What the record of the last call says of it. */
async function whyOf(key: string, asked: Parameters<typeof ask>[2]): Promise<Record<string, unknown>> {
  const answer = await ask(harness, key, asked)
  await answer.text()
  await harness.idle()
  const call = answer.headers.get('x-request-id')!
  return await operate('record', { call })
}

test('every channel that the name leads to is told of, in order, with what there is to say of it', async () => {
  const key = await insider(harness)
  const { json } = await explain(harness, key, talk('who goes there'))
  const resolved = ['openai/gpt-4o-mini', modelOf('anthropic-messages'), modelOf('gemini')]
  expect(json.model).toEqual({ requested: 'river', resolved })
  expect(json.prices!.map(({ model }) => model)).toEqual(resolved)
  const { policy, candidates, picked, affinity } = json.routing!
  expect([policy, affinity!.state, affinity!.keptOn]).toEqual(['least_busy', 'new', null])
  expect(candidates.map(({ model }) => model)).toEqual([...Array(3).fill(resolved[0]), ...resolved.slice(1)])
  expect(
    candidates
      .slice(0, 3)
      .map(({ channel }) => channel as string)
      .toSorted(),
  ).toEqual(channels.toSorted())
  for (const candidate of candidates) {
    expect(candidate).toMatchObject({ dropped: null, availableInMs: 0, share: expect.any(Number), tags: [] })
    expect(candidate.score).toBeGreaterThan(0)
  }
  expect(picked).toMatchObject({ model: resolved[0], reason: 'policy' })
  expect(channels).toContain(picked.channel as string)
})

describe('what is left out says why', () => {
  test('what the key may not use', async () => {
    const key = await insider(harness)
    await operate('keys set', { key, deny: `${modelOf('gemini')}` })
    const { json } = await explain(harness, key, talk('x'))
    expect(json.model!.resolved).not.toContain(modelOf('gemini'))
    expect(json.routing!.candidates.at(-1)).toMatchObject({ model: modelOf('gemini'), dropped: 'model_forbidden' })
    expect(json.key).toMatchObject({ may: { denies: [modelOf('gemini')] } })
  })

  test('what has not the tags that the key requires', async () => {
    const key = await insider(harness)
    await operate('channels set', { channel: channels[0], tags: 'eu' })
    await operate('keys set', { key, require: 'eu' })
    const { json } = await explain(harness, key, talk('x'))
    const kept = json.routing!.candidates.filter(({ dropped }) => dropped === null)
    expect(kept).toMatchObject([{ channel: channels[0], tags: ['eu'] }])
    const others = json.routing!.candidates.filter(({ dropped }) => dropped !== null)
    expect(others.map(({ dropped }) => dropped)).toEqual(Array(4).fill('tags_missing'))
    await operate('channels set', { channel: channels[0], tags: 'none' })
  })

  test('what cannot be paid', async () => {
    const key = await insider(harness, { credit: '0.004' })
    const { json } = await explain(harness, key, talk('word '.repeat(300), { max_tokens: 4_096 }))
    expect([json.wouldAnswer, json.routing!.picked.model]).toEqual([null, 'openai/gpt-4o-mini'])
    expect(json.routing!.candidates.slice(3).map(({ dropped }) => dropped)).toEqual(Array(2).fill('not_affordable'))
  })

  test('a credential that its provider refuses', async () => {
    const key = await insider(harness)
    const strangers = talk('another conversation')
    harness.upstream.plan(fail(401))
    await (await ask(harness, key, strangers)).text()
    await harness.idle()
    const { json } = await explain(harness, key, strangers)
    const off = json.routing!.candidates.filter(({ dropped }) => dropped === 'credential_bad')
    expect(off).toHaveLength(1)
    expect(off[0]!.availableInMs).toBeGreaterThan(0)
    const { routing, attempts } = await whyOf(key, talk('a third one'))
    expect(routing).toMatchObject({ candidates: 5, policy: 'least_busy', dropped: { credential_bad: 1 } })
    expect(attempts).toHaveLength(1)
  })
})

describe('of a call that was made', () => {
  test('its name, its policy and its conversation are kept', async () => {
    const key = await insider(harness)
    const first = await whyOf(key, talk('Once upon a time'))
    expect(first).toMatchObject({ requestedModel: 'river', model: 'openai/gpt-4o-mini' })
    expect(first.routing).toMatchObject({ candidates: 5, policy: 'least_busy', by: 'policy', affinity: 'new' })
    const turns = [...talk('Once upon a time').body.messages, { role: 'assistant', content: 'x' }, ...hello]
    const next = await whyOf(key, talk('', { messages: turns }))
    expect(next.routing).toMatchObject({ by: 'kept', affinity: 'kept' })
    expect(next.channel).toBe(first.channel)
    const { json } = await explain(harness, key, talk('', { messages: turns }))
    expect(json.routing!.affinity).toMatchObject({ state: 'kept', keptOn: first.channel })
    expect(json.routing!.picked).toMatchObject({ channel: first.channel, reason: 'kept' })
  })

  test('there is little to tell of one that had no choice', async () => {
    const key = await harness.key({ qpm: 60 })
    const { routing, requestedModel } = await whyOf(key, { body: { model: modelOf('gemini'), messages: hello } })
    expect(requestedModel).toBeNull()
    expect(routing as unknown).toMatchObject({ candidates: 1, limits: [['requests', 'minute', 59, 60]] })
  })

  test('and it is short', async () => {
    for (const { why } of harness.records()) expect(((why as string | null) ?? '').length).toBeLessThan(2_048)
  })
})
