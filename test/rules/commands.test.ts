// Every rule that an operator can set, and every invalid one: refused with a message, and nothing is written.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import type { RuleOperator } from './rule-operator.ts'
import { openRuleOperator } from './rule-operator.ts'

let operator: RuleOperator
let key: { key: string; id: string; account: string }
let otherKey: typeof key
beforeAll(async () => {
  operator = await openRuleOperator()
  key = (await operator.run('keys create', { tier: 'pro' })) as typeof key
  otherKey = (await operator.run('keys create', { tier: 'free' })) as typeof key
})
afterAll(() => operator.close())

const [one, two] = [channelId('brook', 'one'), channelId('brook', 'two')]
const three = channelId('pool', 'three')
const limitsNow = () => operator.store.rules.current.limits
const routesNow = () => operator.store.rules.current.routes
const rows = async (what: 'limits' | 'routes' | 'channels'): Promise<Record<string, unknown>[]> =>
  (await operator.run(`${what} list`)).data as Record<string, unknown>[]

/** Checks that a command is refused with this message, and that nothing was written. */
async function expectRefused(command: string, input: object, says: string | RegExp): Promise<void> {
  const before = JSON.stringify(operator.written())
  expect(await operator.refusal(command, input)).toMatch(says)
  expect(JSON.stringify(operator.written())).toBe(before)
}

