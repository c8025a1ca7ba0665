// Every rule that an operator can lay down, and every one that makes no sense: told in a sentence, and nothing written.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import type { Desk } from './desk.ts'
import { openDesk } from './desk.ts'

let desk: Desk
let key: { key: string; id: string; account: string }
let other: typeof key
beforeAll(async () => {
  desk = await openDesk()
  key = (await desk.ask('keys create', { tier: 'pro' })) as typeof key
  other = (await desk.ask('keys create', { tier: 'free' })) as typeof key
})
afterAll(() => desk.close())

const [one, two] = [channelId('brook', 'one'), channelId('brook', 'two')]
const three = channelId('pool', 'three')
const limitsNow = () => desk.store.rules.current.limits
const routesNow = () => desk.store.rules.current.routes
const rows = async (what: 'limits' | 'routes' | 'channels'): Promise<Record<string, unknown>[]> =>
  (await desk.ask(`${what} list`)).data as Record<string, unknown>[]

/** A command that is refused, what it is told, and that nothing was written. */
async function expectRefused(command: string, input: object, says: string | RegExp): Promise<void> {
  const before = JSON.stringify(desk.written())
  expect(await desk.refusal(command, input)).toMatch(says)
  expect(JSON.stringify(desk.written())).toBe(before)
}

describe('limits', () => {
  test('are laid down, changed, listed and removed', async () => {
    const some = { resource: 'requests', amount: '100/minute', per: 'key', tier: 'free', model: 'brook/*' }
    const all = { key: null, account: null, tier: 'free', model: 'brook/*', per: ['key'] }
    const shown = { resource: 'requests', span: 'minute', amount: 100, ...all, managedBy: null }
    const { id } = await desk.ask('limits set', some)
    expect(await desk.ask('limits set', some)).toEqual({ id, ...shown, warnings: [] })
    expect(limitsNow()).toMatchObject([{ id, resource: 'requests', span: 'minute', amount: 100, per: ['key'] }])
    await desk.ask('limits set', { ...some, amount: '7/minute' })
    expect(await rows('limits')).toEqual([{ id, ...shown, amount: 7 }])
    expect(await desk.ask('limits remove', { id: String(id) })).toEqual({})
    expect([limitsNow(), await rows('limits')]).toEqual([[], []])
  })

  test('are for a key, an account or all, each or together', async () => {
    await desk.ask('limits set', { resource: 'tokens', amount: '1000000/day', account: key.key })
    await desk.ask('limits set', { resource: 'concurrency', amount: '8', key: key.id, per: 'model' })
    const requests = { resource: 'requests', amount: '9/day' }
    await desk.ask('limits set', { ...requests, key: key.key, tier: 'pro', account: key.account })
    await desk.ask('limits set', { ...requests, per: 'model,key' })
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
    for (const { id } of limitsNow()) await desk.ask('limits remove', { id })
  })

  test('for a model that nobody has are taken, and it is said', async () => {
    const some = { resource: 'requests', amount: '9/day', model: 'brok/*' }
    const { id, warnings } = await desk.ask('limits set', some)
    expect(warnings).toEqual(['No model matches at the moment: brok/*.'])
    await desk.ask('limits remove', { id })
  })

  const of = (amount: unknown, more: object = {}) => ({ resource: 'requests', amount, ...more })
  const bad: readonly (readonly [name: string, input: object | (() => object), says: RegExp])[] = [
    ['0', of('0/minute'), /^<amount> is not valid: it must be at least 1\.$/],
    ['a negative', of('-5/minute'), /it must be at least 1/],
    ['a fraction', of('1.5/minute'), /it must be a whole number/],
    ['far too much', of('99999999999999999999/minute'), /it must be at most/],
    ['no number', of('many/minute'), /^A limit must be a whole number with its period, such as 100\/minute/],
    ['a number in another way', of('1e3/minute'), /^A limit must be/],
    ['nothing', of(undefined), /^A limit must be/],
    ['no window', of('100'), /needs a window: minute or day/],
    ['an empty window', of('100/'), /^A limit must be/],
    ['another window', of('100/hour'), /^A limit must be/],
    ['two windows', of('100/minute/day'), /^A limit must be/],
    ['concurrency with a window', of('8/minute', { resource: 'concurrency' }), /concurrency has no window/],
    ['concurrency of 0', of('0', { resource: 'concurrency' }), /it must be at least 1/],
    ['another resource', of('8/minute', { resource: 'dollars' }), /one of: requests, tokens, concurrency/],
    ['no resource', { amount: '8/minute' }, /one of: requests, tokens, concurrency/],
    ['an unknown tier', of('8/minute', { tier: "gold' OR '1'='1" }), /^Unknown tier\.$/],
    ['a tier of nothing', of('8/minute', { tier: '' }), /^--tier is not valid: it must have at least 1/],
    ['an unknown key', of('8/minute', { key: 'key_zzzzzzzzzzz' }), /^--key is not valid: it must be an id such as/],
    ['a key that is not there', of('8/minute', { key: 'key_00000000001' }), /^There is no such key or account\.$/],
    ['a key of nothing', of('8/minute', { key: '' }), /^Unknown key\./],
    [
      'an unknown account',
      of('8/minute', { account: 'acc_zzzzzzzzzzz' }),
      /^--account is not valid: it must be an id such as/,
    ],
    ["one of the operator's accounts", of('8/minute', { account: 'revenue' }), /^There is no such key or account\.$/],
    ['a key of another account', () => of('8/minute', { key: key.id, account: other.id }), /would apply to no call/],
    ['a key of another tier', () => of('8/minute', { key: key.id, tier: 'free' }), /would apply to no call/],
    [
      'per something else',
      of('8/minute', { per: 'tier' }),
      /^--per is not valid: it must be one of: key, account, model/,
    ],
    ['a model of nothing', of('8/minute', { model: '' }), /^--model is not valid: it must have at least 1/],
    ['a model with blanks', of('8/minute', { model: 'a b' }), /^--model is not valid: must be visible characters/],
    ['a list of models', of('8/minute', { model: 'a/b,c/d' }), /^--model is not valid/],
    [
      'a model beyond measure',
      of('8/minute', { model: 'x'.repeat(257) }),
      /^--model is not valid: it must have at most 256/,
    ],
  ]
  test.each(bad)('%s is refused', (_name, input, says) =>
    expectRefused('limits set', typeof input === 'function' ? input() : input, says),
  )

  test.each([undefined, '', '0', '-1', '1.5', 'x', '99'])('%p names no limit to remove', id =>
    expectRefused('limits remove', { id }, /^Unknown limit/),
  )
})

