// The list of all queries of the query worker. Each resource has its own file with the types and functions of its
// queries; inputs and results are plain data.

import type { Steps } from '../engine/steps.ts'
import type { AccountQueries } from './accounts.ts'
import { accountQueries } from './accounts.ts'
import type { AuditLogQueries } from './audit-log.ts'
import { auditLogQueries } from './audit-log.ts'
import type { ChannelQueries } from './channels.ts'
import { channelQueries } from './channels.ts'
import type { CodeQueries } from './codes.ts'
import { codeQueries } from './codes.ts'
import type { DailyHashQueries } from './daily-hashes.ts'
import { dailyHashQueries } from './daily-hashes.ts'
import type { KeyQueries } from './keys.ts'
import { keyQueries } from './keys.ts'
import type { LedgerQueries } from './ledger.ts'
import { ledgerQueries } from './ledger.ts'
import type { LimitQueries } from './limits.ts'
import { limitQueries } from './limits.ts'
import type { OverviewQueries } from './overview.ts'
import { overviewQueries } from './overview.ts'
import type { PeopleQueries } from './people.ts'
import { peopleQueries } from './people.ts'
import type { PriceQueries } from './prices.ts'
import { priceQueries } from './prices.ts'
import type { RecordQueries } from './records.ts'
import { recordQueries } from './records.ts'
import type { SearchQueries } from './search.ts'
import { searchQueries } from './search.ts'
import type { ServiceTokenQueries } from './service-tokens.ts'
import { serviceTokenQueries } from './service-tokens.ts'
import type { StatisticsQueries } from './statistics.ts'
import { statisticsQueries } from './statistics.ts'
import type { TierQueries } from './tiers.ts'
import { tierQueries } from './tiers.ts'
import type { UseQueries } from './use.ts'
import { useQueries } from './use.ts'
import type { WebhookQueries } from './webhooks.ts'
import { webhookQueries } from './webhooks.ts'

export interface Queries
  extends AccountQueries,
    AuditLogQueries,
    ChannelQueries,
    CodeQueries,
    DailyHashQueries,
    LedgerQueries,
    KeyQueries,
    LimitQueries,
    OverviewQueries,
    PeopleQueries,
    PriceQueries,
    RecordQueries,
    SearchQueries,
    ServiceTokenQueries,
    StatisticsQueries,
    TierQueries,
    UseQueries,
    WebhookQueries {}

export type QueryName = keyof Queries
export type QueryInput<Name extends QueryName> = Queries[Name]['input']
export type QueryResult<Name extends QueryName> = Queries[Name]['result']

export const stepQueries: { readonly [Name in QueryName]: (input: QueryInput<Name>) => Steps<QueryResult<Name>> } = {
  ...accountQueries,
  ...auditLogQueries,
  ...channelQueries,
  ...codeQueries,
  ...dailyHashQueries,
  ...ledgerQueries,
  ...keyQueries,
  ...limitQueries,
  ...overviewQueries,
  ...peopleQueries,
  ...recordQueries,
  ...searchQueries,
  ...serviceTokenQueries,
  ...statisticsQueries,
  ...tierQueries,
  ...useQueries,
  ...webhookQueries,
  ...priceQueries,
}
