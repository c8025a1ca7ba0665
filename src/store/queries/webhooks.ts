// Queries for webhooks, their deliveries and the balance alerts of accounts. They never return a secret.

import type { RowOf } from '../tables/columns.ts'
import { flag, list, money, nullable, number, text } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { equals, isTrue, listPage, rowFinder } from './paging.ts'

const columns = {
  id: ['w.id', number],
  accountId: ['w.account_id', nullable(number)],
  accountName: ['(SELECT a.name FROM account a WHERE a.id = w.account_id)', nullable(text)],
  url: ['w.url', text],
  events: ['w.events', list],
  disabled: ['w.disabled', flag],
  secretFrom: ['w.secret_from', nullable(text)],
  secretMark: ['w.secret_mark', nullable(text)],
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
  filters: { account: equals('w.account_id'), site: isTrue('w.account_id IS NULL') },
}

const deliveryColumns = {
  id: ['d.id', number],
  event: ['d.event', text],
  madeMs: ['d.made_ms', number],
  attempts: ['d.attempts', number],
  dueMs: ['d.due_ms', nullable(number)],
  delivered: ['d.delivered', flag],
  triedMs: ['d.tried_ms', nullable(number)],
  status: ['d.status', nullable(number)],
  tookMs: ['d.took_ms', nullable(number)],
  error: ['d.error', nullable(text)],
} as const

const deliveryPlan: ListPlan<typeof deliveryColumns> = {
  from: 'webhook_delivery d JOIN webhook w ON w.id = d.webhook_id',
  columns: deliveryColumns,
  id: 'd.id',
  sorts: { made: 'd.id' },
  account: 'w.account_id',
  filters: { webhook: equals('d.webhook_id') },
}

/** The event of a delivery, from which the body of its request is made. */
const sentColumns = {
  ...deliveryColumns,
  webhookId: ['d.webhook_id', number],
  accountId: ['d.account_id', nullable(number)],
  data: ['d.data', text],
  url: ['w.url', text],
} as const

const sentPlan: ListPlan<typeof sentColumns> = { ...deliveryPlan, columns: sentColumns }

const alertColumns = {
  threshold: ['b.threshold', nullable(money)],
  level: ['b.level', nullable(number)],
  version: ['coalesce(b.version, 0)', number],
} as const

const alertPlan = {
  from: 'account a LEFT JOIN balance_alert b ON b.account_id = a.id',
  columns: alertColumns,
  id: 'a.id',
  account: 'a.id',
} as const

export type WebhookView = RowOf<typeof columns>
export type DeliveryView = RowOf<typeof deliveryColumns>
export type SentDeliveryView = RowOf<typeof sentColumns>
export type AlertView = RowOf<typeof alertColumns>

interface ByIdInScope {
  readonly id: number
  readonly scope: Scope | null
}

export interface WebhookQueries {
  webhooks: { input: ListQuery; result: Page<WebhookView> }
  webhook: { input: ByIdInScope; result: WebhookView | null }
  deliveries: { input: ListQuery; result: Page<DeliveryView> }
  delivery: { input: ByIdInScope; result: SentDeliveryView | null }
  /** The alert of an account. Without a threshold the account has no alert. */
  balanceAlert: { input: ByIdInScope; result: AlertView | null }
}

export const webhookQueries = {
  webhooks: (ask: ListQuery) => listPage(plan, ask),
  webhook: rowFinder(plan),
  deliveries: (ask: ListQuery) => listPage(deliveryPlan, ask),
  delivery: rowFinder(sentPlan),
  balanceAlert: rowFinder(alertPlan),
}
