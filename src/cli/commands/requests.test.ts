// Tests the requests that commands send for their arguments, and arguments that are refused before anything is changed.

import { expect, test } from 'bun:test'
import type { ControlRequest } from '../../http/server/control-socket.ts'
import type { CommandFields } from '../connect.ts'
import { Problem } from '../problem.ts'
import { cliCommands } from './commands.ts'

/** Runs a command against a gateway that answers every request with `answer`; returns the requests. */
async function requestsOf(command: string, input: CommandFields, answer: object = {}): Promise<ControlRequest[]> {
  const sent: ControlRequest[] = []
  await cliCommands[command]!.ask!(input, async request => {
    sent.push(request)
    return Response.json({ id: 'key_00000000001', account: 'acc_00000000009', data: [], next: null, ...answer })
  })
  return sent
}

const bodyOf = async (command: string, input: CommandFields): Promise<unknown> =>
  JSON.parse(JSON.stringify((await requestsOf(command, input)).at(-1)!.body))

test('the option --day is sent as the time from its midnight to the next, on every page', async () => {
  const day = { from: '2026-06-01T00:00:00.000Z', before: '2026-06-02T00:00:00.000Z' }
  const [first] = await requestsOf('records', { day: '2026-06-01' })
  expect(first!.query).toEqual({ ...day, limit: '50' })
  const [next] = await requestsOf('records', { day: '2026-06-01', after: 'req_00000000001' })
  expect(next!.query).toEqual({ ...day, after: 'req_00000000001', limit: '50' })
  const [since] = await requestsOf('records', { since: '2026-06-01T12:30Z', streamed: 'off', user: 'ann' })
  expect(since!.query).toEqual({ from: '2026-06-01T12:30:00.000Z', streamed: 'false', endUser: 'ann', limit: '50' })
})

test('switches, lists, numbers and "none" become the fields of a key', async () => {
  const input = {
    key: 'key_00000000001',
    bodies: 'on',
    strict: 'off',
    qpm: 'none',
    allow: 'a/*, b/*',
    deny: '',
    tier: 'pro',
  }
  const fields = { keepsBodies: true, strict: false, qpm: null, allows: ['a/*', 'b/*'], denies: null, tier: 'pro' }
  expect(await bodyOf('keys set', input)).toEqual(fields)
  expect(await bodyOf('keys set', { key: 'key_00000000001', disable: true })).toEqual({ disabled: true })
  expect(await bodyOf('keys set', { key: 'key_00000000001', expires: '2027-01-31' })).toEqual({
    expires: '2027-01-31T00:00:00.000Z',
  })
  expect(await bodyOf('keys rotate', { key: 'key_00000000001', overlap: '24h' })).toEqual({ overlapSeconds: 86_400 })
})

test('a key is found by its text, which is sent in the body and in no path', async () => {
  const text = 'wk-0oYAcdndvX1aetSk5RxD8SUjNfvr8A4Om7Xs'
  const sent = await requestsOf('keys revoke', { key: text })
  expect(sent.map(({ method, path }) => [method, path])).toEqual([
    ['POST', '/api/web/keys/find'],
    ['DELETE', '/api/web/keys/key_00000000001'],
  ])
  expect(sent[0]!.body).toEqual({ key: text })
})

test('a list command requests pages until there are enough rows', async () => {
  const rows = Array.from({ length: 200 }, (_, index) => ({ id: index }))
  const queries: unknown[] = []
  const answer = await cliCommands['keys list']!.ask!({ limit: '250' }, async ({ query }) => {
    queries.push(query)
    return Response.json({ data: rows.slice(0, Math.min(200, Number(query!.limit))), next: 'more', limit: 200 })
  })
  expect(queries).toEqual([{ limit: '250' }, { limit: '50', after: 'more' }])
  expect(answer.data).toHaveLength(250)
})

const refused: readonly (readonly [command: string, input: CommandFields, message: string])[] = [
  ['prices set', { model: 'gpt-x', price: '{"input":"1","output":"2"}' }, '<provider>/<model>'],
  ['prices set', { price: '{"input":"1","output":"2"}' }, '<provider>/<model>'],
  ['prices set', { model: 'a/b', price: '{' }, 'not valid JSON'],
  ['prices set', { model: 'a/b', price: '/none/such' }, 'neither JSON nor a file'],
  ['records', { day: '2026-02-30' }, '--day must be'],
  ['records', { day: 'today' }, '--day must be a day such as'],
  ['records', { until: 'soon' }, '--until must be'],
  ['records', { streamed: 'yes' }, '--streamed must be on or off'],
  ['keys set', { key: 'key_00000000001' }, 'Nothing to change'],
  ['keys set', { key: 'mine', tier: 'pro' }, 'Unknown key'],
  ['channels set', { channel: 'a#1', enable: true, disable: true }, 'Use either'],
  ['limits set', { resource: 'requests', amount: '5/hour' }, 'A limit must be a whole number with its period'],
  ['tokens create', { name: 'ci' }, '--account with --account-role viewer|developer|manager.'],
  ['tokens create', { name: 'ci', account: 'acc_00000000001' }, 'Give --role support|admin|owner, or --account with'],
  ['tokens create', { name: 'ci', 'account-role': 'viewer' }, 'Give --role support|admin|owner, or --account with'],
  ['tokens create', { name: 'ci', role: 'admin', account: 'acc_00000000001' }, 'Give --role support|admin|owner'],
  ['refund', { call: 'acc_00000000001' }, 'Use the id of the call'],
]

test.each(refused)('the command %s with %j is refused, and nothing is changed', async (command, input, message) => {
  const sent: ControlRequest[] = []
  const fault = await cliCommands[command]!.ask!({ ...input }, async request => {
    sent.push(request)
    return Response.json({ own: [] })
  }).catch((thrown: unknown) => thrown)
  expect(fault).toBeInstanceOf(Problem)
  expect((fault as Error).message).toContain(message)
  expect(sent.filter(({ method }) => method !== 'GET')).toEqual([])
})

test('an error message names the option instead of the field', async () => {
  const sentence = 'The field "keepsBodies" is not valid: it must be a boolean.'
  const answered = cliCommands['keys set']!.ask!({ key: 'key_00000000001', bodies: 'on' }, async () =>
    Response.json({ error: { code: 'field_invalid', message: 'x', sentence } }, { status: 400 }),
  )
  await expect(answered).rejects.toThrow('--bodies is not valid: it must be a boolean.')
})