describe('limits', () => {
  test('are set, changed, listed and removed', async () => {
    const some = { resource: 'requests', amount: '100/minute', per: 'key', tier: 'free', model: 'brook/*' }
    const names = { keyName: null, accountName: null }
    const all = { key: null, ...names, account: null, tier: 'free', model: 'brook/*', per: ['key'] }
    const shown = { resource: 'requests', span: 'minute', amount: 100, ...all, managedBy: null }
    const { id, version } = (await operator.run('limits set', some)) as { id: number; version: number }
    expect(await operator.run('limits set', some)).toEqual({ id, ...shown, version: version + 1, warnings: [] })
    expect(limitsNow()).toMatchObject([{ id, resource: 'requests', span: 'minute', amount: 100, per: ['key'] }])
    await operator.run('limits set', { ...some, amount: '7/minute' })
    expect(await rows('limits')).toEqual([{ id, ...shown, amount: 7, version: version + 2 }])
    expect(await operator.run('limits remove', { id: String(id) })).toEqual({})
    expect([limitsNow(), await rows('limits')]).toEqual([[], []])
  })

  test('are for a key, an account or all, separately or together', async () => {
    await operator.run('limits set', { resource: 'tokens', amount: '1000000/day', account: key.key })
    await operator.run('limits set', { resource: 'concurrency', amount: '8', key: key.id, per: 'model' })
    const requests = { resource: 'requests', amount: '9/day' }
    await operator.run('limits set', { ...requests, key: key.key, tier: 'pro', account: key.account })
    await operator.run('limits set', { ...requests, per: 'model,key' })
    const listed = (await rows('limits')).map(row => [
      row.amount,
      row.resource,
      row.span,
      row.key,
      row.account,
      row.tier,
    ])
    expect(listed).toEqual([
      [1_000_000, 'tokens', 'day', null, key.account, null],
      [8, 'concurrency', null, key.id, null, null],
      [9, 'requests', 'day', key.id, key.account, 'pro'],
      [9, 'requests', 'day', null, null, null],
    ])
    expect((await rows('limits')).map(({ per }) => per)).toEqual([[], ['model'], [], ['key', 'model']])
    for (const { id } of limitsNow()) await operator.run('limits remove', { id })
  })

  test('for an unknown model are accepted with a warning', async () => {
    const some = { resource: 'requests', amount: '9/day', model: 'brok/*' }
    const { id, warnings } = await operator.run('limits set', some)
    expect(warnings).toEqual(['No model matches at the moment: brok/*.'])
    await operator.run('limits remove', { id })
  })

  const limitOf = (amount: unknown, more: object = {}) => ({ resource: 'requests', amount, ...more })
  const bad: readonly (readonly [name: string, input: object | (() => object), says: RegExp])[] = [
    ['0', limitOf('0/minute'), /^<amount> is not valid: it must be at least 1\.$/],
    ['a negative', limitOf('-5/minute'), /it must be at least 1/],
    ['a fraction', limitOf('1.5/minute'), /it must be a whole number/],
    ['far too much', limitOf('99999999999999999999/minute'), /it must be at most/],
    ['no number', limitOf('many/minute'), /^A limit must be a whole number with its period, such as 100\/minute/],
    ['a number in another way', limitOf('1e3/minute'), /^A limit must be/],
    ['nothing', limitOf(undefined), /^A limit must be/],
    ['no window', limitOf('100'), /needs a window: minute or day/],
    ['an empty window', limitOf('100/'), /^A limit must be/],
    ['another window', limitOf('100/hour'), /^A limit must be/],
    ['two windows', limitOf('100/minute/day'), /^A limit must be/],
    ['concurrency with a window', limitOf('8/minute', { resource: 'concurrency' }), /concurrency has no window/],
    ['concurrency of 0', limitOf('0', { resource: 'concurrency' }), /it must be at least 1/],
    ['another resource', limitOf('8/minute', { resource: 'dollars' }), /one of: requests, tokens, concurrency/],
    ['no resource', { amount: '8/minute' }, /one of: requests, tokens, concurrency/],
    [
      'an unknown tier',
      limitOf('8/minute', { tier: "gold' OR '1'='1" }),
      /^Unknown tier "gold.*"\. Tiers: free, pro, standard\.$/,
    ],
    ['a tier of nothing', limitOf('8/minute', { tier: '' }), /^--tier is not valid: it must have at least 1/],
    [
      'an unknown key',
      limitOf('8/minute', { key: 'key_zzzzzzzzzzz' }),
      /^--key is not valid: it must be an id such as/,
    ],
    ['a missing key', limitOf('8/minute', { key: 'key_00000000001' }), /^There is no such key or account\.$/],
    ['a key of nothing', limitOf('8/minute', { key: '' }), /^Unknown key\./],
    [
      'an unknown account',
      limitOf('8/minute', { account: 'acc_zzzzzzzzzzz' }),
      /^--account is not valid: it must be an id such as/,
    ],
    [
      "one of the operator's accounts",
      limitOf('8/minute', { account: 'revenue' }),
      /^There is no such key or account\.$/,
    ],
    [
      'a key of another account',
      () => limitOf('8/minute', { key: key.id, account: otherKey.id }),
      /would apply to no call/,
    ],
    ['a key of another tier', () => limitOf('8/minute', { key: key.id, tier: 'free' }), /would apply to no call/],
    [
      'per something else',
      limitOf('8/minute', { per: 'tier' }),
      /^--per is not valid: it must be one of: key, account, model/,
    ],
    ['a model of nothing', limitOf('8/minute', { model: '' }), /^--model is not valid: it must have at least 1/],
    [
      'a model with blanks',
      limitOf('8/minute', { model: 'a b' }),
      /^--model is not valid: it must be visible characters/,
    ],
    ['a list of models', limitOf('8/minute', { model: 'a/b,c/d' }), /^--model is not valid/],
    [
      'a model beyond measure',
      limitOf('8/minute', { model: 'x'.repeat(257) }),
      /^--model is not valid: it must have at most 256/,
    ],
  ]
  test.each(bad)('%s is refused', (_name, input, pattern) =>
    expectRefused('limits set', typeof input === 'function' ? input() : input, pattern),
  )

  test.each([undefined, '', '0', '-1', '1.5', 'x', '99'])('cannot be removed by the id %p', id =>
    expectRefused('limits remove', { id }, /^Unknown limit/),
  )
})

