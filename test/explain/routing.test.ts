// Why a call gets its channel: explained beforehand to keys that may see it, and stored in the record of every call.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fail } from '../../tools/fake-upstream/answers.ts'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { hello } from '../support/gateway.ts'
import { ask, createExplainKey, explain } from './dry.ts'

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

/** Makes a call and returns its record. */
async function recordOfCall(key: string, input: Parameters<typeof ask>[2]): Promise<Record<string, unknown>> {
  const answer = await ask(harness, key, input)
  await answer.text()
  await harness.idle()
  const call = answer.headers.get('x-request-id')!
  return await operate('record', { call })
}

test('an explanation lists every candidate of a route in order, with its score and state', async () => {
  const key = await createExplainKey(harness)
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

describe('an explanation gives the reason for a dropped candidate:', () => {
  test('a model that the key may not use', async () => {
    const key = await createExplainKey(harness)
    await operate('keys set', { key, deny: `${modelOf('gemini')}` })
    const { json } = await explain(harness, key, talk('x'))
    expect(json.model!.resolved).not.toContain(modelOf('gemini'))
    expect(json.routing!.candidates.at(-1)).toMatchObject({ model: modelOf('gemini'), dropped: 'model_forbidden' })
    expect(json.key).toMatchObject({ may: { denies: [modelOf('gemini')] } })
  })

  test('a channel without the tags that the key requires', async () => {
    const key = await createExplainKey(harness)
    await operate('channels set', { channel: channels[0], tags: 'eu' })
    await operate('keys set', { key, require: 'eu' })
    const { json } = await explain(harness, key, talk('x'))
    const remaining = json.routing!.candidates.filter(({ dropped }) => dropped === null)
    expect(remaining).toMatchObject([{ channel: channels[0], tags: ['eu'] }])
    const others = json.routing!.candidates.filter(({ dropped }) => dropped !== null)
    expect(others.map(({ dropped }) => dropped)).toEqual(Array(4).fill('tags_missing'))
    await operate('channels set', { channel: channels[0], tags: 'none' })
  })

  test('a model that the funds do not cover', async () => {
    const key = await createExplainKey(harness, { credit: '0.004' })
    const { json } = await explain(harness, key, talk('word '.repeat(300), { max_tokens: 4_096 }))
    expect([json.wouldAnswer, json.routing!.picked.model]).toEqual([null, 'openai/gpt-4o-mini'])
    expect(json.routing!.candidates.slice(3).map(({ dropped }) => dropped)).toEqual(Array(2).fill('not_affordable'))
  })

  test('a credential that the provider refuses', async () => {
    const key = await createExplainKey(harness)
    const conversation = talk('another conversation')
    harness.upstream.plan(fail(401))
    await (await ask(harness, key, conversation)).text()
    await harness.idle()
    const { json } = await explain(harness, key, conversation)
    const dropped = json.routing!.candidates.filter(({ dropped }) => dropped === 'credential_bad')
    expect(dropped).toHaveLength(1)
    expect(dropped[0]!.availableInMs).toBeGreaterThan(0)
    const { routing, attempts } = await recordOfCall(key, talk('a third one'))
    expect(routing).toMatchObject({ candidates: 5, policy: 'least_busy', dropped: { credential_bad: 1 } })
    expect(attempts).toHaveLength(1)
  })
})

describe('the record of a call', () => {
  test('has the requested name, the policy and the affinity', async () => {
    const key = await createExplainKey(harness)
    const first = await recordOfCall(key, talk('Once upon a time'))
    expect(first).toMatchObject({ requestedModel: 'river', model: 'openai/gpt-4o-mini' })
    expect(first.routing).toMatchObject({ candidates: 5, policy: 'least_busy', by: 'policy', affinity: 'new' })
    const turns = [...talk('Once upon a time').body.messages, { role: 'assistant', content: 'x' }, ...hello]
    const next = await recordOfCall(key, talk('', { messages: turns }))
    expect(next.routing).toMatchObject({ by: 'kept', affinity: 'kept' })
    expect(next.channel).toBe(first.channel)
    const { json } = await explain(harness, key, talk('', { messages: turns }))
    expect(json.routing!.affinity).toMatchObject({ state: 'kept', keptOn: first.channel })
    expect(json.routing!.picked).toMatchObject({ channel: first.channel, reason: 'kept' })
  })

  test('has no requested name if there was only one candidate', async () => {
    const key = await harness.key({ qpm: 60 })
    const { routing, requestedModel } = await recordOfCall(key, { body: { model: modelOf('gemini'), messages: hello } })
    expect(requestedModel).toBeNull()
    expect(routing as unknown).toMatchObject({
      candidates: 1,
      limits: [{ resource: 'requests', span: 'minute', remaining: 59, limit: 60 }],
    })
  })

  test('has a short explanation', async () => {
    for (const { why } of harness.records()) expect(((why as string | null) ?? '').length).toBeLessThan(2_048)
  })
})
