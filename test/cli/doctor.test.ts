// weir doctor has a check for each thing that can be wrong. Each problem is caused here and must be reported; a healthy
// gateway must have no findings.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { collectFacts } from '../../src/cli/checks/doctor.ts'
import { readConfig } from '../../src/config.ts'
import { listenControl } from '../../src/http/server/control-socket.ts'
import type { DoctorFacts } from '../../src/management/doctor/doctor-checks.ts'
import { diagnose, doctorChecks } from '../../src/management/doctor/doctor-checks.ts'
import type { CheckFinding } from '../../src/management/doctor/finding.ts'
import type { GatewayState } from '../../src/management/metrics/gateway-state.ts'
import { openWriter } from '../../src/store/engine/database.ts'
import { fail } from '../../tools/fake-upstream/answers.ts'
import { cleanUp, freshFolder, serve, stopServed, weir } from '../front/weir-process.ts'
import { spoil } from '../ledger/sample-books.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { chat, HUNG_MS, hello, startHarness, until } from '../support/gateway.ts'

const MIB = 1024 * 1024
const DAY_MS = 24 * 3_600_000

let harness: Harness
let memory = 0.1
let findings: readonly CheckFinding[] = []

async function start(folder?: string, world: HarnessOptions['world'] = {}): Promise<void> {
  harness = await startHarness({
    env: { METRICS_PORT: '0', WEIR_MEMORY_MB: '1000', WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' },
    world: { memoryBytes: () => memory * 1000 * MIB, ...world },
    ...(folder !== undefined && { folder }),
  })
}

const readFacts = (folder = harness.folder): Promise<DoctorFacts> =>
  collectFacts(readConfig({ WEIR_DATA: folder, WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }), Date.now())

/** The ids of the checks that have findings. */
async function findingIds(facts?: DoctorFacts): Promise<readonly string[]> {
  const current = facts ?? (await readFacts())
  findings = diagnose(current)
  return doctorChecks.filter(({ find }) => find(current).length > 0).map(({ id }) => id)
}

function sql(text: string, folder = harness.folder): void {
  const db = openWriter(join(folder, 'weir.db'))
  spoil(db, text)
  db.close()
}

const OWNER = `INSERT INTO person (id, email, name, role, created_ms) VALUES (1, 'o@example.com', 'O', 'owner', 0)`

/** Gives the gateway an owner and a backup, so that no check has findings. */
async function makeHealthy(): Promise<void> {
  sql(OWNER)
  await harness.weir('backup', { folder: join(harness.folder, 'copy') })
}

const ask = async (key: string, model = 'openai/gpt-4o-mini'): Promise<void> =>
  void (await (await chat(harness, key, { model, messages: hello })).text())

/** Makes a call that is refused, and waits for its record: the answer does not wait for it. */
async function refuse(key: string): Promise<void> {
  await ask(key, 'openai/nothing-like-it')
  await until(() => harness.records().some(({ error }) => error === 'model_unknown'), 'the refused call is recorded')
}

describe('weir doctor on a running gateway', () => {
  let key: string
  beforeAll(async () => {
    await start()
    await makeHealthy()
    key = await harness.key({ qpm: 10_000 })
    await ask(key)
  })
  afterAll(() => harness.stop())

  /** Undoes the problem of a test after it. */
  let undo: () => unknown = () => {}
  afterEach(async () => {
    await undo()
    undo = () => {}
    expect(await findingIds()).toEqual([])
  })

  test('finds nothing wrong', async () => {
    expect(await findingIds()).toEqual([])
    const { state, readyStatus, isMetricsReachable, books } = await readFacts()
    expect(state).toMatchObject({ ready: true, overloadLevel: 0, channels: [{ state: 'available' }] })
    expect([readyStatus, isMetricsReachable]).toEqual([200, true])
    expect(books).toMatchObject({ details: { calls: 1, hasOwner: true } })
  })

  const rows: Record<string, () => unknown> = {
    folder() {
      chmodSync(harness.folder, 0o755)
      undo = () => chmodSync(harness.folder, 0o700)
    },
    ledger_drift: async () => {
      sql('UPDATE account SET balance = balance + 5 WHERE id = 1')
      await harness.weir('audit')
      undo = async () => {
        sql('UPDATE account SET balance = balance - 5 WHERE id = 1')
        await harness.weir('audit')
      }
    },
    accounts_frozen: async () => {
      const account = (await harness.weir('accounts show', { account: key })).id
      await harness.weir('accounts freeze', { account })
      undo = () => harness.weir('accounts unfreeze', { account })
    },
    holds_stuck() {
      const old = idAtMs(Date.now() - 3 * 3_600_000)
      sql(`INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft)
           SELECT ${old}, 'call', account_id, id, 0, '{}' FROM api_key LIMIT 1`)
      undo = () => sql(`DELETE FROM hold WHERE call_id = ${old}`)
    },
    overload: async () => {
      memory = 0.82
      // The gateway measures only while there are calls.
      while (!harness.logs.some(line => line.includes('"overload":1'))) await ask(key)
      undo = async () => {
        memory = 0.1
        for (let level = 1; level > 0; ) {
          await ask(key)
          const { state } = await readFacts()
          level = (state as GatewayState).overloadLevel
        }
        await harness.idle()
      }
    },
    backup_old() {
      const at = join(harness.folder, 'last-backup.json')
      const write = (days: number): void =>
        writeFileSync(at, JSON.stringify({ madeAt: new Date(Date.now() - days * DAY_MS).toISOString() }))
      write(8)
      undo = () => write(1)
    },
    set_up_open() {
      sql('DELETE FROM person')
      undo = () => sql(OWNER)
    },
    errors: async () => {
      await refuse(key)
      undo = () => sql('DELETE FROM record')
    },
  }

  test.each(Object.entries(rows))('reports %s', async (id, cause) => {
    await cause()
    expect(await findingIds()).toEqual([id])
    for (const { says, remedy } of findings) expect([says !== '', remedy !== '']).toEqual([true, true])
  })

  test('reports our_errors and calls_failing', async () => {
    await ask(key)
    await harness.idle()
    sql(`UPDATE record SET error = 'gateway_fault', outcome = 'gateway_fault'`)
    expect(await findingIds()).toEqual(['our_errors'])
    sql(`UPDATE record SET error = 'upstream_too_slow', outcome = 'upstream_failed'`)
    expect(await findingIds()).toEqual(['calls_failing', 'errors'])
    undo = () => sql('DELETE FROM record')
  })

  /** Problems that are hard to cause: the state that the gateway reports is changed instead. */
  const reportedStates: Record<string, Partial<GatewayState> | ((facts: DoctorFacts) => Partial<DoctorFacts>)> = {
    store_full: { storeFull: true },
    unsettled_calls: { unsettledCalls: 2 },
    loop_late: { lateMs: 101 },
    bodies_dropped: { bodiesDropped: 3 },
    audit_missed: { ledger: { drift: 0, auditedMs: Date.now() - 3_600_000 }, auditEveryMs: 60_000 },
    metrics_deaf: () => ({ isMetricsReachable: false }),
    log_large: () => ({ logBytes: 300 * MIB }),
    not_answering: () => ({ readyStatus: undefined }),
  }

  test.each(Object.entries(reportedStates))('reports %s from the state of the gateway', async (id, change) => {
    const facts = await readFacts()
    const state = { ...(facts.state as GatewayState), ...(typeof change === 'object' && change) }
    expect(await findingIds({ ...facts, state, ...(typeof change === 'function' && change(facts)) })).toEqual([id])
  })
})

describe('weir doctor on channels', () => {
  beforeAll(async () => {
    await start()
    await makeHealthy()
  })
  afterAll(() => harness.stop())

  const noErrors = (): void => sql('DELETE FROM record')
  // A channel that fails is blocked for a second at first. The clock stands still, so that it is still blocked when it is
  // looked at, however slow the machine is.
  const clock = { nowMs: () => 1_000, dateMs: () => Date.now() }
  const rows: Record<string, () => Promise<void>> = {
    credential_bad: async () => {
      harness.upstream.planModel('gpt-4o-mini', fail(401, { error: { message: 'no', code: 'invalid_api_key' } }))
    },
    quota_spent: async () => {
      harness.upstream.planModel('gpt-4o-mini', fail(429, { error: { message: 'no', code: 'insufficient_quota' } }))
    },
    channel_blocked: async () => harness.upstream.planModel('gpt-4o-mini', fail(500)),
  }

  test.each(Object.entries(rows))('reports %s', async (id, plan) => {
    await harness.stop()
    await start(undefined, { clock })
    await makeHealthy()
    const key = await harness.key({ qpm: 10_000 })
    await ask(key)
    expect(await findingIds()).toEqual([])
    await plan()
    for (let times = 0; times < 25; times++) await ask(key)
    await harness.idle()
    noErrors()
    expect(await findingIds()).toEqual([id])
    expect(findings[0]!.about).toStartWith('openai#')
  })

  test('reports price_unknown', async () => {
    await refuse(await harness.key())
    sql(`UPDATE record SET error = 'price_unknown', asked = 'openai/new' WHERE error = 'model_unknown'`)
    const ids = await findingIds()
    expect(ids.filter(id => id !== 'channel_blocked')).toEqual(['price_unknown', 'errors'])
    expect(findings.find(({ about }) => about === 'openai/new')!.remedy).toContain('weir prices set openai/new')
  })
})

describe('weir doctor on a stopped or damaged gateway', () => {
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-doctor-'))
    await start(folder)
    await makeHealthy()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('reports not_ready', async () => {
    expect(await findingIds(await readFacts(folder))).toEqual([])
    const drained = harness.gateway.drain(HUNG_MS)
    expect(await findingIds(await readFacts(folder))).toEqual(['not_ready'])
    await harness.gateway.drain() // the second call ends the delay
    await drained
    await harness.upstream.stop()
  })

  test('reports not_running', async () => {
    expect(await findingIds(await readFacts(folder))).toEqual(['not_running'])
  })

  test('reports not_answering', async () => {
    const silentSocket = listenControl(join(folder, 'weir.sock'), () => new Promise(() => {}))
    expect(await findingIds(await readFacts(folder))).toEqual(['not_answering'])
    // An open request must not keep the commands from ending.
    expect((await weir(folder, 'doctor')).stdout).toContain('A gateway is running but does not answer.')
    expect((await weir(folder, 'check', { WEIR_CALLS_MAX: '100' })).stdout).toContain(
      'Weir can start with these settings.',
    )
    silentSocket.close()
    rmSync(join(folder, 'weir.sock'), { force: true })
  })

  test('reports schema_earlier, schema_later and database_unreadable', async () => {
    const version = (number: number): void => {
      const db = openDatabase(join(folder, 'weir.db'))
      db.run('PRAGMA user_version = '.concat(String(number)))
      db.close()
    }
    version(3)
    expect(await findingIds(await readFacts(folder))).toEqual(['not_running', 'schema_earlier'])
    version(99)
    expect(await findingIds(await readFacts(folder))).toEqual(['schema_later', 'not_running'])
    for (const name of ['weir.db-wal', 'weir.db-shm']) rmSync(join(folder, name), { force: true })
    writeFileSync(join(folder, 'weir.db'), 'no database'.repeat(1_000))
    expect(await findingIds(await readFacts(folder))).toEqual(['database_unreadable', 'not_running'])
  })

  test('reports no_data', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'weir-doctor-'))
    expect(await findingIds(await readFacts(empty))).toEqual(['no_data'])
    rmSync(empty, { recursive: true, force: true })
  })
})

