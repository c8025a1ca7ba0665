// Statistics over the web: sums, time series and top lists, each with the rows that the actor may see.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { textId } from '../../src/base/ids.ts'
import { until } from '../support/gateway.ts'
import type { DeskApp } from './desk-app.ts'
import { member, openDeskApp, owner } from './desk-app.ts'

let app: DeskApp
let own: { accountId: number; keyId: number }
let foreign: { accountId: number; keyId: number }
let second: { accountId: number; keyId: number }

const HOUR_MS = 3_600_000
const viewer = member(7)

beforeAll(async () => {
  app = await openDeskApp()
  own = await app.account({ 7: 1 })
  second = await app.account({ 7: 1 })
  foreign = await app.account()
  const failed = { status: 502, outcome: 'upstream_failed', error: 'upstream_unusable', firstContentMs: null }
  for (let at = 0; at < 10; at++) await app.call({ ...own, cost: '1000', agoMs: HOUR_MS, durationMs: 100 * (at + 1) })
  await app.call({ ...own, ...failed, model: 'x', channel: 'p#2', agoMs: HOUR_MS })
  for (let at = 0; at < 3; at++) await app.call({ ...foreign, cost: '5000', model: 'x', endUser: 'ann' })
  await app.call({ ...second, cost: '700', model: 'y', endUser: 'bob', lines: '[["input",10,"0.06"]]' })
  await app.ask(owner, 'GET statistics/summary')
  await until(() => (app.store.management.statisticsAggregator.progress.seq ?? 0) >= 15, 'all is summed up')
})
afterAll(() => app.stop())

const account = (holder: { accountId: number }): string => textId('acc', holder.accountId)
const key = (holder: { keyId: number }): string => textId('key', holder.keyId)
const rows = async (who: typeof owner, line: string): Promise<Record<string, unknown>[]> =>
  (await app.ask(who, `GET statistics/${line}`)).body.data as Record<string, unknown>[]

describe('a summary', () => {
  test('adds up what the query asks for', async () => {
    const summaries: readonly (readonly [string, object])[] = [
      ['', { calls: 15, errors: 1, cost: '0.0000257', inputTokens: 150, outputTokens: 75, streamed: 0 }],
      [`account=${account(own)}`, { calls: 11, errors: 1, cost: '0.00001' }],
      [`key=${key(foreign)}`, { calls: 3, cost: '0.000015' }],
      [`account=${account(foreign)}&key=${key(foreign)}`, { calls: 3 }],
      ['model=p/x', { calls: 4, errors: 1 }],
      [`account=${account(own)}&model=p/x`, { calls: 1, errors: 1, firstContentMs: null, durationMs: null }],
      [`key=${key(own)}&model=p/m`, { calls: 10 }],
      ['channel=p%232', { calls: 1 }],
      ['model=p/x&channel=p%231', { calls: 3 }],
      ['model=none/such', { calls: 0, cost: '0.00' }],
    ]
    for (const [query, figures] of summaries) {
      expect((await app.ask(owner, `GET statistics/summary?${query}`)).body).toMatchObject(figures)
    }
  })

  test('has percentiles that are at most a twentieth off', async () => {
    const { body } = await app.ask(owner, `GET statistics/summary?account=${account(own)}`)
    const { p50, p90, p99 } = body.durationMs as Record<string, number>
    for (const [reported, true_] of [
      [p50!, 500],
      [p90!, 900],
      [p99!, 1_000],
    ] as const) {
      expect(Math.abs(reported - true_) / true_).toBeLessThanOrEqual(0.05)
    }
  })

  test('shows the margin to staff of the site, and to nobody else', async () => {
    const request = `GET statistics/summary?account=${account(second)}`
    expect((await app.ask(owner, request)).body).toMatchObject({ providerCost: '0.0000006', margin: '0.0000001' })
    expect((await app.ask(viewer, request)).body).toMatchObject({ cost: '0.0000007', providerCost: null, margin: null })
  })
})

