// The lists of a configuration file, in the order in which they are applied.

import { usdText } from '../../base/money/money.ts'
import { priceText } from '../../base/money/price.ts'
import { timeOrNull } from '../../base/time.ts'
import { isStrongWebhookSecret, markWebhookSecret } from '../../identity/webhook-secret.ts'
import { limitScopes } from '../../store/rules/rules.ts'
import { DEFAULT_TIER } from '../../store/rules/tier-operations.ts'
import { fingerprintOf } from '../../upstreams/channels.ts'
import { isSendable } from '../../upstreams/signing.ts'
import { readPrice } from '../prices/price-changes.ts'
import { entrySchemas } from './file-schema.ts'
import type { Fields, ManagementClient } from './requests.ts'
import { findOrUndefined, listAll, listNamed } from './requests.ts'
import type { ApplyContext, Current, EntryChanges, Subject } from './subject.ts'
import { mapValues, newValues, pickFields } from './subject.ts'

const WEB = '/api/web'
const fieldsOf = (list: keyof typeof entrySchemas): readonly string[] => Object.keys(entrySchemas[list].shape)

const asText = (value: unknown): string => String(value ?? '')

const providers: Subject = {
  list: 'providers',
  noun: 'provider',
  fixed: ['id'],
  complete: fields => fields,
  idOf: ({ id }) => asText(id),
  labelOf: ({ id }) => asText(id),
  async read(client) {
    const rows = await listAll(client, `${WEB}/providers`, { from: 'own' })
    return await Promise.all(
      rows.map(async ({ id }) => {
        const path = `${WEB}/providers/${asText(id)}`
        return { id: asText(id), label: asText(id), path, fields: (await client.get(path)).definition as Fields }
      }),
    )
  },
  create: ({ client }, { wanted }) => client('POST', `${WEB}/providers`, { definition: wanted.fields }),
  // Null removes a field that the file no longer has.
  change: ({ client }, { path }, { changes }) =>
    client('PATCH', path, {
      definition: Object.fromEntries(Object.entries(changes).map(([name, [, after = null]]) => [name, after])),
    }),
  remove: (client, { path }) => client('DELETE', path),
}

const tiers: Subject = {
  list: 'tiers',
  noun: 'tier',
  fixed: ['name'],
  complete: fields => ({
    pricePerMille: 1_000,
    accountQpm: Math.min(10 * Number(fields.qpm), 1_000_000_000),
    accountConcurrency: 500,
    ...fields,
  }),
  idOf: ({ name }) => asText(name),
  labelOf: ({ name }) => asText(name),
  read: async client =>
    (await listAll(client, `${WEB}/tiers`)).map(row => ({
      id: asText(row.name),
      label: asText(row.name),
      path: `${WEB}/tiers/${asText(row.name)}`,
      fields: pickFields(row, fieldsOf('tiers')),
      inUse: Number(row.keys) > 0 ? `${asText(row.keys)} keys have it` : undefined,
      isPermanent: row.name === DEFAULT_TIER,
    })),
  create: ({ client }, { wanted }) => client('POST', `${WEB}/tiers`, wanted.fields),
  change: ({ client }, { path }, { changes }) => client('PATCH', path, newValues(changes)),
  remove: (client, { path }) => client('DELETE', path),
}

/** Budgets by their span. */
async function budgetsOf(client: ManagementClient, path: string): Promise<Fields> {
  const { data } = await client.get(`${path}/budgets`)
  return Object.fromEntries((data as readonly Fields[]).map(({ span, cap }) => [asText(span), cap]))
}

async function writeBudgets({ client }: ApplyContext, path: string, changes: EntryChanges): Promise<void> {
  const [before = {}, after = {}] = (changes.budgets ?? []) as readonly Fields[]
  for (const [span, cap] of Object.entries(after)) {
    if (before[span] !== cap) await client('PUT', `${path}/budgets/${span}`, { cap })
  }
  for (const span of Object.keys(before)) {
    if (after[span] === undefined) await client('DELETE', `${path}/budgets/${span}`)
  }
}

const accountDefaults = {
  kind: 'prepaid',
  creditLimit: usdText('0'),
  keepsBodies: false,
  tier: null,
  allows: null,
  denies: null,
}

async function currentAccount(client: ManagementClient, row: Fields): Promise<Current> {
  const path = `${WEB}/accounts/${asText(row.id)}`
  const fields = { ...pickFields(row, fieldsOf('accounts')), budgets: await budgetsOf(client, path) }
  return { id: asText(row.id), label: asText(row.name), path, fields }
}

/** An entry cannot be matched with what the gateway has. */
export class EntryProblem extends Error {}

