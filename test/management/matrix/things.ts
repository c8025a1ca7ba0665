// Real things of the account that everything is tried on: what stands in a path, and bodies that can be meant.

import { sampleOf } from '../../../src/management/openapi/samples.ts'
import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'
import { findSchema, operations } from '../../openapi/described.ts'
import type { Schema } from '../../support/json-schema.ts'
import { addPerson, goodPassword } from '../../support/people.ts'
import type { Everybody } from './everybody.ts'
import { CANARY } from './everybody.ts'
import { nameOf } from './verdicts.ts'

type Body = Readonly<Record<string, unknown>>
type Make = () => Promise<string>

export interface Things {
  /** Without `/api/`, with something of the account in each hole; something new where it may be used up. */
  pathFor(endpoint: WebEndpoint): Promise<string>
  bodyFor(endpoint: WebEndpoint): Promise<Body>
  /** Of a field of a body. */
  valueFor(schema: Schema, field: string): unknown
}

/** A name that leads nowhere, by its top level. */
const NOWHERE = 'https://hooks.invalid'

export const MODEL = 'openai/gpt-4o-mini'

export function buildThings(all: Everybody): Things {
  const by = all.ask.owner
  let count = 0
  const next = (): string => `${CANARY} ${++count}`
  async function made(path: string, body: Body, read: (told: Body) => unknown = told => told.id): Promise<string> {
    const told = await by('POST', path, body)
    const id = read(told.body)
    if (typeof id !== 'string' && typeof id !== 'number') throw new Error(`${path}: ${told.status} ${told.text}`)
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
  const account = all.account
  const invited = (): Body => ({
    email: `invited-${++count}@example.com`,
    role: 'member',
    account,
    accountRole: 'viewer',
  })

  /** What stands in a hole of that name. */
  const makers: Readonly<Record<string, Make>> = {
    account: async () => account,
    key: () => made('web/keys', { account, name: next() }),
    user: async () => (await addPerson(all.harness, by, { members: [{ account, role: 'viewer' }] })).id,
    invitation: () => made('web/invitations', invited()),
    token: () => made('web/service-tokens', { name: next(), account, accountRole: 'viewer' }),
    async session() {
      const person = await addPerson(all.harness, by, { members: [{ account, role: 'viewer' }] })
      const { data } = (await person.ask('GET', 'web/sessions')).body as { data: { id: string }[] }
      return data[0]!.id
    },
    tier: () => made('web/tiers', { name: `t${++count}`, qpm: 60 }, told => told.name),
    limit: () =>
      made('web/limits', { resource: 'requests', span: 'day', amount: 1_000, account, model: `m/${++count}` }),
    provider: () => made('web/providers', { definition: definition(`own-${++count}`) }),
    channel: () =>
      made('web/channels', { provider: 'openai', name: `c${++count}`, credentials: [`sk-thing-${count}`] }, told =>
        encodeURIComponent((told.data as { id: string }[])[0]!.id),
      ),
    async model() {
      await by('PUT', `web/prices/${MODEL}`, { price: { input: '0.15', output: '0.6' } })
      return MODEL
    },
    async span() {
      await by('PUT', `web/accounts/${account}/budgets/day`, { cap: '5' })
      if (known.has('key')) await by('PUT', `web/keys/${known.get('key')!}/budgets/day`, { cap: '5' })
      return 'day'
    },
    async name() {
      const name = `route-${++count}`
      await by('PUT', `web/routes/${name}`, { members: [{ model: MODEL }] })
      return name
    },
    async record() {
      const called = await call()
      const { data } = (await by('GET', `web/records?id=${called}`)).body as { data: { id: string }[] }
      const { id } = data[0]!
      // Bodies are written beside the calls.
      const isKept = async (): Promise<boolean> => (await by('GET', `web/records/${id}/bodies`)).status === 200
      for (let at = 0; at < 200 && !(await isKept()); at++) await Bun.sleep(5)
      return id
    },
    async webhook() {
      const { data } = (await by('GET', `web/webhooks?account=${account}`)).body as { data: { id: string }[] }
      // An account may have few.
      for (const { id } of data) await by('DELETE', `web/webhooks/${id}`)
      return made(`web/accounts/${account}/webhooks`, { url: `${NOWHERE}/${++count}`, events: ['balance.low'] })
    },
    deletion: () => made('web/records/deletions', { account, before: '2020-01-01T00:00:00Z' }),
  }

  const bodies: Readonly<Record<string, () => Promise<Body>>> = {
    'POST /api/web/invitations': async () => invited(),
    'POST /api/web/accounts/{account}/redemptions': async () => {
      const { codes } = (await by('POST', 'web/codes', { count: 1, amount: '1' })).body as { codes: string[] }
      return { code: codes[0] }
    },
    'POST /api/web/service-tokens': async () => ({ name: next(), account, accountRole: 'viewer' }),
    'POST /api/web/keys': async () => ({ account, name: next() }),
    'POST /api/web/keys/find': async () => ({ key: all.key }),
    'POST /api/web/channels/{channel}/move': async () => ({ to: decodeURIComponent(await makers.channel!()) }),
    'POST /api/web/accounts': async () => ({ type: 'team', name: next() }),
    'POST /api/web/webhooks': async () => ({ url: `${NOWHERE}/${++count}`, events: ['balance.low'] }),
    'POST /api/web/accounts/{account}/webhooks': async () => ({ url: `${NOWHERE}/x`, events: ['balance.low'] }),
    'PATCH /api/web/webhooks/{webhook}': async () => ({ disabled: true }),
    'POST /api/web/codes/voids': async () => {
      const { batch } = (await by('POST', 'web/codes', { count: 1, amount: '1' })).body
      return { batch }
    },
    'POST /api/web/records/deletions': async () => ({ account, before: '2020-01-01T00:00:00Z' }),
    'POST /api/web/accounts/{account}/members': async () => ({ user: await free(), role: 'viewer' }),
  }
  /** Somebody calls; its id. */
  async function call(): Promise<string> {
    const response = await fetch(`${all.harness.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${all.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: MODEL, user: CANARY, messages: [{ role: 'user', content: CANARY }] }),
    })
    await response.text()
    return response.headers.get('x-request-id')!
  }
  const free = async (): Promise<string> => (await addPerson(all.harness, by)).id

  const known = new Map<string, string>()
  async function thing(hole: string, isFresh: boolean): Promise<string> {
    const make = makers[hole]
    if (make === undefined) throw new Error(`give {${hole}} something real in test/management/matrix/things.ts`)
    if (isFresh || !known.has(hole)) known.set(hole, await make())
    return known.get(hole)!
  }

  return {
    async pathFor({ path, method }) {
      let filled = path.replace('/api/', '')
      for (const [hole, name] of path.matchAll(/\{(\w+)\*?\}/g)) {
        filled = filled.replace(hole, await thing(name!, method !== 'GET'))
      }
      if (filled.includes('/budgets/')) await by('PUT', filled, { cap: '5' })
      return filled
    },
    async bodyFor(endpoint) {
      const make = bodies[nameOf(endpoint)]
      if (make !== undefined) return make()
      const found = operations.find(
        one => one.method === endpoint.method && one.path === endpoint.path.replaceAll('*}', '}'),
      )
      const schema = found?.operation.requestBody?.content['application/json']?.schema
      if (schema === undefined) return {}
      const sample = (sampleOf(schema, findSchema) ?? {}) as Body
      const fields = Object.entries(sample).map(async ([field, value]) => [field, await meant(field, value)] as const)
      return Object.fromEntries(await Promise.all(fields))
    },
    valueFor(schema, field) {
      const own = (schema.properties as Record<string, Schema>)[field]!
      return sampleOf(own, findSchema, field) ?? null
    },
  }

  /** Ids that are made up become real ones, and what must not be there twice is new each time. */
  async function meant(field: string, value: unknown): Promise<unknown> {
    if (typeof value !== 'string') return value
    if (/^[a-z]+_0{10}1$/.test(value) && makers[field] !== undefined) return thing(field, false)
    if (field === 'provider') return 'openai'
    if (field === 'model') return MODEL
    if (field === 'email') return `meant-${++count}@example.com`
    if (field === 'password') return goodPassword
    if (field === 'name') return value === 'example' ? `n${++count}` : next()
    return value
  }
}
