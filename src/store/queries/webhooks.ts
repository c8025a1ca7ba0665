// Reading webhooks, what they were told, and when accounts are called low. Never a secret.

import type { Database } from 'bun:sqlite'
import type { ListAsk, ListPlan, Page, Scope } from './paging.ts'
import { findOne, holds, is, listPage } from './paging.ts'
import type { Told } from './values.ts'
import { flag, list, money, number, or, text } from './values.ts'

const columns = {
  id: ['w.id', number],
  accountId: ['w.account_id', or(number)],
  url: ['w.url', text],
  events: ['w.events', list],
  disabled: ['w.disabled', flag],
  dropped: ['w.dropped', number],
  waiting: ['(SELECT count(*) FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.due_ms IS NOT NULL)', number],
  author: ['w.author', text],
  createdMs: ['w.created_ms', number],
  version: ['w.version', number],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'webhook w',
  columns,
  id: 'w.id',
  sorts: { created: 'w.id' },
  account: 'w.account_id',
  filters: { account: is('w.account_id'), site: holds('w.account_id IS NULL') },
}

const deliveryColumns = {
  id: ['d.id', number],
  event: ['d.event', text],
  madeMs: ['d.made_ms', number],
  attempts: ['d.attempts', number],
  dueMs: ['d.due_ms', or(number)],
  delivered: ['d.delivered', flag],
  triedMs: ['d.tried_ms', or(number)],
  status: ['d.status', or(number)],
  tookMs: ['d.took_ms', or(number)],
  error: ['d.error', or(text)],
} as const

const deliveries: ListPlan<typeof deliveryColumns> = {
  from: 'webhook_delivery d JOIN webhook w ON w.id = d.webhook_id',
  columns: deliveryColumns,
  id: 'd.id',
  sorts: { made: 'd.id' },
  account: 'w.account_id',
  filters: { webhook: is('d.webhook_id') },
}

const alertColumns = {
  threshold: ['b.threshold', or(money)],
  level: ['b.level', or(number)],
  version: ['coalesce(b.version, 0)', number],
} as const

const alert = {
  from: 'account a LEFT JOIN balance_alert b ON b.account_id = a.id',
  columns: alertColumns,
  id: 'a.id',
  account: 'a.id',
} as const

export type WebhookView = Told<typeof columns>
export type DeliveryView = Told<typeof deliveryColumns>
export type AlertView = Told<typeof alertColumns>

interface One {
  readonly id: number
  readonly scope: Scope | null
}

export interface WebhookReads {
  webhooks: { input: ListAsk; result: Page<WebhookView> }
  webhook: { input: One; result: WebhookView | null }
  deliveries: { input: ListAsk; result: Page<DeliveryView> }
  /** Of an account; without a threshold it is not called low. */
  balanceAlert: { input: One; result: AlertView | null }
}

export const webhookReads = (db: Database) => ({
  webhooks: (ask: ListAsk) => listPage(db, plan, ask),
  webhook: (one: One) => findOne(db, plan, one) ?? null,
  deliveries: (ask: ListAsk) => listPage(db, deliveries, ask),
  balanceAlert: (one: One) => findOne(db, alert, one) ?? null,
})