/** The account of a team with this name, or any account with this id. */
export async function findAccount(
  client: ManagementClient,
  { id, name }: { readonly id?: unknown; readonly name?: unknown },
): Promise<Fields | undefined> {
  if (id !== undefined) return await findOrUndefined(client, `${WEB}/accounts/${asText(id)}`)
  const [first, ...others] = await listNamed(client, `${WEB}/accounts`, { name, type: 'team' })
  if (others.length > 0) {
    const ids = [first!.id, ...others.map(row => row.id)].join(', ')
    throw new EntryProblem(`several accounts have the name "${asText(name)}": ${ids}. Write the id of one of them.`)
  }
  return first
}

const accounts: Subject = {
  list: 'accounts',
  noun: 'account',
  fixed: ['id'],
  complete: ({ creditLimit, budgets, ...fields }) => ({
    ...accountDefaults,
    ...fields,
    ...(creditLimit !== undefined && { creditLimit: usdText(asText(creditLimit)) }),
    budgets: mapValues(budgets, (cap: string) => usdText(cap)),
  }),
  idOf: ({ id, name }) => asText(id ?? name),
  labelOf: ({ name }) => asText(name),
  async read(client) {
    const rows = await listAll(client, `${WEB}/accounts`, { type: 'team', sort: 'created' })
    const found: Current[] = []
    for (const row of rows) found.push(await currentAccount(client, row))
    return found
  },
  async find(client, fields) {
    const row = await findAccount(client, fields)
    return row && (await currentAccount(client, row))
  },
  async create(context, { wanted, changes }) {
    const { budgets: _, ...account } = wanted.fields
    // Two who apply the same file at the same time must not make two accounts.
    const uniqueName = account.id === undefined
    const { id, warnings } = await context.client('POST', `${WEB}/accounts`, { ...account, uniqueName })
    context.created(wanted.id, asText(id))
    await writeBudgets(context, `${WEB}/accounts/${asText(id)}`, changes)
    return { warnings }
  },
  async change(context, { path }, { changes }) {
    const others = newValues(changes, ['budgets'])
    const answer = Object.keys(others).length === 0 ? {} : await context.client('PATCH', path, others)
    await writeBudgets(context, path, changes)
    return answer
  },
}

async function currentKey(client: ManagementClient, row: Fields): Promise<Current> {
  const path = `${WEB}/keys/${asText(row.id)}`
  const fields = { ...pickFields(row, fieldsOf('keys')), budgets: await budgetsOf(client, path) }
  const leftOut = () => Promise.resolve(hasExpired(row) ? 'expired keys' : undefined)
  return { id: asText(row.id), label: asText(row.name), path, fields, names: { account: row.accountName }, leftOut }
}

/** A disabled key can have expired, too, and its state does not say so. */
export const hasExpired = ({ expires }: Fields): boolean =>
  expires !== null && Date.parse(asText(expires)) <= Date.now()

/** Whether a limit or webhook has an owner that a file does not describe: "limits of personal accounts". Reads each once. */
function buildOwnerCheck(client: ManagementClient, list: string): (of: Fields) => Promise<string | undefined> {
  const known = new Map<string, Promise<Fields | undefined>>()
  function find(path: string): Promise<Fields | undefined> {
    const row = known.get(path) ?? findOrUndefined(client, path)
    known.set(path, row)
    return row
  }
  return async ({ account, key: keyId }) => {
    const key = typeof keyId === 'string' ? await find(`${WEB}/keys/${keyId}`) : undefined
    if (key?.state === 'revoked') return `${list} of revoked keys`
    if (key !== undefined && hasExpired(key)) return `${list} of expired keys`
    const owners = [account, key?.account].filter(id => typeof id === 'string')
    const rows = await Promise.all(owners.map(id => find(`${WEB}/accounts/${id}`)))
    return rows.some(row => row?.type === 'personal') ? `${list} of personal accounts` : undefined
  }
}

const keyDefaults = Object.fromEntries(
  fieldsOf('keys')
    .filter(name => !['id', 'account', 'name', 'tier', 'budgets'].includes(name))
    .map(name => [name, entrySchemas.keys.shape[name]!.safeParse(null).success ? null : false]),
)

/** The key of an account with this name that is not revoked, or any key with this id. */
export async function findKey(
  client: ManagementClient,
  { id, account, name }: { readonly id?: unknown; readonly account?: unknown; readonly name?: unknown },
): Promise<Fields | undefined> {
  if (id !== undefined) return await findOrUndefined(client, `${WEB}/keys/${asText(id)}`)
  const rows = await listNamed(client, `${WEB}/keys`, { account, name })
  return rows.find(row => row.state !== 'revoked')
}

