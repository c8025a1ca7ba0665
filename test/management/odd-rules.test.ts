// Patterns and tags that match nothing today are accepted, because what they name may be added later; but the answer
// warns, over the web and on the command line alike. Without a warning a misspelt name would limit, deny or allow
// nothing, unnoticed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { setUpOwner } from '../support/people.ts'

let harness: Harness
let ask: Ask
let account: string
let key: string

beforeAll(async () => {
  harness = await startHarness()
  ask = (await setUpOwner(harness)).ask
  account = String((await ask('POST', 'web/accounts', { name: 'River' })).body.id)
  key = String((await ask('POST', 'web/keys', { account, name: 'first' })).body.id)
})
afterAll(() => harness.stop())

const [odd, known] = [
  ['opnai/*', 'openai/gpt-0'],
  ['openai/*', 'demo/echo', '*'],
]
const names = 'No model matches at the moment: opnai/*, openai/gpt-0.'
const tags = 'No channel has this tag at the moment: mars.'
let count = 0

/** The warnings of a request that must succeed. */
async function warningsOf(...[method, path, body]: Parameters<Ask>): Promise<unknown> {
  const answer = await ask(method, path, body)
  expect([answer.text, answer.status < 300]).toEqual([answer.text, true])
  return answer.body.warnings
}

describe('over the web', () => {
  const rights: readonly (readonly [name: string, write: (more: object) => Promise<unknown>])[] = [
    ['a new account', more => warningsOf('POST', 'web/accounts', { name: 'Lake', ...more })],
    ['an account', more => warningsOf('PATCH', `web/accounts/${account}`, more)],
    ['a new key', more => warningsOf('POST', 'web/keys', { account, name: `key ${++count}`, ...more })],
    ['a key', more => warningsOf('PATCH', `web/keys/${key}`, more)],
  ]

  test.each(rights)('%s warns about names that match no model', async (_name, write) => {
    expect(await write({ allows: odd })).toEqual([names])
    expect(await write({ denies: odd })).toEqual([names])
    expect(await write({ allows: [odd[0]], denies: [odd[1]] })).toEqual([names])
    expect(await write({ allows: known, denies: null })).toEqual([])
    expect(await write({ keepsBodies: false })).toEqual([])
  })

  test.each(rights.slice(2))('%s warns about tags that no channel has', async (_name, write) => {
    expect(await write({ requires: ['mars'] })).toEqual([tags])
    expect(await write({ allows: odd, requires: ['mars'] })).toEqual([names, tags])
    expect(await write({ allows: null, requires: null })).toEqual([])
  })

  test('a limit warns when it is set and when it is changed', async () => {
    const limit = { resource: 'requests', span: 'day', amount: 5 }
    const created = await ask('POST', 'web/limits', { ...limit, model: 'opnai/*' })
    const warning = ['No model matches at the moment: opnai/*.']
    expect([created.status, created.body.warnings]).toEqual([201, warning])
    expect(await warningsOf('PATCH', `web/limits/${String(created.body.id)}`, { amount: 6 })).toEqual(warning)
    for (const model of [...known, 'ark/files', null]) {
      expect(await warningsOf('POST', 'web/limits', { ...limit, model })).toEqual([])
    }
    const { body } = await ask('GET', 'web/limits')
    expect((body.data as object[])[0]).not.toHaveProperty('warnings')
  })

  test('a route warns about members that match nothing', async () => {
    const put = (name: string, model: string) =>
      warningsOf('PUT', `web/routes/${encodeURIComponent(name)}`, { members: [{ model, priority: 0, weight: 1 }] })
    expect(await put('g-*', 'openai/gtp-*')).toEqual(['No model matches at the moment: openai/gtp-*.'])
    expect(await put('g-*', 'openai/gpt-*')).toEqual([])
  })
})

describe('on the command line', () => {
  const set = (command: string, input: object) => harness.weir(command, input as Record<string, unknown>)
  const rows: readonly (readonly [command: string, input: () => object])[] = [
    ['accounts create', () => ({ name: 'Sea' })],
    ['accounts set', () => ({ account })],
    ['keys create', () => ({ account, name: `key ${++count}` })],
    ['keys set', () => ({ key })],
  ]

  test.each(rows)('%s warns about names that match no model', async (command, input) => {
    expect(await set(command, { ...input(), allow: odd.join() })).toMatchObject({ warnings: [names] })
    expect(await set(command, { ...input(), deny: odd.join() })).toMatchObject({ warnings: [names] })
    expect(await set(command, { ...input(), allow: known.join(), deny: '' })).toMatchObject({ warnings: [] })
  })

  test('keys set, limits set and routes set warn, too', async () => {
    expect(await set('keys set', { key, require: 'mars' })).toMatchObject({ warnings: [tags] })
    const limit = { resource: 'requests', amount: '5/day' }
    const warnings = async (model: string) => (await set('limits set', { ...limit, model })).warnings
    expect(await warnings('opnai/*')).toHaveLength(1)
    expect(await warnings('openai/files')).toHaveLength(1)
    expect(await warnings('ark/files')).toEqual([])
    const route = async (model: string) => (await set('routes set', { name: 'h-*', members: [model] })).warnings
    expect(await route('openai/gtp-*')).toHaveLength(1)
    expect(await route('openai/gpt-*')).toEqual([])
  })
})