describe('names for models', () => {
  const set = (name: unknown, members: string, more: object = {}) =>
    desk.ask('routes set', { name, members: members.split(' '), ...more })

  test('are laid down, changed, listed and removed', async () => {
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
    expect(await desk.ask('routes remove', { name: 'smart' })).toEqual({ warnings: [] })
    expect(routesNow()).toEqual([])
  })

  test('may stand for each other, for any model, and for a model of the same name', async () => {
    await set('fast', 'brook/a:b@c=0 pool/perch')
    await set('best', 'fast then open/x/y:z@1')
    await set('brook/trout', 'brook/trout then pool/trout')
    await set('fish-*', 'brook/* then pool/*')
    expect((await rows('routes')).map(({ name }) => name)).toEqual(['best', 'brook/trout', 'fast', 'fish-*'])
    const { warnings } = await desk.ask('routes remove', { name: 'fast' })
    expect(warnings).toEqual(['"best" still lists this name and now ignores it.'])
    for (const name of ['best', 'brook/trout', 'fish-*']) await desk.ask('routes remove', { name })
  })

  test('to what has no channel yet are taken, and it is said', async () => {
    const none = expect.stringMatching(/^None of these models has a channel yet/)
    expect((await set('later', 'open/x')).warnings).toEqual([none])
    expect((await set('later', 'open/x then pool/trout')).warnings).toEqual([])
    await desk.ask('routes remove', { name: 'later' })
  })

  const many = Array.from({ length: bounds.routeMembersMax + 1 }, (_, at) => `open/m${at}`).join(' ')
  const bad: readonly (readonly [name: string, input: readonly [unknown, string, object?], says: RegExp])[] = [
    ['a loop of one', ['a', 'a'], /^a: there is no such provider and no such model name\.$/],
    ['an unknown provider', ['x', 'lake/trout'], /^lake\/trout: there is no such provider and no such model name\.$/],
    ['an unknown model', ['x', 'brook/salmon'], /^brook\/salmon: Brook has no such model\.$/],
    ['a model of nothing', ['x', 'brook/'], /^brook\/: Brook has no such model\.$/],
    ['a provider alone', ['x', 'brook'], /^brook: there is no such provider/],
    ['an unknown route', ['x', 'smrt'], /^smrt: there is no such provider and no such model name/],
    ['a member of nothing', ['x', ''], /^<members> \(model\) is not valid: it must have at least 1 characters/],
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
    ['a negative weight', ['x', 'brook/trout=-1'], /Brook has no such model/],
    ['a member twice', ['x', 'brook/trout then brook/trout=2'], /^brook\/trout is listed twice\.$/],
    ['too many members', ['x', many], /^<members> is not valid: it must have at most 32 items\.$/],
    ['a member of two stars', ['x*', 'brook/*a*'], /may contain only one \*/],
    ['a star where the name has none', ['x', 'brook/*'], /contains a \*, but the name has none/],
    ['a name of two stars', ['*x*', 'brook/trout'], /may contain only one \*/],
    ['no name', ['', 'brook/trout'], /^A model name must have 1 to 256 visible ASCII characters/],
    ['a name of nobody', [undefined, 'brook/trout'], /^A model name must have/],
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
  test.each(bad)('%s is refused', (_name, [name, members, more], says) =>
    expectRefused('routes set', { name, members: members.split(' '), ...more }, says),
  )

  test('a loop is refused, however long, also where two are laid down at once', async () => {
    await set('a', 'brook/trout')
    await set('b', 'a')
    await set('c', 'b then brook/trout')
    const circle = /^The names refer to each other in a circle: a → c → b → a\.$/
    await expectRefused('routes set', { name: 'a', members: ['c'] }, circle)
    expect(routesNow().find(({ name }) => name === 'a')!.members[0]!.model).toBe('brook/trout')
    await set('d', 'brook/trout')
    const both = await Promise.allSettled([set('a', 'd'), set('d', 'a')])
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    for (const name of ['a', 'b', 'c', 'd']) await desk.ask('routes remove', { name })
  })

  test('a group whose channels are all disabled is refused, and says which', async () => {
    for (const channel of [one, two]) await desk.ask('channels set', { channel, disable: true })
    const says = `No channel can serve this name: these channels are disabled: ${one}, ${two}.`
    await expectRefused('routes set', { name: 'x', members: ['brook/trout', 'brook/perch'] }, says)
    await set('x', 'brook/trout pool/trout')
    await desk.ask('routes remove', { name: 'x' })
    for (const channel of [one, two]) await desk.ask('channels reset', { channel })
  })

  test.each([undefined, '', 'nobody', "'; DROP TABLE model_route; --", '%'])('%p names no route to remove', name =>
    expectRefused('routes remove', { name }, /^Unknown model name/),
  )
})

describe('channels', () => {
  const caps = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null }
  const usual = { weight: 1, priority: 0, ...caps, proxy: false, tags: ['eu'], foreignIds: false }
  const named = { id: one, name: null, baseUrl: 'https://brook.example/v1' }
  const brookOne = { ...named, state: 'enabled', health: null, ...usual }
  const set = (channel: string, more: object) => desk.ask('channels set', { channel, ...more })
  const row = async (channel: string) => (await rows('channels')).find(({ id }) => id === channel)

  test('are listed with what is said of them', async () => {
    expect(await row(one)).toMatchObject(brookOne)
    expect(await row('demo#open')).toMatchObject({ state: 'enabled', tags: [] })
    const all = { weight: '3', priority: '2', rpm: '60', tpm: '100000', concurrency: '8', tags: 'no-training,fast' }
    const set3 = { weight: 3, priority: 2, tokensPerMinute: 100_000, concurrency: 8 }
    const shown = { ...brookOne, ...set3, requestsPerMinute: 60, tags: ['eu', 'no-training', 'fast'] }
    expect(await set(one, all)).toMatchObject({ ...shown, warnings: [] })
    const less = { ...shown, requestsPerMinute: null, tags: ['eu'] }
    expect(await set(one, { rpm: 'none', tags: 'none' })).toMatchObject(less)
    expect(await row(one)).toMatchObject(less)
    expect(desk.store.rules.current.channels).toHaveLength(1)
    expect(await desk.ask('channels reset', { channel: one })).toEqual({})
    expect(await row(one)).toMatchObject(brookOne)
  })

  test('may be named by their place in the list', async () => {
    expect(await set('brook#2', { weight: '2' })).toMatchObject({ id: two, weight: 2 })
    await desk.ask('channels reset', { channel: 'brook#2' })
    expect(desk.store.rules.current.channels).toEqual([])
  })

  test('have proxies that are never shown', async () => {
    expect((await set(one, { proxy: 'http://joe:hunter2@proxy.example:3128' })).proxy).toBe(true)
    expect(desk.store.rules.current.channels[0]!.proxy!.reveal()).toBe('http://joe:hunter2@proxy.example:3128')
    expect((await set(one, { weight: '5' })).proxy).toBe(true)
    expect((await set(one, { proxy: 'none' })).proxy).toBe(false)
    await desk.ask('channels reset', { channel: one })
  })

  test('that are disabled may be the last, which is said', async () => {
    await desk.ask('routes set', { name: 'fish', members: ['brook/trout', 'then', 'pool/trout'] })
    expect((await set(one, { disable: true })).warnings).toEqual([])
    const nothingLeft = (provider: string) => `${provider} has no channel left: calls to its models get 503.`
    expect((await set(two, { disable: true })).warnings).toEqual([nothingLeft('brook')])
    const said = await set(three, { disable: true })
    expect(said.state).toBe('disabled')
    const dead = 'No channel can serve these model names any more: fish.'
    expect(said.warnings).toEqual([nothingLeft('pool'), dead])
    expect((await set(one, { enable: true })).warnings).toEqual([])
    for (const channel of [one, two, three]) await desk.ask('channels reset', { channel })
    await desk.ask('routes remove', { name: 'fish' })
  })

  test('that all have weight 0 share calls, which is said', async () => {
    expect((await set(one, { weight: '0' })).warnings).toEqual([])
    const shared = expect.stringMatching(/have weight 0, so they share calls equally/)
    expect((await set(two, { weight: '0' })).warnings).toEqual([shared])
    expect((await set(two, { priority: '1' })).warnings).toEqual([shared, shared])
    for (const channel of [one, two]) await desk.ask('channels reset', { channel })
  })

  test('hand what is said of them to a renewed key', async () => {
    await set(one, { weight: '7', proxy: 'http://joe:hunter2@proxy', tags: 'fast' })
    await desk.reopen({ BROOK_KEY: 'new,two' })
    const fresh = channelId('brook', 'new')
    expect(await row(one)).toMatchObject({ baseUrl: null, health: null, state: 'gone', weight: 7 })
    const move = { from: one, to: fresh }
    await expectRefused('channels move', { from: fresh, to: one }, /^Unknown channel/)
    await expectRefused('channels move', { from: two, to: fresh }, /^The first channel has no settings/)
    await set(two, { weight: '2' })
    await expectRefused('channels move', { from: one, to: two }, /^The second channel has settings/)
    await expectRefused('channels move', { from: two, to: two }, /^The two channels are the same/)
    expect(await desk.ask('channels move', move)).toMatchObject({ id: fresh, weight: 7, proxy: true })
    const moved = desk.store.rules.current.channels.find(({ channel }) => channel === fresh)
    expect(moved!.proxy!.reveal()).toBe('http://joe:hunter2@proxy')
    expect(await row(one)).toBeUndefined()
    for (const channel of [fresh, two]) await desk.ask('channels reset', { channel })
    await desk.reopen()
  })

  const long = `http://${'x'.repeat(bounds.proxyUrlCharsMax)}`
  const proxies = ['', 'proxy', 'proxy:3128', 'http://', 'http:///x', 'ftp://p', 'file:///etc/passwd', 'http://p/path']
  proxies.push('http://p?x', 'http://p#x', 'http://p q', 'http://p:99999', 'http://[::1', 'http://é', long)
  test.each(proxies)('the proxy %p is refused, and its words are not repeated', async proxy => {
    await expectRefused(
      'channels set',
      { channel: one, proxy },
      /^--proxy is not valid: (must be an address such as http:\/\/name:password@proxy\.example\.com:3128|it must have at most 1000 characters)\.$/,
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
    ['a place that is not there', { channel: 'brook#3', weight: '1' }, /^Unknown channel/],
    ['a provider', { channel: 'brook', weight: '1' }, /^Unknown channel/],
    ['nothing to set', { channel: one }, /^Nothing to change\. Options: --weight/],
    ['a negative weight', { channel: one, weight: '-1' }, /^--weight must be a whole number\.$/],
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
  ] as const)('%s is refused', (_name, input, says) => expectRefused('channels set', input, says))

  test.each(['brook#zzzzzz', '', "'--"])('of %p there is nothing to reset', channel =>
    expectRefused('channels reset', { channel }, /^(This channel has no settings to reset|Unknown channel)/),
  )
})

describe('what a key may use', () => {
  const set = (more: object) => desk.ask('keys set', { key: key.key, ...more })

  test('is set when it is made, and changed', async () => {
    const rights = { allow: 'brook/*, smart', deny: 'brook/p*', require: 'eu,no-training', explain: 'on' }
    const made = await desk.ask('keys create', rights)
    const lists = { allows: ['brook/*', 'smart'], denies: ['brook/p*'], requires: ['eu', 'no-training'] }
    const shown = { explains: true, ...lists }
    expect(await desk.ask('keys show', { key: made.key })).toMatchObject(shown)
    expect(await desk.ask('keys set', { key: made.id, deny: '' })).toMatchObject({ ...shown, denies: null })
    expect(await desk.ask('keys set', { key: made.id, strict: 'on' })).toMatchObject({ ...shown, denies: null })
    const none = { allow: '', require: 'none', explain: 'off' }
    const plain = { explains: false, allows: null, denies: null, requires: null }
    expect(await desk.ask('keys set', { key: made.id, ...none })).toMatchObject(plain)
    expect(await desk.ask('keys show', { key: key.key })).toMatchObject(plain)
  })

  test('is said to be odd where no model has such a name', async () => {
    const says = 'No model matches at the moment: brok/*, brook/salmon.'
    expect((await set({ allow: 'brook/*,brok/*', deny: 'brook/salmon' })).warnings).toEqual([says])
    expect(await set({ allow: 'open/*,open/any,op*,*', deny: 'brook/tr*' })).toMatchObject({ warnings: [] })
    await set({ allow: '', deny: '' })
  })

  test('is said to be odd where no channel has such a tag', async () => {
    await desk.ask('channels set', { channel: one, tags: 'eu' })
    expect((await set({ require: 'eu,uo' })).warnings).toEqual(['No channel has this tag at the moment: uo.'])
    expect(await set({ require: 'eu' })).toMatchObject({ warnings: [] })
    await set({ require: 'none' })
    await desk.ask('channels reset', { channel: one })
  })

  test.each([
    [{ allow: 'a b' }, /^--allow is not valid: must be visible characters/],
    [{ deny: 'é' }, /^--deny is not valid: must be visible characters/],
    [{ deny: 'x'.repeat(257) }, /^--deny is not valid: it must have at most 256 characters/],
    [
      { allow: Array.from({ length: 51 }, (_, at) => `m${at}`).join() },
      /^--allow is not valid: it must have at most 50 items/,
    ],
    [{ require: 'EU' }, /^--require is not valid: must be a word of lower-case letters, digits and dashes/],
    [{ explain: 'yes' }, /^--explain must be on or off\.$/],
    [{}, /^Nothing to change\. Options: --name, .*--allow, --deny, --require, .*--explain, --disable, --enable\.$/],
  ])('%p is refused', (input, says) => expectRefused('keys set', { key: key.key, ...input }, says))
})

test('all of it is there after a restart, and in force before anything else', async () => {
  await desk.ask('limits set', { resource: 'requests', amount: '5/day', model: "a'b%_;--*" })
  await desk.ask('routes set', { name: 'q\'%_;--"', members: ['brook/trout'] })
  await desk.ask('channels set', { channel: one, disable: true, proxy: 'http://joe:hunter2@proxy' })
  const before = [await rows('limits'), await rows('routes'), await rows('channels')]
  await desk.reopen()
  expect(desk.store.rules.current.limits).toHaveLength(1)
  expect([await rows('limits'), await rows('routes'), await rows('channels')]).toEqual(before)
  expect(before[0]![0]!.model).toBe("a'b%_;--*")
  expect(before[1]![0]!.name).toBe('q\'%_;--"')
  expect(desk.logs.join()).not.toContain('hunter2')
})
