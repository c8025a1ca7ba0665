// The start of a page: one request shows the site and, with a valid cookie, renews the session and shows the person.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import packageJson from '../../package.json'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, cookieOf, setUpOwner, signedIn } from '../support/people.ts'

let harness: Harness
let owner: Person
let asAnonymous: Ask

beforeAll(async () => {
  harness = await startHarness({ world: { consoleBuild: () => '4f1c0ffee' }, env: { WEIR_SITE_NAME: 'River' } })
  owner = await setUpOwner(harness)
  asAnonymous = askAs(harness, undefined)
})
afterAll(() => harness.stop())

const site = {
  name: 'River',
  notice: null,
  registration: false,
  logo: null,
  accentHue: null,
  supportUrl: null,
  howToPay: null,
  defaultLanguage: null,
  reportingZone: null,
  version: packageJson.version,
  build: '4f1c0ffee',
}
const start = (headers: Record<string, string> = {}): Promise<ApiAnswer> =>
  asAnonymous('POST', 'auth/session', undefined, headers)

describe('the start of a page', () => {
  test('shows the site to everybody', async () => {
    const answer = await start()
    expect([answer.status, answer.body]).toEqual([200, { setupNeeded: false, site }])
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('shows settings as they are now', async () => {
    await owner.ask('PATCH', 'web/settings', { notice: 'Closed on Sunday', registration: 'open' })
    expect((await start()).body.site).toEqual({ ...site, notice: 'Closed on Sunday', registration: true })
    await owner.ask('PATCH', 'web/settings', { notice: null, registration: null })
  })

  test('renews the session of a cookie and shows the same person as GET /api/web/me', async () => {
    const person = await addPerson(harness, owner.ask)
    const answer = await start({ cookie: person.cookie })
    const { signedIn: renewed, me, ...rest } = answer.body as Record<string, Record<string, unknown>>
    expect([answer.status, rest]).toEqual([200, { setupNeeded: false as never, site }])
    expect(renewed).toEqual({ accessToken: expect.any(String), expiresInSeconds: 600 })
    const shown = await askAs(harness, String(renewed!.accessToken))('GET', 'web/me')
    expect([shown.status, shown.body]).toEqual([200, me!])
    expect(me).toMatchObject({ id: person.id, role: 'member' })
    expect(cookieOf(answer)).toMatch(/^weir_refresh=[\w-]{43}$/)
    expect(cookieOf(answer)).not.toBe(person.cookie)
    expect((await start({ cookie: cookieOf(answer) })).body.me).toEqual(me)
  })

  test('is answered with 200 for every invalid cookie, and removes the cookie', async () => {
    const ended = await signedIn(harness, owner.email)
    await asAnonymous('POST', 'auth/sign-out', undefined, { cookie: ended.cookie })
    const disabled = await addPerson(harness, owner.ask)
    await owner.ask('PATCH', `web/users/${disabled.id}`, { disabled: true })
    const removed = await addPerson(harness, owner.ask)
    await owner.ask('DELETE', `web/users/${removed.id}`)
    const cookies = ['weir_refresh=', `weir_refresh=${'x'.repeat(43)}`, ended.cookie, disabled.cookie, removed.cookie]
    for (const cookie of cookies) {
      const answer = await start({ cookie })
      expect([cookie, answer.status, answer.body]).toEqual([cookie, 200, { setupNeeded: false, site }])
      expect(answer.headers.get('set-cookie')).toStartWith('weir_refresh=; ')
    }
  })

  test('is refused from another site, and then renews nothing', async () => {
    const person = await signedIn(harness, owner.email)
    const refused = await start({ 'cookie': person.cookie, 'sec-fetch-site': 'cross-site' })
    expect([refused.status, refused.error.code]).toEqual([403, 'origin_refused'])
    expect(refused.headers.get('set-cookie')).toBeNull()
    expect((await person.ask('GET', 'web/me')).status).toBe(200)
  })
})

describe('the build of the console', () => {
  const buildAt = async (ask: Ask, method: string, path: string): Promise<unknown[]> => {
    const { status, headers } = await ask(method, path)
    return [status, headers.get('x-weir-build')]
  }

  test('is in every answer under /api/web, also in refusals', async () => {
    expect(await buildAt(owner.ask, 'GET', 'web/me')).toEqual([200, '4f1c0ffee'])
    expect(await buildAt(owner.ask, 'GET', 'web/nothing')).toEqual([404, '4f1c0ffee'])
    expect(await buildAt(asAnonymous, 'GET', 'web/me')).toEqual([401, '4f1c0ffee'])
    const exported = await owner.ask('GET', 'web/records/export?format=csv')
    expect([exported.status, exported.headers.get('x-weir-build')]).toEqual([200, '4f1c0ffee'])
  })

  test('is in no other answer', async () => {
    const { headers } = await fetch(`${harness.url}/v1/models`)
    expect(headers.get('x-weir-build')).toBeNull()
  })

  test('is null, and in no answer, where it was not built', async () => {
    const other = await startHarness({ world: { consoleBuild: () => null } })
    try {
      const told = await askAs(other, undefined)('POST', 'auth/session')
      expect(told.body).toEqual({ setupNeeded: true, site: expect.objectContaining({ build: null }) })
      const me = await askAs(other, undefined)('GET', 'web/me')
      expect([me.status, me.headers.get('x-weir-build')]).toEqual([401, null])
    } finally {
      await other.stop()
    }
  })
})
