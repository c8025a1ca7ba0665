// Patterns and tags that nothing has today are taken, because what they name may come; but whoever writes them is told,
// over the web and on the command line alike. A misspelt name would else limit, deny or allow nothing, and nobody knew.

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

/** The warnings of a request that must go well. */
async function warned(...[method, path, body]: Parameters<Ask>): Promise<unknown> {
  const told = await ask(method, path, body)
  expect([told.text, told.status < 300]).toEqual([told.text, true])
  return told.body.warnings
}

describe('over the web', () => {
  const rights: readonly (readonly [name: string, write: (more: object) => Promise<unknown>])[] = [
    ['a new account', more => warned('POST', 'web/accounts', { name: 'Lake', ...more })],
    ['an account', more => warned('PATCH', `web/accounts/${account}`, more)],
    ['a new key', more => warned('POST', 'web/keys', { account, name: `key ${++count}`, ...more })],
    ['a key', more => warned('PATCH', `web/keys/${key}`, more)],
  ]

  test.each(rights)('%s tells of names that no model has', async (_name, write) => {
    expect(await write({ allows: odd })).toEqual([names])
    expect(await write({ denies: odd })).toEqual([names])
    expect(await write({ allows: [odd[0]], denies: [odd[1]] })).toEqual([names])
    expect(await write({ allows: known, denies: null })).toEqual([])
    expect(await write({ keepsBodies: false })).toEqual([])
  })

  test.each(rights.slice(2))('%s tells of tags that no channel has', async (_name, write) => {
    expect(await write({ requires: ['mars'] })).toEqual([tags])
    expect(await write({ allows: odd, requires: ['mars'] })).toEqual([names, tags])
    expect(await write({ allows: null, requires: null })).toEqual([])
  })

  test('a limit tells of it when it is set, and when it is changed', async () => {
    const limit = { resource: 'requests', span: 'day', amount: 5 }
    const made = await ask('POST', 'web/limits', { ...limit, model: 'opnai/*' })
    const says = ['No model matches at the moment: opnai/*.']
    expect([made.status, made.body.warnings]).toEqual([201, says])
    expect(await warned('PATCH', `web/limits/${String(made.body.id)}`, { amount: 6 })).toEqual(says)
    for (const model of [...known, 'ark/files', null]) {
      expect(await warned('POST', 'web/limits', { ...limit, model })).toEqual([])
    }
    const { body } = await ask('GET', 'web/limits')
    expect((body.data as object[])[0]).not.toHaveProperty('warnings')
  })

  test('a name for models tells of members that fit nothing', async () => {
    const put = (name: string, model: string) =>
      warned('PUT', `web/routes/${encodeURIComponent(name)}`, { members: [{ model, priority: 0, weight: 1 }] })
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

  test.each(rows)('%s tells of names that no model has', async (command, input) => {
    expect(await set(command, { ...input(), allow: odd.join() })).toMatchObject({ warnings: [names] })
    expect(await set(command, { ...input(), deny: odd.join() })).toMatchObject({ warnings: [names] })
    expect(await set(command, { ...input(), allow: known.join(), deny: '' })).toMatchObject({ warnings: [] })
  })

  test('keys set, limits set and routes set do, too', async () => {
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
