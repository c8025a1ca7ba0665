// Accounts, keys, budgets, prices and settings: what an operator changes, seldom, and never in the way of calls.

import type { Books } from './books.ts'
import { accountReader, transferInserter } from './ledger-operations.ts'
import type { Run } from './operations.ts'
import { amountOf } from './operations.ts'
import { PROMO } from './operator-accounts.ts'

type KeyRun = Pick<Run, 'createKey' | 'setKey' | 'revokeKey'>
type AccountRun = Pick<Run, 'setBudget' | 'setAccount'>

export function accountOperations(books: Books): KeyRun & AccountRun & Pick<Run, 'addPrices' | 'setSetting'> {
  const { db, nowMs } = books
  const insertPrice = db.query(
    'INSERT INTO price (model, origin, price, author, made_ms) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version',
  )
  const upsertSetting = db.query(
    'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    ...keyOperations(books),
    ...fundingOperations(books),
    addPrices({ prices }) {
      const versions = prices.map(({ model, origin, price, author }) => {
        const row = insertPrice.get(model, origin, price, author, nowMs()) as { version: bigint }
        return Number(row.version)
      })
      return { done: 'added', versions }
    },
    setSetting({ name, value }) {
      upsertSetting.run(name, value)
      return { done: 'set' }
    },
  }
}

function keyOperations(books: Books): KeyRun {
  const { db, nowMs } = books
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const readAccount = accountReader(db)
  const insertAccount = db.query("INSERT INTO account (id, name, kind, created_ms) VALUES (?1, ?2, 'prepaid', ?3)")
  const insertKey = db.query(
    `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, qpm, created_ms, allows, denies, requires,
       explains, pepper) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`,
  )
  const revoke = db.query('UPDATE api_key SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL')
  const findKey = db.query('SELECT 1 FROM api_key WHERE id = ?1')
  const update = db.query(
    `UPDATE api_key SET clamps = coalesce(?2, clamps), keeps_bodies = coalesce(?3, keeps_bodies),
       strict = coalesce(?4, strict), explains = coalesce(?5, explains),
       allows = nullif(coalesce(?6, allows), ''), denies = nullif(coalesce(?7, denies), ''),
       requires = nullif(coalesce(?8, requires), '') WHERE id = ?1`,
  )
  const give = buildGive(books)
  return {
    createKey(key) {
      const credit = amountOf(key.credit)
      if (findTier.get(key.tier) === null) return { done: 'tier_unknown' }
      const kind = readAccount(key.accountId)?.kind
      if (key.existing && (kind === undefined || kind === 'operator')) return { done: 'account_unknown' }
      if (!key.existing) insertAccount.run(key.accountId, key.name, nowMs())
      const digest = Buffer.from(key.digest, 'hex')
      const may = [key.allows ?? null, key.denies ?? null, key.requires ?? null, Number(key.explains ?? false)]
      insertKey.run(key.id, digest, key.suffix, key.name, key.accountId, key.tier, key.qpm, nowMs(), ...may, key.pepper)
      if (credit > 0n) give({ kind: 'gift', ref: key.creditRef, accountId: key.accountId, amount: credit })
      return { done: 'created' }
    },
    setKey({ id, clamps, keepsBodies, strict, explains, ...lists }) {
      const flags = [flag(clamps), flag(keepsBodies), flag(strict), flag(explains)]
      const may = [list(lists.allows), list(lists.denies), list(lists.requires)]
      return { done: update.run(id, ...flags, ...may).changes === 1 ? 'set' : 'unknown' }
    },
    revokeKey({ id }) {
      if (findKey.get(id) === null) return { done: 'unknown' }
      revoke.run(id, nowMs())
      return { done: 'revoked' }
    },
  }
}

function fundingOperations({ db, budgets, nowMs }: Books): AccountRun {
  const findScope = db.query(
    "SELECT 1 FROM api_key WHERE id = ?1 UNION ALL SELECT 1 FROM account WHERE id = ?1 AND kind <> 'operator'",
  )
  const read = db.query('SELECT kind, balance, held, credit_limit, frozen_ms FROM account WHERE id = ?1')
  const update = db.query(
    `UPDATE account SET kind = ?2, credit_limit = ?3, frozen_ms = ?4, keeps_bodies = coalesce(?5, keeps_bodies)
     WHERE id = ?1`,
  )
  return {
    setBudget({ scopeId, span, cap }) {
      if (findScope.get(scopeId) === null) return { done: 'scope_unknown' }
      return { done: budgets.set(scopeId, span, cap === null ? null : amountOf(cap)) }
    },
    setAccount({ id, keepsBodies, frozen, ...wanted }) {
      const row = read.get(id) as Funding | null
      if (row === null || row.kind === 'operator') return { done: 'account_unknown' }
      const kind = wanted.kind ?? row.kind
      const limit = wanted.creditLimit === undefined ? row.credit_limit : amountOf(wanted.creditLimit)
      if (kind === 'prepaid' && row.balance + limit - row.held < 0n) return { done: 'balance_too_low' }
      const frozenMs = frozen === undefined ? row.frozen_ms : frozen ? (row.frozen_ms ?? nowMs()) : null
      update.run(id, kind, limit, frozenMs, flag(keepsBodies))
      return { done: 'set' }
    },
  }
}

interface Funding {
  readonly kind: string
  readonly balance: bigint
  readonly held: bigint
  readonly credit_limit: bigint
  readonly frozen_ms: bigint | null
}

interface Given {
  readonly kind: 'gift' | 'redemption'
  readonly ref: number
  readonly accountId: number
  readonly amount: bigint
}

export function buildGive({ db, operators, nowMs }: Books): (given: Given) => void {
  const insertTransfer = transferInserter(db)
  const add = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  return function give({ kind, ref, accountId, amount }) {
    const made = { ref, kind, madeMs: nowMs(), reference: null, author: null }
    insertTransfer({ ...made, debit: PROMO, credit: accountId, amount })
    add.run(accountId, amount)
    operators.move(PROMO, -amount)
  }
}

/** For `coalesce`: null leaves a column as it is. */
const flag = (value: boolean | undefined): number | null => (value === undefined ? null : Number(value))
const list = (value: string | null | undefined): string | null => (value === undefined ? null : (value ?? ''))
