// A gateway with somebody of every kind: each role of the site and of an account, a stranger who manages another one, and
// those whose credential is none.

import type { Harness } from '../../support/gateway.ts'
import { startHarness } from '../../support/gateway.ts'
import type { Ask } from '../../support/management.ts'
import { askAs } from '../../support/management.ts'
import type { Person } from '../../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../../support/people.ts'
import type { Somebody } from './verdicts.ts'

/** In every name of what is the account's: whoever may not see the account must not see it. */
export const CANARY = 'Alpine'

export interface Everybody {
  readonly harness: Harness
  readonly people: Readonly<Record<Exclude<Somebody, 'nobody' | 'key' | 'expired'>, Person>>
  /** The account that everything is tried on, and the one that is the stranger's. */
  readonly account: string
  readonly elsewhere: string
  /** An API key of the account. */
  readonly key: string
  readonly ask: Readonly<Record<Somebody, Ask>>
  stop(): Promise<void>
}

const HOUR_MS = 3_600_000

export async function startEverybody(env: Record<string, string> = {}): Promise<Everybody> {
  let aheadMs = -HOUR_MS
  const clock = { nowMs: () => performance.now(), dateMs: () => Date.now() + aheadMs }
  const harness = await startHarness({ env, world: { clock } })
  const owner = await setUpOwner(harness)
  const expired = await signedIn(harness, owner.email)
  aheadMs = 0
  const again = await signedIn(harness, owner.email)
  const by = again.ask
  const make = async (name: string): Promise<string> => {
    const made = await by('POST', 'web/accounts', { name, type: 'team' })
    if (made.status !== 201) throw new Error(`no account: ${made.text}`)
    return String(made.body.id)
  }
  const [account, elsewhere] = [await make(`${CANARY} account`), await make('Elsewhere')]
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
  const made = await by('POST', 'web/keys', { account, name: `${CANARY} key` })
  const key = String(made.body.key)
  await by('POST', `web/accounts/${account}/top-ups`, { amount: '50', reference: `${CANARY} payment` })
  const ask = {
    ...(Object.fromEntries(Object.entries(people).map(([name, person]) => [name, person.ask])) as Record<Somebody, Ask>),
    nobody: askAs(harness, undefined),
    key: askAs(harness, key),
    expired: expired.ask,
  }
  return { harness, people, account, elsewhere, key, ask, stop: () => harness.stop() }
}
