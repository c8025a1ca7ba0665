// Tests rules on a real file: written, changed, removed, read back unchanged, and passed to the listeners.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import type { TestBooks } from '../../../test/support/books.ts'
import { openTestBooks } from '../../../test/support/books.ts'
import { bounds } from '../../base/bounds.ts'
import { Seal } from '../../base/secrets/seal.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import type { OperationContext } from '../engine/operation.ts'
import { bindReads } from '../engine/reads.ts'
import { sqliteSnapshots, sqliteSteps } from '../engine/sqlite-steps.ts'
import type { Steps } from '../engine/steps.ts'
import { channelOperations } from './channel-operations.ts'
import { LiveRules } from './live-rules.ts'
import type { ChannelChange, ChannelRow, LimitRow, RouteRow, Rules } from './rules.ts'
import { textOfRoutes } from './rules.ts'
import { buildRulesReads } from './rules-reader.ts'

let books: TestBooks
let seal: Seal
let errors: string[]
beforeEach(() => {
  books = openTestBooks()
  books.account(11, '0')
  seal = new Seal(buildSecretRing(randomBytes(32).toString('hex')))
  errors = []
})
afterEach(() => books.close())

const author = 'ann'
const limit = (more: Partial<LimitRow> = {}): Omit<LimitRow, 'id'> => ({
  resource: 'requests',
  span: 'minute',
  amount: 5,
  keyId: null,
  accountId: null,
  tier: null,
  model: null,
  per: [],
  ...more,
})
const setLimit = (more: Partial<LimitRow> = {}) => books.run.setLimit({ ...limit(more), author })
const route = (name: string, ...models: readonly string[]): RouteRow => ({
  name,
  policy: 'balanced',
  members: models.map((model, priority) => ({ model, priority, weight: 1 })),
})
const setRoute = (row: RouteRow) => books.run.setRoute({ ...row, author })
const setChannel = (change: ChannelChange) => books.run.setChannels({ changes: [change], author })
const openRules = (ringSeal = seal): LiveRules =>
  new LiveRules({
    reader: bindReads(buildRulesReads(), sqliteSnapshots(books.db)),
    seal: ringSeal,
    onError: detail => void errors.push(detail),
  })
async function rules(): Promise<Rules> {
  const liveRules = openRules()
  await liveRules.reload()
  return liveRules.current
}

/** Characters that have a meaning in SQL, LIKE and JSON. */
const specialCharacters = `a'b"c%d_e;--\\ ${'é'}/*x*/`