test('a time series has steps of hours, days or minutes, and only those with calls', async () => {
  const hours = await rows(owner, 'series')
  expect(hours.map(({ calls }) => calls)).toEqual([11, 4])
  const days = await rows(owner, `series?step=day&from=${new Date(Date.now() - 30 * 24 * HOUR_MS).toISOString()}`)
  expect(days.reduce((sum, { calls }) => sum + (calls as number), 0)).toBe(15)
  const long = `from=${new Date(Date.now() - 72 * HOUR_MS).toISOString()}`
  expect((await app.ask(owner, `GET statistics/series?step=minute&${long}`)).code).toBe('field_invalid')
  const older = `from=2026-02-01T00:00:00Z&before=2026-02-01T05:00:00Z`
  expect((await app.ask(owner, `GET statistics/series?step=minute&${older}`)).code).toBe('field_invalid')
})

test('a top list is grouped by the requested field, highest first', async () => {
  const named = async (who: typeof owner, query: string) =>
    (await rows(who, `top?${query}`)).map(({ id, name, calls }) => [id ?? name, calls])
  expect(await named(owner, 'of=account')).toEqual([
    [account(foreign), 3],
    [account(own), 11],
    [account(second), 1],
  ])
  expect(await named(owner, 'of=key&by=calls&limit=1')).toEqual([[key(own), 11]])
  expect(await named(owner, 'of=model&by=errors')).toEqual([['p/x', 4]])
  expect(await named(owner, 'of=channel&by=tokens')).toEqual([
    ['p#1', 14],
    ['p#2', 1],
  ])
  expect(await named(owner, `of=model&account=${account(own)}&by=calls`)).toEqual([
    ['p/m', 10],
    ['p/x', 1],
  ])
  expect(await named(owner, `of=model&key=${key(foreign)}`)).toEqual([['p/x', 3]])
  expect(await named(owner, 'of=model&channel=p%232&by=calls')).toEqual([['p/x', 1]])
  expect(await named(owner, 'of=channel&model=p/x&by=calls')).toEqual([
    ['p#1', 3],
    ['p#2', 1],
  ])
  expect(await named(owner, 'of=key&model=p/x&by=calls')).toEqual([
    [key(foreign), 3],
    [key(own), 1],
  ])
  expect(await named(owner, `of=key&account=${account(own)}`)).toEqual([[key(own), 11]])
  expect((await app.ask(owner, `GET statistics/top?of=channel&account=${account(own)}`)).code).toBe('field_invalid')
})

test('errors and end users are counted', async () => {
  expect(await rows(owner, 'errors')).toEqual([{ outcome: 'upstream_failed', error: 'upstream_unusable', calls: 1 }])
  expect(await rows(owner, `errors?account=${account(foreign)}`)).toEqual([])
  expect(await rows(owner, `end-users?account=${account(foreign)}`)).toMatchObject([{ endUser: 'ann', calls: 3 }])
})

test('members see their own accounts and no other, whatever they request', async () => {
  expect((await app.ask(viewer, 'GET statistics/summary')).body).toMatchObject({ calls: 12 })
  expect((await rows(viewer, 'top?of=account')).map(({ id }) => id)).toEqual([account(own), account(second)])
  expect((await rows(viewer, 'top?of=key')).map(({ id }) => id)).toEqual([key(own), key(second)])
  const models = (await rows(viewer, 'top?of=model&by=calls')).map(({ name }) => name)
  expect(models.toSorted()).toEqual(['p/m', 'p/x', 'p/y'])
  expect((await rows(viewer, 'end-users')).map(({ endUser }) => endUser)).toEqual(['bob'])
  for (const query of ['summary', 'series', 'errors', 'top?of=model', 'top?of=key', 'top?of=account', 'end-users']) {
    const by = (filter: string): string => `GET statistics/${query}${query.includes('?') ? '&' : '?'}${filter}`
    expect((await app.ask(viewer, by(`account=${account(foreign)}`))).code).toBe('resource_unknown')
    if (query !== 'end-users') expect((await app.ask(viewer, by(`key=${key(foreign)}`))).code).toBe('resource_unknown')
    const outsider = await app.ask(member(55), `GET statistics/${query}`)
    expect(JSON.stringify(outsider.body)).not.toContain('p/')
    expect(outsider.body.calls ?? outsider.body.data).toEqual(query === 'summary' ? 0 : [])
  }
  expect((await app.ask(viewer, 'GET statistics/top?of=channel')).code).toBe('role_too_low')
  expect((await app.ask(viewer, 'GET statistics/summary?channel=p%231')).code).toBe('role_too_low')
})
