// The auditor on PostgreSQL: each kind of damage is found, and a ledger that several processes write to is consistent
// at every pass.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { ColdName, HotName, OperationInput } from '../../src/store/engine/operations.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import type { AuditReport } from '../../src/store/ledger-audit/findings.ts'
import { buildPostgresPasses, PostgresAudit } from '../../src/store/postgres/audit.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { batchStatement, encodeJob } from '../../src/store/postgres/ledger-batch.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { damages, damagesOfOldRows, REVENUE } from '../ledger/damages.ts'
import { alice, aliceKey, bob, bobKey, calls, holdOf, recordOf, sampleOperations } from '../ledger/sample-books.ts'
import { randomFrom } from '../support/chance.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const by = { actor: 'test' }
const hotNames: readonly string[] = ['hold', 'extend', 'settle', 'checkpoint', 'record'] satisfies HotName[]
const aliceIds = { accountId: alice, keyId: aliceKey }
const bobIds = { accountId: bob, keyId: bobKey }

const failedChecks = ({ findings }: AuditReport): readonly string[] =>
  findings.map(({ check, accountId }) => `${check} ${accountId ?? '-'}`).sort()

describe.skipIf(!hasPostgres)('the audit on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let operations: PostgresOperations

  const openWriter = async (): Promise<{ member: Membership; writer: LedgerWriter }> => {
    const member = await Membership.join(pool, { version: '1', address: 'test' })
    const onFenced = (): never => {
      throw new Error('fenced')
    }
    const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    return { member, writer: new LedgerWriter(own, { owner: member, onFenced, waitedMs: () => 0 }) }
  }

  beforeAll(async () => {
    server = await startPostgres()
    const template = await server.open()
    await createSchema(template)
    pool = template
    operations = new PostgresOperations(pool, { slot: 1 })
    const { writer } = await openWriter()
    for (const { name, input } of sampleOperations()) {
      if (hotNames.includes(name)) await writer.run(name as 'settle', input as OperationInput<'settle'>)
      else await operations.run(name as ColdName, input as OperationInput<ColdName>, by)
    }
    sample = server.lastDatabase
    await server.closeAll()
  })
  afterAll(() => server.stop())

  let sample: string
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 }, sample)
    operations = new PostgresOperations(pool, { slot: 1 })
  })

  afterEach(() => server.closeAll())

  const auditAll = (): Promise<AuditReport> => new PostgresAudit(pool, 0).auditAll()

  /** Makes a change that the triggers and the checks forbid, and restores the checks. */
  async function spoil(sql: string): Promise<void> {
    const checks = await pool.transact(
      postgresQuery<{ name: string; owner: string; text: string }>(
        `SELECT conname AS name, CAST(conrelid::regclass AS TEXT) AS owner, pg_get_constraintdef(oid) AS text
         FROM pg_constraint WHERE contype = 'c' AND conrelid IN ('account'::regclass, 'budget'::regclass)`,
      ).all(),
    )
    const dropped = checks.map(({ name, owner }) => `ALTER TABLE ${owner} DROP CONSTRAINT ${name}`)
    const added = checks.map(
      ({ name, owner, text }) =>
        `ALTER TABLE ${owner} ADD CONSTRAINT ${name} ${text.replace(' NOT VALID', '')} NOT VALID`,
    )
    const script = ['SET LOCAL session_replication_role = replica', ...dropped, sql, ...added]
    await pool.runScript(script.join(';\n'))
  }

  test('an undamaged ledger is consistent', async () => {
    const { findings, ...seen } = await auditAll()
    expect(findings).toEqual([])
    expect(seen).toMatchObject({ transfers: 11, records: 4, accounts: 6, holds: 1 })
  })

  describe('a full audit finds that', () => {
    test.each([...damages, ...damagesOfOldRows])('%s', async (_, sql, found) => {
      await spoil(sql)
      expect(failedChecks(await auditAll())).toEqual([...found].sort())
    })

    test("a process's part of the operator's balance is changed", async () => {
      await spoil('UPDATE operator_part SET balance = balance + 7 WHERE account_id = 1')
      expect(failedChecks(await auditAll())).toEqual([`balance ${REVENUE}`, 'sum -'])
    })

    test('a transfer was never counted', async () => {
      await spoil('INSERT INTO transfer_count VALUES (0, -1)')
      expect((await auditAll()).findings.map(({ text }) => text)).toEqual(['there are 1 transfers too many'])
    })

    const schema = [
      ['a trigger is missing', 'DROP TRIGGER transfer_is_kept ON transfer', ['trigger transfer_is_kept is missing']],
      [
        'a trigger is disabled',
        'ALTER TABLE transfer DISABLE TRIGGER transfer_is_final',
        ['trigger transfer_is_final differs from the one that Weir creates'],
      ],
      ['an index is missing', 'DROP INDEX transfer_once', ['index transfer_once is missing']],
      [
        'a trigger has been added',
        'CREATE TRIGGER more AFTER INSERT ON transfer FOR EACH ROW EXECUTE FUNCTION raise_version()',
        ['trigger more was not created by Weir'],
      ],
      [
        'a function is changed',
        "CREATE OR REPLACE FUNCTION cancel_hold(the_call BIGINT) RETURNS VOID LANGUAGE plpgsql AS 'BEGIN END'",
        ['function cancel_hold differs from the one that Weir creates'],
      ],
      [
        'a check is missing',
        'ALTER TABLE account DROP CONSTRAINT account_check',
        ['table account, constraints of kind c differs from the one that Weir creates'],
      ],
      [
        'references are missing',
        'ALTER TABLE transfer DROP CONSTRAINT transfer_debit_fkey, DROP CONSTRAINT transfer_credit_fkey',
        ['table transfer, constraints of kind f is missing'],
      ],
    ] as const
    test.each(schema)('%s', async (_, sql, texts) => {
      await pool.runScript(sql)
      expect((await auditAll()).findings.map(({ text }) => text)).toEqual([...texts])
    })
  })

  test('what a later version has migrated is not taken for damage, and all else is checked', async () => {
    const later = `CREATE OR REPLACE FUNCTION cancel_hold(the_call BIGINT) RETURNS VOID LANGUAGE plpgsql AS 'BEGIN END';
      CREATE TRIGGER more AFTER INSERT ON transfer FOR EACH ROW EXECUTE FUNCTION raise_version();
      INSERT INTO schema_migration VALUES (9999, '9999-more.sql', 0)`
    await pool.runScript(later)
    const audit = new PostgresAudit(pool, 0)
    expect((await audit.pass()).findings).toEqual([])
    // Without the look-ups that need indexes this would not be found.
    await spoil(`UPDATE record SET cost = cost - 1 WHERE call_id = ${calls.plain}`)
    expect(failedChecks(await auditAll())).toEqual([`call ${alice}`])
    await pool.runScript('DELETE FROM schema_migration WHERE version = 9999')
    expect((await audit.pass()).findings.map(({ text }) => text)).toEqual([
      'function cancel_hold differs from the one that Weir creates',
      'trigger more was not created by Weir',
    ])
  })

  describe('an incremental audit', () => {
    let audit: PostgresAudit
    beforeEach(async () => {
      audit = new PostgresAudit(pool, 0)
      expect((await audit.pass()).findings).toEqual([])
    })

    const everyTime = damages.filter(([, , found]) => !found.some(line => line.startsWith('call ')))
    test.each(everyTime)('finds at its next pass that %s', async (what, sql, found) => {
      await spoil(sql)
      const expected = [...found, ...(what === 'a hold is lost' ? [`call ${alice}`] : [])].sort()
      for (let pass = 0; pass < 2; pass++) expect(failedChecks(await audit.pass())).toEqual(expected)
    })

    test('reads what is new, and nothing twice', async () => {
      const { writer } = await openWriter()
      await writer.run('hold', holdOf(7_001, aliceIds, '90'))
      await writer.run('settle', { record: recordOf(7_001, aliceIds), cost: '80' })
      for (let pass = 0; pass < 2; pass++) {
        expect(await audit.pass()).toMatchObject({ findings: [], transfers: 12, records: 5 })
      }
    })

    const fresh = [
      ['a charge without a record', 'DELETE FROM record WHERE call_id = 7001'],
      ['a record without its charge', 'UPDATE record SET cost = 0 WHERE call_id = 7001'],
      ['another cost', 'UPDATE record SET cost = cost - 1 WHERE call_id = 7001'],
    ] as const
    test.each(fresh)('finds %s among the new rows, and reports it until it is repaired', async (_, sql) => {
      const { writer } = await openWriter()
      await writer.run('hold', holdOf(7_001, aliceIds, '90'))
      await writer.run('settle', { record: recordOf(7_001, aliceIds), cost: '80' })
      await pool.runScript('CREATE TABLE saved AS SELECT * FROM record WHERE call_id = 7001')
      await spoil(sql)
      for (let pass = 0; pass < 2; pass++) expect(failedChecks(await audit.pass())).toEqual([`call ${alice}`])
      await pool.runScript('DELETE FROM record WHERE call_id = 7001; INSERT INTO record SELECT * FROM saved')
      expect(failedChecks(await audit.pass())).toEqual([])
    })

    test('starts again when the newest transfers are gone', async () => {
      await spoil('DELETE FROM transfer WHERE seq = (SELECT max(seq) FROM transfer)')
      expect(failedChecks(await audit.pass())).toEqual([`balance ${REVENUE}`, `balance ${alice}`, 'transfers -'])
    })

    test('starts again when a standby that lacks the newest transactions has taken over', async () => {
      await spoil(`DELETE FROM transfer WHERE ref = ${calls.plain}; DELETE FROM record WHERE call_id = ${calls.plain};
        UPDATE account SET balance = balance + 120 WHERE id = ${alice};
        UPDATE operator_part SET balance = balance - 120 WHERE account_id = 1;
        INSERT INTO transfer_count VALUES (0, -1)`)
      expect(await audit.pass()).toMatchObject({ findings: [], transfers: 10 })
    })

    test('does not miss the record of a hold that was cancelled', async () => {
      const { member, writer } = await openWriter()
      await writer.run('hold', holdOf(7_001, aliceIds, '90'))
      expect(await audit.pass()).toMatchObject({ findings: [], holds: 2 })
      await pool.runAlone(
        batchStatement([encodeJob({ name: 'cancel', input: { callId: 7_001 } })], { owner: member, number: 1_000 }),
      )
      expect(await audit.pass()).toMatchObject({ findings: [], holds: 1 })
    })
  })

  test('reads transfers once, and those of transactions after a running one again, in any order of commits', async () => {
    const passes = buildPostgresPasses({ read: steps => pool.read(steps) }, { lagMs: 0, rests: false }, 3)
    expect(await passes.pass()).toMatchObject({ findings: [], transfers: 11 })
    // The first transaction is open while the others are committed: their transfers are visible before its own.
    const gate = Promise.withResolvers<void>()
    const isOpen = Promise.withResolvers<void>()
    const first = (async () => {
      const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
      await own.runScript('BEGIN')
      const post = `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (90, 'gift', 2, ${alice}, 5, 1);
        UPDATE account SET balance = balance + 5 WHERE id = ${alice};
        INSERT INTO operator_part (account_id, slot, balance) VALUES (2, 99, -5)`
      await own.runScript(post)
      isOpen.resolve()
      await gate.promise
      await own.runScript('COMMIT')
    })()
    await isOpen.promise
    for (let ref = 91; ref < 99; ref++) {
      const gift = { kind: 'gift', ref, accountId: bob, amount: '7', reference: null, author: 'cli' } as const
      await operations.run('post', gift, by)
      expect(await passes.pass()).toMatchObject({ findings: [], transfers: 11 + ref - 90 })
    }
    gate.resolve()
    await first
    for (let pass = 0; pass < 2; pass++) expect(await passes.pass()).toMatchObject({ findings: [], transfers: 20 })
  })

  describe('after a restore from a server whose transactions have higher numbers', () => {
    /** Gives all transfers numbers that this server reaches soon, or not, with gaps between them. */
    const restore = (above: number): Promise<void> =>
      spoil(`UPDATE transfer SET xid = CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + ${above} + 3 * seq`)
    const passesOf = () => buildPostgresPasses({ read: steps => pool.read(steps) }, { lagMs: 0, rests: false }, 3)

    test('a charge without its record and wrong parties are found', async () => {
      await restore(1_000_000)
      await spoil(`DELETE FROM record WHERE call_id = ${calls.plain}`)
      expect(failedChecks(await passesOf().pass())).toEqual([`call ${alice}`])
      await spoil("UPDATE transfer SET kind = 'gift' WHERE kind = 'top_up'")
      expect(failedChecks(await passesOf().pass()).some(found => found.startsWith('parties'))).toBe(true)
    })

    test('each transfer is read once, also when new transactions get the same numbers', async () => {
      await restore(5)
      const passes = passesOf()
      const [{ last }] = (await pool.transact(
        postgresQuery<{ last: bigint }>('SELECT max(xid) AS last FROM transfer').all(),
      )) as [{ last: bigint }]
      expect(await passes.pass()).toMatchObject({ findings: [], transfers: 11 })
      const current = postgresQuery<{ xid: bigint }>('SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) AS xid')
      let made = 0
      for (let xid = 0n; xid <= last + 5n; xid = (await pool.transact(current.get()))!.xid) {
        const gift = { kind: 'gift', ref: 9_000 + ++made, accountId: bob, amount: '7', reference: null } as const
        await operations.run('post', { ...gift, author: 'cli' }, by)
        expect(await passes.pass()).toMatchObject({ findings: [], transfers: 11 + made })
      }
      expect(made).toBeGreaterThan(5)
      // A pass that begins now finds the same.
      expect(await passesOf().pass()).toMatchObject({ findings: [], transfers: 11 + made })
    })

    test('a new transfer with wrong parties is found among them', async () => {
      await restore(5)
      const passes = passesOf()
      expect((await passes.pass()).findings).toEqual([])
      const gift = { kind: 'gift', ref: 9_000, accountId: bob, amount: '7', reference: null, author: 'cli' } as const
      for (let ref = 9_000; ref < 9_010; ref++) await operations.run('post', { ...gift, ref }, by)
      await spoil("UPDATE transfer SET kind = 'refund' WHERE ref = 9005")
      expect(failedChecks(await passes.pass())).toContain(`parties ${bob}`)
    })
  })

  test('a ledger that several processes write to is consistent at every pass', async () => {
    const writers = await Promise.all(Array.from({ length: 3 }, openWriter))
    // Operations that wait for each other must not keep the audit waiting for a connection.
    const own = server.openAgain(server.lastDatabase, { deadlineMs: 60_000 })
    const audits = [0, 1].map(lagMs =>
      buildPostgresPasses({ read: steps => own.read(steps) }, { lagMs, rests: false }, 50),
    )
    let [next, isWorking] = [20_000_000, true]
    const random = randomFrom(1)
    const caller = async (writer: LedgerWriter, owner: typeof aliceIds): Promise<void> => {
      while (isWorking) {
        const callId = next++
        const ref = next++
        const held = await writer.run('hold', holdOf(callId, owner, '900'))
        const cost = `${BigInt(random(1_000))}` as const
        const work: Promise<unknown>[] = []
        if (held.done === 'held') work.push(writer.run('settle', { record: recordOf(callId, owner), cost }))
        const posted = { kind: 'top_up', ref, accountId: owner.accountId, amount: '600', reference: null } as const
        work.push(operations.run('post', { ...posted, author: 'cli' }, by))
        await Promise.all(work)
        if (random(7) === 0) {
          const part = { kind: 'refund', ref: callId, amount: 'all', reference: null, author: 'cli' } as const
          await operations.run('post', { ...part, accountId: owner.accountId }, by)
        }
      }
    }
    const callers = Array.from({ length: 12 }, (_, at) => caller(writers[at % 3]!.writer, at % 2 ? aliceIds : bobIds))
    let last: AuditReport | undefined
    for (let round = 0; round < 15 || last!.transfers < 300; round++) {
      for (const audit of audits) {
        last = await audit.pass()
        expect(last.findings).toEqual([])
      }
    }
    isWorking = false
    await Promise.all(callers)
    const { findings, transfers } = await auditAll()
    expect(findings).toEqual([])
    expect(transfers).toBeGreaterThanOrEqual(last!.transfers)
  })

  test('sums of more than 64 bits are added up exactly', async () => {
    const post = async (ref: number, amount: MoneyText): Promise<void> => {
      const posting = { kind: 'adjustment', ref, accountId: bob, amount, reference: null, author: 'cli' } as const
      expect((await operations.run('post', posting, by)).done).toBe('posted')
    }
    const much = 2n ** 60n
    for (let ref = 8_000; ref < 8_020; ref++) {
      await post(ref, `${much}`)
      await post(ref + 100, `${-much}`)
    }
    await post(8_200, `${much + 1n}`)
    expect((await auditAll()).findings).toEqual([])
  })

  test('a closed audit ends its pass', async () => {
    const audit = new PostgresAudit(pool, 0)
    const fault = audit.pass().then(
      () => 'none',
      (error: Error) => error.message,
    )
    await audit.close()
    expect(await fault).toBe('the audit was aborted')
  })
})
