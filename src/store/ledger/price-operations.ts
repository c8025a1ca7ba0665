// The operations that write prices and settings.

import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from './books.ts'

export function priceOperations(books: Books): Pick<OperationHandlers, 'addPrices' | 'setSetting'> {
  const { db, nowMs } = books
  const insertPrice = db.query(
    'INSERT INTO price (model, origin, price, author, made_ms) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version',
  )
  const upsertSetting = db.query(
    'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
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
