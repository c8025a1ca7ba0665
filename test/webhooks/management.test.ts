// The management of webhooks: invalid requests are refused with the field's name, and secrets are nowhere else.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import type { Receiver } from './receiver.ts'
import { startReceiver } from './receiver.ts'

let harness: Harness
let ask: Ask
let receiver: Receiver

beforeAll(async () => {
  harness = await startHarness({ env: { WEIR_PRIVATE_HOSTS: '127.0.0.1' }, world: { webhooksEveryMs: 10 } })
  ask = await askAsOwner(harness)
  receiver = startReceiver()
})
afterAll(async () => {
  await harness.stop()
  receiver.stop()
})

async function account(): Promise<{ id: string }> {
  const key = await harness.key({ credit: '10' })
  return { id: String((await harness.weir('balance', { account: key })).id) }
}

async function ofAccount(id: string, events: readonly string[], url = receiver.url) {
  const created = await ask('POST', `web/accounts/${id}/webhooks`, { url, events })
  expect(created.status).toBe(201)
  return created.body as { id: string; secret: string }
}

describe('the URL of a webhook', () => {
  test('is shown to support with its origin alone', async () => {
    const { ask: owner } = await setUpOwner(harness)
    const { id } = await account()
    const [support, manager] = await Promise.all([
      addPerson(harness, owner, { role: 'support' }),
      addPerson(harness, owner, { members: [{ account: id, role: 'manager' }] }),
    ])
    const url = 'https://hooks.example.com/services/T000/B000/s3cret?token=t0ken'
    const { id: hook } = await ofAccount(id, ['balance.low'], url)
    const site = await ask('POST', 'web/webhooks', { url: `${url}2`, events: ['balance.low'] })
    expect(site.status).toBe(201)
    const visible = [
      await support.ask('GET', 'web/webhooks'),
      await support.ask('GET', `web/webhooks/${hook}`),
      await support.ask('GET', `web/webhooks/${String(site.body.id)}`),
      await support.ask('GET', `web/webhooks/${hook}/deliveries`),
      await support.ask('GET', 'web/audit-log'),
      await support.ask('GET', 'web/search?text=hooks.ex'),
      await support.ask('GET', `web/search?text=${hook}`),
    ]
    for (const { text } of visible) expect(text).not.toMatch(/s3cret|t0ken|T000/)
    expect(visible[1]!.body.url).toBe('https://hooks.example.com/…')
    for (const askAs of [manager.ask, owner]) expect((await askAs('GET', `web/webhooks/${hook}`)).body.url).toBe(url)
  })
})

