// The operations on webhooks, deliveries and balance alerts. Triggers of the database write the deliveries of an event,
// in the transaction that causes the event.

import { bounds } from '../../base/bounds.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { Books } from '../ledger/books.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql, scopeValues } from '../queries/paging.ts'

interface ScopedWebhook {
  /** A webhook or account outside this scope is reported as unknown. Null: all accounts. */
  readonly scope: Scope | null
}

export interface WebhookOperations {
  createWebhook: {
    input: ScopedWebhook & {
      readonly id: number
      /** Null: a webhook of the site. */
      readonly accountId: number | null
      readonly url: string
      readonly origin: string
      /** Names of events, separated by commas. */
      readonly events: string
      /** Encrypted, in base64. */
      readonly secret: string
      readonly author: string
      readonly disabled?: boolean | undefined
      /** Where a configuration file says that the secret is, and a mark of the secret. */
      readonly secretFrom?: string | null
      readonly secretMark?: string | null
    }
    result: { done: 'created' | 'account_unknown' | 'too_many' }
  }
  /** Undefined fields stay as they are. */
  setWebhook: {
    input: ScopedWebhook & {
      readonly id: number
      readonly url?: string | undefined
      readonly origin?: string | undefined
      readonly events?: string | undefined
      readonly secret?: string | undefined
      /** Of the new secret. */
      readonly secretFrom?: string | null
      readonly secretMark?: string | null
      readonly disabled?: boolean | undefined
    }
    result: { done: 'set' | 'unknown' }
  }
  removeWebhook: { input: ScopedWebhook & { readonly id: number }; result: { done: 'removed' | 'unknown' } }
  /** Creates a test delivery for one webhook. It is due at `dueMs`, unless it is sent earlier. */
  testWebhook: {
    input: ScopedWebhook & { readonly id: number; readonly dueMs: number }
    result: { done: 'made'; delivery: number } | { done: 'unknown' }
  }
  /** Creates an event that no trigger can detect. */
  raiseEvent: {
    input: { readonly event: string; readonly accountId: number | null; readonly data: string }
    result: { done: 'raised' }
  }
  /** Notes an attempt. Without `dueMs` the delivery has ended; else all deliveries of the webhook wait until then. */
  noteDelivery: {
    input: {
      readonly id: number
      readonly webhookId: number
      readonly delivered: boolean
      readonly triedMs: number
      readonly tookMs: number
      readonly status: number | null
      readonly error: string | null
      readonly dueMs: number | null
    }
    result: { done: 'noted' }
  }
  /** A null threshold removes the alert. */
  setAlert: {
    input: ScopedWebhook & { readonly accountId: number; readonly threshold: MoneyText | null }
    result: { done: 'set' | 'removed' | 'account_unknown' }
  }
}

export const webhookOperations = (books: Books): HandlersOf<WebhookOperations> => ({
  ...editOperations(books),
  ...deliveryOperations(books),
  setAlert: buildSetAlert(books),
})

const IN_SCOPE = `($scope IS NULL OR ${scopeSql('account_id')})`

const valuesOf = (scope: Scope | null): Record<string, number | null> => ({
  scope: null,
  rank: null,
  ...(scopeValues(scope) as Record<string, number>),
})

function buildFindAccount({ db }: Books): (accountId: number, scope: Scope | null) => boolean {
  const find = db.query(
    `SELECT 1 FROM (SELECT id AS account_id FROM account WHERE id = $account AND kind <> 'operator')
     WHERE `.concat(IN_SCOPE),
  )
  return (accountId, scope) => find.get({ account: accountId, ...valuesOf(scope) }) !== null
}

