// The table of all management endpoints.

import type { ManagementParts } from '../management-parts.ts'
import { buildSignInService } from '../services/sign-in.ts'
import { ExportSlots } from '../web/export-slots.ts'
import { accountEndpoints } from './accounts.ts'
import { auditLogEndpoints } from './audit-log.ts'
import { balanceAlertEndpoints } from './balance-alerts.ts'
import { budgetEndpoints } from './budgets.ts'
import { channelEndpoints } from './channels.ts'
import { codeEndpoints } from './codes.ts'
import { dailyHashEndpoint } from './daily-hashes.ts'
import { downloadEndpoints } from './downloads.ts'
import type { WebEndpoint } from './endpoint.ts'
import { explainEndpoints } from './explain.ts'
import { gatewayEndpoints } from './gateway.ts'
import { invitationEndpoints } from './invitations.ts'
import { keyReportEndpoints } from './key-report.ts'
import { keyEndpoints } from './keys.ts'
import { ledgerEndpoints } from './ledger.ts'
import { limitEndpoints } from './limits.ts'
import { liveEndpoints } from './live.ts'
import { meEndpoints } from './me.ts'
import { memberEndpoints } from './members.ts'
import { modelEndpoints } from './models.ts'
import { overviewEndpoints } from './overview.ts'
import { playgroundEndpoints } from './playground.ts'
import { postingEndpoints } from './postings.ts'
import { priceTrialEndpoints } from './price-trials.ts'
import { priceEndpoints } from './prices.ts'
import { providerEndpoints } from './providers.ts'
import { recordEndpoints } from './records.ts'
import { redemptionEndpoints } from './redemptions.ts'
import { registrationEndpoints } from './registration.ts'
import { searchEndpoints } from './search.ts'
import { secondFactorEndpoints } from './second-factor.ts'
import { serviceTokenEndpoints } from './service-tokens.ts'
import { sessionEndpoints } from './sessions.ts'
import { setUpEndpoints } from './set-up.ts'
import { settingEndpoints } from './settings.ts'
import { signInEndpoints } from './sign-in.ts'
import { statementEndpoints } from './statements.ts'
import { statisticsEndpoints } from './statistics.ts'
import { tierEndpoints } from './tiers.ts'
import { userEndpoints } from './users.ts'
import { webhookEndpoints } from './webhooks.ts'

export function buildWebEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const signing = buildSignInService(parts)
  const slots = new ExportSlots(parts)
  return [
    ...setUpEndpoints(parts, signing),
    ...signInEndpoints(parts, signing),
    ...registrationEndpoints(parts, signing),
    ...meEndpoints(parts, signing),
    ...secondFactorEndpoints(parts, signing),
    ...sessionEndpoints(parts),
    ...userEndpoints(parts),
    ...memberEndpoints(parts),
    ...invitationEndpoints(parts),
    ...serviceTokenEndpoints(parts),
    ...settingEndpoints(parts),
    ...gatewayEndpoints(parts),
    ...tierEndpoints(parts),
    ...keyEndpoints(parts),
    ...explainEndpoints(parts),
    ...keyReportEndpoints(parts),
    ...playgroundEndpoints(parts),
    ...accountEndpoints(parts),
    ...budgetEndpoints(parts),
    ...limitEndpoints(parts),
    ...auditLogEndpoints(parts),
    ...statementEndpoints(parts, slots),
    dailyHashEndpoint(parts),
    ...postingEndpoints(parts),
    ...ledgerEndpoints(parts),
    ...codeEndpoints(parts),
    ...redemptionEndpoints(parts),
    ...balanceAlertEndpoints(parts),
    ...webhookEndpoints(parts),
    ...priceTrialEndpoints(parts),
    ...priceEndpoints(parts),
    ...recordEndpoints(parts, slots),
    ...downloadEndpoints(parts, slots),
    ...liveEndpoints(parts),
    ...statisticsEndpoints(parts),
    ...overviewEndpoints(parts),
    ...searchEndpoints(parts),
    ...providerEndpoints(parts),
    ...channelEndpoints(parts),
    ...modelEndpoints(parts),
  ]
}
