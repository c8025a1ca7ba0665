// A value of a field that is refused after its form was checked: the error names the field, so that the console can show
// the message there.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { ChannelSetup } from '../channels/channel-setup.ts'
import { channelPath, defineProvider, definitionOf, idsOf, startChannelSetup } from '../channels/channel-setup.ts'

let setup: ChannelSetup
let channel: string
beforeAll(async () => {
  setup = await startChannelSetup()
  await defineProvider(setup, 'pond')
  const created = await setup.ask('POST', 'web/channels', { provider: 'pond', credentials: ['sk-1'], name: 'first' })
  await setup.ask('POST', 'web/channels', { provider: 'pond', credentials: ['sk-2'], name: 'second' })
  channel = idsOf(created)[0]!
})
afterAll(() => setup.stop())

const long = 'x'.repeat(10_000)
const channelOf = (more: object) =>
  ['POST', 'web/channels', { provider: 'pond', credentials: ['sk-3'], ...more }] as const
const change = (body: object) => ['PATCH', channelPath(channel), body] as const
const route = (name: string, ...models: readonly object[]) =>
  [
    'PUT',
    `web/routes/${encodeURIComponent(name)}`,
    { members: models.map(one => ({ model: 'pond/echo', ...one })) },
  ] as const
const provider = (definition: object) => ['POST', 'web/providers', { definition }] as const

type Request = readonly [method: string, path: string, body: object]
const rows: readonly (readonly [field: string, () => Request])[] = [
  ['provider', () => channelOf({ provider: 'nowhere' })],
  ['credentials', () => channelOf({ credentials: [] })],
  ['credentials', () => channelOf({ credentials: ['sk-3', 'sk-3'] })],
  ['credentials', () => channelOf({ credentials: ['two words\u0000'] })],
  ['name', () => channelOf({ name: ' blank before' })],
  ['name', () => channelOf({ name: 'second' })],
  ['baseUrl', () => channelOf({ baseUrl: 'ftp://x.example' })],
  ['baseUrl', () => channelOf({ baseUrl: 'http://10.0.0.1' })],
  ['headers', () => channelOf({ headers: { host: 'x' } })],
  ['headers', () => channelOf({ headers: { a: 'line\nbreak' } })],
  ['parameters', () => channelOf({ parameters: { 'openai-chat': { set: { model: 'x' } } } })],
  ['parameters', () => channelOf({ parameters: { gemini: { set: { x: 1 } } } })],
  ['times', () => channelOf({ times: { connect: '-1s' } })],
  ['credential', () => change({ credential: 'two words\u0000' })],
  ['name', () => change({ name: 'second' })],
  ['name', () => change({ name: 'a\u0007b' })],
  ['headers', () => change({ headers: { authorization: 'x' } })],
  ['members', () => route('m', { model: 'nowhere/echo' })],
  ['members', () => route('m', { model: 'pond/nothing' })],
  ['members', () => route('m', {}, {})],
  ['members', () => route('m', { model: 'pond/*' })],
  ['members', () => route('m', { weight: 0 })],
  ['name', () => route('a,b', {})],
  ['name', () => route('*x*', {})],
  ['span', () => ['POST', 'web/limits', { resource: 'requests', amount: 1 }]],
  ['span', () => ['POST', 'web/limits', { resource: 'concurrency', span: 'day', amount: 1 }]],
  ['definition', () => provider({ id: 'lake' })],
  ['definition', () => provider(definitionOf('lake', 'https://x.example', { name: long.repeat(30) }))],
]

test.each(rows)('the error names %s', async (field, requestOf) => {
  const [method, path, body] = requestOf()
  const { status, error } = await setup.ask(method as 'POST', path, body)
  expect([body, status, String(error.param).split('.')[0]]).toEqual([
    body,
    error.code === 'name_taken' ? 409 : 400,
    field,
  ])
})

const records = (query: object) => ['POST', 'web/downloads', { of: 'records', query }] as const
const odd: readonly unknown[] = [null, true, [5], {}, '', ' ', '0x10', '1e1', '5ms']
test.each(odd.map(value => [JSON.stringify(value), value] as const))('%s is no number of a query', async (_, value) => {
  for (const name of ['durationMsMin', 'attemptsMin']) {
    const { status, error } = await setup.ask(...records({ [name]: value }))
    expect([name, status, error.param]).toEqual([name, 400, `query.${name}`])
    if (typeof value !== 'string') continue
    const search = await setup.ask('GET', `web/records?${name}=${encodeURIComponent(value)}`)
    expect([name, search.status, search.error.param]).toEqual([name, 400, name])
  }
})

const twice: readonly (readonly [field: string, method: string, path: string, body: string])[] = [
  ['qpm', 'POST', 'web/tiers', '{"name":"twice","qpm":1,"qpm":2}'],
  ['qpm', 'POST', 'web/tiers', '{"name":"twice","qpm":1,"q\\u0070m":1}'],
  ['secret', 'POST', 'auth/setup', '{"secret":1,"secret":1}'],
  ['of', 'POST', 'web/downloads', '{"of":"records","query":{"status":200},"of":"records"}'],
  ['status', 'POST', 'web/downloads', '{"of":"records","query":{"status":200,"streamed":"true","status":500}}'],
  [
    'sta\u00ebt',
    'POST',
    'web/downloads',
    '{"of":"records","query":[{"sta\u00ebt":200},{"sta\u00ebt":1,"sta\\u00ebt":1}]}',
  ],
]
test.each(twice)('%s, which is given twice, is refused: %s %s %s', async (field, method, path, body) => {
  const { status, error } = await setup.ask(method as 'POST', path, body)
  expect([status, error.code, error.param]).toEqual([400, 'field_duplicate', field])
  expect((await setup.ask('GET', 'web/tiers/twice')).status).toBe(404)
})

test('a body is refused where none is taken, unless it is empty', async () => {
  expect((await setup.ask('POST', 'web/tiers', { name: 'bodies', qpm: 1 })).status).toBe(201)
  const refused = await setup.ask('DELETE', 'web/tiers/bodies', { dryRun: true })
  expect([refused.status, refused.error.code, refused.error.param]).toEqual([400, 'field_unknown', 'dryRun'])
  expect((await setup.ask('DELETE', 'web/tiers/bodies', [1])).status).toBe(400)
  expect((await setup.ask('GET', 'web/tiers/bodies')).status).toBe(200)
  expect((await setup.ask('DELETE', 'web/tiers/bodies', {})).status).toBe(204)
})
