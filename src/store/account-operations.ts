// Codes, prices and settings: what an operator changes, seldom, and never in the way of calls.

import type { Books } from './books.ts'
import { buildGive } from './giving.ts'
import { accountReader } from './ledger-operations.ts'
import type { Run } from './operations.ts'
import { amountOf } from './operations.ts'

type CodeRun = Pick<Run, 'createCodes' | 'redeemCode'>

export function accountOperations(books: Books): CodeRun & Pick<Run, 'addPrices' | 'setSetting'> {
  const { db, nowMs } = books
  const insertPrice = db.query(
    'INSERT INTO price (model, origin, price, author, made_ms) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version',
  )
  const upsertSetting = db.query(
    'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    ...codeOperations(books),
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

interface CodeRow {
  readonly id: bigint
  readonly amount: bigint
  readonly redeemed_ms: bigint | null
  readonly expires_ms: bigint | null
}

function codeOperations(books: Books): CodeRun {
  const { db, nowMs } = books
  const insert = db.query(
    `INSERT INTO code (id, digest, batch, amount, author, made_ms, expires_ms, pepper)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  const find = db.query('SELECT id, amount, redeemed_ms, expires_ms FROM code WHERE digest = ?1')
  const redeem = db.query(
    'UPDATE code SET redeemed_ms = ?2, account_id = ?3 WHERE id = ?1 AND redeemed_ms IS NULL',
  )
  const readAccount = accountReader(db)
  const give = buildGive(books)
  return {
    createCodes({ codes, pepper, batch, amount, author, expiresMs }) {
      const worth = amountOf(amount)
      for (const { id, digest } of codes) {
        insert.run(id, Buffer.from(digest, 'hex'), batch, worth, author, nowMs(), expiresMs, pepper)
      }
      return { done: 'created' }
    },
    redeemCode({ digests, accountId }) {
      const found = digests.flatMap(digest => (find.get(Buffer.from(digest, 'hex')) as CodeRow | null) ?? [])
      const code = found[0]
      if (code === undefined) return { done: 'code_unknown' }
      if (code.redeemed_ms !== null) return { done: 'code_used' }
      if (code.expires_ms !== null && code.expires_ms <= BigInt(nowMs())) return { done: 'code_expired' }
      const kind = readAccount(accountId)?.kind
      if (kind === undefined || kind === 'operator') return { done: 'account_unknown' }
      // From here on the redemption must succeed.
      redeem.run(code.id, nowMs(), accountId)
      give({ kind: 'redemption', ref: Number(code.id), accountId, amount: code.amount })
      return { done: 'redeemed', amount: `${code.amount}` }
    },
  }
}
