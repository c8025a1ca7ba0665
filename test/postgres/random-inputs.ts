// Random inputs of operations, from few ids and names, so that many of them meet.

import type { ColdName, OperationInput } from '../../src/store/engine/operations.ts'
import { randomFrom } from '../support/chance.ts'

export interface RandomOperation {
  readonly name: ColdName
  readonly input: OperationInput<ColdName>
  /** Its row is needed, so it is not refused because of an expected version. */
  readonly isNeeded?: true
}

type Generators = { readonly [Name in ColdName]?: () => OperationInput<Name> }

export function randomOperations(seed: number, nowMs: () => number): () => RandomOperation {
  const below = randomFrom(seed)
  const pick = <T>(...values: readonly T[]): T => values[below(values.length)]!
  const orNull = <T>(value: T): T | null => (below(2) === 0 ? value : null)
  /** About half of the fields. */
  const some = <T extends object>(fields: T): Partial<T> =>
    Object.fromEntries(Object.entries(fields).filter(() => below(2) === 0)) as Partial<T>
  let lastId = 1_000_000_000_000
  const newId = (): number => ++lastId
  const hex = (bytes: number): string => Buffer.from(Array.from({ length: bytes }, () => below(256))).toString('hex')
  const base64 = (bytes: number): string => Buffer.from(hex(bytes), 'hex').toString('base64')

  const account = (): number => pick(11, 12, 13, 14)
  const key = (): number => pick(21, 22, 23, 24)
  const person = (): number => pick(31, 32, 33)
  const token = (): number => pick(41, 42)
  const webhook = (): number => pick(51, 52, 53)
  const tier = (): string => pick('free', 'standard', 'pro', 'gold', 'none')
  const name = (): string => pick('Alice', 'alice', 'Übermut 😀', 'b%_', '')
  const scope = () => orNull({ actorId: pick(person(), token()), rank: pick(1, 2, 3) })
  const actorId = (): number => pick(0, 0, person(), token())
  const session = () => ({ id: newId(), refresh: hex(32), address: '1.2.3.4', place: '1.2.3.4', agent: 'a' })
  const newPerson = () => ({ id: person(), email: pick('a@x', 'b@x', 'c@x'), name: name(), password: 'hash' })
  const funds = () => ({ tier: tier(), credit: pick('0', '5000000000', '9007199254740993') as `${bigint}` })
  const keySettings = () =>
    some({ qpm: orNull(below(100) + 1), strict: pick(true, false), allows: orNull(['a/*', 'b']), expiresMs: orNull(5) })
  const channel = (): string => pick('openai#1', 'openai#ch_a', 'openai#ch_b', 'azure#ch_c')
  const origin = (): string => pick('https://a', 'https://b')
  const code = () => {
    const digit = pick(1, 2, 3, 4)
    return { id: 60 + digit, digest: String(digit).repeat(64) }
  }

  const generators: Generators = {
    createAccount: () => ({
      id: account(),
      name: name(),
      type: pick('team', 'personal'),
      uniqueName: pick(true, false),
    }),
    setAccount: () => ({
      id: account(),
      scope: scope(),
      ...some({ name: name(), kind: pick('prepaid', 'postpaid'), frozen: pick(true, false), tier: orNull(tier()) }),
      ...some({ creditLimit: pick('0', '70000000') as `${bigint}`, denies: orNull(['x']) }),
    }),
    setBudget: () => ({
      scopeId: pick(account(), key()),
      span: pick('total', 'day', 'month'),
      cap: orNull(pick('0', '100', '2305843009213693952') as `${bigint}`),
      scope: scope(),
      isThere: pick(true, false),
    }),
    createKey: () => ({
      ...{ id: key(), accountId: account(), existing: pick(true, true, false), digest: hex(32), pepper: 'aabbccdd' },
      ...{ suffix: 'abcd', name: name(), ...keySettings(), ...funds(), tier: orNull(tier()), creditRef: newId() },
      scope: scope(),
    }),
    setPlaygroundKey: () => ({
      ...{ id: key(), accountId: account(), playgroundOf: pick('usr_a', 'usr_b'), digest: hex(32), pepper: 'p' },
      ...{ suffix: 'abcd', expiresMs: 5_000, budget: '1000', scope: scope() },
    }),
    setKey: () => ({
      id: key(),
      scope: scope(),
      ...keySettings(),
      ...some({ name: name(), tier: tier(), disabled: true }),
    }),
    rotateKey: () => ({
      id: key(),
      digest: hex(32),
      pepper: 'p',
      suffix: 's',
      untilMs: orNull(nowMs() + 5),
      scope: scope(),
    }),
    revokeKey: () => ({ id: key(), scope: scope() }),
    post: () => ({
      ...{ kind: pick('top_up', 'gift', 'adjustment'), ref: pick(newId(), 7, 8), accountId: account() },
      ...{ amount: pick('1', '20000000', '2305843009213693952'), reference: orNull(pick('r1', 'r2')), author: 'usr_1' },
    }),
    createCodes: () => ({
      codes: [code()],
      ...{ pepper: 'p', batch: pick('x', 'y'), amount: '1000', author: 'a', expiresMs: null, isNew: pick(true, false) },
    }),
    redeemCode: () => ({ digests: [hex(32), code().digest], accountId: account(), scope: scope() }),
    voidCodes: () => pick({ batch: pick('x', 'y') }, { id: pick(61, 62, 63, 64) }),
    addPrices: () => ({ prices: [{ model: pick('m', 'n'), origin: 'operator', price: '{"a":1}', author: name() }] }),
    setSetting: () => ({ name: pick('s', 't'), value: name() }),
    setSite: () => ({ changes: some({ title: name(), open: pick(true, null) }) }),
    setTier: () => ({
      name: pick('gold', 'free', 'silver'),
      isNew: pick(true, false),
      ...{ qpm: below(100) + 1, pricePerMille: 900, ...some({ accountQpm: 7, accountConcurrency: 8 }) },
    }),
    removeTier: () => ({ name: tier(), nowMs: nowMs() }),
    setLimit: () => ({
      ...{ resource: 'requests', span: pick('minute', 'day'), amount: below(9) + 1, keyId: orNull(key()) },
      ...{
        accountId: orNull(account()),
        tier: orNull(tier()),
        model: orNull('m'),
        per: pick([], ['key']),
        author: 'a',
      },
      ...(below(3) === 0 && { isNew: true as const }),
    }),
    changeLimit: () => ({ id: below(6), amount: below(9) + 1, author: 'b' }),
    removeLimit: () => ({ id: below(6) }),
    setRoute: () => ({ name: pick('r', 's'), policy: pick('priority', 'random'), members: [], author: 'a' }) as never,
    removeRoute: () => ({ name: pick('r', 's') }),
    setChannels: () => ({
      author: 'a',
      // A channel may be listed twice.
      changes: [channel(), channel()]
        .slice(below(2))
        .map(id => ({
          channel: id,
          ...some({ weight: below(5), tags: pick([], ['eu']), proxy: orNull(base64(40)), origin: origin() }),
          ...some({ credential: { sealed: base64(40), fingerprint: 'f' }, origin: origin() }),
        }))
        .map(change => ('credential' in change ? { ...change, origin: change.origin ?? origin() } : change)),
    }),
    createChannels: () => ({
      author: 'a',
      channels: [pick('openai#ch_a', 'openai#ch_b'), 'azure#ch_c'].slice(below(2)).map(id => ({
        ...{ channel: id, provider: pick('openai', 'azure') },
        setting: {
          name: pick('one', 'two'),
          baseUrl: orNull('https://a/v1'),
          headers: {},
          parameters: {},
          times: {},
        },
        ...{ origin: origin(), credential: { sealed: base64(40), fingerprint: 'f' } },
      })),
    }),
    resetChannel: () => ({ channel: channel(), author: 'b' }),
    removeChannels: () => ({ channels: [channel(), channel()].slice(below(2)) }),
    setProvider: () => ({
      ...{ id: pick('openai', 'azure'), definition: `{"n":"${name()}"}`, isNew: pick(true, false), author: 'a' },
      origin: orNull(origin()),
    }),
    removeProvider: () => ({ id: pick('openai', 'azure'), origin: orNull(origin()), replaces: pick(true, false) }),
    createWebhook: () => ({
      ...{ id: webhook(), accountId: orNull(account()), scope: scope(), url: pick('https://h/x', 'https://i/x') },
      ...{ events: pick('key.revoked,balance.low', 'account.frozen,balance.empty,budget.low'), secret: base64(50) },
      ...{ origin: 'https://h', author: 'a' },
    }),
    setWebhook: () => ({
      ...{ id: webhook(), scope: scope(), ...some({ url: 'https://i/x', origin: 'https://i', events: 'key.revoked' }) },
      ...some({ disabled: pick(true, false), secret: base64(50), secretFrom: 'env:A', secretMark: 'm' }),
    }),
    removeWebhook: () => ({ id: webhook(), scope: scope() }),
    testWebhook: () => ({ id: webhook(), scope: scope(), dueMs: nowMs() }),
    // The ids of deliveries differ between the databases, and the audit log has them. webhooks.test.ts has real ones.
    sendAgain: () => ({ id: 999_999, webhookId: webhook(), scope: scope(), dueMs: nowMs() }),
    raiseEvent: () => ({ event: pick('key.revoked', 'account.frozen'), accountId: orNull(account()), data: '{}' }),
    setAlert: () => ({
      ...{ accountId: account(), scope: scope(), threshold: orNull(pick('20000000', '5000000000') as `${bigint}`) },
    }),
    register: () => ({
      person: newPerson(),
      account: { id: newId(), ...funds(), creditRef: newId() },
      session: session(),
      nowMs: nowMs(),
    }),
    setPerson: () => ({
      ...{ actorId: actorId(), id: person(), nowMs: nowMs() },
      ...some({
        name: name(),
        email: pick('a@x', 'd@x'),
        role: pick('owner', 'admin', 'member'),
        disabled: pick(true, false),
      }),
    }),
    removePerson: () => ({ actorId: actorId(), id: person(), nowMs: nowMs() }),
    setProfile: () => ({
      id: person(),
      ...some({ name: name(), email: pick('a@x', 'e@x'), preferences: { theme: pick('dark', null) } }),
    }),
    setPassword: () => ({ id: person(), password: 'new', sessionId: null, nowMs: nowMs() }),
    signIn: () => ({
      personId: person(),
      ver: pick(1, 2),
      second: orNull({ step: below(9) }),
      session: session(),
      nowMs: nowMs(),
    }),
    endSessions: () => ({ personId: person(), why: 'signed out', nowMs: nowMs() }) as never,
    forgetSessions: () => ({ nowMs: nowMs() + below(2) * 10 ** 12 }),
    beginTotp: () => ({ personId: person(), sealed: base64(40) }),
    confirmTotp: () => ({ personId: person(), step: 3, codes: [hex(32)], nowMs: nowMs() }),
    removeTotp: () => ({ personId: person() }),
    invite: () => ({
      ...{
        actorId: actorId(),
        nowMs: nowMs(),
        id: newId(),
        digest: hex(32),
        email: 'f@x',
        role: pick('admin', 'member'),
      },
      ...{ member: orNull({ accountId: account(), rank: pick(1, 3) }), expiresMs: nowMs() + 10_000 },
    }),
    setMember: () => ({
      ...{
        actorId: actorId(),
        accountId: account(),
        personId: person(),
        rank: pick(1, 2, 3),
        isNew: pick(true, false),
      },
      nowMs: nowMs(),
    }),
    // It follows no row, so that nothing is written: the audit would find that no such transfers exist.
    closeDay: () => ({
      ...{ accountId: account(), day: below(5), transfers: 1 + below(3), balance: String(below(100)) },
      ...{ lastKind: 'gift', lastRef: below(9), hash: hex(32), previous: hex(32) },
    }),
    removeMember: () => ({ actorId: actorId(), accountId: account(), personId: person(), nowMs: nowMs() }),
    createServiceToken: () => ({
      ...{
        actorId: actorId(),
        scope: scope(),
        id: token(),
        digest: hex(32),
        suffix: 's',
        name: name(),
        creator: 'cli',
      },
      ...pick<{ role: 'admin' | 'member'; member: { accountId: number; rank: number } | null }>(
        { role: 'admin', member: null },
        { role: 'member', member: { accountId: account(), rank: 2 } },
      ),
      expiresMs: orNull(nowMs() + 5),
    }),
    setServiceToken: () => ({
      actorId: actorId(),
      scope: scope(),
      id: token(),
      ...some({ name: name(), expiresMs: null }),
    }),
    rotateServiceToken: () => ({
      ...{
        actorId: actorId(),
        scope: scope(),
        id: token(),
        digest: hex(32),
        suffix: 't',
        untilMs: orNull(nowMs() + 9),
      },
    }),
    revokeServiceToken: () => ({ actorId: actorId(), scope: scope(), id: token() }),
    noteSecrets: () => ({ kind: pick('pepper', 'jwt'), marks: pick(['aaaaaaaa'], ['bbbbbbbb', 'aaaaaaaa']) }),
    orderDeletion: () => ({
      ...{ accountId: orNull(account()), keyId: orNull(key()), endUser: orNull(name()), from: 0, before: newId() },
      ...{ scope: scope(), author: 'a' },
    }),
    keepRecordsFrom: () => ({ id: below(1_000) }),
    deleteRecords: () => ({ ids: [below(100)], rolledSeq: 0, order: { id: below(5), next: orNull(below(50) + 1) } }),
  }
  const names = Object.keys(generators) as ColdName[]
  const first = firstOperations(nowMs)
  return () => {
    const chosen = pick(...names)
    return first.shift() ?? { name: chosen, input: generators[chosen]!() as OperationInput<ColdName> }
  }
}