/**
 * A new key is disabled until its budgets and the limits of the file are set. If the program that applies the file dies
 * before that, the key stays disabled, and the next time that the file is applied enables it.
 */
const enableAtEnd = ({ client, atEnd }: ApplyContext, path: string): void =>
  atEnd(() => client('PATCH', path, { disabled: false }))

const keys: Subject = {
  list: 'keys',
  noun: 'key',
  fixed: ['id', 'account', 'madeByMember'],
  complete: ({ expires, budgets, ...fields }) => ({
    ...keyDefaults,
    ...fields,
    expires: timeOrNull((expires ?? null) as number | null),
    budgets: mapValues(budgets, (cap: string) => usdText(cap)),
  }),
  idOf: ({ id, account, name }) => asText(id ?? `${asText(account)}/${asText(name)}`),
  labelOf: ({ name }) => asText(name),
  async read(client) {
    const teams = new Set((await listAll(client, `${WEB}/accounts`, { type: 'team' })).map(({ id }) => id))
    const rows = await listAll(client, `${WEB}/keys`, { sort: 'created' })
    const found: Current[] = []
    for (const row of rows) {
      if (row.state !== 'revoked' && teams.has(row.account)) found.push(await currentKey(client, row))
    }
    return found
  },
  async find(client, { id, account, name }) {
    // A key of an account that does not exist yet does not exist either.
    if (id === undefined && !/^acc_/.test(asText(account))) return undefined
    const row = await findKey(client, { id, account, name })
    if (row?.state === 'revoked') throw new EntryProblem('this key is revoked for good. Remove the entry.')
    return row && (await currentKey(client, row))
  },
  async create(context, { wanted, changes }) {
    const { budgets: _, disabled, account, ...key } = wanted.fields
    const made = await context.client('POST', `${WEB}/keys`, {
      ...key,
      account: context.idOf(account),
      disabled: true,
    })
    const path = `${WEB}/keys/${asText(made.id)}`
    context.created(wanted.id, asText(made.id))
    await context.showSecret(`key ${wanted.label}`, made.id, made.key)
    await writeBudgets(context, path, changes)
    if (disabled !== true) enableAtEnd(context, path)
    return { warnings: made.warnings }
  },
  async change(context, { path, label }, { changes }) {
    const isEnabled = changes.disabled?.[1] === false
    const others = newValues(changes, ['budgets', ...(isEnabled ? ['disabled'] : [])])
    const answer: Fields = Object.keys(others).length === 0 ? {} : await context.client('PATCH', path, others)
    await writeBudgets(context, path, changes)
    if (!isEnabled) return answer
    enableAtEnd(context, path)
    // A process that ended right after it had created the key has left it disabled, and perhaps has not shown its text.
    const id = path.slice(path.lastIndexOf('/') + 1)
    const note = `The key ${label} is enabled. If nobody has its text, make a new one with: weir keys rotate ${id}`
    return { ...answer, warnings: [...((answer.warnings as readonly string[] | undefined) ?? []), note] }
  },
  remove: (client, { path }) => client('DELETE', path),
  removal: 'revoke',
}

const ruleDefaults = {
  disabled: false,
  weight: 1,
  priority: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  tags: [],
  foreignIds: false,
}
const channelDefaults = { ...ruleDefaults, baseUrl: null, headers: {}, parameters: {}, times: {} }

const channelPath = (id: unknown): string => `${WEB}/channels/${asText(id)}`

/** A proxy may contain a password, and only the operator may set it. */
const proxyNotes = ({ id, proxy }: Fields): readonly string[] =>
  proxy === true ? [`The proxy of the channel ${asText(id)} is not in the file. Set it with: weir channels set`] : []

