// Bugs that a ledger can have. Each is planted into a copy of the gateway, and the harness must detect it. The text to
// replace must occur in its file exactly once, so that a bug that no longer applies fails its test.

import type { Event } from './event-log.ts'
import type { DirectedLoad } from './harness.ts'
import type { Shares } from './plan.ts'

export interface Edit {
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Bug {
  readonly name: string
  /** What goes wrong for whom. */
  readonly says: string
  readonly edits: readonly Edit[]
  /** How the bug is detected: by kills under load, or by many callers at once. */
  readonly by: 'kills' | 'races'
  /** How many of the kills fall into migrations of an old database. */
  readonly upgrades?: number
  /** Of the kills: the calls that the bug concerns, and the instant at which a kill shows it. */
  readonly load?: DirectedLoad
  /** One of the violations must say this. */
  readonly expects: RegExp
}

const LEDGER = 'src/store/ledger/ledger-operations.ts'
const SCHEMA = 'src/store/migrations/0002-ledger.sql'
/** Makes transfers and records anew. */
const CHEAPER_CHECKS = 'src/store/migrations/0027-cheaper-checks.sql'
const THREAD = 'src/store/engine/writer-thread.ts'

/** Streams with pauses between their pieces, which are under way for a while. */
const slowStreams: Partial<Shares> = { stream: 1_000, slow: 1_000, long: 0, leaves: 0, fails: 0 }
/** Streams that are longer than the time to a checkpoint. */
const longStreams: Partial<Shares> = { ...slowStreams, long: 1_000 }
/** Every call costs more than its account has left after a few of them. */
const unpaid: Partial<Shares> = { keys: [0, 0, 1_000, 0], excess: 1_000, sliced: 0, leaves: 0, fails: 0 }

/** Right after so many events of a kind. */
const after = (times: number, kind: Event['kind']): DirectedLoad['killAfter'] => ({
  times,
  isLike: event => event.kind === kind,
})
const afterLeaving: DirectedLoad['killAfter'] = {
  times: 50,
  isLike: event => event.kind === 'ended' && event.how === 'left',
}

export const bugs: readonly Bug[] = [
  {
    name: 'deliver before settle',
    says: 'The answer goes out while its charge is still being written.',
    edits: [
      {
        file: 'src/pipeline/reply/reply.ts',
        find: '    await settle(exchange, completeEnding(exchange))\n',
        replace: '    void settle(exchange, completeEnding(exchange)).catch(() => {})\n',
      },
    ],
    by: 'kills',
    load: { shares: { stream: 0, leaves: 0, fails: 0 }, killAfter: after(50, 'last') },
    expects: /^G3: a whole answer was charged/,
  },
  {
    name: 'terminal event before settle',
    says: 'The last event of a stream goes out while its charge is still being written.',
    edits: [
      { file: 'src/pipeline/reply/relay.ts', find: '    await settled\n', replace: '    settled.catch(() => {})\n' },
    ],
    by: 'kills',
    load: { shares: { stream: 1_000, slow: 0, long: 0, leaves: 0, fails: 0 }, killAfter: after(50, 'last') },
    expects: /^G3: a whole answer was charged/,
  },
  {
    name: 'settle before hold',
    says: 'Nobody waits for the hold, so the request, and even the settle, can overtake it.',
    edits: [
      {
        file: 'src/billing/ledger.ts',
        find: "      const result = await writer.run('hold',",
        replace: "      const result: HoldResult = { done: 'held' }\n      void writer.run('hold',",
      },
    ],
    by: 'kills',
    load: { killAfter: after(30, 'seen') },
    expects: /^G1, G16: what reached the upstream|^G3: |^the gateway does not start/,
  },
  {
    name: 'hold in memory',
    says: 'Holds live in a table that dies with the process.',
    edits: [
      {
        file: THREAD,
        find: '  const books = openBooks(db)\n',
        replace: "  db.run('CREATE TEMP TABLE hold AS SELECT * FROM main.hold')\n  const books = openBooks(db)\n",
      },
    ],
    by: 'kills',
    load: { shares: slowStreams, killAfter: after(30, 'seen') },
    expects: /^G1, G16: what reached the upstream|^G3: account \d+ has \d+ held/,
  },
  {
    name: 'pop before write',
    says: 'A settle counts as done when it is in a list to be written soon, and not when it is on the disk.',
    edits: [
      {
        file: 'src/store/engine/writer.ts',
        find: '      this.#queue.push({ job, sinceMs, isAbandoned: false, resolve: resolve as Resolve, reject })\n',
        replace: `
      const operation: QueuedOperation = { job, sinceMs, isAbandoned: false, resolve: resolve as Resolve, reject }
      if (name === 'settle') {
        operation.resolve({ done: 'exists' })
        setTimeout(() => this.#queue.push(operation), 10)
        return
      }
      this.#queue.push(operation)
`,
      },
    ],
    by: 'kills',
    load: { shares: { leaves: 0, fails: 0 }, killAfter: after(50, 'last') },
    expects: /^G3: a whole answer was charged/,
  },
  {
    name: 'release on abort without charge',
    says: 'Whoever leaves early reads for free.',
    edits: [
      {
        file: 'src/pipeline/60-cost.ts',
        find: '    reported: isLimited',
        replace: "    reported: ending.outcome === 'client_left' ? undefined : isLimited",
      },
      {
        file: 'src/pipeline/60-cost.ts',
        find: '    estimate: () =>',
        replace: "    estimate: () => ending.outcome === 'client_left' ? { input: 0, output: 0 } :",
      },
    ],
    by: 'kills',
    load: { shares: { ...slowStreams, leaves: 1_000 }, killAfter: afterLeaving },
    expects: /^G5: a caller that leaves pays/,
  },
  {
    name: 'double recovery',
    says: 'Recovery runs again while calls are alive, and ends them a second time.',
    edits: [
      {
        file: THREAD,
        find: '  operations = buildOperations(books, { responsesBytesMax })\n',
        replace: '  operations = buildOperations(books, {})\n  setInterval(() => recoverHolds(openBooks(db)), 20)\n',
      },
    ],
    by: 'kills',
    load: { shares: slowStreams, killAfter: after(50, 'last') },
    expects: /^G3: a whole answer was charged/,
  },
  {
    name: 'recovery in pieces',
    says: 'Recovery is no transaction: one that is killed leaves half of its work for the next to trip over.',
    edits: [
      {
        file: 'src/store/ledger/recovery.ts',
        find: '  return db\n    .transaction(() => {\n',
        replace: '  return (() => {\n',
      },
      { file: 'src/store/ledger/recovery.ts', find: '    })\n    .immediate()\n', replace: '    })()\n' },
      {
        // Slow as well: on a busy machine, a kill would else find all calls recovered.
        file: LEDGER,
        find: '    const hold = takeHold.get(record.callId) as HoldRow | null\n',
        replace: '    const hold = takeHold.get(record.callId) as HoldRow | null\n    Bun.sleepSync(30)\n',
      },
    ],
    by: 'kills',
    load: { shares: slowStreams, killAfter: after(30, 'seen'), killsRecovery: true },
    expects: /^G|^the gateway does not start/,
  },
  {
    name: 'recovery without records',
    says: 'What a crash cut off is given back and never written down.',
    edits: [
      {
        file: 'src/store/ledger/recovery.ts',
        find: "FROM hold WHERE kind = 'call'\")",
        replace:
          "FROM hold WHERE kind = 'call'\")\n" +
          "  db.run('UPDATE account SET held = 0')\n  db.run('UPDATE budget SET held = 0')\n" +
          "  db.run('DELETE FROM hold')",
      },
    ],
    by: 'kills',
    load: { shares: slowStreams, killAfter: after(30, 'seen') },
    expects: /^G1, G16: what reached the upstream/,
  },
  {
    name: 'a crash costs the whole hold',
    says: 'What a checkpoint notes is not what was delivered, but all that was set aside.',
    edits: [{ file: LEDGER, find: 'used = min(amount, ?2)', replace: 'used = max(amount, ?2)' }],
    by: 'kills',
    load: { shares: longStreams, killAfter: after(1_250, 'piece') },
    expects: /^G4: a crash costs no more/,
  },
  {
    name: 'a crash keeps an idempotency key',
    says: 'Whoever asks again after a crash hears for ever that the first call is still running.',
    edits: [
      {
        file: 'src/store/ledger/recovery.ts',
        find: 'const isKeyReleased = books.idempotency.release(Number(hold.call_id))',
        replace: 'const isKeyReleased = false',
      },
    ],
    by: 'kills',
    load: { shares: { ...slowStreams, named: 1_000 }, killAfter: after(50, 'seen') },
    expects: /^the gateway does not fail by itself: c\d+ was told 409/,
  },
  {
    name: 'shortfall unbooked',
    says: 'What a caller cannot pay is written into the record and into no account.',
    edits: [{ file: LEDGER, find: '    if (shortfall > 0n) {', replace: '    if (shortfall < 0n) {' }],
    by: 'kills',
    load: { shares: unpaid, killAfter: after(30, 'last') },
    expects: /^G3: /,
  },
  {
    name: 'upgrade without a transaction',
    says: 'Bringing an old folder up to date is no transaction: killed, it leaves neither the old schema nor the new.',
    edits: [
      {
        file: 'src/store/engine/database.ts',
        find: '    db.transaction(() => {\n      db.run(migration.sql)\n',
        // Slow as well: each step of it takes a moment or so, and a kill must find one half done.
        replace: '    ;(() => {\n      db.run(migration.sql)\n      Bun.sleepSync(30)\n',
      },
      { file: 'src/store/engine/database.ts', find: '    }).immediate()\n', replace: '    })()\n' },
    ],
    by: 'kills',
    upgrades: 200, // it ends at the first violation: on a busy machine few kills find a step half done
    expects: /^the gateway does not start|^the upgrade/,
  },
  {
    name: 'no unique index',
    says: 'Nothing but a look beforehand keeps a transfer from being made twice, and that look is gone.',
    edits: [
      { file: CHEAPER_CHECKS, find: 'CREATE UNIQUE INDEX transfer_once', replace: 'CREATE INDEX transfer_once' },
      {
        file: CHEAPER_CHECKS,
        find: 'CREATE UNIQUE INDEX transfer_reference',
        replace: 'CREATE INDEX transfer_reference',
      },
      {
        file: 'src/store/ledger/posting-operations.ts',
        find: '?? (reference === null ? undefined : yield* findReference.get(kind, reference))',
        replace: '?? (void findReference as undefined)',
      },
    ],
    by: 'races',
    expects: /repeated settles, round \d+: 20 instead of 1 were posted/,
  },
  {
    name: 'check-then-act',
    says: 'The balance is looked at, and nothing is set aside until the call is over.',
    edits: [
      {
        file: LEDGER,
        find: 'balance + credit_limit - held >= max(?2, ?3)',
        replace: 'balance + credit_limit >= max(?2, ?3)',
      },
      {
        file: SCHEMA,
        find: "  CHECK (kind <> 'prepaid' OR balance + credit_limit - held >= 0)",
        replace: '  CHECK (1)',
      },
    ],
    by: 'races',
    expects: /funds, round \d+: 500 instead of \d+ were held/,
  },
  {
    name: 'budget looked at, not held',
    says: 'A budget is compared with what was spent, and forgets what is under way.',
    edits: [
      {
        file: 'src/store/ledger/budgets.ts',
        find: '        const available = cap - spent - held\n',
        replace: '        const available = cap - spent + held - held\n',
      },
    ],
    by: 'races',
    expects: /budget, round \d+: /,
  },
  {
    name: 'a code that does not remember',
    says: 'A redemption is looked up by a copy that was read before.',
    edits: [
      {
        file: 'src/store/ledger/code-operations.ts',
        find: 'if (code.redeemed_ms !== null) return',
        replace: 'if (code.id < 0) return',
      },
    ],
    by: 'races',
    expects: /one code, round \d+: /,
  },
]
