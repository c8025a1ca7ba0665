// The operations on redemption codes: create them, redeem each once, and void them while they are not redeemed.

import type { HandlersOf } from '../engine/operation.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql } from '../queries/paging.ts'
import type { Books } from './books.ts'
import { buildGiveCredit } from './credit.ts'
import { buildAccountReader } from './ledger-operations.ts'
import type { MoneyText } from './money-text.ts'
import { readAmount } from './money-text.ts'

export interface CodeOperations {
  createCodes: {
    input: {
      readonly codes: readonly { readonly id: number; readonly digest: string }[]
      /** The mark of the pepper that is used in the digests. */
      readonly pepper: string
      readonly batch: string
      /** Refuse if the batch exists already. */
      readonly isNew?: boolean
      readonly amount: MoneyText
      readonly author: string
      readonly expiresMs: number | null
    }
    result: { done: 'created' | 'exists' }
  }
  redeemCode: {
    input: {
      /** The digests of the code with each known pepper, as hex. */
      readonly digests: readonly string[]
      readonly accountId: number
      /** An account outside this scope is reported as unknown. */
      readonly scope?: Scope | null
    }
    result:
      | { done: 'redeemed'; amount: MoneyText; balance: MoneyText }
      /** `own`: the same account has redeemed it. */
      | { done: 'code_used'; own: boolean }
      | { done: 'code_unknown' | 'code_expired' | 'code_void' | 'account_unknown' }
  }
  /** Voids one code, or all codes of a batch that are not redeemed. */
  voidCodes: {
    input: { readonly batch: string } | { readonly id: number }
    result: { done: 'voided'; codes: number } | { done: 'unknown' | 'code_used' }
  }
}

interface CodeRow {
  readonly id: bigint
  readonly amount: bigint
  readonly redeemed_ms: bigint | null
  readonly expires_ms: bigint | null
  readonly voided_ms: bigint | null
  readonly account_id: bigint | null
}

export function codeOperations(books: Books): HandlersOf<CodeOperations> {
  const { db, nowMs } = books
  const insert = db.query(
    `INSERT INTO code (id, digest, batch, amount, author, made_ms, expires_ms, pepper)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  const findBatch = db.query('SELECT 1 FROM code WHERE batch = ?1 LIMIT 1')
  const findOne = db.query('SELECT 1 FROM code WHERE id = ?1')
  const voidBatch = db.query(
    'UPDATE code SET voided_ms = ?2 WHERE batch = ?1 AND redeemed_ms IS NULL AND voided_ms IS NULL',
  )
  const voidOne = db.query('UPDATE code SET voided_ms = ?2 WHERE id = ?1 AND redeemed_ms IS NULL AND voided_ms IS NULL')
  return {
    createCodes({ codes, pepper, batch, isNew, amount, author, expiresMs }) {
      if (isNew && findBatch.get(batch) !== null) return { done: 'exists' }
      const nanos = readAmount(amount)
      for (const { id, digest } of codes) {
        insert.run(id, Buffer.from(digest, 'hex'), batch, nanos, author, nowMs(), expiresMs, pepper)
      }
      return { done: 'created' }
    },
    redeemCode: buildRedeem(books),
    voidCodes(input) {
      const exists = ('batch' in input ? findBatch.get(input.batch) : findOne.get(input.id)) !== null
      if (!exists) return { done: 'unknown' }
      const { changes } = 'batch' in input ? voidBatch.run(input.batch, nowMs()) : voidOne.run(input.id, nowMs())
      if (changes === 0 && 'id' in input) return { done: 'code_used' }
      return { done: 'voided', codes: changes }
    },
  }
}

function buildRedeem(books: Books): HandlersOf<CodeOperations>['redeemCode'] {
  const { db, nowMs } = books
  const find = db.query('SELECT id, amount, redeemed_ms, expires_ms, voided_ms, account_id FROM code WHERE digest = ?1')
  const redeem = db.query('UPDATE code SET redeemed_ms = ?2, account_id = ?3 WHERE id = ?1')
  const findScoped = db.query('SELECT 1 FROM account a WHERE a.id = $account AND '.concat(scopeSql('a.id')))
  const readAccount = buildAccountReader(db)
  const giveCredit = buildGiveCredit(books)
  return function redeemCode({ digests, accountId, scope = null }) {
    const account = readAccount(accountId)
    const inScope = scope === null || findScoped.get({ account: accountId, scope: scope.actorId, rank: scope.rank })
    if (account === undefined || account.kind === 'operator' || inScope === null) return { done: 'account_unknown' }
    const [code] = digests.flatMap(digest => (find.get(Buffer.from(digest, 'hex')) as CodeRow | null) ?? [])
    if (code === undefined) return { done: 'code_unknown' }
    if (code.redeemed_ms !== null) return { done: 'code_used', own: Number(code.account_id) === accountId }
    if (code.voided_ms !== null) return { done: 'code_void' }
    if (code.expires_ms !== null && code.expires_ms <= BigInt(nowMs())) return { done: 'code_expired' }
    // From here on the redemption must succeed.
    redeem.run(code.id, nowMs(), accountId)
    giveCredit({ kind: 'redemption', ref: Number(code.id), accountId, amount: code.amount })
    return { done: 'redeemed', amount: `${code.amount}`, balance: `${account.balance + code.amount}` }
  }
}
