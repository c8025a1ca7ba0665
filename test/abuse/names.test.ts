// Aliases and patterns for a model bypass neither a limit nor the rights of a key.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Tenants } from './tenants.ts'
import { startTenants } from './tenants.ts'

let tenants: Tenants
let key: string
beforeAll(async () => {
  // No time passes: a limit of three a minute would admit a fourth call after twenty seconds.
  tenants = await startTenants('a', { world: { clock: { nowMs: () => 1_000, dateMs: Date.now } } })
  await tenants.operate('routes set', { name: 'smart', members: ['river/small'] })
  await tenants.operate('routes set', { name: 'any-*', members: ['river/small', 'then', 'river/large'] })
})
afterAll(() => tenants.stop())
beforeEach(async () => void (key = await tenants.key({ qpm: 100_000 })))

const countAdmitted = async (models: readonly string[]): Promise<number> => {
  const statuses: number[] = []
  for (const [at, model] of models.entries()) statuses.push((await tenants.ask(key, `call ${at}`, { model })).status)
  return statuses.filter(status => status === 200).length
}

async function withLimit(limit: object, models: readonly string[]): Promise<number> {
  const { id } = await tenants.operate('limits set', { resource: 'requests', amount: '3/minute', ...limit })
  try {
    return await countAdmitted(models)
  } finally {
    await tenants.operate('limits remove', { id })
  }
}

const patterned = Array.from({ length: 6 }, (_, at) => `any-${at}`)
const sixTimes = (name: string): string[] => Array.from({ length: 6 }, () => name)

test.each<[string, object, readonly string[]]>([
  ['of a model applies to its alias', { model: 'river/small', per: 'account' }, sixTimes('smart')],
  ['of a model applies to all names of a pattern', { model: 'river/small', per: 'account' }, patterned],
  [
    'for each model counts all names of the model together',
    { per: 'account,model' },
    [...patterned, 'smart', 'river/small'],
  ],
  [
    'for each model of a key counts all names of the model together',
    { per: 'key,model' },
    [...patterned, 'smart', 'river/small'],
  ],
])('a limit %s', async (_, limit, models) => {
  expect(await withLimit(limit, models)).toBe(3)
})

test('a limit of an alias does not apply to the model itself, nor a limit of a fallback model to calls that do not use it', async () => {
  expect(await withLimit({ model: 'smart', per: 'account' }, sixTimes('river/small'))).toBe(6)
  expect(await withLimit({ model: 'river/large', per: 'account' }, patterned)).toBe(6)
})

const countTokens = async (model: string): Promise<number> => {
  const { status } = await fetch(`${tenants.url}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'for nobody else' }] }),
  })
  return status
}

test.each([{ require: 'eu' }, { deny: 'river/*' }, { allow: 'lake/*' }])(
  'a key with %o can neither call a forbidden model nor count its tokens, and no request goes upstream',
  async rights => {
    await tenants.operate('keys set', { key, ...rights })
    const before = tenants.upstream.requests.length
    for (const model of ['river/small', 'smart', 'any-1']) {
      const { status } = await tenants.ask(key, 'words', { model })
      expect([model, status, await countTokens(model)]).toEqual([model, 403, 403])
    }
    expect(tenants.upstream.requests).toHaveLength(before)
  },
)

test('tokens can be counted under an alias and a pattern as under the model name', async () => {
  for (const model of ['river/small', 'smart', 'any-1']) expect([model, await countTokens(model)]).toEqual([model, 200])
  expect(await countTokens('nothing')).toBe(404)
})