describe('routes', () => {
  const set = (name: unknown, members: string, more: object = {}) =>
    operator.run('routes set', { name, members: members.split(' '), ...more })

  test('are set, changed, listed and removed', async () => {
    const members = 'brook/trout=3 pool/trout then open/anything'
    const rowsOf = (name: string) => routesNow().find(row => row.name === name)?.members
    expect(await set('smart', members)).toMatchObject({ name: 'smart', policy: 'balanced', warnings: [] })
    expect((await rows('routes'))[0]!.members).toEqual(rowsOf('smart'))
    expect(routesNow()).toEqual([
      {
        name: 'smart',
        policy: 'balanced',
        members: [
          { model: 'brook/trout', priority: 0, weight: 3 },
          { model: 'pool/trout', priority: 0, weight: 1 },
          { model: 'open/anything', priority: 1, weight: 1 },
        ],
      },
    ])
    await set('smart', 'brook/perch', { policy: 'cheapest' })
    await set('smart', 'brook/trout')
    const only = { model: 'brook/trout', priority: 0, weight: 1 }
    expect(await rows('routes')).toMatchObject([{ name: 'smart', policy: 'cheapest', members: [only] }])
    expect(await operator.run('routes remove', { name: 'smart' })).toEqual({ warnings: [] })
    expect(routesNow()).toEqual([])
  })

  test('may refer to each other, to any model, and to a model of the same name', async () => {
    await set('fast', 'brook/a:b@c=0 pool/perch')
    await set('best', 'fast then open/x/y:z@1')
    await set('brook/trout', 'brook/trout then pool/trout')
    await set('fish-*', 'brook/* then pool/*')
    expect((await rows('routes')).map(({ name }) => name)).toEqual(['best', 'brook/trout', 'fast', 'fish-*'])
    for (const name of ['best', 'fast', 'brook/trout', 'fish-*']) await operator.run('routes remove', { name })
  })

  test('name those that lose a member when one is removed', async () => {
    await set('fast', 'brook/perch')
    await set('brook/trout', 'brook/trout then pool/trout')
    await set('fish-*', 'brook/*')
    await set('best', 'fast then brook/trout')
    await set('cheap', 'fast fish-perch')
    await set('other', 'brook/trout')
    const remove = async (name: string) => (await operator.run('routes remove', { name })).warnings
    const lost = (names: string) => [`These model names have members that no longer exist, and ignore them: ${names}.`]
    // The model of this name is still there.
    expect(await remove('brook/trout')).toEqual([])
    expect(await remove('fast')).toEqual(lost('best, cheap'))
    expect(await remove('fish-*')).toEqual(lost('cheap'))
    for (const name of ['best', 'cheap', 'other']) expect(await remove(name)).toEqual([])
  })

  test('to a model without a channel are accepted with a warning', async () => {
    const none = expect.stringMatching(/^None of these models has a channel yet/)
    expect((await set('later', 'open/x')).warnings).toEqual([none])
    expect((await set('later', 'open/x then pool/trout')).warnings).toEqual([])
    await operator.run('routes remove', { name: 'later' })
  })

  const many = Array.from({ length: bounds.routeMembersMax + 1 }, (_, at) => `open/m${at}`).join(' ')
  const bad: readonly (readonly [name: string, input: readonly [unknown, string, object?], says: RegExp])[] = [
    ['a loop of one', ['a', 'a'], /^a: there is no such provider and no such model name\.$/],
    ['a provider that is misspelt', ['x', 'brok/trout'], /^brok\/trout: .* Did you mean "brook\/trout"\?$/],
    ['a model that is misspelt', ['x', 'brook/trut'], /^brook\/trut: Brook .* Did you mean "brook\/trout"\?$/],
    ['an unknown provider', ['x', 'lake/trout'], /^lake\/trout: there is no such provider and no such model name\.$/],
    ['an unknown model', ['x', 'brook/salmon'], /^brook\/salmon: Brook has no such model\.$/],
    ['a model of nothing', ['x', 'brook/'], /^brook\/: Brook has no such model\.$/],
    ['a provider alone', ['x', 'brook'], /^brook: there is no such provider/],
    ['an unknown route', ['x', 'smrt'], /^smrt: there is no such provider and no such model name/],
    ['a member of nothing', ['x', ''], /^<members> \(model\) is not valid: it must have at least 1 character\./],
    ['nothing but then', ['x', 'then'], /^"then" must be between/],
    ['then at the end', ['x', 'brook/trout then'], /^"then" must be between/],
    ['then twice', ['x', 'brook/trout then then pool/trout'], /^"then" must be between/],
    [
      'weights of 0',
      ['x', 'brook/trout=0 pool/trout=0'],
      /^The weights of x in priority 0 add up to 0; at least one must be larger\.$/,
    ],
    ['weights of 0 behind others', ['x', 'brook/trout then pool/trout=0'], /in priority 1 add up to 0/],
    [
      'a weight beyond measure',
      ['x', 'brook/trout=1000001'],
      /^<members> \(weight\) is not valid: it must be at most 1000000\.$/,
    ],
    ['a negative weight', ['x', 'brook/trout=-1'], /^brook\/trout=-1: a weight must be a whole number, at least 0\./],
    ['half a weight', ['x', 'open/any=2.5'], /^open\/any=2\.5: a weight must be a whole number/],
    ['a weight that is a word', ['x', 'brook/trout=x'], /^brook\/trout=x: a weight must be a whole number/],
    ['a member twice', ['x', 'brook/trout then brook/trout=2'], /^brook\/trout is listed twice\.$/],
    ['too many members', ['x', many], /^<members> is not valid: it must have at most 32 items\.$/],
    ['a member of two stars', ['x*', 'brook/*a*'], /may contain only one \*/],
    ['a star where the name has none', ['x', 'brook/*'], /contains a \*, but the name has none/],
    ['a name of two stars', ['*x*', 'brook/trout'], /may contain only one \*/],
    ['no name', ['', 'brook/trout'], /^A model name must have 1 to 256 visible ASCII characters/],
    ['a missing name', [undefined, 'brook/trout'], /^A model name must have/],
    ['a name with a comma', ['a,b', 'brook/trout'], /^A model name must not contain a comma/],
    ['a name with blanks', ['a b', 'brook/trout'], /^A name must have/],
    ['a name like a weight', ['a=3', 'brook/trout'], /^A model name must not contain a comma, end in =number/],
    ['the name then', ['then', 'brook/trout'], /^A model name must not .* be "then"\.$/],
    ['a name beyond measure', ['x'.repeat(257), 'brook/trout'], /^A model name must have/],
    [
      'another policy',
      ['x', 'brook/trout', { policy: 'best' }],
      /^--policy is not valid: it must be one of: balanced, w/,
    ],
  ]
  test.each(bad)('%s is refused', (_name, [name, members, more], pattern) =>
    expectRefused('routes set', { name, members: members.split(' '), ...more }, pattern),
  )

  test('are checked if a pattern matches their members, too', async () => {
    await set('brook/*', 'brook/* then pool/*')
    await set('fast-*', 'brook/* then open/*')
    await set('x', 'brook/trout fast-any')
    const bad = [
      ['brook/salmon', /^brook\/salmon: Brook has no such model\.$/],
      ['brook/trout=2.5', /^brook\/trout=2\.5: a weight must be a whole number/],
      ['fast-any=-1', /^fast-any=-1: a weight must be a whole number/],
    ] as const
    for (const [member, says] of bad) await expectRefused('routes set', { name: 'x', members: [member] }, says)
    for (const name of ['x', 'brook/*', 'fast-*']) await operator.run('routes remove', { name })
  })

  test('with a loop are refused, however long, even if two are set at once', async () => {
    await set('a', 'brook/trout')
    await set('b', 'a')
    await set('c', 'b then brook/trout')
    const circle = /^The names refer to each other in a circle: a → c → b → a\.$/
    await expectRefused('routes set', { name: 'a', members: ['c'] }, circle)
    expect(routesNow().find(({ name }) => name === 'a')!.members[0]!.model).toBe('brook/trout')
    await set('d', 'brook/trout')
    const [, second] = await Promise.all([set('a', 'd'), operator.refusal('routes set', { name: 'd', members: ['a'] })])
    expect(second).toBe('The names refer to each other in a circle: d → a → d.')
    for (const name of ['a', 'b', 'c', 'd']) await operator.run('routes remove', { name })
  })

  test('whose channels are all disabled are refused, and the message names the channels', async () => {
    for (const channel of [one, two]) await operator.run('channels set', { channel, disable: true })
    const message = `No channel can serve this name: these channels are disabled: ${one}, ${two}.`
    await expectRefused('routes set', { name: 'x', members: ['brook/trout', 'brook/perch'] }, message)
    await set('x', 'brook/trout pool/trout')
    await operator.run('routes remove', { name: 'x' })
    for (const channel of [one, two]) await operator.run('channels reset', { channel })
  })

  test.each([undefined, '', 'nobody', "'; DROP TABLE model_route; --", '%'])('cannot be removed by the name %p', name =>
    expectRefused('routes remove', { name }, /^Unknown model name/),
  )
})

