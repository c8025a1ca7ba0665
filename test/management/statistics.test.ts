// Statistics over the web: sums, time series and top lists, each with the rows that the actor may see.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { textId } from '../../src/base/ids.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import type { ManagementApp } from './management-app.ts'
import { member, openManagementApp, owner } from './management-app.ts'

let app: ManagementApp
let own: { accountId: number; keyId: number }
let foreign: { accountId: number; keyId: number }
let second: { accountId: number; keyId: number }

const HOUR_MS = 3_600_000
const viewer = member(7)

beforeAll(async () => {
  app = await openManagementApp()
  own = await app.account({ 7: 1 })
  second = await app.account({ 7: 1 })
  foreign = await app.account()
  const failed = { status: 502, outcome: 'upstream_failed', error: 'upstream_unusable', firstContentMs: null }
  // All calls are of two moments in two hours, also if an hour ends while they are written.
  const now = { atMs: Date.now() }
  const hourAgo = { atMs: now.atMs - HOUR_MS }
  for (let at = 0; at < 10; at++) await app.call({ ...own, ...hourAgo, cost: '1000', durationMs: 100 * (at + 1) })
  await app.call({ ...own, ...hourAgo, ...failed, model: 'x', channel: 'p#2' })
  for (let at = 0; at < 3; at++) await app.call({ ...foreign, ...now, cost: '5000', model: 'x', endUser: 'ann' })
  await app.call({ ...second, ...now, cost: '700', model: 'y', endUser: 'bob', lines: '[["input",10,"0.06"]]' })
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

describe('a split series', () => {
  interface Group {
    readonly id: string | null
    readonly name: string | null
    readonly others: boolean
    readonly data: { at: string; calls: number; cost: string | null }[]
  }
  const groups = async (who: typeof owner, query: string) => {
    const found = (await app.ask(who, `GET statistics/series?${query}`)).body.groups as Group[]
    const callsIn = ({ data }: Group): number => data.reduce((sum, { calls }) => sum + calls, 0)
    return found.map(group => [group.others ? 'others' : (group.id ?? group.name), callsIn(group)])
  }

  test('has the largest, and the sum of all others', async () => {
    const splits: readonly (readonly [string, (string | number | null)[][]])[] = [
      [
        'split=model&by=calls&top=1',
        [
          ['p/m', 10],
          ['others', 5],
        ],
      ],
      [
        'split=model',
        [
          ['p/x', 4],
          ['p/m', 10],
          ['p/y', 1],
        ],
      ],
      [
        'split=key&by=calls&top=2',
        [
          [key(own), 11],
          [key(foreign), 3],
          ['others', 1],
        ],
      ],
      [
        'split=account&top=1',
        [
          [account(foreign), 3],
          ['others', 12],
        ],
      ],
      [
        'split=channel&by=calls',
        [
          ['p#1', 14],
          ['p#2', 1],
        ],
      ],
      [
        'split=outcome',
        [
          ['upstream_failed', 1],
          ['others', 14],
        ],
      ],
      [
        `split=model&by=calls&top=1&account=${account(own)}`,
        [
          ['p/m', 10],
          ['others', 1],
        ],
      ],
      [
        `split=key&model=p/x&by=calls&top=1`,
        [
          [key(foreign), 3],
          ['others', 1],
        ],
      ],
      [
        `split=model&key=${key(own)}&by=errors`,
        [
          ['p/x', 1],
          ['others', 10],
        ],
      ],
    ]
    for (const [query, found] of splits) expect([query, await groups(owner, query)]).toEqual([query, found])
  })

  test('adds up to the series at each step', async () => {
    const { data, groups: found } = (await app.ask(owner, 'GET statistics/series?split=model&by=calls&top=1')).body as {
      data: { at: string; calls: number; cost: string }[]
      groups: Group[]
    }
    for (const { at, calls, cost } of data) {
      const points = found.flatMap(group => group.data).filter(point => point.at === at)
      expect(points.reduce((sum, point) => sum + point.calls, 0)).toBe(calls)
      expect(points.reduce((sum, point) => sum + Number(point.cost), 0)).toBeCloseTo(Number(cost), 12)
    }
    expect(data).toHaveLength(2)
  })

  test('of a member has no other accounts, and no channels', async () => {
    expect(await groups(viewer, 'split=account')).toEqual([
      [account(own), 11],
      [account(second), 1],
    ])
    expect((await app.ask(viewer, 'GET statistics/series?split=channel')).code).toBe('role_too_low')
    expect((await app.ask(viewer, `GET statistics/series?split=model&account=${account(foreign)}`)).code).toBe(
      'resource_unknown',
    )
    const two = `split=outcome&key=${key(own)}&model=p/x`
    expect((await app.ask(owner, `GET statistics/series?${two}`)).code).toBe('field_invalid')
  })
})

test('days of a time zone are made from hours', async () => {
  const from = new Date(Date.now() - 5 * HOUR_MS).toISOString()
  for (const zone of ['Asia/Shanghai', 'America/New_York', 'UTC']) {
    const { body } = await app.ask(owner, `GET statistics/series?step=day&zone=${zone}&from=${from}&split=model`)
    const days = body.data as { at: string; calls: number }[]
    expect(days.reduce((sum, { calls }) => sum + calls, 0)).toBe(15)
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'short' })
    for (const { at } of days) expect(clock.format(Date.parse(at))).toBe('00:00')
    expect(clock.format(Date.parse(body.before as string))).toBe('00:00')
  }
  const overview = await app.ask(owner, 'GET statistics/overview?zone=Asia/Shanghai')
  expect(overview.body).toMatchObject({ step: 'day' })
  const refused = ['step=day&zone=Asia/Kolkata', 'step=day&zone=Not/There', 'step=hour&zone=Asia/Shanghai']
  const long = `step=day&zone=Asia/Shanghai&from=${new Date(Date.now() - 100 * 24 * HOUR_MS).toISOString()}`
  for (const query of [...refused, long]) {
    expect((await app.ask(owner, `GET statistics/series?${query}`)).code).toBe('field_invalid')
  }
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

describe('the use in a list', () => {
  interface Used {
    readonly id: string
    readonly use: { lastUsed: string | null; spent30d: string; keys?: number; budgets?: unknown[] } | null
  }
  const list = async (who: typeof owner, line: string): Promise<Used[]> =>
    (await app.ask(who, `GET ${line}`)).body.data as Used[]

  test('of keys is their last call, their spending and their budgets', async () => {
    await app.ask(owner, `PUT keys/${key(own)}/budgets/month`, { cap: '3' })
    const unused = await app.account({ 9: 1 })
    const found = new Map((await list(owner, 'keys?use=true')).map(({ id, use }) => [id, use]))
    const uses = (holder: { keyId: number }) => found.get(key(holder))
    expect(uses(own)).toMatchObject({ spent30d: '0.00001', budgets: [{ span: 'month', cap: '3.00' }] })
    expect(uses(second)).toMatchObject({ spent30d: '0.0000007', budgets: [] })
    const agoMs = (holder: { keyId: number }): number => Date.now() - Date.parse(uses(holder)!.lastUsed!)
    expect(Math.round(agoMs(own) / HOUR_MS)).toBe(1)
    expect(Math.round(agoMs(second) / HOUR_MS)).toBe(0)
    expect(uses(unused)).toEqual({ lastUsed: null, spent30d: '0.00', budgets: [] })
    expect((await list(viewer, 'keys?use=true')).map(({ id }) => id).toSorted()).toEqual([key(own), key(second)])
    expect((await list(owner, 'keys')).every(({ use }) => use === null)).toBe(true)
  })

  test('of accounts has the number of keys', async () => {
    const found = (await list(viewer, 'accounts?use=true&sort=created')).map(({ id, use }) => [id, use])
    expect(found).toMatchObject([
      [account(own), { spent30d: '0.00001', keys: 1 }],
      [account(second), { spent30d: '0.0000007', keys: 1 }],
    ])
  })

  test('accounts are sorted by balance, page by page, also large ones', async () => {
    for (const [index, amount] of ['9500000.000000001', '9500000.000000002', '9500000.000000003'].entries()) {
      const { accountId } = await app.account()
      const body = { amount, reference: `large ${index}` }
      await app.ask(owner, `POST accounts/${account({ accountId })}/top-ups`, body)
    }
    // A balance of 19 digits of nano-dollars.
    const { accountId: largest } = await app.account()
    for (const reference of ['largest 1', 'largest 2']) {
      await app.ask(owner, `POST accounts/${account({ accountId: largest })}/top-ups`, {
        amount: '600000000',
        reference,
      })
    }
    const balances: string[] = []
    for (let after = ''; ; ) {
      const { body } = await app.ask(owner, `GET accounts?sort=-balance&limit=1${after}`)
      balances.push(...(body.data as { balance: string }[]).map(({ balance }) => balance))
      if (body.next === null) break
      after = `&after=${body.next as string}`
    }
    expect(balances.slice(0, 4)).toEqual([
      ...['1200000009.00', '9500009.000000003', '9500009.000000002', '9500009.000000001'],
    ])
    const numbers = balances.map(Number)
    expect(numbers).toEqual(numbers.toSorted((one, next) => next - one))
    expect(balances.length).toBeGreaterThanOrEqual(6)
  })
})

test('many keys are disabled, enabled or revoked at once', async () => {
  const [one, next, others] = [await app.account({ 10: 2 }), await app.account({ 10: 2 }), await app.account()]
  const developer = member(10)
  const bulk = async (action: string, ...holders: { keyId: number }[]) =>
    ((await app.ask(developer, 'POST keys/bulk', { action, keys: holders.map(key) })).body.data ?? []) as {
      key: string
      result: string
    }[]
  const states = async () => {
    const { data } = (await app.ask(owner, 'GET keys?limit=200')).body as { data: { id: string; state: string }[] }
    return [one, next, others].map(holder => data.find(({ id }) => id === key(holder))!.state)
  }
  expect((await bulk('disable', one, next, others)).map(({ result }) => result)).toEqual(['done', 'done', 'unknown'])
  expect(await states()).toEqual(['disabled', 'disabled', 'active'])
  await bulk('revoke', next)
  expect((await bulk('enable', one, next)).map(({ result }) => result)).toEqual(['done', 'revoked'])
  expect(await states()).toEqual(['active', 'revoked', 'active'])
  expect((await app.ask(member(7), 'POST keys/bulk', { action: 'revoke', keys: [key(own)] })).code).toBe(
    'resource_unknown',
  )
  const tooMany = Array.from({ length: 101 }, () => key(one))
  expect((await app.ask(owner, 'POST keys/bulk', { action: 'enable', keys: tooMany })).code).toBe('field_invalid')
})

test('of many keys, those whose change fails are named, and the others are changed', async () => {
  const [broken, sound] = [await app.account(), await app.account()]
  const db = openDatabase(join(app.folder, 'weir.db'))
  db.run(`CREATE TRIGGER full BEFORE UPDATE ON api_key WHEN OLD.id = ${broken.keyId}
    BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
  const disable = (...holders: { keyId: number }[]) =>
    app.ask(owner, 'POST keys/bulk', { action: 'disable', keys: holders.map(key) })
  expect((await disable(broken, sound)).body.data).toEqual([
    { key: key(broken), result: 'failed' },
    { key: key(sound), result: 'done' },
  ])
  expect((await disable(broken)).code).toBe('storage_away')
  db.run('DROP TRIGGER full')
  expect((await disable(broken)).body.data).toEqual([{ key: key(broken), result: 'done' }])
  db.close()
})

test('errors and end users are counted', async () => {
  expect(await rows(owner, 'errors')).toEqual([{ outcome: 'upstream_failed', error: 'upstream_unusable', calls: 1 }])
  expect(await rows(owner, `errors?account=${account(foreign)}`)).toEqual([])
  expect(await rows(owner, `end-users?account=${account(foreign)}`)).toMatchObject([{ endUser: 'ann', calls: 3 }])
})

describe('an overview', () => {
  interface OverviewBody {
    readonly from: string
    readonly before: string
    readonly step: string
    readonly current: Record<string, unknown>
    readonly previous: Record<string, unknown>
    readonly series: { calls: number }[]
    readonly top: Record<string, { data: { id: string | null; name: string | null; calls: number }[] } | null>
    readonly errors: { data: unknown[] }
    readonly account: { id: string; balance: string } | null
    readonly budgets: { span: string; cap: string }[] | null
    readonly channels: Record<string, unknown> | null
    readonly ledger: Record<string, unknown> | null
  }
  const overview = async (who: typeof owner, query = ''): Promise<OverviewBody> =>
    (await app.ask(who, `GET statistics/overview?${query}`)).body as unknown as OverviewBody
  const ago = (hours: number): string => new Date(Date.now() - hours * HOUR_MS).toISOString()
  const topIds = ({ top }: OverviewBody, of: string): unknown => top[of]?.data.map(row => row.id ?? row.name)

  test('of the site has what the single requests have', async () => {
    const found = await overview(owner)
    expect(found).toMatchObject({
      summedUp: 1,
      step: 'hour',
      current: { calls: 15, errors: 1, cost: '0.0000257' },
      previous: { calls: 0, cost: '0.00', durationMs: null },
      account: null,
      budgets: null,
      channels: { unusable: 0, troubled: [] },
      ledger: { books: 'not looked at yet', findings: 0 },
    })
    expect(found.series).toEqual((await rows(owner, 'series')) as never)
    expect(found.errors.data).toEqual(await rows(owner, 'errors'))
    for (const of of ['model', 'key', 'account', 'channel']) {
      expect(found.top[`${of}s`]!.data).toEqual((await rows(owner, `top?of=${of}`)) as never)
    }
  })

  test('has the calls of the period before, without an overlap', async () => {
    const { current, previous } = await overview(owner, `from=${ago(0.9)}`)
    expect([current.calls, previous.calls]).toEqual([4, 11])
    expect(previous.before).toBe(current.from)
    const lengthMs = ({ from, before }: Record<string, unknown>): number =>
      Date.parse(before as string) - Date.parse(from as string)
    expect(Math.abs(lengthMs(previous) - lengthMs(current))).toBeLessThanOrEqual(60_000)
  })

  test('of one account has its money', async () => {
    await app.ask(owner, `PUT accounts/${account(own)}/budgets/day`, { cap: '5' })
    const found = await overview(owner, `account=${account(own)}`)
    expect(found.current).toMatchObject({ calls: 11, cost: '0.00001' })
    expect(found.account).toMatchObject({ id: account(own), balance: '8.99999' })
    expect(found.budgets).toMatchObject([{ span: 'day', cap: '5.00' }])
    expect(topIds(found, 'keys')).toEqual([key(own)])
    expect(found.top.channels).toBeNull()
  })

  test('of a member has nothing of others, and the money of an only account', async () => {
    const found = await overview(viewer)
    expect(found).toMatchObject({ current: { calls: 12, margin: null }, account: null, channels: null, ledger: null })
    expect(topIds(found, 'accounts')).toEqual([account(own), account(second)])
    expect(found.top.channels).toBeNull()
    const only = await app.account({ 8: 1 })
    expect((await overview(member(8))).account).toMatchObject({ id: account(only), balance: '9.00' })
    expect((await app.ask(viewer, `GET statistics/overview?account=${account(foreign)}`)).code).toBe('resource_unknown')
    const outsider = await overview(member(55))
    expect(outsider).toMatchObject({ current: { calls: 0 }, series: [], account: null, budgets: null })
  })

  test('chooses a step that is stored for the range', async () => {
    const steps: readonly (readonly [string, string])[] = [
      [`from=${ago(1)}`, 'minute'],
      [`from=${ago(96)}&before=${ago(95)}`, 'hour'],
      [`from=${ago(24 * 200)}&before=${ago(24 * 200 - 1)}`, 'day'],
      [`from=${ago(24 * 20)}`, 'day'],
      [`from=${ago(24 * 500)}`, 'month'],
    ]
    for (const [query, step] of steps) expect(await overview(owner, query)).toMatchObject({ step })
    expect((await app.ask(owner, `GET statistics/overview?step=minute&from=${ago(72)}`)).code).toBe('field_invalid')
  })
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
