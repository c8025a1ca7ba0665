// The state of the gateway over the web: the same findings as `weir doctor`, without the checks that only that command does.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { collectFacts } from '../../src/cli/checks/doctor.ts'
import { readConfig } from '../../src/config.ts'
import { diagnose } from '../../src/management/doctor/doctor-checks.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

interface Finding {
  readonly check: string
  readonly severity: string
  readonly about: string
  readonly text: string
  readonly textHint: object
  readonly remedy: string | null
  readonly remedyHint: object | null
}

/** How far the clock is ahead. The gateway keeps what it has read of the records for 30 seconds. */
let aheadMs = 0
let harness: Harness
let ask: Ask
const beganMs = Date.now()

beforeAll(async () => {
  // This clock stands still: a slow machine may need longer than 30 seconds for a backup and an audit.
  const clock = { nowMs: () => aheadMs, dateMs: () => Date.now() }
  // Audits on demand only, so that the ledger has not been audited before the test does it.
  harness = await startHarness({ env: { WEIR_AUDIT_SECONDS: '0', WEIR_DATABASE_URL: '' }, world: { clock } })
  ask = await askAsOwner(harness)
})
afterAll(() => harness.stop())

async function read() {
  const { status, body } = await ask('GET', 'web/gateway')
  expect(status).toBe(200)
  return body as Record<string, unknown> & { readonly findings: readonly Finding[] }
}

/** Reads it again after the gateway has forgotten what it has read of the records. */
async function readAnew() {
  aheadMs += 31_000
  return await read()
}

test('shows the version, the database and the process', async () => {
  // A gateway is not ready while its ledger needs more than a second.
  while ((await read()).ready !== true) await Bun.sleep(20)
  const { started, loopLateMs: _, ledgerLateMs: _late, findings: _findings, ...rest } = await read()
  const startedMs = Date.parse(String(started))
  expect([startedMs >= beganMs, startedMs <= Date.now()]).toEqual([true, true])
  expect(rest).toEqual({
    version: packageJson.version,
    consoleBuild: rest.consoleBuild,
    ready: true,
    overload: 0,
    activeCalls: 0,
    unsettledCalls: 0,
    storageFull: false,
    bodiesDropped: 0,
    database: { kind: 'sqlite', lastBackup: null, logBytes: expect.any(Number) as never, clockAheadMs: null },
    processes: [
      {
        slot: null,
        address: harness.url,
        version: packageJson.version,
        leaseAgeMs: null,
        hasRunOut: false,
        isThis: true,
      },
    ],
    books: 'not looked at yet',
    audited: null,
    well: false,
  })
})

test('finds what weir doctor finds', async () => {
  const key = await harness.key()
  const refused = await chat(harness, key, { model: 'openai/no-price', messages: hello })
  await refused.text()
  const accounts = (await ask('GET', 'web/accounts')).body.data as { id: string }[]
  const frozen = await ask('PATCH', `web/accounts/${accounts[0]!.id}`, { frozen: true })
  expect(frozen.status).toBe(200)
  const { findings, well } = await readAnew()
  const config = readConfig({ WEIR_DATA: harness.folder, WEIR_LOCAL_SERVERS: 'off' })
  // The command also looks from outside, where a slow machine may not answer in time.
  const others = ['folder', 'base_url', 'base_url_unsure', 'metrics_deaf', 'not_answering']
  const expected = diagnose(await collectFacts(config, Date.now())).filter(({ check }) => !others.includes(check))
  expect(findings.map(({ textHint: _, remedyHint: __, ...texts }) => texts)).toEqual(
    expected.map(({ check, weight, about, says, remedy }) => ({
      check,
      severity: weight,
      about,
      text: says,
      remedy: remedy === '' ? null : remedy,
    })),
  )
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining(['accounts_frozen', 'backup_old', 'errors']),
  )
  expect(well).toBe(false)
})

test('knows of a backup and an audit at once, and reads the records again after half a minute', async () => {
  const [account] = (await ask('GET', 'web/accounts?frozen=true')).body.data as { id: string }[]
  const before = await read()
  const to = mkdtempSync(join(tmpdir(), 'weir-copy-'))
  rmSync(to, { recursive: true, force: true })
  await harness.weir('backup', { folder: to })
  rmSync(to, { recursive: true, force: true })
  await harness.weir('audit')
  await ask('PATCH', `web/accounts/${account!.id}`, { frozen: false })
  const checks = ({ findings }: { readonly findings: readonly Finding[] }) => findings.map(({ check }) => check)
  expect(checks(before)).toEqual(expect.arrayContaining(['backup_old', 'accounts_frozen']))
  const soon = await read()
  expect(checks(soon)).not.toContain('backup_old')
  expect([soon.books, typeof soon.audited]).toEqual(['agree', 'string'])
  expect((soon.database as { lastBackup: unknown }).lastBackup).toBeString()
  expect(checks(soon)).toContain('accounts_frozen')
  expect(checks(await readAnew())).not.toContain('accounts_frozen')
})