describe('channels', () => {
  const caps = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null }
  const usual = { weight: 1, priority: 0, ...caps, proxy: false, tags: ['eu'], foreignIds: false }
  const named = { id: one, name: null, baseUrl: 'https://brook.example/v1' }
  const brookOne = { ...named, state: 'enabled', health: null, ...usual }
  const set = (channel: string, more: object) => operator.run('channels set', { channel, ...more })
  const row = async (channel: string) => (await rows('channels')).find(({ id }) => id === channel)

  test('are listed with their settings', async () => {
    expect(await row(one)).toMatchObject(brookOne)
    expect(await row('demo#open')).toMatchObject({ state: 'enabled', tags: [] })
    const all = { weight: '3', priority: '2', rpm: '60', tpm: '100000', concurrency: '8', tags: 'no-training,fast' }
    const set3 = { weight: 3, priority: 2, tokensPerMinute: 100_000, concurrency: 8 }
    const shown = { ...brookOne, ...set3, requestsPerMinute: 60, tags: ['eu', 'no-training', 'fast'] }
    expect(await set(one, all)).toMatchObject({ ...shown, warnings: [] })
    const less = { ...shown, requestsPerMinute: null, tags: ['eu'] }
    expect(await set(one, { rpm: 'none', tags: 'none' })).toMatchObject(less)
    expect(await row(one)).toMatchObject(less)
    expect(operator.store.rules.current.channels).toHaveLength(1)
    expect(await operator.run('channels reset', { channel: one })).toEqual({})
    expect(await row(one)).toMatchObject(brookOne)
  })

  test('may be named by their position in the list', async () => {
    expect(await set('brook#2', { weight: '2' })).toMatchObject({ id: two, weight: 2 })
    await expectRefused('channels move', { from: 'brook#1', to: 'brook#1' }, /^The two channels are the same/)
    expect(await operator.run('channels move', { from: 'brook#2', to: 'brook#1' })).toMatchObject({
      id: one,
      weight: 2,
    })
    await operator.run('channels reset', { channel: 'brook#1' })
    expect(operator.store.rules.current.channels).toEqual([])
  })

  test('have proxies that are never shown', async () => {
    expect((await set(one, { proxy: 'http://joe:hunter2@proxy.example:3128' })).proxy).toBe(true)
    expect(operator.store.rules.current.channels[0]!.proxy!.reveal()).toBe('http://joe:hunter2@proxy.example:3128')
    expect((await set(one, { weight: '5' })).proxy).toBe(true)
    expect((await set(one, { proxy: 'none' })).proxy).toBe(false)
    await operator.run('channels reset', { channel: one })
  })

  test('may all be disabled, with a warning', async () => {
    await operator.run('routes set', { name: 'fish', members: ['brook/trout', 'then', 'pool/trout'] })
    expect((await set(one, { disable: true })).warnings).toEqual([])
    const nothingLeft = (provider: string) => `${provider} has no channel left: calls to its models get 503.`
    expect((await set(two, { disable: true })).warnings).toEqual([nothingLeft('brook')])
    const answer = await set(three, { disable: true })
    expect(answer.state).toBe('disabled')
    const dead = 'No channel can serve these model names any more: fish.'
    expect(answer.warnings).toEqual([nothingLeft('pool'), dead])
    expect((await set(one, { enable: true })).warnings).toEqual([])
    for (const channel of [one, two, three]) await operator.run('channels reset', { channel })
    await operator.run('routes remove', { name: 'fish' })
  })

  test('that all have weight 0 share the calls, with a warning', async () => {
    expect((await set(one, { weight: '0' })).warnings).toEqual([])
    const shared = expect.stringMatching(/have weight 0, so they share calls equally/)
    expect((await set(two, { weight: '0' })).warnings).toEqual([shared])
    expect((await set(two, { priority: '1' })).warnings).toEqual([shared, shared])
    for (const channel of [one, two]) await operator.run('channels reset', { channel })
  })

  test('pass their settings on to a renewed key', async () => {
    await set(one, { weight: '7', proxy: 'http://joe:hunter2@proxy', tags: 'fast' })
    await operator.reopen({ BROOK_KEY: 'new,two' })
    const fresh = channelId('brook', 'new')
    expect(await row(one)).toMatchObject({ baseUrl: null, health: null, state: 'gone', weight: 7 })
    const move = { from: one, to: fresh }
    await expectRefused('channels move', { from: fresh, to: one }, /^Unknown channel/)
    await expectRefused('channels move', { from: two, to: fresh }, /^The first channel has no settings/)
    await set(two, { weight: '2' })
    await expectRefused('channels move', { from: one, to: two }, /^The second channel has settings/)
    await expectRefused('channels move', { from: two, to: two }, /^The two channels are the same/)
    expect(await operator.run('channels move', move)).toMatchObject({ id: fresh, weight: 7, proxy: true })
    const moved = operator.store.rules.current.channels.find(({ channel }) => channel === fresh)
    expect(moved!.proxy!.reveal()).toBe('http://joe:hunter2@proxy')
    expect(await row(one)).toBeUndefined()
    for (const channel of [fresh, two]) await operator.run('channels reset', { channel })
    await operator.reopen()
  })

  const long = `http://${'x'.repeat(bounds.proxyUrlCharsMax)}`
  const proxies = ['', 'proxy', 'proxy:3128', 'http://', 'http:///x', 'ftp://p', 'file:///etc/passwd', 'http://p/path']
  proxies.push('http://p?x', 'http://p#x', 'http://p q', 'http://p:99999', 'http://[::1', 'http://é', long)
  test.each(proxies)('the proxy %p is refused, and its text is not repeated', async proxy => {
    await expectRefused(
      'channels set',
      { channel: one, proxy },
      /^--proxy is not valid: (it must be an address such as http:\/\/name:password@proxy\.example\.com:3128|it must have at most 1000 characters)\.$/,
    )
  })

  test('the proxy must not be a cloud metadata address', async () => {
    for (const proxy of ['http://169.254.169.254', 'http://joe:hunter2@[fd00:ec2::254]:80', 'http://0xa9fea9fe']) {
      await expectRefused(
        'channels set',
        { channel: one, proxy },
        /^--proxy is not valid: must not be a cloud metadata/,
      )
    }
  })

  test.each([
    ['no channel', { weight: '1' }, /^Unknown channel\. See: weir channels list/],
    ['another channel', { channel: 'brook#zzzzzz', weight: '1' }, /^Unknown channel/],
    ['an unknown position', { channel: 'brook#3', weight: '1' }, /^Unknown channel/],
    ['a provider', { channel: 'brook', weight: '1' }, /^Unknown channel/],
    ['nothing to set', { channel: one }, /^Nothing to change\. Options: --weight/],
    ['a negative weight', { channel: one, weight: '-1' }, /^--weight must be a whole number, not negative\.$/],
    ['a weight of a half', { channel: one, weight: '0.5' }, /^--weight must/],
    ['a weight of nothing', { channel: one, weight: '' }, /^--weight must/],
    [
      'a priority beyond measure',
      { channel: one, priority: '1001' },
      /^--priority is not valid: it must be at most 1000\.$/,
    ],
    ['no calls a minute', { channel: one, rpm: '0' }, /^--rpm is not valid: it must be at least 1\.$/],
    ['no tokens a minute', { channel: one, tpm: '-3' }, /^--tpm must/],
    ['no calls at once', { channel: one, concurrency: 'all' }, /^--concurrency must/],
    ['a tag that is no word', { channel: one, tags: 'EU' }, /^--tags is not valid/],
    ['a tag of SQL', { channel: one, tags: "x'y" }, /^--tags is not valid/],
    [
      'too many tags',
      { channel: one, tags: Array.from({ length: 21 }, (_, at) => `t${at}`).join() },
      /^--tags is not valid: it must have at most 20 items/,
    ],
    ['both', { channel: one, disable: true, enable: true }, /^Use either --disable or --enable, not both\.$/],
    ['one good, one bad', { channel: one, weight: '3', rpm: 'x' }, /^--rpm must/],
  ] as const)('%s is refused', (_name, input, pattern) => expectRefused('channels set', input, pattern))

  test.each(['brook#zzzzzz', '', "'--"])('%p has no health to reset', channel =>
    expectRefused('channels reset', { channel }, /^(This channel has no settings to reset|Unknown channel)/),
  )
})