/** One row of each kind, so that no comparison depends on what chance creates. */
function firstOperations(nowMs: () => number): RandomOperation[] {
  const operation = <Name extends ColdName>(name: Name, input: OperationInput<Name>): RandomOperation => ({
    name,
    input,
    isNeeded: true,
  })
  const digest = (digit: string): string => digit.repeat(64)
  const account = 12
  const funds = { tier: 'standard', credit: '5000000000' as const }
  const session = { id: 71, refresh: digest('a'), address: '1.2.3.4', place: '1.2.3.4', agent: 'a' }
  return [
    operation('createAccount', { id: account, name: 'Alice', type: 'team', uniqueName: false }),
    operation('register', {
      person: { id: 31, email: 'a@x', name: 'Alice', password: 'hash' },
      account: { id: 15, ...funds, creditRef: 72 },
      session,
      nowMs: nowMs(),
    }),
    // No random operation changes this account.
    operation('setBudget', { scopeId: 15, span: 'total', cap: '100', scope: null }),
    operation('setMember', { actorId: 0, accountId: account, personId: 31, rank: 3, isNew: true, nowMs: nowMs() }),
    operation('createKey', {
      ...{ id: 21, accountId: account, existing: true, digest: digest('b'), pepper: 'aabbccdd', suffix: 'abcd' },
      ...{ name: 'Alice', ...funds, creditRef: 73, scope: null },
    }),
    operation('createServiceToken', {
      ...{ actorId: 0, scope: null, id: 41, digest: digest('c'), suffix: 's', name: 'Alice', creator: 'cli' },
      ...{ role: 'member', member: { accountId: account, rank: 2 }, expiresMs: null },
    }),
    operation('createWebhook', {
      ...{ id: 51, accountId: account, scope: null, url: 'https://h/x', origin: 'https://h', events: 'key.revoked' },
      ...{ secret: Buffer.alloc(50).toString('base64'), author: 'a' },
    }),
    operation('testWebhook', { id: 51, scope: null, dueMs: nowMs() }),
    operation('invite', {
      ...{ actorId: 0, nowMs: nowMs(), id: 74, digest: digest('d'), email: 'f@x', role: 'member' },
      ...{ member: { accountId: account, rank: 1 }, expiresMs: nowMs() + 10_000 },
    }),
  ]
}
