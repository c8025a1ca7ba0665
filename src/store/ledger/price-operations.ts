// The operations that write prices and settings.

import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'

// In one statement: the first start writes the prices of all models, and each statement is a round trip to PostgreSQL.
const insertPrices = query<{ version: bigint }>({
  sqlite: `INSERT INTO price (model, origin, price, author, made_ms)
    SELECT value ->> 'model', value ->> 'origin', value ->> 'price', value ->> 'author', ?2
    FROM json_each(?1) ORDER BY key RETURNING version`,
  postgres: `INSERT INTO price (model, origin, price, author, made_ms)
    SELECT value ->> 'model', value ->> 'origin', value ->> 'price', value ->> 'author', ?2
    FROM json_array_elements(CAST(CAST(?1 AS TEXT) AS JSON)) WITH ORDINALITY AS one (value, key)
    ORDER BY key RETURNING version`,
})
const upsertSetting = query(
  'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
)

export const priceOperations: Pick<OperationSteps, 'addPrices' | 'setSetting'> = {
  *addPrices({ prices }, { nowMs }) {
    const rows = yield* insertPrices.all(JSON.stringify(prices), nowMs())
    const versions = rows.map(({ version }) => Number(version)).sort((a, b) => a - b)
    return { done: 'added', versions }
  },
  *setSetting({ name, value }) {
    yield* upsertSetting.run(name, value)
    return { done: 'set' }
  },
}