describe('the rights of a key', () => {
  const set = (more: object) => operator.run('keys set', { key: key.key, ...more })

  test('are set when it is created, and changed', async () => {
    const rights = { allow: 'brook/*, smart', deny: 'brook/p*', require: 'eu,no-training', explain: 'on' }
    const created = await operator.run('keys create', rights)
    const lists = { allows: ['brook/*', 'smart'], denies: ['brook/p*'], requires: ['eu', 'no-training'] }
    const shown = { explains: true, ...lists }
    expect(await operator.run('keys show', { key: created.key })).toMatchObject(shown)
    expect(await operator.run('keys set', { key: created.id, deny: '' })).toMatchObject({ ...shown, denies: null })
    expect(await operator.run('keys set', { key: created.id, strict: 'on' })).toMatchObject({ ...shown, denies: null })
    const none = { allow: '', require: 'none', explain: 'off' }
    const plain = { explains: false, allows: null, denies: null, requires: null }
    expect(await operator.run('keys set', { key: created.id, ...none })).toMatchObject(plain)
    expect(await operator.run('keys show', { key: key.key })).toMatchObject(plain)
  })

  test('get a warning if no model has such a name', async () => {
    const warning = 'No model matches at the moment: brok/*, brook/salmon.'
    expect((await set({ allow: 'brook/*,brok/*', deny: 'brook/salmon' })).warnings).toEqual([warning])
    expect(await set({ allow: 'open/*,open/any,op*,*', deny: 'brook/tr*' })).toMatchObject({ warnings: [] })
    await set({ allow: '', deny: '' })
  })

  test('get a warning if no channel has such a tag', async () => {
    await operator.run('channels set', { channel: one, tags: 'eu' })
    expect((await set({ require: 'eu,uo' })).warnings).toEqual(['No channel has this tag at the moment: uo.'])
    expect(await set({ require: 'eu' })).toMatchObject({ warnings: [] })
    await set({ require: 'none' })
    await operator.run('channels reset', { channel: one })
  })

  test.each([
    [{ allow: 'a b' }, /^--allow is not valid: it must be visible characters/],
    [{ deny: 'é' }, /^--deny is not valid: it must be visible characters/],
    [{ deny: 'x'.repeat(257) }, /^--deny is not valid: it must have at most 256 characters/],
    [
      { allow: Array.from({ length: 51 }, (_, at) => `m${at}`).join() },
      /^--allow is not valid: it must have at most 50 items/,
    ],
    [{ require: 'EU' }, /^--require is not valid: it must be a word of lower-case letters, digits and dashes/],
    [{ explain: 'yes' }, /^--explain must be on or off\.$/],
    [{}, /^Nothing to change\. Options: --name, .*--allow, --deny, --require, .*--explain, --disable, --enable\.$/],
  ])('are refused with %p', (input, pattern) => expectRefused('keys set', { key: key.key, ...input }, pattern))
})

test('all rules are there after a restart, and apply before anything else', async () => {
  await operator.run('limits set', { resource: 'requests', amount: '5/day', model: "a'b%_;--*" })
  await operator.run('routes set', { name: 'q\'%_;--"', members: ['brook/trout'] })
  await operator.run('channels set', { channel: one, disable: true, proxy: 'http://joe:hunter2@proxy' })
  const before = [await rows('limits'), await rows('routes'), await rows('channels')]
  await operator.reopen()
  expect(operator.store.rules.current.limits).toHaveLength(1)
  expect([await rows('limits'), await rows('routes'), await rows('channels')]).toEqual(before)
  expect(before[0]![0]!.model).toBe("a'b%_;--*")
  expect(before[1]![0]!.name).toBe('q\'%_;--"')
  expect(operator.logs.join()).not.toContain('hunter2')
})
