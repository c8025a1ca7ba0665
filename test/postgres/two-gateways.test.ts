// Two gateways on one PostgreSQL: each request of a browser may reach another one, also that of a download by ticket.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { dirname } from 'node:path'
import packageJson from '../../package.json'
import { buildSend } from '../../src/cli/send.ts'
import { LEASE_MS } from '../../src/store/postgres/membership.ts'
import { fail } from '../../tools/fake-upstream/answers.ts'
import { closedGate } from '../support/closed-gate.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import type { ApiAnswer } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const PAUSE_MS_MAX = 60_000

describe.if(hasPostgres)('with two gateways', () => {
  let postgres: TestPostgres
  let gateways: [Harness, Harness]
  let owner: Person
  let key: string

  beforeAll(async () => {
    postgres = await startPostgres()
    await postgres.open()
    const env = {
      WEIR_DATABASE_URL: `postgres://weir@localhost/${postgres.lastDatabase}?host=${dirname(postgres.socket)}`,
      WEIR_PEPPER: 'a'.repeat(64),
      WEIR_JWT_SECRET: 'b'.repeat(64),
      WEIR_ENCRYPTION_KEY: 'c'.repeat(64),
      WEIR_DRAIN_SECONDS: '0',
      WEIR_AUDIT_SECONDS: '1',
    }
    const first = await startHarness({ env })
    gateways = [first, await startHarness({ env })]
    owner = await setUpOwner(first)
    key = await first.key()
  })
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.stop()
    await postgres?.stop()
  })

  const call = async (gateway: Harness): Promise<string> => {
    const response = await chat(gateway, key, { model: 'openai/gpt-4o-mini', messages: hello })
    await response.text()
    return response.headers.get('x-request-id')!
  }

  test('the first start of both together creates one key', async () => {
    const made = await Promise.all(
      gateways.map(({ gateway }) => gateway.inFirstStart(() => buildSend(gateway.manage).machine('first-key'))),
    )
    expect(made.filter(first => first !== undefined)).toEqual([{ key: expect.stringMatching(/^wk-\w{36}$/) }])
    const { data } = (await owner.ask('GET', 'web/keys?name=first%20key')).body
    expect(data).toHaveLength(1)
  })

  test('a link of one works at the other, and once for both', async () => {
    await call(gateways[0])
    const { url } = (await owner.ask('POST', 'web/downloads', { of: 'records', query: {} })).body
    const answers = await Promise.all([1, 0, 1, 0].map(at => fetch(`${gateways[at]!.url}${String(url)}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404])
    const texts = await Promise.all(answers.map(answer => answer.text()))
    expect(texts.filter(text => text.includes('"openai/gpt-4o-mini"'))).toHaveLength(1)
  })

  test('a playground key ends at both with the role of its person', async () => {
    const account = String((await owner.ask('POST', 'web/accounts', { name: 'team', kind: 'postpaid' })).body.id)
    const person = await addPerson(gateways[0], owner.ask, { members: [{ account, role: 'developer' }] })
    const made = await person.ask('POST', `web/accounts/${account}/playground-key`, {})
    const statusAt = async (gateway: Harness): Promise<number> => {
      const body = { model: 'openai/gpt-4o-mini', messages: hello }
      const response = await chat(gateway, String(made.body.key), body)
      await response.text()
      return response.status
    }
    expect([await statusAt(gateways[0]), await statusAt(gateways[1])]).toEqual([200, 200])
    expect((await owner.ask('DELETE', `web/accounts/${account}/members/${person.id}`)).status).toBe(204)
    expect([await statusAt(gateways[0]), await statusAt(gateways[1])]).toEqual([401, 401])
  })

  test('each says when one of them has audited the ledger', async () => {
    const token = String((await gateways[0].weir('token')).token)
    for (const gateway of gateways) {
      let found: unknown
      for (const endMs = Date.now() + PAUSE_MS_MAX; Date.now() < endMs; await Bun.sleep(50)) {
        const { body } = await askAs(gateway, token)('GET', 'web/ledger/check')
        found = [body.books, body.audited !== null]
        if (body.audited !== null) break
      }
      expect(found).toEqual(['agree', true])
    }
  })

  test('each shows both, and which of them has answered', async () => {
    const token = String((await gateways[0].weir('token')).token)
    for (const [at, gateway] of gateways.entries()) {
      let sentMs = 0
      let answer: ApiAnswer | undefined
      // A note says that the ended key was refused, if one gateway had not heard of its end when its call came.
      const problems = (): readonly unknown[] =>
        (answer!.body.findings as readonly { readonly severity: string }[]).filter(
          ({ severity }) => severity !== 'note',
        )
      // After a pause of the machine, a gateway reports for a moment that it is not ready.
      for (const endMs = Date.now() + PAUSE_MS_MAX; Date.now() < endMs; await Bun.sleep(50)) {
        sentMs = Date.now()
        answer = await askAs(gateway, token)('GET', 'web/gateway')
        if (answer.status !== 200 || problems().length === 0) break
      }
      const { status, body } = answer!
      expect([status, problems()]).toEqual([200, []])
      expect(body.database).toMatchObject({ kind: 'postgres', lastBackup: null, logBytes: null })
      // Both have the same clock. It was read before and after the database was asked, and the middle counts.
      const { clockAheadMs } = body.database as { clockAheadMs: number }
      expect(Math.abs(clockAheadMs)).toBeLessThanOrEqual((Date.now() - sentMs) / 2 + 2)
      const processes = body.processes as { slot: number; version: string; leaseAgeMs: number; isThis: boolean }[]
      expect(processes.map(({ slot, version }) => [slot, version])).toEqual([
        [1, packageJson.version],
        [2, packageJson.version],
      ])
      expect(processes.map(({ isThis }) => isThis)).toEqual([at === 0, at === 1])
      for (const { leaseAgeMs } of processes) expect(leaseAgeMs).toBeWithin(-1_000, LEASE_MS)
    }
  })

  test('a key that one gives a new text at once ends its calls at the other', async () => {
    const created = (await owner.ask('POST', 'web/keys', { name: 'rotated', tier: 'pro', credit: '10' })).body
    const body = { model: 'openai/gpt-4o-mini', messages: hello }
    const closed = closedGate()
    gateways[1].upstream.planModel('gpt-4o-mini', closed.script)
    const running = chat(gateways[1], String(created.key), body)
    try {
      await until(() => closed.taken() === 1, 'the call is forwarded')
      const rotated = await owner.ask('POST', `web/keys/${created.id}/rotate`, {})
      expect(rotated.status).toBe(200)
      expect((await running).status).toBe(401)
      gateways[1].upstream.planModel('gpt-4o-mini', undefined)
      expect((await chat(gateways[1], String(rotated.body.key), body)).status).toBe(200)
    } finally {
      closed.open()
      gateways[1].upstream.planModel('gpt-4o-mini', undefined)
    }
  })

  test('the health of a channel that is reset at one is reset at both', async () => {
    const token = String((await gateways[0].weir('token')).token)
    const blocked = fail(429, { error: { message: 'no', code: 'insufficient_quota' } })
    const channels = async (): Promise<readonly (readonly [id: string, state: string])[]> => {
      const lists = await Promise.all(gateways.map(gateway => askAs(gateway, token)('GET', 'web/channels')))
      const rows = lists.flatMap(({ body }) => body.data as { id: string; health: { state: string } | null }[])
      return rows.flatMap(({ id, health }) =>
        id.startsWith('openai') ? [[id, health?.state ?? 'unused'] as const] : [],
      )
    }
    for (const { upstream } of gateways) upstream.planModel('gpt-4o-mini', blocked)
    try {
      for (const gateway of gateways) await call(gateway)
      expect(new Set((await channels()).map(([, state]) => state))).toEqual(new Set(['quota_spent']))
    } finally {
      for (const { upstream } of gateways) upstream.planModel('gpt-4o-mini', undefined)
    }
    const [[id]] = (await channels()) as [readonly [string, string]]
    expect((await owner.ask('POST', `web/channels/${encodeURIComponent(id)}/reset-health`)).status).toBe(204)
    let states: readonly string[] = []
    for (const endMs = Date.now() + PAUSE_MS_MAX; Date.now() < endMs; await Bun.sleep(20)) {
      states = (await channels()).map(([, state]) => state)
      if (states.every(state => state === 'available')) break
    }
    expect(states).toEqual(['available', 'available'])
  })
})
