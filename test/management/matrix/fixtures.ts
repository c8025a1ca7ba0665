// Real objects of the account under test: values for the parameters of a path, and valid bodies.

import { sampleOf } from '../../../src/management/openapi/samples.ts'
import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'
import { findSchema, operations } from '../../openapi/described.ts'
import type { Schema } from '../../support/json-schema.ts'
import type { Person } from '../../support/people.ts'
import { addPerson, goodPassword } from '../../support/people.ts'
import type { TestSite } from './site.ts'
import { CANARY } from './site.ts'
import { nameOf } from './verdicts.ts'

type Body = Readonly<Record<string, unknown>>
type Make = () => Promise<string>

export interface Fixtures {
  /** The path without `/api/`, with a real id for each parameter; a new one where the request may use it up. */
  pathFor(endpoint: WebEndpoint): Promise<string>
  bodyFor(endpoint: WebEndpoint): Promise<Body>
  /** A sample value for a field of a body. */
  valueFor(schema: Schema, field: string): unknown
}

/** A host that does not resolve, by its top-level domain. */
const NOWHERE = 'https://hooks.invalid'

export const MODEL = 'openai/gpt-4o-mini'

export function buildFixtures(site: TestSite): Fixtures {
  const asOwner = site.ask.owner
  let count = 0
  const next = (): string => `${CANARY} ${++count}`
  async function create(
    path: string,
    body: Body,
    read: (answer: Body) => unknown = answer => answer.id,
  ): Promise<string> {
    const response = await asOwner('POST', path, body)
    const id = read(response.body)
    if (typeof id !== 'string' && typeof id !== 'number')
      throw new Error(`${path}: ${response.status} ${response.text}`)
    return String(id)
  }
  const definition = (id: string): Body => ({
    id,
    name: id,
    baseUrl: 'https://api.example.com/v1',
    keyEnv: 'NO_KEY',
    baseUrlEnv: 'NO_URL',
    speaks: { 'openai-chat': '/chat/completions' },
    sign: 'bearer',
    models: [],
  })
  const account = site.account
  const invited = (): Body => ({
    email: `invited-${++count}@example.com`,
    role: 'member',
    account,
    accountRole: 'viewer',
  })

  let lastPerson: Person | undefined
  let lastWebhook: string | undefined

  /** Creates an object for the path parameter of that name. */
  const makers: Readonly<Record<string, Make>> = {
    account: async () => account,
    key: () => create('web/keys', { account, name: next() }),
    async user() {
      lastPerson = await addPerson(site.harness, asOwner, { members: [{ account, role: 'viewer' }] })
      return lastPerson.id
    },
    invitation: () => create('web/invitations', invited()),
    token: () => create('web/service-tokens', { name: next(), account, accountRole: 'viewer' }),
    async session() {
      // Of the person in the same path, else of somebody new.
      const person = lastPerson ?? (await addPerson(site.harness, asOwner, { members: [{ account, role: 'viewer' }] }))
      lastPerson = undefined
      const { data } = (await person.ask('GET', 'web/sessions')).body as { data: { id: string }[] }
      return data[0]!.id
    },
    tier: () => create('web/tiers', { name: `t${++count}`, qpm: 60 }, answer => answer.name),
    limit: () =>
      create('web/limits', { resource: 'requests', span: 'day', amount: 1_000, account, model: `m/${++count}` }),
    provider: () => create('web/providers', { definition: definition(`own-${++count}`) }),
    channel: () =>
      create('web/channels', { provider: 'openai', name: `c${++count}`, credentials: [`sk-thing-${count}`] }, answer =>
        encodeURIComponent((answer.data as { id: string }[])[0]!.id),
      ),
    async model() {
      await asOwner('PUT', `web/prices/${MODEL}`, { price: { input: '0.15', output: '0.6' } })
      return MODEL
    },
    async span() {
      await asOwner('PUT', `web/accounts/${account}/budgets/day`, { cap: '5' })
      if (known.has('key')) await asOwner('PUT', `web/keys/${known.get('key')!}/budgets/day`, { cap: '5' })
      return 'day'
    },
    async name() {
      const name = `route-${++count}`
      await asOwner('PUT', `web/routes/${name}`, { members: [{ model: MODEL }] })
      return name
    },
    async record() {
      const called = await call()
      const { data } = (await asOwner('GET', `web/records?id=${called}`)).body as { data: { id: string }[] }
      const { id } = data[0]!
      // Bodies are written after the calls.
      const isStored = async (): Promise<boolean> => (await asOwner('GET', `web/records/${id}/bodies`)).status === 200
      while (!(await isStored())) await Bun.sleep(5)
      return id
    },
    async webhook() {
      const { data } = (await asOwner('GET', `web/webhooks?account=${account}`)).body as { data: { id: string }[] }
      // An account may have only a few.
      for (const { id } of data) await asOwner('DELETE', `web/webhooks/${id}`)
      const url = `${NOWHERE}/${++count}`
      lastWebhook = await create(`web/accounts/${account}/webhooks`, { url, events: ['balance.low', 'key.revoked'] })
      return lastWebhook
    },
    async delivery() {
      // Of the webhook in the same path.
      await asOwner('DELETE', `web/keys/${await makers.key!()}`)
      const { data } = (await asOwner('GET', `web/webhooks/${lastWebhook}/deliveries`)).body as {
        data: { id: string }[]
      }
      return data[0]!.id
    },
    ticket: () =>
      create('web/downloads', { of: 'statement', query: { account } }, ({ url }) => String(url).split('/').at(-1)),
    deletion: () => create('web/records/deletions', { account, before: '2020-01-01T00:00:00Z' }),
  }

  const bodies: Readonly<Record<string, () => Promise<Body>>> = {
    'POST /api/web/invitations': async () => invited(),
    'POST /api/web/accounts/{account}/redemptions': async () => {
      const { codes } = (await asOwner('POST', 'web/codes', { count: 1, amount: '1' })).body as { codes: string[] }
      return { code: codes[0] }
    },
    'POST /api/web/service-tokens': async () => ({ name: next(), account, accountRole: 'viewer' }),
    'POST /api/web/keys': async () => ({ account, name: next() }),
    'POST /api/web/keys/bulk': async () => ({ action: 'disable', keys: [await makers.key!()] }),
    'POST /api/web/keys/find': async () => ({ key: site.key }),
    'POST /api/web/channels/{channel}/move': async () => ({ to: decodeURIComponent(await makers.channel!()) }),
    // The name of a team is reserved for admins.
    'PATCH /api/web/accounts/{account}': async () => ({ keepsBodies: true }),
    'POST /api/web/accounts': async () => ({ type: 'team', name: next() }),
    'POST /api/web/webhooks': async () => ({ url: `${NOWHERE}/${++count}`, events: ['balance.low'] }),
    'POST /api/web/accounts/{account}/webhooks': async () => ({ url: `${NOWHERE}/x`, events: ['balance.low'] }),
    'PATCH /api/web/webhooks/{webhook}': async () => ({ disabled: true }),
    'POST /api/web/codes/voids': async () => {
      const { batch } = (await asOwner('POST', 'web/codes', { count: 1, amount: '1' })).body
      return { batch }
    },
    'POST /api/web/downloads': async () => ({ of: 'records', query: {} }),
    'POST /api/web/records/deletions': async () => ({ account, before: '2020-01-01T00:00:00Z' }),
    'POST /api/web/accounts/{account}/members': async () => ({ user: await free(), role: 'viewer' }),
  }
  /** Makes a call; returns its id. */
  async function call(): Promise<string> {
    const response = await fetch(`${site.harness.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${site.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: MODEL, user: CANARY, messages: [{ role: 'user', content: CANARY }] }),
    })
    await response.text()
    return response.headers.get('x-request-id')!
  }
  const free = async (): Promise<string> => (await addPerson(site.harness, asOwner)).id

  const known = new Map<string, string>()
  async function fixture(hole: string, isFresh: boolean): Promise<string> {
    const make = makers[hole]
    if (make === undefined) throw new Error(`give {${hole}} something real in test/management/matrix/fixtures.ts`)
    if (isFresh || hole === 'delivery' || !known.has(hole)) known.set(hole, await make())
    return known.get(hole)!
  }

  return {
    async pathFor({ path, method }) {
      lastPerson = undefined
      let filled = path.replace('/api/', '')
      for (const [hole, name] of path.matchAll(/\{(\w+)\*?\}/g)) {
        filled = filled.replace(hole, await fixture(name!, method !== 'GET' || name === 'ticket'))
      }
      if (filled.includes('/budgets/')) await asOwner('PUT', filled, { cap: '5' })
      return filled
    },
    async bodyFor(endpoint) {
      const make = bodies[nameOf(endpoint)]
      if (make !== undefined) return make()
      const described = operations.find(
        one => one.method === endpoint.method && one.path === endpoint.path.replaceAll('*}', '}'),
      )
      const schema = described?.operation.requestBody?.content['application/json']?.schema
      if (schema === undefined) return {}
      const sample = (sampleOf(schema, findSchema) ?? {}) as Body
      const fields = Object.entries(sample).map(
        async ([field, value]) => [field, await realValue(field, value)] as const,
      )
      return Object.fromEntries(await Promise.all(fields))
    },
    valueFor(schema, field) {
      const fieldSchema = (schema.properties as Record<string, Schema>)[field]!
      return sampleOf(fieldSchema, findSchema, field) ?? null
    },
  }

  /** Replaces sample ids by real ones, and makes values new that must be unique. */
  async function realValue(field: string, value: unknown): Promise<unknown> {
    if (typeof value !== 'string') return value
    if (/^[a-z]+_0{10}1$/.test(value) && makers[field] !== undefined) return fixture(field, false)
    if (field === 'provider') return 'openai'
    if (field === 'model') return MODEL
    if (field === 'email') return `meant-${++count}@example.com`
    if (field === 'password') return goodPassword
    if (field === 'name') return value === 'example' ? `n${++count}` : next()
    return value
  }
}
