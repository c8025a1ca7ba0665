// The operations on redemption codes: create them, redeem each once, and void them while they are not redeemed.

import type { StepsOf } from '../engine/operation.ts'
import { isInScope } from '../engine/scope-check.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { Scope } from '../queries/paging.ts'
import { readAccount } from './accounts.ts'
import { giveCredit, isCreditTooHigh } from './credit.ts'
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
      | { done: 'code_unknown' | 'code_expired' | 'code_void' | 'account_unknown' | 'balance_too_high' }
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

// A list of [id, digest in hex]: one statement for all codes, because on PostgreSQL each one is a round trip.
const COLUMNS = 'INSERT INTO code (id, digest, batch, amount, author, made_ms, expires_ms, pepper)'
const VALUES = '?2, ?3, ?4, ?5, CAST(?6 AS BIGINT), ?7'
const insertCodes = query({
  sqlite: `${COLUMNS} SELECT value ->> 0, unhex(value ->> 1), ${VALUES} FROM json_each(?1)`,
  postgres: `${COLUMNS} SELECT CAST(value ->> 0 AS BIGINT), decode(value ->> 1, 'hex'), ${VALUES}
    FROM jsonb_array_elements(CAST(CAST(?1 AS TEXT) AS JSONB)) AS listed(value)`,
})
const findBatch = query('SELECT 1 FROM code WHERE batch = ?1 LIMIT 1')
const findOne = query('SELECT 1 FROM code WHERE id = ?1')
const voidBatch = query('UPDATE code SET voided_ms = ?2 WHERE batch = ?1 AND redeemed_ms IS NULL AND voided_ms IS NULL')
const voidOne = query('UPDATE code SET voided_ms = ?2 WHERE id = ?1 AND redeemed_ms IS NULL AND voided_ms IS NULL')
const findCode = query<CodeRow>(
  'SELECT id, amount, redeemed_ms, expires_ms, voided_ms, account_id FROM code WHERE digest = ?1',
)
const redeem = query('UPDATE code SET redeemed_ms = ?2, account_id = ?3 WHERE id = ?1')

/** The code that has one of the digests. */
function* findByDigest(digests: readonly string[]): Steps<CodeRow | undefined> {
  for (const digest of digests) {
    const code = yield* findCode.get(Buffer.from(digest, 'hex'))
    if (code !== undefined) return code
  }
  return undefined
}

export const codeOperations: StepsOf<CodeOperations> = {
  *createCodes({ codes, pepper, batch, isNew, amount, author, expiresMs }, { nowMs }) {
    if (isNew && (yield* findBatch.get(batch)) !== undefined) return { done: 'exists' }
    const rows = JSON.stringify(codes.map(({ id, digest }) => [id, digest]))
    yield* insertCodes.run(rows, batch, readAmount(amount), author, nowMs(), expiresMs, pepper)
    return { done: 'created' }
  },
  *redeemCode({ digests, accountId, scope }, context) {
    const { nowMs } = context
    const account = yield* readAccount(accountId)
    const isKnown = account !== undefined && account.kind !== 'operator' && (yield* isInScope(scope, accountId))
    if (!isKnown) return { done: 'account_unknown' }
    const code = yield* findByDigest(digests)
    if (code === undefined) return { done: 'code_unknown' }
    if (code.redeemed_ms !== null) return { done: 'code_used', own: Number(code.account_id) === accountId }
    if (code.voided_ms !== null) return { done: 'code_void' }
    if (code.expires_ms !== null && code.expires_ms <= BigInt(nowMs())) return { done: 'code_expired' }
    if (yield* isCreditTooHigh(code.amount, account.balance, context)) return { done: 'balance_too_high' }
    // From here on the redemption must succeed.
    yield* redeem.run(code.id, nowMs(), accountId)
    yield* giveCredit({ kind: 'redemption', ref: Number(code.id), accountId, amount: code.amount }, context)
    return { done: 'redeemed', amount: `${code.amount}`, balance: `${account.balance + code.amount}` }
  },
  *voidCodes(input, { nowMs }) {
    const found = 'batch' in input ? yield* findBatch.get(input.batch) : yield* findOne.get(input.id)
    if (found === undefined) return { done: 'unknown' }
    const changed =
      'batch' in input ? yield* voidBatch.run(input.batch, nowMs()) : yield* voidOne.run(input.id, nowMs())
    if (changed === 0 && 'id' in input) return { done: 'code_used' }
    return { done: 'voided', codes: changed }
  },
}
