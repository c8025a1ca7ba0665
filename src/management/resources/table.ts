// Every management endpoint, in one table.

import type { ManagementParts } from '../management-parts.ts'
import { auditLogEndpoints } from './audit-log.ts'
import { balanceAlertEndpoints } from './balance-alerts.ts'
import { codeEndpoints } from './codes.ts'
import { ledgerEndpoints } from './ledger.ts'
import { meEndpoints } from './me.ts'
import type { WebEndpoint } from './endpoint.ts'
import { postingEndpoints } from './postings.ts'
import { priceEndpoints } from './prices.ts'
import { priceTrialEndpoints } from './price-trials.ts'
import { redemptionEndpoints } from './redemptions.ts'
import { statementEndpoints } from './statements.ts'
import { tierEndpoints } from './tiers.ts'
import { webhookEndpoints } from './webhooks.ts'

export const buildWebEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...meEndpoints,
  ...tierEndpoints(parts),
  ...auditLogEndpoints(parts),
  ...statementEndpoints(parts),
  ...postingEndpoints(parts),
  ...ledgerEndpoints(parts),
  ...codeEndpoints(parts),
  ...redemptionEndpoints(parts),
  ...balanceAlertEndpoints(parts),
  ...priceTrialEndpoints(parts),
  ...priceEndpoints(parts),
  ...webhookEndpoints(parts),
]
