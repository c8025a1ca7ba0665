// The operations that write prices and settings.

import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'

const insertPrice = query<{ version: bigint }>(
  'INSERT INTO price (model, origin, price, author, made_ms) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING version',
)
const upsertSetting = query(
  'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
)

export const priceOperations: Pick<OperationSteps, 'addPrices' | 'setSetting'> = {
  *addPrices({ prices }, { nowMs }) {
    const versions: number[] = []
    for (const { model, origin, price, author } of prices) {
      const row = yield* insertPrice.get(model, origin, price, author, nowMs())
      versions.push(Number(row!.version))
    }
    return { done: 'added', versions }
  },
  *setSetting({ name, value }) {
    yield* upsertSetting.run(name, value)
    return { done: 'set' }
  },
}