describe('a limit', () => {
  test('is read as it was written', async () => {
    const full = { keyId: 1_011, accountId: 11, tier: 'pro', model: specialCharacters, per: ['key', 'model'] } as const
    expect(setLimit()).toEqual({ done: 'added', id: 1 })
    expect(setLimit(full)).toEqual({ done: 'added', id: 2 })
    expect(setLimit({ resource: 'concurrency', span: null, amount: 8 })).toEqual({ done: 'added', id: 3 })
    expect((await rules()).limits).toEqual([
      { id: 1, ...limit(), keyAccountId: null },
      { id: 2, ...limit(full), keyAccountId: 11 },
      { id: 3, ...limit({ resource: 'concurrency', span: null, amount: 8 }), keyAccountId: null },
    ])
  })

  test('for the same calls is the same limit, with another amount', async () => {
    setLimit({ per: ['key'], tier: 'free' })
    expect(setLimit({ per: ['key'], tier: 'free', amount: 9 })).toEqual({ done: 'changed', id: 1 })
    const others: Partial<LimitRow>[] = [{ per: [] }, { per: ['key', 'account'] }, { span: 'day' }, { tier: null }]
    others.push({ resource: 'tokens' }, { model: '*' }, { keyId: 1_011, tier: 'pro' }, { accountId: 11 })
    for (const other of others) expect(setLimit({ per: ['key'], tier: 'free', ...other }).done).toBe('added')
    expect((await rules()).limits.map(({ amount }) => amount)).toEqual([9, ...others.map(() => 5)])
  })

  test('has an id that is never used again', () => {
    setLimit()
    setLimit({ span: 'day' })
    expect(books.run.removeLimit({ id: 2 })).toEqual({ done: 'removed' })
    expect(books.run.removeLimit({ id: 2 })).toEqual({ done: 'unknown' })
    expect(setLimit({ span: 'day' })).toEqual({ done: 'added', id: 3 })
  })

  test('is refused for unknown keys, accounts and tiers', async () => {
    expect(setLimit({ keyId: 11 })).toEqual({ done: 'key_unknown' })
    expect(setLimit({ accountId: 1_011 })).toEqual({ done: 'account_unknown' })
    expect(setLimit({ accountId: 1 })).toEqual({ done: 'account_unknown' }) // revenue
    expect(setLimit({ tier: specialCharacters })).toEqual({ done: 'tier_unknown' })
    expect(setLimit({ keyId: 1_011, tier: 'free' })).toEqual({ done: 'for_nobody' })
    expect((await rules()).limits).toEqual([])
  })

  test.each([
    ['of zero', { amount: 0 }],
    ['below zero', { amount: -1 }],
    ['without a window', { span: null }],
    ['of concurrency with a window', { resource: 'concurrency' }],
    ['of an unknown resource', { resource: 'money' as never }],
    ['of an unknown window', { span: 'hour' as never }],
    ['per an unknown subject', { per: ['tier' as never] }],
    ['per subjects in another order', { per: ['model', 'key'] }],
  ] as const)('%s is refused by the database', async (_name, more) => {
    expect(() => setLimit(more)).toThrow('CHECK constraint failed')
    expect((await rules()).limits).toEqual([])
  })

  test('is refused when there are too many', async () => {
    const insert = books.db.query(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO limit_rule (resource, span, amount, model, per, author, changed_ms)
       SELECT 'requests', 'minute', 5, 'm' || i, '', 'x', 0 FROM n`,
    )
    insert.run(bounds.limitRulesMax)
    expect(setLimit({ model: 'one more' })).toEqual({ done: 'too_many' })
    expect(setLimit({ model: 'm7', amount: 6 })).toEqual({ done: 'changed', id: 7 })
    expect((await rules()).limits).toHaveLength(bounds.limitRulesMax)
  })
})

describe('a model route', () => {
  test('is read as it was written, and replaced as a whole', async () => {
    setRoute(route(specialCharacters, specialCharacters, 'b/c'))
    const other: RouteRow = { name: 'x', policy: 'cheapest', members: [{ model: 'y/z', priority: 3, weight: 0 }] }
    setRoute(other)
    expect((await rules()).routes).toEqual([route(specialCharacters, specialCharacters, 'b/c'), other])
    setRoute({ ...route(specialCharacters, 'd/e'), policy: 'fastest' })
    expect((await rules()).routes[0]).toEqual({ ...route(specialCharacters, 'd/e'), policy: 'fastest' })
    expect([specialCharacters, specialCharacters].map(name => books.run.removeRoute({ name }).done)).toEqual([
      'removed',
      'unknown',
    ])
    expect((await rules()).routes).toEqual([other])
  })

  test('is not written if the others are not those that it was checked with', async () => {
    setRoute(route('a', 'p/x'))
    setRoute(route('b', 'a'))
    const write = (row: RouteRow, known: Rules): string => {
      const others = textOfRoutes(known.routes.filter(({ name }) => name !== row.name))
      return books.run.setRoute({ ...row, author, others }).done
    }
    const before = await rules()
    expect(write(route('a', 'p/y'), before)).toBe('set')
    // A change of the same name is no change of the others.
    expect(write(route('a', 'p/z'), before)).toBe('set')
    expect(write(route('b', 'p/y'), before)).toBe('raced')
    books.run.removeRoute({ name: 'a' })
    expect([write(route('b', 'p/y'), before), write(route('b', 'p/y'), await rules())]).toEqual(['raced', 'set'])
    expect((await rules()).routes).toEqual([route('b', 'p/y')])
  })

  test('is refused when there are too many', () => {
    for (let index = 0; index < bounds.modelRoutesMax; index++)
      expect(setRoute(route(`r${index}`, 'a/b')).done).toBe('set')
    expect(setRoute(route('more', 'a/b'))).toEqual({ done: 'too_many' })
    expect(setRoute(route('r5', 'c/d'))).toEqual({ done: 'set' })
  })
})

describe('the rules of a channel', () => {
  const plain: ChannelRow = {
    channel: 'p#1',
    disabled: false,
    weight: 1,
    priority: 0,
    requestsPerMinute: null,
    tokensPerMinute: null,
    concurrency: null,
    proxy: null,
    tags: [],
    foreignIds: false,
  }

  test('change in the given fields only', async () => {
    setChannel({ channel: 'p#1' })
    expect((await rules()).channels).toEqual([plain])
    const all = { disabled: true, weight: 0, priority: 7, requestsPerMinute: 1, tokensPerMinute: 2, concurrency: 3 }
    setChannel({ channel: 'p#1', ...all, tags: ['eu', 'x'] })
    expect((await rules()).channels).toEqual([{ ...plain, ...all, tags: ['eu', 'x'] }])
    setChannel({ channel: 'p#1', requestsPerMinute: null, disabled: false, tags: [] })
    expect((await rules()).channels).toEqual([{ ...plain, ...all, requestsPerMinute: null, disabled: false }])
    const reset = (): string => books.run.resetChannel({ channel: 'p#1', author }).done
    expect([reset(), reset()]).toEqual(['removed', 'unknown'])
    expect((await rules()).channels).toEqual([])
  })

  test('can be set for a channel with any name', async () => {
    setChannel({ channel: specialCharacters, weight: 5 })
    setChannel({ channel: specialCharacters, priority: 2 })
    expect((await rules()).channels).toEqual([{ ...plain, channel: specialCharacters, weight: 5, priority: 2 }])
  })

  test('have an encrypted proxy that can be decrypted for this channel only', async () => {
    const secret = `http://joe:${specialCharacters}@proxy`
    const sealed = openRules().sealProxy('p#1', new Secret(secret))
    setChannel({ channel: 'p#1', proxy: sealed })
    setChannel({ channel: 'p#1', weight: 4 })
    const [row] = (await rules()).channels
    expect([row!.proxy!.reveal(), row!.weight, row!.disabled]).toEqual([secret, 4, false])
    expect(JSON.stringify(await rules())).not.toContain('joe')
    expect(Buffer.from(sealed, 'base64').includes('joe')).toBe(false)
    setChannel({ channel: 'p#2', proxy: sealed })
    expect((await rules()).channels[1]).toEqual({ ...plain, channel: 'p#2', disabled: true, proxyLost: true })
    setChannel({ channel: 'p#1', proxy: null })
    expect((await rules()).channels[0]!.proxy).toBeNull()
  })

  test('disable the channel and report it when the key of the proxy is lost; other fields stay', async () => {
    setChannel({ channel: 'p#1', weight: 4, proxy: openRules().sealProxy('p#1', new Secret('http://proxy')) })
    const liveRules = openRules(new Seal(buildSecretRing('another')))
    await liveRules.reload()
    expect(liveRules.current.channels).toEqual([{ ...plain, weight: 4, disabled: true, proxyLost: true }])
    expect(errors).toEqual([expect.stringContaining('the proxy of p#1: The stored value was sealed with')])
    setChannel({ channel: 'p#1', weight: 6 })
    expect((await rules()).channels[0]).toMatchObject({ weight: 6, disabled: false })
  })

  test.each([
    ['weight', -1],
    ['requestsPerMinute', 0],
    ['tokensPerMinute', -5],
    ['concurrency', 0],
  ] as const)('refuse a %s of %d in the database', async (name, value) => {
    expect(() => setChannel({ channel: 'p#1', [name]: value })).toThrow('CHECK constraint failed')
    expect((await rules()).channels).toEqual([])
  })
})

describe('an operation on many channels', () => {
  /** Runs an operation. Returns how many statements it needed. */
  function statements(operation: Steps<{ readonly done: string }>): number {
    let count = 0
    const counted = function* (): Steps<string> {
      let step = operation.next()
      for (; !step.done; step = operation.next(yield step.value)) count++
      return step.value.done
    }
    expect(sqliteSteps(books.db)(counted())).toBeOneOf(['created', 'set', 'removed'])
    return count
  }
  const context = { nowMs: () => 1, ...({} as Omit<OperationContext, 'nowMs'>) }
  const setting = { baseUrl: null, headers: {}, parameters: {}, times: {} }
  const channelsOf = (provider: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({
      channel: `${provider}#ch_${at}`,
      provider,
      origin: 'https://a',
      setting: { ...setting, name: `${at}` },
      credential: { sealed: 'AAEC', fingerprint: 'f' },
    }))

  test('needs as few statements as one on a single channel', () => {
    const [one, many] = [1, 100].map(count => {
      const channels = channelsOf(`p${count}`, count)
      const changes = channels.map(({ channel }) => ({ channel, weight: 5, disabled: true }))
      const ids = channels.map(({ channel }) => channel)
      const created = statements(channelOperations.createChannels({ channels, author }, context))
      const set = statements(channelOperations.setChannels({ changes, author }, context))
      const rows = books.db.query('SELECT weight, disabled, credential FROM channel').all()
      expect(rows).toEqual(Array(count).fill({ weight: 5n, disabled: 1n, credential: new Uint8Array([0, 1, 2]) }))
      const removed = statements(channelOperations.removeChannels({ channels: ids }, context))
      expect(books.db.query('SELECT 1 FROM channel').all()).toEqual([])
      return { created, set, removed }
    })
    expect(many!).toEqual(one!)
  })
})

test('the author and time of a change are stored with the rule', () => {
  setLimit()
  setRoute(route('x', 'a/b'))
  setChannel({ channel: 'p#1' })
  books.nowMs += 1_000
  books.run.setLimit({ ...limit({ amount: 6 }), author: specialCharacters })
  books.run.setRoute({ ...route('x', 'a/b'), author: specialCharacters })
  books.run.setChannels({ changes: [{ channel: 'p#1' }], author: specialCharacters })
  for (const table of ['limit_rule', 'model_route', 'channel']) {
    const row = books.db.query('SELECT author, changed_ms AS ms FROM '.concat(table)).get()
    expect(row).toEqual({ author: specialCharacters, ms: BigInt(books.nowMs) })
  }
})

describe('the live rules', () => {
  test('are passed to a listener at once and after each change, but not when nothing has changed', async () => {
    const notified: number[] = []
    const liveRules = openRules()
    liveRules.subscribe(({ limits }) => void notified.push(limits.length))
    await liveRules.reload()
    setLimit()
    await liveRules.reload()
    await liveRules.reload()
    books.run.removeLimit({ id: 1 })
    await liveRules.reload()
    expect(notified).toEqual([0, 0, 1, 0])
  })

  test('are never replaced by an older reading, and apply in the tick in which they are read', async () => {
    const reader = bindReads(buildRulesReads(), sqliteSnapshots(books.db))
    const delays = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let readings = 0
    const read = async () => {
      const [rows, delay] = [reader.read(), delays[readings++]!]
      await delay.promise
      return rows
    }
    const liveRules = new LiveRules({ reader: { read }, seal, onError: detail => void errors.push(detail) })
    const notified: (number | string)[] = []
    liveRules.subscribe(({ limits }) => void notified.push(limits.length))
    const first = liveRules.reload(() => void notified.push('read'))
    await Promise.resolve()
    setLimit()
    const second = liveRules.reload()
    delays[1]!.resolve()
    await new Promise(resolve => setImmediate(resolve))
    delays[0]!.resolve()
    await Promise.all([first, second])
    expect(notified).toEqual([0, 'read', 0, 1])
    expect(liveRules.current.limits).toHaveLength(1)
  })

  test('are passed to all listeners, also when one of them fails', async () => {
    const liveRules = openRules()
    let notified = 0
    liveRules.subscribe(({ limits }) => {
      if (limits.length > 0) throw new Error('oops')
    })
    liveRules.subscribe(() => void notified++)
    setLimit()
    await expect(liveRules.reload()).rejects.toThrow('oops')
    expect([notified, liveRules.current.limits.length]).toEqual([2, 1])
  })

  test('keep the same object and secret for a channel that has not changed', async () => {
    const liveRules = openRules()
    for (const channel of ['p#1', 'p#2']) {
      setChannel({ channel, proxy: liveRules.sealProxy(channel, new Secret(`http://${channel[2]}`)) })
    }
    await liveRules.reload()
    const [first, second] = liveRules.current.channels
    setChannel({ channel: 'p#2', proxy: liveRules.sealProxy('p#2', new Secret('http://new')) })
    setLimit()
    await liveRules.reload()
    expect(liveRules.current.channels[0]).toBe(first!)
    expect(liveRules.current.channels[1]).not.toBe(second!)
  })

  test.each([
    ['an unknown policy', 'dearest', '[{"model":"a/b","priority":0,"weight":1}]'],
    ['invalid JSON', 'balanced', '[{'],
    ['an object instead of a list', 'balanced', '{"model":"a/b"}'],
    ['no members', 'balanced', '[]'],
    ['a member that is null', 'balanced', '[null]'],
    ['a member without a model', 'balanced', '[{"priority":0,"weight":1}]'],
    ['a negative weight', 'balanced', '[{"model":"a/b","priority":0,"weight":-1}]'],
  ])('stay as they were while a route has %s', async (_name, policy, members) => {
    const liveRules = openRules()
    const notified: Rules[] = []
    liveRules.subscribe(rules => void notified.push(rules))
    setRoute(route('good', 'a/b'))
    await liveRules.reload()
    const insert = `INSERT INTO model_route (name, policy, members, author, changed_ms)
      VALUES ('b''ad', ?1, ?2, 'x', 0)`
    books.db.query(insert).run(policy, members)
    setLimit()
    await liveRules.reload()
    expect(liveRules.problem?.text).toContain(`The route "b'ad" cannot be read.`)
    expect([notified.length, liveRules.current.limits, liveRules.current.routes.length]).toEqual([2, [], 1])
    books.run.removeRoute({ name: "b'ad" })
    await liveRules.reload()
    expect([liveRules.problem, notified.length, liveRules.current.limits.length]).toEqual([undefined, 3, 1])
  })
})