const channels: Subject = {
  list: 'channels',
  noun: 'channel',
  fixed: ['provider', 'name'],
  secret: {
    field: 'credential',
    from: 'credentialFrom',
    boundTo: ['baseUrl'],
    mark: ({ provider }, secret) => fingerprintOf(asText(provider), secret),
    problemOf: secret =>
      isSendable(secret)
        ? undefined
        : 'the credential must be visible ASCII characters or JSON, without line breaks and without quotes around it.',
  },
  complete: fields => ({ ...channelDefaults, ...fields }),
  idOf: ({ provider, name }) => `${asText(provider)}/${asText(name)}`,
  labelOf: ({ provider, name }) => `${asText(provider)}/${asText(name)}`,
  read: async client =>
    (await listAll(client, `${WEB}/channels`, { from: 'stored' })).map(row => ({
      id: `${asText(row.provider)}/${asText(row.name)}`,
      label: `${asText(row.provider)}/${asText(row.name)}`,
      path: channelPath(row.id),
      fields: {
        ...pickFields(row, fieldsOf('channels')),
        baseUrl: row.ownBaseUrl,
        tags: row.ownTags,
        credential: (row.credential as { readonly fingerprint: string } | null)?.fingerprint ?? null,
        credentialFrom: row.credentialFrom,
      },
      notes: proxyNotes(row),
    })),
  create({ client }, { wanted, secret }) {
    const { credential: _, credentialFrom, ...channel } = wanted.fields
    const credentials = secret === undefined ? {} : { credentials: [secret.reveal()], credentialFrom }
    return client('POST', `${WEB}/channels`, { ...channel, ...credentials })
  },
  change({ client }, { path }, { wanted, changes, secret }) {
    const credential =
      secret === undefined ? {} : { credential: secret.reveal(), credentialFrom: wanted.fields.credentialFrom }
    return client('PATCH', path, { ...newValues(changes, ['credential']), ...credential })
  },
  remove: (client, { path }) => client('DELETE', path),
}

const environmentChannels: Subject = {
  list: 'environmentChannels',
  noun: 'environment channel',
  fixed: ['id'],
  complete: fields => ({ ...ruleDefaults, ...fields }),
  idOf: ({ id }) => asText(id),
  labelOf: ({ id }) => asText(id),
  read: async client =>
    (await listAll(client, `${WEB}/channels`, { from: 'environment' })).map(row => ({
      id: asText(row.id),
      label: asText(row.id),
      path: channelPath(row.id),
      fields: { ...pickFields(row, fieldsOf('environmentChannels')), tags: row.ownTags },
      notes: proxyNotes(row),
    })),
  // A channel is created by its key in the environment, so an entry for an unknown one is refused before this.
  create: () => Promise.reject(new Error('a channel of the environment cannot be created')),
  change: ({ client }, { path }, { changes }) => client('PATCH', path, newValues(changes)),
  remove: (client, { path }) => client('POST', `${path}/reset`),
  removal: 'reset',
}

const modelNames: Subject = {
  list: 'modelNames',
  noun: 'model name',
  fixed: ['name'],
  complete: ({ members, ...fields }) => ({
    policy: 'balanced',
    ...fields,
    members: (members as readonly (string | Fields)[]).map(member =>
      typeof member === 'string' ? { model: member, priority: 0, weight: 1 } : member,
    ),
  }),
  idOf: ({ name }) => asText(name),
  labelOf: ({ name }) => asText(name),
  read: async client =>
    (await listAll(client, `${WEB}/routes`)).map(row => ({
      id: asText(row.name),
      label: asText(row.name),
      path: `${WEB}/routes/${asText(row.name)}`,
      fields: pickFields(row, fieldsOf('modelNames')),
    })),
  create: ({ client }, { wanted }) => setModelName(client, wanted.fields),
  change: ({ client }, _, { wanted }) => setModelName(client, wanted.fields),
  remove: (client, { path }) => client('DELETE', path),
}

const setModelName = (client: ManagementClient, { name, ...route }: Fields): Promise<Fields> =>
  client('PUT', `${WEB}/routes/${asText(name)}`, route)

const limitDefaults = { span: null, account: null, key: null, tier: null, model: null }
const limitScope = ['resource', 'span', 'account', 'key', 'tier', 'model', 'per']

function limitLabel({ resource, span, account, key, tier, model, per }: Fields): string {
  const calls = Object.entries({ account, key, tier, model }).filter(([, value]) => value !== null)
  const scopes = per as readonly string[]
  return [
    `${asText(resource)}${span === null ? '' : `/${asText(span)}`}`,
    ...(calls.length === 0 ? [] : [`of ${calls.map(([name, value]) => `${name} ${asText(value)}`).join(', ')}`]),
    ...(scopes.length === 0 ? [] : [`per ${scopes.join(', ')}`]),
  ].join(' ')
}

const limitId = (fields: Fields): string => JSON.stringify(limitScope.map(name => fields[name]))

