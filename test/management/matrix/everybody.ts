// A gateway with somebody of every kind: each role of the site and of an account, a stranger who manages another one,
// service tokens with the same rights, and those whose credential is none.

import type { Harness } from '../../support/gateway.ts'
import { startHarness } from '../../support/gateway.ts'
import type { Ask } from '../../support/management.ts'
import { askAs } from '../../support/management.ts'
import type { Person } from '../../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../../support/people.ts'
import type { Somebody, TokenName } from './verdicts.ts'

/** In every name of what is the account's: whoever may not see the account must not see it. */
export const CANARY = 'Alpine'

export interface Everybody {
  readonly harness: Harness
  readonly people: Readonly<Record<Exclude<Somebody, 'nobody' | 'key' | 'expired' | TokenName>, Person>>
  readonly tokens: Readonly<Record<TokenName, ServiceToken>>
  /** The account that everything is tried on, and the one that is the stranger's. */
  readonly account: string
  readonly elsewhere: string
  /** An API key of the account. */
  readonly key: string
  readonly ask: Readonly<Record<Somebody, Ask>>
  /** By the clock that counts how often somebody has tried. Tokens do not age by it. */
  passTime(ms: number): void
  stop(): Promise<void>
}

export interface ServiceToken {
  readonly id: string
  readonly ask: Ask
}

let visits = 0

/** Somewhere else each time. */
export const fromElsewhere = (): Record<string, string> => {
  visits++
  return { 'x-forwarded-for': `10.${(visits >> 16) & 255}.${(visits >> 8) & 255}.${visits & 255}` }
}

type Asks = Record<Somebody, Ask>

const [HOUR_MS, MINUTE_MS] = [3_600_000, 60_000]

export async function startEverybody(env: Record<string, string> = {}): Promise<Everybody> {
  let aheadMs = -HOUR_MS
  let passedMs = 0
  let count = 0
  const clock = { nowMs: () => performance.now() + passedMs, dateMs: () => Date.now() + aheadMs }
  // Each request may come from another address: how often one may knock is not what is tried here.
  const harness = await startHarness({ env: { WEIR_TRUSTED_PROXIES: '127.0.0.1', ...env }, world: { clock } })
  const owner = await setUpOwner(harness)
  const expired = await signedIn(harness, owner.email)
  const createToken = async (by: Ask, fields: object): Promise<ServiceToken> => {
    const { body, text } = await by('POST', 'web/service-tokens', { name: `token ${++count}`, ...fields })
    if (typeof body.token !== 'string') throw new Error(text)
    return { id: String(body.id), ask: askAs(harness, body.token) }
  }
  const ended = {
    tokenExpired: await createToken(expired.ask, {
      role: 'owner',
      expires: new Date(Date.now() - HOUR_MS + MINUTE_MS).toISOString(),
    }),
    tokenRevoked: await createToken(expired.ask, { role: 'owner' }),
    tokenRotated: await createToken(expired.ask, { role: 'owner' }),
  }
  await expired.ask('DELETE', `web/service-tokens/${ended.tokenRevoked.id}`)
  await expired.ask('POST', `web/service-tokens/${ended.tokenRotated.id}/rotate`, { overlapSeconds: 60 })
  aheadMs = 0
  const again = await signedIn(harness, owner.email)
  const by = again.ask
  const make = async (name: string): Promise<{ key: string; account: string }> => {
    const made = await harness.weir('keys create', { tier: 'pro', credit: '50', name })
    return { key: String(made.key), account: String(made.account) }
  }
  const [{ account, key }, { account: elsewhere }] = [await make(`${CANARY} key`), await make('Elsewhere')]
  await harness.weir('keys set', { key, bodies: 'on' })
  const member = (role: 'viewer' | 'developer' | 'manager', of = account): Promise<Person> =>
    addPerson(harness, by, { members: [{ account: of, role }] })
  const people = {
    owner: again,
    admin: await addPerson(harness, by, { role: 'admin' }),
    support: await addPerson(harness, by, { role: 'support' }),
    manager: await member('manager'),
    developer: await member('developer'),
    viewer: await member('viewer'),
    stranger: await member('manager', elsewhere),
    disabled: await member('manager'),
  }
  await by('PATCH', `web/users/${people.disabled.id}`, { disabled: true })
  const tokens = {
    ...ended,
    tokenStranger: await createToken(by, { account: elsewhere, accountRole: 'manager' }),
    tokenViewer: await createToken(by, { account, accountRole: 'viewer' }),
    tokenDeveloper: await createToken(by, { account, accountRole: 'developer' }),
    tokenManager: await createToken(by, { account, accountRole: 'manager' }),
    tokenSupport: await createToken(by, { role: 'support' }),
    tokenAdmin: await createToken(by, { role: 'admin' }),
    tokenOwner: await createToken(by, { role: 'owner' }),
  }
  const ask = {
    ...(Object.fromEntries(
      Object.entries({ ...people, ...tokens }).map(([name, person]) => [name, person.ask]),
    ) as Asks),
    nobody: askAs(harness, undefined),
    key: askAs(harness, key),
    expired: expired.ask,
  }
  const passTime = (ms: number): void => void (passedMs += ms)
  return { harness, people, tokens, account, elsewhere, key, ask, passTime, stop: () => harness.stop() }
}