describe('a request for a webhook', () => {
  test('is refused with the name of the wrong field', async () => {
    const { id } = await account()
    const path = `web/accounts/${id}/webhooks`
    const invalid: readonly (readonly [body: object, param: string])[] = [
      [{ url: receiver.url }, 'events'],
      [{ url: receiver.url, events: [] }, 'events'],
      [{ url: receiver.url, events: ['balance.low', 'balance.low'] }, 'events'],
      [{ url: receiver.url, events: ['ledger.drift'] }, 'events.0'],
      [{ url: '', events: ['balance.low'] }, 'url'],
      [{ url: 'http://example.com/', events: ['balance.low'] }, 'url'],
      [{ url: 'https://example.com:22/', events: ['balance.low'] }, 'url'],
      [{ url: 'https://example.com/a\u0000b', events: ['balance.low'] }, 'url'],
      [{ url: 'https://example.com/a\nb', events: ['balance.low'] }, 'url'],
      [{ url: `https://example.com/${'x'.repeat(2_000)}`, events: ['balance.low'] }, 'url'],
      [{ url: receiver.url, events: ['balance.low'], secret: '' }, 'secret'],
    ]
    for (const [body, param] of invalid) {
      const { status, error } = await ask('POST', path, body)
      expect([status, error.param]).toEqual([400, param])
    }
    const nowhere = { url: receiver.url, events: ['balance.low'] }
    expect((await ask('POST', 'web/accounts/acc_00000000zzz/webhooks', nowhere)).status).toBe(404)
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    const stale = await ask('PATCH', `web/webhooks/${hookId}`, { disabled: true }, { 'if-match': '"7"' })
    expect(stale.error.code).toBe('version_stale')
    expect((await ask('PATCH', `web/webhooks/${hookId}`, { events: ['ledger.drift'] })).error.param).toBe('events')
    for (let at = 1; at < bounds.webhooksOfAccountMax; at++) {
      await ofAccount(id, ['balance.low'], `${receiver.url}/${at}`)
    }
    const full = await ask('POST', path, { url: receiver.url, events: ['balance.low'] })
    expect([full.status, full.error.code]).toEqual([409, 'state_unfit'])
  })

  test('is refused if another webhook of the account, or of the site, has its URL', async () => {
    const [one, other] = [await account(), await account()]
    const [url, second] = [`${receiver.url}/one`, `${receiver.url}/two`]
    const { id: first } = await ofAccount(one.id, ['balance.low'], url)
    await ofAccount(other.id, ['balance.low'], url)
    const hook = { url, events: ['balance.low'] }
    expect((await ask('POST', 'web/webhooks', hook)).status).toBe(201)
    const { id: hookId } = await ofAccount(one.id, ['balance.low'], second)
    const refused = [
      await ask('POST', `web/accounts/${one.id}/webhooks`, hook),
      await ask('POST', 'web/webhooks', hook),
      await ask('PATCH', `web/webhooks/${hookId}`, { url }),
    ]
    for (const { status, error } of refused) {
      expect([status, error.code, error.param]).toEqual([409, 'state_unfit', 'url'])
    }
    // An earlier version has allowed both.
    const db = openDatabase(join(harness.folder, 'weir.db'))
    db.query('UPDATE webhook SET url = ?1 WHERE url = ?2').run(url, second)
    db.close()
    expect((await ask('PATCH', `web/webhooks/${hookId}`, { url, events: ['balance.empty'] })).status).toBe(200)
    expect((await ask('PATCH', `web/webhooks/${first}`, { disabled: true })).status).toBe(200)
    expect((await ask('PATCH', `web/webhooks/${hookId}`, { url: second })).status).toBe(200)
    expect((await ask('PATCH', `web/webhooks/${hookId}`, { url })).status).toBe(409)
  })

  test('has its secret in no answer but its own, in no log and in no audit row', async () => {
    const { id } = await account()
    const created = await ofAccount(id, ['balance.low'], `${receiver.url}?token=canary-of-the-address`)
    const renewed = (await ask('POST', `web/webhooks/${created.id}/secret`)).body.secret as string
    await ask('POST', `web/webhooks/${created.id}/test`)
    const answers = await Promise.all(
      [
        `web/webhooks`,
        `web/webhooks/${created.id}`,
        `web/webhooks/${created.id}/deliveries`,
        'web/audit-log?limit=200',
      ].map(path => ask('GET', path)),
    )
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
    const sealedRows = db.query('SELECT secret FROM webhook ORDER BY id').all()
    const rows = tables.map(({ name }) => Bun.inspect(db.query('SELECT * FROM '.concat(name)).all()))
    db.close()
    for (const secret of [created.secret, renewed]) {
      expect(secret).toMatch(/^whsec_[\w-]{43}$/)
      for (const text of [...answers.map(one => one.text), ...harness.logs, ...rows, receiver.received.at(-1)!.body]) {
        expect(text).not.toContain(secret)
      }
    }
    const audit = answers.at(-1)!.text
    const sealed = Buffer.from((sealedRows.at(-1) as { secret: Uint8Array }).secret)
    for (const text of [sealed.toString('hex'), sealed.toString('base64')]) expect(audit).not.toContain(text)
    expect(audit).toContain(new URL(receiver.url).origin)
    expect(audit).not.toContain('canary-of-the-address')
  })
})
