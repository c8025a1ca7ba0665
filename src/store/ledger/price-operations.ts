// The operations that write prices and settings.

import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'

// The first start writes some hundred prices: one statement, because each one is a round trip to PostgreSQL.
const COLUMNS = 'INSERT INTO price (model, origin, price, author, made_ms)'
const FIELDS = "value ->> 'model', value ->> 'origin', value ->> 'price', value ->> 'author'"
const insertPrices = query<{ version: bigint }>({
  sqlite: `${COLUMNS} SELECT ${FIELDS}, ?2 FROM json_each(?1) ORDER BY key RETURNING version`,
  postgres: `${COLUMNS} SELECT ${FIELDS}, ?2
    FROM json_array_elements(CAST(CAST(?1 AS TEXT) AS JSON)) WITH ORDINALITY AS e (value, place)
    ORDER BY place RETURNING version`,
})
const upsertSetting = query(
  'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
)

export const priceOperations: Pick<OperationSteps, 'addPrices' | 'setSetting'> = {
  *addPrices({ prices }, { nowMs }) {
    const rows = yield* insertPrices.all(JSON.stringify(prices), nowMs())
    // Rows may be returned in any order. Their versions grow in the order of the prices.
    const versions = rows.map(({ version }) => Number(version)).sort((a, b) => a - b)
    return { done: 'added', versions }
  },
  *setSetting({ name, value }) {
    yield* upsertSetting.run(name, value)
    return { done: 'set' }
  },
}
