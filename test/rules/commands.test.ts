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
  key = (await desk.ask('keys-create', { tier: 'pro' })) as typeof key
  other = (await desk.ask('keys-create', { tier: 'free' })) as typeof key
})
afterAll(() => desk.close())

const [one, two] = [channelId('brook', 'one'), channelId('brook', 'two')]
const three = channelId('pool', 'three')
const limitsNow = () => desk.store.rules.current.limits
const routesNow = () => desk.store.rules.current.routes
const rows = async (what: 'limits' | 'routes' | 'channels'): Promise<Record<string, unknown>[]> =>
  (await desk.ask(`${what}-list`))[what] as Record<string, unknown>[]

/** A command that is refused, what it is told, and that nothing was written. */
async function expectRefused(command: string, input: object, says: string | RegExp): Promise<void> {
  const before = JSON.stringify(desk.written())
  expect(await desk.refusal(command, input)).toMatch(says)
  expect(JSON.stringify(desk.written())).toBe(before)
}

describe('limits', () => {
  test('are laid down, changed, listed and removed', async () => {
    const some = { resource: 'requests', amount: '100/minute', per: 'key', tier: 'free', model: 'brook/*' }
    const shown = { limit: '100 requests/minute', for: 'tier free, model brook/*', per: 'key' }
    const { id } = await desk.ask('limits-set', some)
    expect(await desk.ask('limits-set', some)).toEqual({ id, ...shown, state: 'changed' })
    expect(limitsNow()).toMatchObject([{ id, resource: 'requests', span: 'minute', amount: 100, per: ['key'] }])
    await desk.ask('limits-set', { ...some, amount: '7/minute' })
    expect(await rows('limits')).toEqual([{ id, ...shown, limit: '7 requests/minute' }])
    expect(await desk.ask('limits-remove', { id: String(id) })).toEqual({ id, state: 'removed' })
    expect([limitsNow(), await rows('limits')]).toEqual([[], []])
  })

  test('are for a key, an account or all, each or together', async () => {
    await desk.ask('limits-set', { resource: 'tokens', amount: '1000000/day', account: key.key })
    await desk.ask('limits-set', { resource: 'concurrency', amount: '8', key: key.id, per: 'model' })
    const requests = { resource: 'requests', amount: '9/day' }
    await desk.ask('limits-set', { ...requests, key: key.key, tier: 'pro', account: key.account })
    await desk.ask('limits-set', { ...requests, per: 'model,key' })
    expect((await rows('limits')).map(row => [row.limit, row.for, row.per])).toEqual([
      ['1000000 tokens/day', key.account, 'all of them'],
      ['8 concurrency', key.id, 'model'],
      ['9 requests/day', `${key.id}, ${key.account}, tier pro`, 'all of them'],
      ['9 requests/day', 'all calls', 'key, model'],
    ])
    for (const { id } of limitsNow()) await desk.ask('limits-remove', { id })
  })

  test('for a model that nobody has are taken, and it is said', async () => {
    const some = { resource: 'requests', amount: '9/day', model: 'brok/*' }
    const { id, warning } = await desk.ask('limits-set', some)
    expect(warning).toBe('No model matches at the moment: brok/*.')
    await desk.ask('limits-remove', { id })
  })

  const of = (amount: unknown, more: object = {}) => ({ resource: 'requests', amount, ...more })
  const bad: readonly (readonly [name: string, input: object | (() => object), says: RegExp])[] = [
    ['0', of('0/minute'), /whole number from 1 to/],
    ['a negative', of('-5/minute'), /whole number from 1 to/],
    ['a fraction', of('1.5/minute'), /whole number from 1 to/],
    ['far too much', of('99999999999999999999/minute'), /whole number from 1 to/],
    ['no number', of('many/minute'), /^A limit must be a whole number with its period, such as 100\/minute/],
    ['a number in another way', of('1e3/minute'), /^A limit must be/],
    ['nothing', of(undefined), /^A limit must be/],
    ['no window', of('100'), /needs a window: minute or day/],
    ['an empty window', of('100/'), /^A limit must be/],
    ['another window', of('100/hour'), /^A limit must be/],
    ['two windows', of('100/minute/day'), /^A limit must be/],
    ['concurrency with a window', of('8/minute', { resource: 'concurrency' }), /concurrency has no window/],
    ['concurrency of 0', of('0', { resource: 'concurrency' }), /whole number from 1 to/],
    ['another resource', of('8/minute', { resource: 'dollars' }), /requests, tokens or concurrency/],
    ['no resource', { amount: '8/minute' }, /requests, tokens or concurrency/],
    ['an unknown tier', of('8/minute', { tier: "gold' OR '1'='1" }), /^Unknown tier\.$/],
    ['a tier of nothing', of('8/minute', { tier: '' }), /--tier must have 1 to/],
    ['an unknown key', of('8/minute', { key: 'key_zzzzzzzzzzz' }), /^Unknown key\./],
    ['a key of nothing', of('8/minute', { key: '' }), /^Unknown key\./],
    ['an unknown account', of('8/minute', { account: 'acc_zzzzzzzzzzz' }), /^Unknown account\./],
    ["one of the operator's accounts", of('8/minute', { account: 'revenue' }), /one of the operator's own accounts/],
    ['a key of another account', () => of('8/minute', { key: key.id, account: other.id }), /would apply to no call/],
    ['a key of another tier', () => of('8/minute', { key: key.id, tier: 'free' }), /would apply to no call/],
    ['per something else', of('8/minute', { per: 'tier' }), /^--per must be a list of key, account and model/],
    ['per the same twice', of('8/minute', { per: 'key,key' }), /^--per must be/],
    ['a model of nothing', of('8/minute', { model: '' }), /^--model must have 1 to 256 visible characters/],
    ['a model with blanks', of('8/minute', { model: 'a b' }), /^--model must/],
    ['a list of models', of('8/minute', { model: 'a/b,c/d' }), /^--model must/],
    ['a model beyond measure', of('8/minute', { model: 'x'.repeat(257) }), /^--model must/],
  ]
  test.each(bad)('%s is refused', (_name, input, says) =>
    expectRefused('limits-set', typeof input === 'function' ? input() : input, says),
  )

  test.each([undefined, '', '0', '-1', '1.5', 'x', '99'])('%p names no limit to remove', id =>
    expectRefused('limits-remove', { id }, /^(The id of a limit must be|Unknown limit)/),
  )
})

describe('names for models', () => {
  const set = (name: unknown, members: string, more: object = {}) =>
    desk.ask('routes-set', { name, members: members.split(' '), ...more })

  test('are laid down, changed, listed and removed', async () => {
    const members = 'brook/trout=3 pool/trout then open/anything'
    expect(await set('smart', members)).toEqual({ name: 'smart', policy: 'balanced', members })
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
    expect(await rows('routes')).toEqual([{ name: 'smart', policy: 'cheapest', members: 'brook/trout' }])
    expect(await desk.ask('routes-remove', { name: 'smart' })).toEqual({ name: 'smart', state: 'removed' })
    expect(routesNow()).toEqual([])
  })

  test('may stand for each other, for any model, and for a model of the same name', async () => {
    await set('fast', 'brook/a:b@c=0 pool/perch')
    await set('best', 'fast then open/x/y:z@1')
    await set('brook/trout', 'brook/trout then pool/trout')
    await set('fish-*', 'brook/* then pool/*')
    expect((await rows('routes')).map(({ name }) => name)).toEqual(['best', 'brook/trout', 'fast', 'fish-*'])
    const { warning } = await desk.ask('routes-remove', { name: 'fast' })
    expect(warning).toBe('"best" still lists this name and now ignores it.')
    for (const name of ['best', 'brook/trout', 'fish-*']) await desk.ask('routes-remove', { name })
  })

  test('to what has no channel yet are taken, and it is said', async () => {
    expect((await set('later', 'open/x')).warning).toMatch(/^None of these models has a channel yet/)
    expect(await set('later', 'open/x then pool/trout')).not.toHaveProperty('warning')
    await desk.ask('routes-remove', { name: 'later' })
  })

  const many = Array.from({ length: bounds.routeMembersMax + 1 }, (_, at) => `open/m${at}`).join(' ')
  const bad: readonly (readonly [name: string, input: readonly [unknown, string, object?], says: RegExp])[] = [
    ['a loop of one', ['a', 'a'], /^a: there is no such provider and no such model name\.$/],
    ['an unknown provider', ['x', 'lake/trout'], /^lake\/trout: there is no such provider and no such model name\.$/],
    ['an unknown model', ['x', 'brook/salmon'], /^brook\/salmon: Brook has no such model\.$/],
    ['a model of nothing', ['x', 'brook/'], /^brook\/: Brook has no such model\.$/],
    ['a provider alone', ['x', 'brook'], /^brook: there is no such provider/],
    ['an unknown route', ['x', 'smrt'], /^smrt: there is no such provider and no such model name/],
    ['a member of nothing', ['x', ''], /^A model of x must have 1 to 256 visible ASCII characters/],
    ['nothing but then', ['x', 'then'], /^"then" must be between/],
    ['then at the end', ['x', 'brook/trout then'], /^"then" must be between/],
    ['then twice', ['x', 'brook/trout then then pool/trout'], /^"then" must be between/],
    [
      'weights of 0',
      ['x', 'brook/trout=0 pool/trout=0'],
      /^The weights of x in priority 0 add up to 0; at least one must be larger\.$/,
    ],
    ['weights of 0 behind others', ['x', 'brook/trout then pool/trout=0'], /in priority 1 add up to 0/],
    ['a weight beyond measure', ['x', 'brook/trout=1000001'], /^A weight must be at most 1000000\.$/],
    ['a negative weight', ['x', 'brook/trout=-1'], /Brook has no such model/],
    ['a member twice', ['x', 'brook/trout then brook/trout=2'], /^brook\/trout is listed twice\.$/],
    ['too many members', ['x', many], /^A model name needs 1 to 32 members\.$/],
    ['a member of two stars', ['x*', 'brook/*a*'], /may contain only one \*/],
    ['a star where the name has none', ['x', 'brook/*'], /contains a \*, but the name has none/],
    ['a name of two stars', ['*x*', 'brook/trout'], /may contain only one \*/],
    ['no name', ['', 'brook/trout'], /^A name must have 1 to 256 visible ASCII characters/],
    ['a name of nobody', [undefined, 'brook/trout'], /^A name must have/],
    ['a name with a comma', ['a,b', 'brook/trout'], /^A model name must not contain a comma/],
    ['a name with blanks', ['a b', 'brook/trout'], /^A name must have/],
    ['a name like a weight', ['a=3', 'brook/trout'], /^A model name must not contain a comma, end in =number/],
    ['the name then', ['then', 'brook/trout'], /^A model name must not .* be "then"\.$/],
    ['a name beyond measure', ['x'.repeat(257), 'brook/trout'], /^A name must have/],
    ['another policy', ['x', 'brook/trout', { policy: 'best' }], /^The policy of x must be one of balanced, w/],
  ]
  test.each(bad)('%s is refused', (_name, [name, members, more], says) =>
    expectRefused('routes-set', { name, members: members.split(' '), ...more }, says),
  )

  test('a loop is refused, however long, also where two are laid down at once', async () => {
    await set('a', 'brook/trout')
    await set('b', 'a')
    await set('c', 'b then brook/trout')
    const circle = /^The names refer to each other in a circle: a → c → b → a\.$/
    await expectRefused('routes-set', { name: 'a', members: ['c'] }, circle)
    expect(routesNow().find(({ name }) => name === 'a')!.members[0]!.model).toBe('brook/trout')
    await set('d', 'brook/trout')
    const both = await Promise.allSettled([set('a', 'd'), set('d', 'a')])
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    for (const name of ['a', 'b', 'c', 'd']) await desk.ask('routes-remove', { name })
  })

  test('a group whose channels are all disabled is refused, and says which', async () => {
    for (const channel of [one, two]) await desk.ask('channels-set', { channel, disable: true })
    const says = `No channel can serve this name: these channels are disabled: ${one}, ${two}.`
    await expectRefused('routes-set', { name: 'x', members: ['brook/trout', 'brook/perch'] }, says)
    await set('x', 'brook/trout pool/trout')
    await desk.ask('routes-remove', { name: 'x' })
    for (const channel of [one, two]) await desk.ask('channels-reset', { channel })
  })

  test.each([undefined, '', 'nobody', "'; DROP TABLE model_route; --", '%'])('%p names no route to remove', name =>
    expectRefused('routes-remove', { name }, /^Unknown model name/),
  )
})

describe('channels', () => {
  const plain = { weight: 1, priority: 0, rpm: null, tpm: null, concurrency: null, proxy: null, tags: ['eu'] }
  const shut = { foreignIds: 'off' }
  const usual = { ...plain, ...shut }
  const named = { channel: one, name: null, host: 'brook.example' }
  const brookOne = { ...named, state: 'enabled', health: 'not running', ...usual }
  const set = (channel: string, more: object) => desk.ask('channels-set', { channel, ...more })
  const row = async (channel: string) => (await rows('channels')).find(each => each.channel === channel)

  test('are listed with what is said of them', async () => {
    expect(await row(one)).toEqual(brookOne)
    expect(await row('demo#open')).toMatchObject({ state: 'enabled', tags: null })
    const all = { weight: '3', priority: '2', rpm: '60', tpm: '100000', concurrency: '8', tags: 'no-training,fast' }
    const shown = { weight: 3, priority: 2, rpm: 60, tpm: 100_000, concurrency: 8, tags: ['eu', 'no-training', 'fast'] }
    expect(await set(one, all)).toEqual({ ...brookOne, ...shown })
    expect(await set(one, { rpm: 'none', tags: 'none' })).toEqual({ ...brookOne, ...shown, rpm: null, tags: ['eu'] })
    expect(await row(one)).toEqual({ ...brookOne, ...shown, rpm: null, tags: ['eu'] })
    expect(desk.store.rules.current.channels).toHaveLength(1)
    expect(await desk.ask('channels-reset', { channel: one })).toEqual({ channel: one, state: 'as any other' })
    expect(await row(one)).toEqual(brookOne)
  })

  test('may be named by their place in the list', async () => {
    expect(await set('brook#2', { weight: '2' })).toMatchObject({ channel: two, weight: 2 })
    expect(await desk.ask('channels-reset', { channel: 'brook#2' })).toMatchObject({ channel: two })
  })

  test('have proxies that are never shown', async () => {
    expect((await set(one, { proxy: 'http://joe:hunter2@proxy.example:3128' })).proxy).toBe('set')
    expect(desk.store.rules.current.channels[0]!.proxy!.reveal()).toBe('http://joe:hunter2@proxy.example:3128')
    expect((await set(one, { weight: '5' })).proxy).toBe('set')
    expect((await set(one, { proxy: 'none' })).proxy).toBeNull()
    await desk.ask('channels-reset', { channel: one })
  })

  test('that are disabled may be the last, which is said', async () => {
    await desk.ask('routes-set', { name: 'fish', members: ['brook/trout', 'then', 'pool/trout'] })
    expect(await set(one, { disable: true })).not.toHaveProperty('warning')
    expect((await set(two, { disable: true })).warning).toBe('brook has no channel left: calls to its models get 503.')
    const said = await set(three, { disable: true })
    expect(said.state).toBe('disabled')
    const none = 'pool has no channel left: calls to its models get 503.'
    expect(said.warning).toBe(`${none} No channel can serve these model names any more: fish.`)
    expect(await set(one, { enable: true })).not.toHaveProperty('warning')
    for (const channel of [one, two, three]) await desk.ask('channels-reset', { channel })
    await desk.ask('routes-remove', { name: 'fish' })
  })

  test('that all have weight 0 share calls, which is said', async () => {
    expect(await set(one, { weight: '0' })).not.toHaveProperty('warning')
    expect((await set(two, { weight: '0' })).warning).toMatch(/have weight 0, so they share calls equally/)
    expect(await set(two, { priority: '1' })).toHaveProperty('warning')
    for (const channel of [one, two]) await desk.ask('channels-reset', { channel })
  })

  test('hand what is said of them to a renewed key', async () => {
    await set(one, { weight: '7', proxy: 'http://joe:hunter2@proxy', tags: 'fast' })
    await desk.reopen({ BROOK_KEY: 'new,two' })
    const fresh = channelId('brook', 'new')
    expect(await row(one)).toMatchObject({ host: null, health: null, state: 'not there', weight: 7 })
    const move = { from: one, to: fresh }
    await expectRefused('channels-move', { from: fresh, to: one }, /^Unknown channel/)
    await expectRefused('channels-move', { from: two, to: fresh }, /^The first channel has no settings/)
    await set(two, { weight: '2' })
    await expectRefused('channels-move', { from: one, to: two }, /^The second channel has settings/)
    await expectRefused('channels-move', { from: two, to: two }, /^The two channels are the same/)
    expect(await desk.ask('channels-move', move)).toMatchObject({ channel: fresh, weight: 7, proxy: 'set' })
    const moved = desk.store.rules.current.channels.find(({ channel }) => channel === fresh)
    expect(moved!.proxy!.reveal()).toBe('http://joe:hunter2@proxy')
    expect(await row(one)).toBeUndefined()
    for (const channel of [fresh, two]) await desk.ask('channels-reset', { channel })
    await desk.reopen()
  })

  const long = `http://${'x'.repeat(bounds.proxyUrlCharsMax)}`
  const proxies = ['', 'proxy', 'proxy:3128', 'http://', 'http:///x', 'ftp://p', 'file:///etc/passwd', 'http://p/path']
  proxies.push('http://p?x', 'http://p#x', 'http://p q', 'http://p:99999', 'http://[::1', 'http://é', long)
  test.each(proxies)('the proxy %p is refused, and its words are not repeated', async proxy => {
    await expectRefused('channels-set', { channel: one, proxy }, /^--proxy must be none, or an address such as/)
  })

  test('the proxy must not be a cloud metadata address', async () => {
    for (const proxy of ['http://169.254.169.254', 'http://joe:hunter2@[fd00:ec2::254]:80', 'http://0xa9fea9fe']) {
      await expectRefused('channels-set', { channel: one, proxy }, /^--proxy must not be a cloud metadata/)
    }
  })

  test.each([
    ['no channel', {}, /^Unknown channel\. See: weir channels list/],
    ['another channel', { channel: 'brook#zzzzzz', weight: '1' }, /^Unknown channel/],
    ['a place that is not there', { channel: 'brook#3', weight: '1' }, /^Unknown channel/],
    ['a provider', { channel: 'brook', weight: '1' }, /^Unknown channel/],
    ['nothing to set', { channel: one }, /^Nothing to change\. Options: --weight/],
    ['a negative weight', { channel: one, weight: '-1' }, /^--weight must be a whole number from 0 to 1000000\.$/],
    ['a weight of a half', { channel: one, weight: '0.5' }, /^--weight must/],
    ['a weight of nothing', { channel: one, weight: '' }, /^--weight must/],
    ['a priority beyond measure', { channel: one, priority: '1001' }, /^--priority must be .* from 0 to 1000\.$/],
    ['no calls a minute', { channel: one, rpm: '0' }, /^--rpm must be a whole number from 1 to 1000000000, or none\.$/],
    ['no tokens a minute', { channel: one, tpm: '-3' }, /^--tpm must/],
    ['no calls at once', { channel: one, concurrency: 'all' }, /^--concurrency must/],
    ['a tag that is no word', { channel: one, tags: 'EU' }, /^--tags must be at most 20 words of lower-case letters/],
    ['a tag of SQL', { channel: one, tags: "x'y" }, /^--tags must/],
    [
      'too many tags',
      { channel: one, tags: Array.from({ length: 21 }, (_, at) => `t${at}`).join() },
      /at most 20 words/,
    ],
    ['both', { channel: one, disable: true, enable: true }, /^Use either --disable or --enable, not both\.$/],
    ['one good, one bad', { channel: one, weight: '3', rpm: 'x' }, /^--rpm must/],
  ] as const)('%s is refused', (_name, input, says) => expectRefused('channels-set', input, says))

  test.each(['brook#zzzzzz', '', "'--"])('of %p there is nothing to reset', channel =>
    expectRefused('channels-reset', { channel }, /^This channel has no settings to reset/),
  )
})

describe('what a key may use', () => {
  const set = (more: object) => desk.ask('keys-set', { key: key.key, ...more })

  test('is set when it is made, and changed', async () => {
    const rights = { allow: 'brook/*, smart', deny: 'brook/p*', require: 'eu,no-training', explain: 'on' }
    const made = await desk.ask('keys-create', rights)
    const lists = { allow: ['brook/*', 'smart'], deny: ['brook/p*'], require: ['eu', 'no-training'] }
    const shown = { explain: 'on', ...lists }
    expect(await desk.ask('keys-show', { key: made.key })).toMatchObject(shown)
    expect(await desk.ask('keys-set', { key: made.id, deny: '' })).toMatchObject({ ...shown, deny: null })
    expect(await desk.ask('keys-set', { key: made.id, strict: 'on' })).toMatchObject({ ...shown, deny: null })
    const none = { allow: '', require: 'none', explain: 'off' }
    const plain = { explain: 'off', allow: null, deny: null, require: null }
    expect(await desk.ask('keys-set', { key: made.id, ...none })).toMatchObject(plain)
    expect(await desk.ask('keys-show', { key: key.key })).toMatchObject(plain)
  })

  test('is said to be odd where no model has such a name', async () => {
    const says = 'No model matches at the moment: brok/*, brook/salmon.'
    expect((await set({ allow: 'brook/*,brok/*', deny: 'brook/salmon' })).warning).toBe(says)
    expect(await set({ allow: 'open/*,open/any,op*,*', deny: 'brook/tr*' })).not.toHaveProperty('warning')
    await set({ allow: '', deny: '' })
  })

  test('is said to be odd where no channel has such a tag', async () => {
    await desk.ask('channels-set', { channel: one, tags: 'eu' })
    expect((await set({ require: 'eu,uo' })).warning).toBe('No channel has this tag at the moment: uo.')
    expect(await set({ require: 'eu' })).not.toHaveProperty('warning')
    await set({ require: 'none' })
    await desk.ask('channels-reset', { channel: one })
  })

  test.each([
    [{ allow: 'a b' }, /^Each name of --allow must have 1 to 256 visible characters/],
    [{ deny: 'é' }, /^Each name of --deny must/],
    [{ deny: 'x'.repeat(257) }, /^Each name of --deny must/],
    [{ allow: Array.from({ length: 51 }, (_, at) => `m${at}`).join() }, /^--allow may have at most 50 names\.$/],
    [{ require: 'EU' }, /^--require must be at most 20 words/],
    [{ explain: 'yes' }, /^--explain must be on or off\.$/],
    [
      {},
      /^Nothing to change\. Options: --clamp on\|off, .*--explain on\|off, --allow, --deny, --require, .*--enable\.$/,
    ],
  ])('%p is refused', (input, says) => expectRefused('keys-set', { key: key.key, ...input }, says))
})

test('all of it is there after a restart, and in force before anything else', async () => {
  await desk.ask('limits-set', { resource: 'requests', amount: '5/day', model: "a'b%_;--*" })
  await desk.ask('routes-set', { name: 'q\'%_;--"', members: ['brook/trout'] })
  await desk.ask('channels-set', { channel: one, disable: true, proxy: 'http://joe:hunter2@proxy' })
  const before = [await rows('limits'), await rows('routes'), await rows('channels')]
  await desk.reopen()
  expect(desk.store.rules.current.limits).toHaveLength(1)
  expect([await rows('limits'), await rows('routes'), await rows('channels')]).toEqual(before)
  expect(before[0]![0]!.for).toBe("model a'b%_;--*")
  expect(before[1]![0]!.name).toBe('q\'%_;--"')
  expect(desk.logs.join()).not.toContain('hunter2')
})
