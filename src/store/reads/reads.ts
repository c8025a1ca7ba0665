// What can be read at the desk, one row each: data in, data out. Each resource has a file of its own.

import type { Database } from 'bun:sqlite'
import type { AuditLogReads } from './audit-log.ts'
import { auditLogReads } from './audit-log.ts'
import type { CodeReads } from './codes.ts'
import { codeReads } from './codes.ts'
import type { LedgerReads } from './ledger.ts'
import { ledgerReads } from './ledger.ts'
import type { PriceReads } from './prices.ts'
import { priceReads } from './prices.ts'
import type { TierReads } from './tiers.ts'
import { tierReads } from './tiers.ts'
import type { WebhookReads } from './webhooks.ts'
import { webhookReads } from './webhooks.ts'

export interface Reads extends TierReads, AuditLogReads, LedgerReads, CodeReads, WebhookReads, PriceReads {}

export type ReadName = keyof Reads
export type ReadInput<Name extends ReadName> = Reads[Name]['input']
export type ReadResult<Name extends ReadName> = Reads[Name]['result']

export type RunReads = { readonly [Name in ReadName]: (input: ReadInput<Name>) => ReadResult<Name> }

export const buildReads = (db: Database): RunReads => ({
  ...tierReads(db),
  ...auditLogReads(db),
  ...ledgerReads(db),
  ...codeReads(db),
  ...webhookReads(db),
  ...priceReads(db),
})
