// A gateway with an actor of every kind: each role of the site and of an account, a stranger who manages another
// account, service tokens with the same rights, and actors without a valid credential.

import type { Harness } from '../../support/gateway.ts'
import { startHarness } from '../../support/gateway.ts'
import type { Ask } from '../../support/management.ts'
import { askAs } from '../../support/management.ts'
import type { Person } from '../../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../../support/people.ts'
import type { ActorName, TokenName } from './verdicts.ts'

/** Part of every name in the account under test: an actor that may not see the account must not see it. */
export const CANARY = 'Alpine'

export interface TestSite {
  readonly harness: Harness
  readonly people: Readonly<Record<Exclude<ActorName, 'nobody' | 'key' | 'expired' | TokenName>, Person>>
  readonly tokens: Readonly<Record<TokenName, ServiceToken>>
  /** The account under test, and the account of the stranger. */
  readonly account: string
  readonly elsewhere: string
  /** An API key of the account under test. */
  readonly key: string
  readonly ask: Readonly<Record<ActorName, Ask>>
  /** Moves the clock of the attempt limits. Tokens do not age by it. */
  passTime(ms: number): void
  /** The date and time of the gateway. */
  dateMs(): number
  stop(): Promise<void>
}

export interface ServiceToken {
  /** `tok_…` */
  readonly id: string
  readonly ask: Ask
}

let addressCount = 0

/** A header with another client address each time. */
export const fromNewAddress = (): Record<string, string> => {
  addressCount++
  return { 'x-forwarded-for': `10.${(addressCount >> 16) & 255}.${(addressCount >> 8) & 255}.${addressCount & 255}` }
}

type AskByActor = Record<ActorName, Ask>

const [HOUR_MS, MINUTE_MS] = [3_600_000, 60_000]
/** Tokens last ten minutes, and a slow machine needs longer for all requests of a test file. So dates pass slowly. */
const SLOWNESS = 100

export async function startTestSite(env: Record<string, string> = {}): Promise<TestSite> {
  let aheadMs = -HOUR_MS
  let passedMs = 0
  let count = 0
  const startMs = Date.now()
  const dateMs = (): number => startMs + Math.floor((Date.now() - startMs) / SLOWNESS) + aheadMs
  const clock = { nowMs: () => performance.now() + passedMs, dateMs }
  // No webhook is reached. The resolver of the machine might need ten seconds to say so.
  const webhooks = { resolve: () => Promise.reject(new Error('no such host')) }
  // Each request may come from another address: limits by address are not tested here.
  const proxied = { WEIR_TRUSTED_PROXIES: '127.0.0.1', ...env }
  const harness = await startHarness({ env: proxied, world: { clock, webhooks } })
  const owner = await setUpOwner(harness)
  const expired = await signedIn(harness, owner.email)
  const createToken = async (by: Ask, fields: object): Promise<ServiceToken> => {
    const { body, text } = await by('POST', 'web/service-tokens', { name: `token ${++count}`, ...fields })
    if (typeof body.token !== 'string') throw new Error(text)
    return { id: String(body.id), ask: askAs(harness, body.token) }
  }
  const soon = new Date(dateMs() + MINUTE_MS).toISOString()
  const endedTokens = {
    tokenExpired: await createToken(expired.ask, { role: 'owner', expires: soon }),
    tokenRevoked: await createToken(expired.ask, { role: 'owner' }),
    tokenRotated: await createToken(expired.ask, { role: 'owner' }),
  }
  await expired.ask('DELETE', `web/service-tokens/${endedTokens.tokenRevoked.id}`)
  await expired.ask('POST', `web/service-tokens/${endedTokens.tokenRotated.id}/rotate`, { overlapSeconds: 60 })
  aheadMs = 0
  const freshOwner = await signedIn(harness, owner.email)
  const asOwner = freshOwner.ask
  const make = async (name: string): Promise<{ key: string; account: string }> => {
    const created = await harness.weir('keys create', { tier: 'pro', credit: '50', name })
    return { key: String(created.key), account: String(created.account) }
  }
  const [{ account, key }, { account: elsewhere }] = [await make(`${CANARY} key`), await make('Elsewhere')]
  await harness.weir('keys set', { key, bodies: 'on' })
  const member = (role: 'viewer' | 'developer' | 'manager', of = account): Promise<Person> =>
    addPerson(harness, asOwner, { members: [{ account: of, role }] })
  const people = {
    owner: freshOwner,
    admin: await addPerson(harness, asOwner, { role: 'admin' }),
    support: await addPerson(harness, asOwner, { role: 'support' }),
    manager: await member('manager'),
    developer: await member('developer'),
    viewer: await member('viewer'),
    stranger: await member('manager', elsewhere),
    disabled: await member('manager'),
  }
  await asOwner('PATCH', `web/users/${people.disabled.id}`, { disabled: true })
  const tokens = {
    ...endedTokens,
    tokenStranger: await createToken(asOwner, { account: elsewhere, accountRole: 'manager' }),
    tokenViewer: await createToken(asOwner, { account, accountRole: 'viewer' }),
    tokenDeveloper: await createToken(asOwner, { account, accountRole: 'developer' }),
    tokenManager: await createToken(asOwner, { account, accountRole: 'manager' }),
    tokenSupport: await createToken(asOwner, { role: 'support' }),
    tokenAdmin: await createToken(asOwner, { role: 'admin' }),
    tokenOwner: await createToken(asOwner, { role: 'owner' }),
  }
  const ask = {
    ...(Object.fromEntries(
      Object.entries({ ...people, ...tokens }).map(([name, person]) => [name, person.ask]),
    ) as AskByActor),
    nobody: askAs(harness, undefined),
    key: askAs(harness, key),
    expired: expired.ask,
  }
  const passTime = (ms: number): void => void (passedMs += ms)
  return { harness, people, tokens, account, elsewhere, key, ask, passTime, dateMs, stop: () => harness.stop() }
}
