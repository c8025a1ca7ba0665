// The list of all queries of the query worker. Each resource has its own file with the types and functions of its
// queries; inputs and results are plain data.

import type { Database } from 'bun:sqlite'
import type { AccountReads } from './accounts.ts'
import { accountReads } from './accounts.ts'
import type { AuditLogReads } from './audit-log.ts'
import { auditLogReads } from './audit-log.ts'
import type { ChannelReads } from './channels.ts'
import { channelReads } from './channels.ts'
import type { CodeReads } from './codes.ts'
import { codeReads } from './codes.ts'
import type { KeyReads } from './keys.ts'
import { keyReads } from './keys.ts'
import type { LedgerReads } from './ledger.ts'
import { ledgerReads } from './ledger.ts'
import type { LimitReads } from './limits.ts'
import { limitReads } from './limits.ts'
import type { PeopleReads } from './people.ts'
import { peopleReads } from './people.ts'
import type { PriceReads } from './prices.ts'
import { priceReads } from './prices.ts'
import type { RecordReads } from './records.ts'
import { recordReads } from './records.ts'
import type { StatisticsReads } from './statistics.ts'
import { statisticsReads } from './statistics.ts'
import type { TierReads } from './tiers.ts'
import { tierReads } from './tiers.ts'
import type { WebhookReads } from './webhooks.ts'
import { webhookReads } from './webhooks.ts'

export interface Reads
  extends AccountReads,
    AuditLogReads,
    ChannelReads,
    CodeReads,
    LedgerReads,
    KeyReads,
    LimitReads,
    PeopleReads,
    PriceReads,
    RecordReads,
    StatisticsReads,
    TierReads,
    WebhookReads {}

export type ReadName = keyof Reads
export type ReadInput<Name extends ReadName> = Reads[Name]['input']
export type ReadResult<Name extends ReadName> = Reads[Name]['result']

export type RunReads = { readonly [Name in ReadName]: (input: ReadInput<Name>) => ReadResult<Name> }

export const buildReads = (db: Database): RunReads => ({
  ...accountReads(db),
  ...auditLogReads(db),
  ...channelReads(db),
  ...codeReads(db),
  ...ledgerReads(db),
  ...keyReads(db),
  ...limitReads(db),
  ...peopleReads(db),
  ...recordReads(db),
  ...statisticsReads(db),
  ...tierReads(db),
  ...webhookReads(db),
  ...priceReads(db),
})