const limits: Subject = {
  list: 'limits',
  noun: 'limit',
  fixed: limitScope,
  complete: fields => ({
    ...limitDefaults,
    ...fields,
    per: limitScopes.filter(scope => ((fields.per ?? []) as readonly string[]).includes(scope)),
  }),
  idOf: limitId,
  labelOf: limitLabel,
  async read(client) {
    const checkOwners = buildOwnerCheck(client, 'limits')
    return (await listAll(client, `${WEB}/limits`)).map(row => {
      const fields = pickFields(row, fieldsOf('limits'))
      const key = row.key === null ? null : `${asText(row.keyName)} (${asText(row.key)})`
      const names = { account: row.accountName, key }
      const path = `${WEB}/limits/${asText(row.id)}`
      const leftOut = () => checkOwners(row)
      return { id: limitId(fields), label: limitLabel(fields), path, fields, names, leftOut }
    })
  },
  create: ({ client, idOf }, { wanted: { fields } }) =>
    client('POST', `${WEB}/limits`, { ...fields, account: idOf(fields.account), key: idOf(fields.key) }),
  change: ({ client }, { path }, { changes }) => client('PATCH', path, newValues(changes)),
  remove: (client, { path }) => client('DELETE', path),
}

const prices: Subject = {
  list: 'prices',
  noun: 'price',
  fixed: ['model'],
  complete: ({ model, price }) => ({ model, price: JSON.parse(priceText(readPrice(price))) as unknown }),
  idOf: ({ model }) => asText(model),
  labelOf: ({ model }) => asText(model),
  read: async client =>
    (await listAll(client, `${WEB}/prices`, { origin: 'operator' })).map(row => ({
      id: asText(row.model),
      label: asText(row.model),
      path: `${WEB}/prices/${asText(row.model)}`,
      fields: pickFields(row, fieldsOf('prices')),
    })),
  create: ({ client }, { wanted: { fields } }) =>
    client('PUT', `${WEB}/prices/${asText(fields.model)}`, { price: fields.price }),
  change: ({ client }, { path }, { wanted }) => client('PUT', path, { price: wanted.fields.price }),
  remove: (client, { path }) => client('DELETE', path),
}

const webhookId = ({ account, url }: Fields): string => `${asText(account ?? 'site')} ${asText(url)}`

/** Path and query of a URL may be a secret of the receiver. */
const webhookLabel = ({ account, url }: Fields): string =>
  `${URL.canParse(asText(url)) ? new URL(asText(url)).origin : ''}${account === null ? '' : ` of ${asText(account)}`}`

const webhooks: Subject = {
  list: 'webhooks',
  noun: 'webhook',
  fixed: ['account', 'url'],
  secret: {
    field: 'secret',
    from: 'secretFrom',
    boundTo: [],
    mark: (_, secret) => markWebhookSecret(secret),
    problemOf: secret =>
      isStrongWebhookSecret(secret.reveal()) ? undefined : 'the secret must have 32 to 200 visible characters.',
  },
  complete: fields => ({ account: null, disabled: false, ...fields }),
  idOf: webhookId,
  labelOf: webhookLabel,
  async read(client) {
    const checkOwners = buildOwnerCheck(client, 'webhooks')
    const seen = new Set<string>()
    return (await listAll(client, `${WEB}/webhooks`)).map(row => {
      const fields = { ...pickFields(row, fieldsOf('webhooks')), secret: row.secretMark, secretFrom: row.secretFrom }
      const path = `${WEB}/webhooks/${asText(row.id)}`
      const names = { account: row.accountName }
      const id = webhookId(row)
      // Two with one account and URL may be there since before this was refused. A file can describe one of them.
      const further = seen.has(id) ? 'further webhooks with the same URL' : undefined
      seen.add(id)
      const leftOut = async () => (await checkOwners(row)) ?? further
      return { id, label: webhookLabel(row), path, fields, names, leftOut }
    })
  },
  async create(context, { wanted, secret }) {
    const { account, url, events, disabled, secretFrom } = wanted.fields
    const list = account === null ? `${WEB}/webhooks` : `${WEB}/accounts/${asText(context.idOf(account))}/webhooks`
    const given = secret === undefined ? {} : { secret: secret.reveal(), secretFrom }
    const made = await context.client('POST', list, { url, events, disabled, ...given })
    if (secret === undefined) await context.showSecret(`webhook ${wanted.label}`, made.id, made.secret)
    return {}
  },
  change({ client }, { path }, { wanted, changes, secret }) {
    const given = secret === undefined ? {} : { secret: secret.reveal(), secretFrom: wanted.fields.secretFrom }
    return client('PATCH', path, { ...newValues(changes, ['secret', 'secretFrom']), ...given })
  },
  remove: (client, { path }) => client('DELETE', path),
}

/**
 * In the order in which they are applied: each may refer to those before it. Limits and prices come before channels and
 * model names, so that no call reaches a new model before its limits and its price are set.
 */
export const subjects: readonly Subject[] = [
  providers,
  tiers,
  accounts,
  keys,
  limits,
  prices,
  channels,
  environmentChannels,
  modelNames,
  webhooks,
]