describe('the command line', () => {
  afterAll(cleanUp)

  test('prints the findings of weir doctor with the command to run, and exits with 1 if there are any', async () => {
    const folder = freshFolder()
    const served = await serve(folder, { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off', METRICS_PORT: '0' })
    const first = await weir(folder, 'doctor')
    expect([first.code, first.stderr]).toEqual([1, ''])
    expect(first.stdout).toContain(
      '✗ backup_old: This data has never been backed up.\n    Run this each day: weir backup <folder>',
    )
    await weir(folder, `backup ${folder}-copy`)
    rmSync(`${folder}-copy`, { recursive: true, force: true })
    const db = openDatabase(join(folder, 'weir.db'))
    db.run(OWNER)
    db.close()
    const healthy = await weir(folder, 'doctor')
    expect([healthy.code, healthy.stdout]).toEqual([0, 'No problems found.\n'])
    const json = JSON.parse((await weir(folder, 'doctor --json')).stdout) as Record<string, unknown>
    expect(json).toMatchObject({ well: true, troubles: [], running: { url: served.url, ready: true } })
    expect(await stopServed(served)).toBe(0)
    expect((await weir(folder, 'doctor')).stdout).toStartWith('✗ not_running: No gateway runs on ')
    expect((await weir(folder, 'doctor now')).code).toBe(2)
  })

  test('prints the version, and help on one command', async () => {
    const folder = freshFolder()
    const version = await weir(folder, 'version --json')
    expect(JSON.parse(version.stdout)).toEqual({
      weir: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      bun: process.versions.bun,
      schema: expect.any(Number),
    })
    expect((await weir(folder, '--version')).stdout).toContain('weir ')
    expect((await weir(folder, 'help backup')).stdout).toStartWith('weir backup <folder>')
    expect((await weir(folder, 'help keys')).stdout).toContain('weir keys create')
    expect((await weir(folder, 'help nothing')).code).toBe(2)
  })

  test('prints the progress of long commands to stderr with --progress', async () => {
    const folder = freshFolder()
    await weir(folder, 'keys create --credit 1')
    const copy = `${folder}-copy`
    const backup = await weir(folder, `backup ${copy} --progress`)
    expect([backup.code, backup.stderr]).toEqual([0, expect.stringMatching(/^copying and auditing … {2}\d+ s/)])
    const audit = await weir(folder, 'audit --progress --json')
    expect([audit.code, audit.stderr]).toEqual([0, expect.stringContaining('reading the ledger …')])
    expect(JSON.parse(audit.stdout)).toMatchObject({ books: 'agree' })
    const restored = await weir(folder, `restore ${copy} --progress`)
    // A step is printed again each second for as long as it lasts.
    const steps = restored.stderr.split('\n').map(line => line.split(' …')[0])
    expect(steps.filter((step, at) => step !== steps[at - 1])).toEqual([
      'auditing the backup',
      'copying the backup',
      'auditing the restored data',
      '',
    ])
    expect((await weir(folder, 'audit')).stderr).toBe('')
    rmSync(copy, { recursive: true, force: true })
  })
})

test('base_url and base_url_unsure are reported as weir check finds them', async () => {
  const facts = { ...(await readFacts('/nowhere')), hasData: true }
  const found = { about: 'X_BASE_URL', says: 'It answers 404.', remedy: 'Set X_BASE_URL=y' }
  const diagnoseAddresses = (addressTroubles: DoctorFacts['addressFindings']) =>
    diagnose({ ...facts, addressFindings: addressTroubles })
  const before = diagnoseAddresses([]).length
  expect(diagnoseAddresses([{ weight: 'problem', ...found }])).toContainEqual({
    check: 'base_url',
    weight: 'problem',
    ...found,
  })
  expect(diagnoseAddresses([{ weight: 'note', ...found }])).toContainEqual({
    check: 'base_url_unsure',
    weight: 'note',
    ...found,
  })
  expect(diagnoseAddresses([{ weight: 'note', ...found, remedy: '' }])).toHaveLength(before)
})

test('every check of weir doctor is named in this file, or in that of commands on PostgreSQL', async () => {
  const files = [import.meta.path, join(import.meta.dir, '../postgres/commands.test.ts')]
  const text = (await Promise.all(files.map(path => Bun.file(path).text()))).join('')
  for (const { id } of doctorChecks) expect(text).toMatch(new RegExp(`\\b${id}\\b`))
})
