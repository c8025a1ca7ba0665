// Statistics over the web: sums, steps and tops, each for whom it may be for.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { textId } from '../../src/base/ids.ts'
import { until } from '../support/gateway.ts'
import type { DeskApp } from './desk-app.ts'
import { member, openDeskApp, owner } from './desk-app.ts'

let app: DeskApp
let mine: { accountId: number; keyId: number }
let others: { accountId: number; keyId: number }
let second: { accountId: number; keyId: number }

const HOUR_MS = 3_600_000
const viewer = member(7)

beforeAll(async () => {
  app = await openDeskApp()
  mine = await app.account({ 7: 1 })
  second = await app.account({ 7: 1 })
  others = await app.account()
  const failed = { status: 502, outcome: 'upstream_failed', error: 'upstream_unusable', firstContentMs: null }
  for (let at = 0; at < 10; at++) await app.call({ ...mine, cost: '1000', agoMs: HOUR_MS, durationMs: 100 * (at + 1) })
  await app.call({ ...mine, ...failed, model: 'x', channel: 'p#2', agoMs: HOUR_MS })
  for (let at = 0; at < 3; at++) await app.call({ ...others, cost: '5000', model: 'x', endUser: 'ann' })
  await app.call({ ...second, cost: '700', model: 'y', endUser: 'bob', lines: '[["input",10,"0.06"]]' })
  await app.ask(owner, 'GET statistics/summary')
  await until(() => (app.store.management.statisticsAggregator.progress.seq ?? 0) >= 15, 'all is summed up')
})
afterAll(() => app.stop())

const account = (of: { accountId: number }): string => textId('acc', of.accountId)
const key = (of: { keyId: number }): string => textId('key', of.keyId)
const rows = async (who: typeof owner, line: string): Promise<Record<string, unknown>[]> =>
  (await app.ask(who, `GET statistics/${line}`)).body.data as Record<string, unknown>[]

describe('a summary', () => {
  test('adds up what is asked for', async () => {
    const asked: readonly (readonly [string, object])[] = [
      ['', { calls: 15, errors: 1, cost: '0.0000257', inputTokens: 150, outputTokens: 75, streamed: 0 }],
      [`account=${account(mine)}`, { calls: 11, errors: 1, cost: '0.00001' }],
      [`key=${key(others)}`, { calls: 3, cost: '0.000015' }],
      [`account=${account(others)}&key=${key(others)}`, { calls: 3 }],
      ['model=p/x', { calls: 4, errors: 1 }],
      [`account=${account(mine)}&model=p/x`, { calls: 1, errors: 1, firstContentMs: null, durationMs: null }],
      [`key=${key(mine)}&model=p/m`, { calls: 10 }],
      ['channel=p%232', { calls: 1 }],
      ['model=p/x&channel=p%231', { calls: 3 }],
      ['model=none/such', { calls: 0, cost: '0.00' }],
    ]
    for (const [query, figures] of asked) {
      expect((await app.ask(owner, `GET statistics/summary?${query}`)).body).toMatchObject(figures)
    }
  })

  test('tells percentiles that are at most a twentieth off', async () => {
    const { body } = await app.ask(owner, `GET statistics/summary?account=${account(mine)}`)
    const { p50, p90, p99 } = body.durationMs as Record<string, number>
    for (const [told, true_] of [
      [p50!, 500],
      [p90!, 900],
      [p99!, 1_000],
    ] as const) {
      expect(Math.abs(told - true_) / true_).toBeLessThanOrEqual(0.05)
    }
  })

  test('tells of the margin those who run the site, and nobody else', async () => {
    const ask = `GET statistics/summary?account=${account(second)}`
    expect((await app.ask(owner, ask)).body).toMatchObject({ providerCost: '0.0000006', margin: '0.0000001' })
    expect((await app.ask(viewer, ask)).body).toMatchObject({ cost: '0.0000007', providerCost: null, margin: null })
  })
})