function editOperations(
  books: Books,
): Pick<HandlersOf<WebhookOperations>, 'createWebhook' | 'setWebhook' | 'removeWebhook'> {
  const { db, nowMs } = books
  const count = db.query('SELECT count(*) AS n FROM webhook WHERE account_id IS ?1')
  const hasAccount = buildFindAccount(books)
  const insert = db.query(
    `INSERT INTO webhook (id, account_id, url, origin, events, secret, author, created_ms, secret_from, secret_mark,
       disabled) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
  )
  const update = db.query(
    `UPDATE webhook SET url = coalesce($url, url), origin = coalesce($origin, origin),
       events = coalesce($events, events), secret = coalesce($secret, secret),
       secret_from = iif($secret IS NULL, secret_from, $secretFrom),
       secret_mark = iif($secret IS NULL, secret_mark, $secretMark),
       disabled = coalesce($disabled, disabled) WHERE id = $id AND `.concat(IN_SCOPE),
  )
  const remove = db.query('DELETE FROM webhook WHERE id = $id AND '.concat(IN_SCOPE))
  return {
    createWebhook({ id, accountId, scope, url, origin, events, secret, author, disabled = false, ...noted }) {
      if (accountId === null ? scope !== null : !hasAccount(accountId, scope)) return { done: 'account_unknown' }
      const countMax = accountId === null ? bounds.webhooksOfSiteMax : bounds.webhooksOfAccountMax
      if (Number((count.get(accountId) as { n: bigint }).n) >= countMax) return { done: 'too_many' }
      const { secretFrom = null, secretMark = null } = noted
      const sealed = Buffer.from(secret, 'base64')
      const state = Number(disabled)
      insert.run(id, accountId, url, origin, events, sealed, author, nowMs(), secretFrom, secretMark, state)
      return { done: 'created' }
    },
    setWebhook({ id, scope, url = null, origin = null, events = null, secret, disabled, ...noted }) {
      const sealed = secret === undefined ? null : Buffer.from(secret, 'base64')
      const state = disabled === undefined ? null : Number(disabled)
      const { secretFrom = null, secretMark = null } = noted
      const values = { id, url, origin, events, secret: sealed, secretFrom, secretMark, disabled: state }
      return { done: update.run({ ...values, ...valuesOf(scope) }).changes > 0 ? 'set' : 'unknown' }
    },
    removeWebhook({ id, scope }) {
      return { done: remove.run({ id, ...valuesOf(scope) }).changes > 0 ? 'removed' : 'unknown' }
    },
  }
}

function deliveryOperations({
  db,
  nowMs,
}: Books): Pick<HandlersOf<WebhookOperations>, 'testWebhook' | 'raiseEvent' | 'noteDelivery'> {
  const insert = db.query(
    `INSERT INTO webhook_delivery (webhook_id, event, account_id, data, made_ms, due_ms)
     SELECT id, 'webhook.test', account_id, '{}', $now, $due FROM webhook
     WHERE id = $id AND `.concat(IN_SCOPE, ' RETURNING id'),
  )
  const raise = db.query('INSERT INTO event (name, account_id, data) VALUES (?1, ?2, ?3)')
  const note = db.query(
    `UPDATE webhook_delivery SET attempts = attempts + 1, delivered = ?2, tried_ms = ?3, took_ms = ?4, status = ?5,
       error = ?6, due_ms = ?7 WHERE id = ?1`,
  )
  const postpone = db.query('UPDATE webhook_delivery SET due_ms = ?2 WHERE webhook_id = ?1 AND due_ms < ?2')
  const deleteOldest = db.query(
    `DELETE FROM webhook_delivery WHERE webhook_id = ?1 AND due_ms IS NULL AND id <=
       (SELECT id FROM webhook_delivery WHERE webhook_id = ?1 AND due_ms IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
  )
  return {
    testWebhook({ id, scope, dueMs }) {
      const row = insert.get({ id, now: nowMs(), due: dueMs, ...valuesOf(scope) }) as { id: bigint } | null
      return row === null ? { done: 'unknown' } : { done: 'made', delivery: Number(row.id) }
    },
    raiseEvent({ event, accountId, data }) {
      raise.run(event, accountId, data)
      return { done: 'raised' }
    },
    noteDelivery({ id, webhookId, delivered, triedMs, tookMs, status, error, dueMs }) {
      note.run(id, Number(delivered), triedMs, tookMs, status, error, dueMs)
      if (dueMs !== null) postpone.run(webhookId, dueMs)
      else deleteOldest.run(webhookId, bounds.finishedDeliveriesMax)
      return { done: 'noted' }
    },
  }
}

function buildSetAlert(books: Books): HandlersOf<WebhookOperations>['setAlert'] {
  const { db } = books
  const hasAccount = buildFindAccount(books)
  const upsert = db.query(
    `INSERT INTO balance_alert (account_id, threshold) VALUES (?1, ?2)
     ON CONFLICT (account_id) DO UPDATE SET threshold = ?2`,
  )
  /** Sets the level at once, so that an account that is low already causes an event. */
  const updateLevel = db.query(
    `UPDATE balance_alert SET level = (SELECT v.level FROM balance_level v WHERE v.account_id = ?1)
     WHERE account_id = ?1`,
  )
  const remove = db.query('DELETE FROM balance_alert WHERE account_id = ?1')
  return function setAlert({ accountId, scope, threshold }) {
    if (!hasAccount(accountId, scope)) return { done: 'account_unknown' }
    if (threshold === null) {
      remove.run(accountId)
      return { done: 'removed' }
    }
    upsert.run(accountId, readAmount(threshold))
    updateLevel.run(accountId)
    return { done: 'set' }
  }
}
