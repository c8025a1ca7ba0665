// Errors name what is wrong with a request: which field, what is allowed, and which name was probably meant.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { weirSays } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

let harness: Harness
let ask: Ask
let account: string

beforeAll(async () => {
  harness = await startHarness()
  ask = await askAsOwner(harness)
  const key = await harness.key({ credit: '1' })
  account = String((await harness.weir('balance', { account: key })).id)
})
afterAll(() => harness.stop())

const limit = { resource: 'requests', span: 'minute', amount: 5, key: null, account: null, model: null, per: [] }

const cases: readonly (readonly [string, string, unknown, number, readonly string[]])[] = [
  ['POST', 'web/tiers', { name: 'x', qmp: 5, qpm: 5 }, 400, ['field "qmp"', 'Did you mean "qpm"?']],
  ['POST', 'web/tiers', { name: 'x', qpm: 5, colour: 1 }, 400, ['field "colour"', 'Allowed: name, qpm']],
  ['POST', 'web/tiers', { qpm: 5 }, 400, ['required field "name" is missing']],
  ['GET', 'web/tiers?sorted=name', undefined, 400, ['query parameter "sorted"']],
  ['GET', 'web/tiers?sort=colour', undefined, 400, ['query parameter "sort" is not valid', 'name']],
  ['GET', 'web/statistics/top', undefined, 400, ['required query parameter "of" is missing', 'one of: ']],
  ['PUT', 'web/routes/x', { members: [{ model: 'a/b', wieght: 1 }] }, 400, ['Did you mean "members.0.weight"?']],
  ['POST', 'web/limits', { ...limit, tier: 'gold' }, 400, ['Unknown tier "gold". Tiers: free, pro, standard.']],
  ['GET', 'public/pricing?tier=gold', undefined, 404, ['Unknown tier. Tiers: free, pro, standard.']],
  ['PUT', 'web/accounts/{account}/budgets/week', { cap: '5' }, 404, ['"span" must be one of: total, day, month']],
]
test.each(cases)('%s %s %j', async (method, path, body, status, texts) => {
  const answer = await ask(method, path.replace('{account}', account), body)
  for (const text of texts) expect(answer.error.message).toContain(text)
  expect(answer.status).toBe(status)
})

test('a price that no call could meet is refused, over the web and on the command line', async () => {
  const price = { input: '1', output: '2' }
  const names = [
    ['*/gpt-4o-mini', 'the provider must be named; only the model may contain *'],
    ['relay/x', 'there is no provider "relay"; providers: anthropic, ark, '],
    ['relay/*', 'there is no provider "relay"; providers: anthropic, ark, '],
    ['opnai/gpt-4o-mini', 'did you mean "openai"?; providers: anthropic, ark, '],
  ] as const
  for (const [model, text] of names) {
    const { status, error } = await ask('PUT', `web/prices/${model}`, { price })
    expect([status, error.code, error.message]).toEqual([400, 'field_invalid', expect.stringContaining(text)])
    const result = harness.weir('prices set', { model, price: JSON.stringify(price) })
    expect(await result.catch((fault: Error) => fault.message)).toContain(text)
  }
  expect((await ask('PUT', 'web/prices/openai/gpt-4o-mini', { price })).status).toBe(200)
})

test('a price that may have another effect than was meant is set with a warning', async () => {
  const price = JSON.stringify({ input: '1', output: '2' })
  const set = async (model: string): Promise<unknown> => (await harness.weir('prices set', { model, price })).warnings
  expect(await set('openai/gpt-4o-mini')).toEqual([])
  expect(await set('openai/gpt-4o-mimi')).toEqual([
    'OpenAI does not list "gpt-4o-mimi". Calls to it are now sent there, at this price. ' +
      'Did you mean "openai/gpt-4o-mini"?',
  ])
  expect(await set('demo/*')).toEqual(['Models that match and have a price of their own keep it: 6.'])
})

test('the error for an unknown tier lists the existing ones', async () => {
  const message = await harness.weir('keys create', { tier: 'gold' }).catch((fault: Error) => fault.message)
  expect(message).toBe('Unknown tier "gold". Tiers: free, pro, standard.')
})

test('lists for programs have null where there is nothing', async () => {
  const key = await harness.key({ credit: '1' })
  const answer = await chat(harness, key, { model: 'demo/echo', messages: hello })
  await answer.text()
  await harness.idle()
  const printed = async (command: string): Promise<string> => await weirSays(harness.folder, `${command} --json`)
  const records = await printed(`records --key ${key}`)
  const { data } = JSON.parse(records) as { data: object[] }
  expect(data).toEqual([expect.objectContaining({ status: 200, endUser: null, error: null, loss: [] })])
  const keyDetails = await printed(`keys show ${key}`)
  expect(JSON.parse(keyDetails)).toMatchObject({ expires: null, allows: null })
  const keys = await printed('keys list')
  for (const text of [records, keyDetails, keys]) expect(text).not.toMatch(/"-"/)
})