test('steps are hours, days or minutes, and only those in which something happened', async () => {
  const hours = await rows(owner, 'series')
  expect(hours.map(({ calls }) => calls)).toEqual([11, 4])
  const days = await rows(owner, `series?step=day&from=${new Date(Date.now() - 30 * 24 * HOUR_MS).toISOString()}`)
  expect(days.reduce((sum, { calls }) => sum + (calls as number), 0)).toBe(15)
  const long = `from=${new Date(Date.now() - 72 * HOUR_MS).toISOString()}`
  expect((await app.ask(owner, `GET statistics/series?step=minute&${long}`)).code).toBe('field_invalid')
  const older = `from=2026-02-01T00:00:00Z&before=2026-02-01T05:00:00Z`
  expect((await app.ask(owner, `GET statistics/series?step=minute&${older}`)).code).toBe('field_invalid')
})

test('a top is told apart by what is asked, most first', async () => {
  const named = async (who: typeof owner, query: string) =>
    (await rows(who, `top?${query}`)).map(({ id, name, calls }) => [id ?? name, calls])
  expect(await named(owner, 'of=account')).toEqual([
    [account(others), 3],
    [account(mine), 11],
    [account(second), 1],
  ])
  expect(await named(owner, 'of=key&by=calls&limit=1')).toEqual([[key(mine), 11]])
  expect(await named(owner, 'of=model&by=errors')).toEqual([['p/x', 4]])
  expect(await named(owner, 'of=channel&by=tokens')).toEqual([
    ['p#1', 14],
    ['p#2', 1],
  ])
  expect(await named(owner, `of=model&account=${account(mine)}&by=calls`)).toEqual([
    ['p/m', 10],
    ['p/x', 1],
  ])
  expect(await named(owner, `of=model&key=${key(others)}`)).toEqual([['p/x', 3]])
  expect(await named(owner, 'of=model&channel=p%232&by=calls')).toEqual([['p/x', 1]])
  expect(await named(owner, 'of=channel&model=p/x&by=calls')).toEqual([
    ['p#1', 3],
    ['p#2', 1],
  ])
  expect(await named(owner, 'of=key&model=p/x&by=calls')).toEqual([
    [key(others), 3],
    [key(mine), 1],
  ])
  expect(await named(owner, `of=key&account=${account(mine)}`)).toEqual([[key(mine), 11]])
  expect((await app.ask(owner, `GET statistics/top?of=channel&account=${account(mine)}`)).code).toBe('field_invalid')
})

test('errors and end users are counted', async () => {
  expect(await rows(owner, 'errors')).toEqual([{ outcome: 'upstream_failed', error: 'upstream_unusable', calls: 1 }])
  expect(await rows(owner, `errors?account=${account(others)}`)).toEqual([])
  expect(await rows(owner, `end-users?account=${account(others)}`)).toMatchObject([{ endUser: 'ann', calls: 3 }])
})

test('members see their own accounts and no other, whatever they ask', async () => {
  expect((await app.ask(viewer, 'GET statistics/summary')).body).toMatchObject({ calls: 12 })
  expect((await rows(viewer, 'top?of=account')).map(({ id }) => id)).toEqual([account(mine), account(second)])
  expect((await rows(viewer, 'top?of=key')).map(({ id }) => id)).toEqual([key(mine), key(second)])
  const models = (await rows(viewer, 'top?of=model&by=calls')).map(({ name }) => name)
  expect(models.toSorted()).toEqual(['p/m', 'p/x', 'p/y'])
  expect((await rows(viewer, 'end-users')).map(({ endUser }) => endUser)).toEqual(['bob'])
  for (const query of ['summary', 'series', 'errors', 'top?of=model', 'top?of=key', 'top?of=account', 'end-users']) {
    const by = (filter: string): string => `GET statistics/${query}${query.includes('?') ? '&' : '?'}${filter}`
    expect((await app.ask(viewer, by(`account=${account(others)}`))).code).toBe('resource_unknown')
    if (query !== 'end-users') expect((await app.ask(viewer, by(`key=${key(others)}`))).code).toBe('resource_unknown')
    const nobody = await app.ask(member(55), `GET statistics/${query}`)
    expect(JSON.stringify(nobody.body)).not.toContain('p/')
    expect(nobody.body.calls ?? nobody.body.data).toEqual(query === 'summary' ? 0 : [])
  }
  expect((await app.ask(viewer, 'GET statistics/top?of=channel')).code).toBe('role_too_low')
  expect((await app.ask(viewer, 'GET statistics/summary?channel=p%231')).code).toBe('role_too_low')
})
