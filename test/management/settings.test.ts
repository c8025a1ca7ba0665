// The site's settings: typed, for those who may, and applied at once; and who may register.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, personOf, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Person
let admin: Person
let asAnonymous: Ask

beforeAll(async () => {
  harness = await startHarness({ env: { WEIR_SITE_NAME: 'Rapids', WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  owner = await setUpOwner(harness)
  admin = await addPerson(harness, owner.ask, { role: 'admin' })
  asAnonymous = askAs(harness, undefined)
})
afterAll(() => harness.stop())

const errorParts = ({ status, error }: ApiAnswer) => [status, error.code, error.param ?? undefined]
const set = (body: object): Promise<ApiAnswer> => owner.ask('PATCH', 'web/settings', body)

describe('settings', () => {
  test('have defaults, and apply when they are set', async () => {
    const before = await owner.ask('GET', 'web/settings')
    expect(before.body).toEqual({
      managed: [],
      siteName: 'Rapids',
      notice: '',
      registration: 'off',
      allowedDomains: [],
      invitations: 'managers',
      defaultTier: 'standard',
      startingCredit: '0',
      retentionDays: 0,
      logo: null,
      accentHue: null,
      supportUrl: null,
      howToPay: null,
      defaultLanguage: null,
      reportingZone: null,
      version: expect.any(Number),
    })
    const after = await set({ siteName: 'Falls', notice: 'Mind the rocks.', retentionDays: 30 })
    expect(after.body).toMatchObject({ siteName: 'Falls', notice: 'Mind the rocks.', retentionDays: 30 })
    expect((await asAnonymous('GET', 'public/settings')).body).toMatchObject({
      name: 'Falls',
      notice: 'Mind the rocks.',
    })
    const reset = await set({ siteName: null, notice: null, retentionDays: null })
    expect(reset.body).toEqual({ ...before.body, version: Number(after.body.version) + 1 })
  })

  const png = (bytes: number): string =>
    `data:image/png;base64,${Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(bytes)]).toString('base64')}`
  const look = {
    logo: png(900),
    accentHue: 210,
    supportUrl: 'https://help.example.com/desk',
    howToPay: { en: 'By bank transfer.\nAsk Ann.', zh: '银行转账' },
    defaultLanguage: 'zh',
    reportingZone: 'Asia/Shanghai',
  }
  const none = Object.fromEntries(Object.keys(look).map(name => [name, null]))

  test('say how the site looks, to everybody', async () => {
    expect((await admin.ask('PATCH', 'web/settings', look)).body).toMatchObject(look)
    expect((await asAnonymous('GET', 'public/settings')).body).toMatchObject(look)
    expect((await asAnonymous('POST', 'auth/session')).body.site).toMatchObject(look)
    await set(none)
    expect((await asAnonymous('GET', 'public/settings')).body).toMatchObject(none)
  })

  const svg = `data:image/svg+xml;base64,${Buffer.from('<svg onload="alert(1)"/>').toString('base64')}`
  const badLooks: readonly (readonly [string, unknown])[] = [
    ['logo', svg],
    ['logo', `data:image/png;base64,${Buffer.from('<svg onload="alert(1)"/>').toString('base64')}`],
    ['logo', 'https://example.com/logo.png'],
    ['logo', png(20_000)],
    ['logo', `${png(9)}"><script>`],
    ['accentHue', 360],
    ['accentHue', 1.5],
    ['supportUrl', 'javascript:alert(1)'],
    ['supportUrl', 'http://example.com'],
    ['supportUrl', 'https://user:secret@example.com'],
    ['supportUrl', 'mailto:'],
    ['supportUrl', 'https://example.com/a\nb'],
    ['howToPay', { en: 'x'.repeat(2_001), zh: '' }],
    ['howToPay', { en: 'a\u0007b', zh: '' }],
    ['howToPay', { en: 'only one' }],
    ['defaultLanguage', 'fr'],
    ['reportingZone', 'Mars/Olympus'],
    ['reportingZone', '+08:00'],
  ]
  test('refuse other logos, colours, addresses, texts, languages and zones', async () => {
    for (const [name, value] of badLooks) {
      const { status, error } = await set({ [name]: value })
      expect([value, status, error.code, error.param?.split('.')[0]]).toEqual([value, 400, 'field_invalid', name])
    }
  })

  test('are changed only from their current version', async () => {
    const etag = (await owner.ask('GET', 'web/settings')).headers.get('etag')!
    expect((await owner.ask('PATCH', 'web/settings', { notice: 'a' }, { 'if-match': etag })).status).toBe(200)
    const stale = await owner.ask('PATCH', 'web/settings', { notice: 'b' }, { 'if-match': etag })
    expect(errorParts(stale)).toEqual([412, 'version_stale', undefined])
  })

  test('of registration are for the owner', async () => {
    expect((await admin.ask('PATCH', 'web/settings', { notice: 'from an admin' })).status).toBe(200)
    for (const body of [{ registration: 'open' }, { startingCredit: '5' }, { allowedDomains: [] }]) {
      expect(errorParts(await admin.ask('PATCH', 'web/settings', body))).toEqual([
        403,
        'role_too_low',
        Object.keys(body)[0],
      ])
    }
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    expect((await support.ask('GET', 'web/settings')).status).toBe(200)
    expect(errorParts(await support.ask('PATCH', 'web/settings', { notice: 'x' }))).toEqual([
      403,
      'role_too_low',
      undefined,
    ])
    const member = await addPerson(harness, owner.ask)
    expect((await member.ask('GET', 'web/settings')).status).toBe(403)
  })

  const invalid: readonly (readonly [object, string, string?])[] = [
    [{ colour: 'red' }, 'field_unknown', 'colour'],
    [{ setup_token: 'x' }, 'field_unknown', 'setup_token'],
    [{ registration: 'maybe' }, 'field_invalid', 'registration'],
    [{ retentionDays: -1 }, 'field_invalid', 'retentionDays'],
    [{ startingCredit: '-5' }, 'field_invalid', 'startingCredit'],
    [{ startingCredit: 5 }, 'field_invalid', 'startingCredit'],
    [{ allowedDomains: ['*.com'] }, 'field_invalid', 'allowedDomains.0'],
    [{ defaultTier: 'nothere' }, 'field_invalid', 'defaultTier'],
    [{ siteName: '' }, 'field_invalid', 'siteName'],
  ]
  test.each(invalid)('with %j are refused', async (body, code, param) => {
    expect(errorParts(await set(body))).toEqual([400, code, param])
  })
})

describe('registration', () => {
  let addressCount = 0
  const register = (email: string, more = {}) =>
    asAnonymous(
      'POST',
      'auth/registration',
      { name: 'New', email, password: goodPassword, ...more },
      {
        'x-forwarded-for': `198.51.100.${addressCount}`,
      },
    )

  test('is refused if the owner has not allowed it', async () => {
    expect(errorParts(await register('a@example.com'))).toEqual([403, 'registration_closed', undefined])
    expect((await asAnonymous('GET', 'public/settings')).body.registration).toBe(false)
  })

  test('creates an account with the starting credit, and no higher role', async () => {
    await set({ registration: 'open', startingCredit: '2.5', defaultTier: 'free' })
    expect((await asAnonymous('GET', 'public/settings')).body.registration).toBe(true)
    expect(errorParts(await register('a@example.com', { role: 'owner' }))).toEqual([400, 'field_unknown', 'role'])
    const person = personOf(harness, await register('A@example.com'))
    const { body } = await person.ask('GET', 'web/me')
    expect(body).toMatchObject({ email: 'a@example.com', role: 'member' })
    const [account] = body.accounts as { account: string; role: string }[]
    expect(account!.role).toBe('manager')
    const owned = await person.ask('GET', `web/accounts/${account!.account}`)
    expect(owned.body).toMatchObject({ type: 'personal', tier: 'free' })
    const books = await harness.weir('audit')
    expect(books.findings).toEqual([])
    const printed = await harness.weir('accounts show', { account: account!.account })
    expect(JSON.stringify(printed)).toContain('2.50')
    expect(errorParts(await register('a@example.com'))).toEqual([409, 'name_taken', 'email'])
  })

  test('is for allowed addresses only', async () => {
    await set({ allowedDomains: ['example.org'] })
    for (const email of ['b@example.com', 'b@sub.example.org', 'b@notexample.org', 'b@example.org.evil.com']) {
      expect(errorParts(await register(email))).toEqual([403, 'registration_closed', 'email'])
    }
    expect((await register('b@EXAMPLE.org')).status).toBe(201)
    await set({ allowedDomains: null })
  })

  test('is refused, and creates nobody, if the operator has no credit left to give', async () => {
    addressCount = 50
    await set({ startingCredit: '999999999' })
    for (const email of ['rich-1@example.com', 'rich-2@example.com']) expect((await register(email)).status).toBe(201)
    expect(errorParts(await register('rich-3@example.com'))).toEqual([409, 'state_unfit', undefined])
    expect((await owner.ask('GET', 'web/users?email=rich-3')).body.data).toEqual([])
    await set({ startingCredit: '2.5' })
  })

  test('is limited for each client address', async () => {
    addressCount = 77
    const statuses: number[] = []
    for (let at = 0; at < 12; at++) statuses.push((await register(`many-${at}@example.com`)).status)
    expect(statuses).toEqual([...Array(10).fill(201), 429, 429])
  })

  test('is limited for the whole IPv6 network of one customer, which has thousands of networks', async () => {
    const registerFrom = (address: string, at: number) =>
      asAnonymous(
        'POST',
        'auth/registration',
        { name: 'New', email: `wide-${at}@example.com`, password: goodPassword },
        { 'x-forwarded-for': address },
      )
    let created = 0
    for (let at = 0; at < 110; at++) {
      const { status } = await registerFrom(`2001:db8:5:${Math.floor(at / 10)}::${at}`, at)
      if (status === 201) created++
    }
    expect(created).toBe(100)
    expect((await registerFrom('2001:db8:6::1', 1_000)).status).toBe(201)
  })
})
