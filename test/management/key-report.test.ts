// What a key may do now, and which models a key or an account may use, for members of the account.

import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { Targets } from '../../src/pipeline/route/targets.ts'
import { chat, hello } from '../support/gateway.ts'
import { awaitMidnightIfNear } from '../support/midnight.ts'
import type { TestSite } from './matrix/site.ts'
import { startTestSite } from './matrix/site.ts'

let site: TestSite
beforeAll(async () => {
  await awaitMidnightIfNear() // before the site begins, because its own clock is slow
  site = await startTestSite()
})
afterAll(() => site.stop())

const model = 'openai/gpt-4o-mini'

interface Report {
  readonly state: string
  readonly stops: readonly { code: string; until: string | null }[]
  readonly limits: readonly { resource: string; max: number; used: number; left: number; resets: string }[]
  readonly budgets: readonly { scope: string; span: string; left: string; resets: string | null }[]
  readonly funds: { available: string | null; frozen: boolean }
}

async function createKey(fields: object): Promise<{ id: string; key: string }> {
  const { body } = await site.ask.owner('POST', 'web/keys', { account: site.account, ...fields })
  return { id: String(body.id), key: String(body.key) }
}

async function report(id: string): Promise<Report> {
  const { status, body } = await site.ask.viewer('GET', `web/keys/${id}/report`)
  expect(status).toBe(200)
  return body as unknown as Report
}

test('a report has the limits, budgets and money with what is left, and says what stops the key', async () => {
  const { id, key } = await createKey({ name: 'reported', qpm: 2 })
  await site.ask.owner('PUT', `web/keys/${id}/budgets/day`, { cap: '5' })
  const before = await report(id)
  expect(before).toMatchObject({ state: 'active', stops: [] })
  expect(before.limits[0]).toMatchObject({ resource: 'requests', max: 2, used: 0, left: 2 })
  expect(before.budgets[0]).toMatchObject({ scope: 'key', span: 'day', left: '5.00', resets: expect.any(String) })
  for (let at = 0; at < 2; at++) await (await chat(site.harness, key, { model, messages: hello })).text()
  await site.harness.idle()
  const after = await report(id)
  expect(after.limits[0]).toMatchObject({ max: 2, used: 2, left: 0 })
  expect(after.stops).toMatchObject([{ code: 'qpm_exceeded', until: expect.any(String) }])
  expect(Number(after.budgets[0]!.left)).toBeLessThan(5)
  await site.ask.owner('PUT', `web/keys/${id}/budgets/day`, { cap: '0' })
  await site.ask.owner('PATCH', `web/keys/${id}`, { disabled: true })
  const codes = (await report(id)).stops.map(({ code }) => code)
  expect(codes).toEqual(expect.arrayContaining(['key_invalid', 'budget_too_low']))
})

test('a report agrees with what the key itself is told', async () => {
  const { id, key } = await createKey({ name: 'told', denies: ['demo/*'] })
  const own = await fetch(`${site.harness.url}/v1/key`, { headers: { authorization: `Bearer ${key}` } })
  const told = (await own.json()) as { account: { available: string }; models: { denied: string[] } }
  const { funds, models } = (await report(id)) as unknown as { funds: object; models: object }
  expect(funds).toMatchObject({ available: told.account.available })
  expect(models).toMatchObject({ denied: told.models.denied })
})

interface Listed {
  readonly data: readonly { name: string; kind: string; allowed: boolean; reason: string | null }[]
  readonly next: string | null
}
const list = async (path: string): Promise<Listed> =>
  (await site.ask.viewer('GET', `web/${path}`)).body as unknown as Listed

test('lists of models say what the key and the account may use, and why not the rest', async () => {
  await site.ask.owner('PUT', 'web/routes/fast', { members: [{ model }] })
  const { id } = await createKey({ name: 'few models', allows: [model, 'fast'] })
  const found = await list(`keys/${id}/models?allowed=true`)
  expect(found.data.map(({ name, kind }) => [name, kind])).toEqual([
    ['fast', 'route'],
    [model, 'model'],
  ])
  const other = (await list(`keys/${id}/models?allowed=false&limit=1`)).data
  expect(other).toMatchObject([{ allowed: false, reason: 'model_forbidden' }])
  const ofAccount = await list(`accounts/${site.account}/models?text=GPT-4o-mini`)
  expect(ofAccount.data).toContainEqual({ name: model, kind: 'model', allowed: true, reason: null })
  await site.ask.owner('PATCH', `web/accounts/${site.account}`, { denies: [model] })
  const denied = await list(`accounts/${site.account}/models?text=gpt-4o-mini`)
  expect(denied.data).toContainEqual({ name: model, kind: 'model', allowed: false, reason: 'model_forbidden' })
  expect((await list(`keys/${id}/models?allowed=true`)).data).toEqual([])
  await site.ask.owner('PATCH', `web/accounts/${site.account}`, { denies: null })
  const names: string[] = []
  let after = ''
  do {
    const page: Listed = await list(`keys/${id}/models?limit=200${after}`)
    names.push(...page.data.map(({ name }) => name))
    after = page.next === null ? '' : `&after=${page.next}`
  } while (after !== '')
  expect([new Set(names).size, names]).toEqual([names.length, names.toSorted()])
})

describe('a list of models', () => {
  const ask = (path: string): Promise<unknown> => site.ask.viewer('GET', path)

  test('looks at the models of its page only', async () => {
    using looks = spyOn(Targets.prototype, 'problemOf')
    await ask(`web/accounts/${site.account}/models?limit=3`)
    expect(looks).toHaveBeenCalledTimes(3)
  })

  test('looks at all models in steps, between which calls are served, also for many who ask at the same time', async () => {
    const look = Targets.prototype.problemOf
    let [looks, ofTurn, mostOfTurn] = [0, 0, 0]
    using _spy = spyOn(Targets.prototype, 'problemOf').mockImplementation(function (this: Targets, ...model) {
      looks++
      mostOfTurn = Math.max(mostOfTurn, ++ofTurn)
      return look.apply(this, model)
    })
    let isOver = false
    const countTurns = (): void => {
      ofTurn = 0
      if (!isOver) setImmediate(countTurns)
    }
    countTurns()
    const path = `web/accounts/${site.account}/models?allowed=false&limit=1`
    await Promise.all(Array.from({ length: 4 }, () => ask(path)))
    isOver = true
    expect(looks).toBeGreaterThan(4 * 60)
    expect(mostOfTurn).toBeLessThan(60)
  })
})
