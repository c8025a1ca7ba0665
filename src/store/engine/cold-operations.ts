// All operations that are steps and keep nothing in memory. Those of the vault keep shares in memory on SQLite.

import { codeOperations } from '../ledger/code-operations.ts'
import { dailyHashOperations } from '../ledger/daily-hash-operations.ts'
import { fundingOperations } from '../ledger/funding-operations.ts'
import { postingOperations } from '../ledger/posting-operations.ts'
import { priceOperations } from '../ledger/price-operations.ts'
import { peopleOperations } from '../people/people-operations.ts'
import { recordOperations } from '../records/record-operations.ts'
import { keyOperations } from '../rules/key-operations.ts'
import { ruleOperations } from '../rules/rules-operations.ts'
import { tierOperations } from '../rules/tier-operations.ts'
import { secretOperations } from '../secrets/secret-operations.ts'
import { webhookOperations } from '../webhooks/webhook-operations.ts'

export const statelessOperations = {
  ...postingOperations,
  ...priceOperations,
  ...keyOperations,
  ...fundingOperations,
  ...codeOperations,
  ...dailyHashOperations,
  ...ruleOperations,
  ...recordOperations,
  ...secretOperations,
  ...tierOperations,
  ...peopleOperations,
  ...webhookOperations,
}
