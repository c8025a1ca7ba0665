// Webhooks, what they have been told, and when an account is to be called low. What happens is written for them by
// triggers, in the transaction that makes it happen.

import { bounds } from '../../base/bounds.ts'
import type { Runs } from '../engine/operation.ts'
import type { Books } from '../ledger/books.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { amountOf } from '../ledger/money-text.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql, scopeValues } from '../queries/paging.ts'

interface Scoped {
  /** Whoever may not see it is told that there is none. */
  readonly scope: Scope | null
}

export interface WebhookOperations {
  createWebhook: {
    input: Scoped & {
      readonly id: number
      /** Null: of the site. */
      readonly accountId: number | null
      readonly url: string
      readonly origin: string
      /** With commas between. */
      readonly events: string
      /** Sealed: base64. */
      readonly secret: string
      readonly author: string
    }
    result: { done: 'created' | 'account_unknown' | 'too_many' }
  }
  /** What is not given stays as it is. */
  setWebhook: {
    input: Scoped & {
      readonly id: number
      readonly url?: string | undefined
      readonly origin?: string | undefined
      readonly events?: string | undefined
      readonly secret?: string | undefined
      readonly disabled?: boolean | undefined
    }
    result: { done: 'set' | 'unknown' }
  }
  removeWebhook: { input: Scoped & { readonly id: number }; result: { done: 'removed' | 'unknown' } }
  /** Something that has not happened, for one webhook; due later, if nobody tells it before. */
  testWebhook: {
    input: Scoped & { readonly id: number; readonly dueMs: number }
    result: { done: 'made'; delivery: number } | { done: 'unknown' }
  }
  /** Of what only Weir itself knows. */
  raiseEvent: {
    input: { readonly event: string; readonly accountId: number | null; readonly data: string }
    result: { done: 'raised' }
  }
  /** How telling it went. Without `dueMs` it is over; with it, all that waits for the webhook waits until then. */
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
  /** Null: it is not called low any more. */
  setAlert: {
    input: Scoped & { readonly accountId: number; readonly threshold: MoneyText | null }
    result: { done: 'set' | 'removed' | 'account_unknown' }
  }
}

export const webhookOperations = (books: Books): Runs<WebhookOperations> => ({
  ...editing(books),
  ...telling(books),
  setAlert: buildSetAlert(books),
})

const MINE = `($scope IS NULL OR ${scopeSql('account_id')})`

const valuesOf = (scope: Scope | null): Record<string, number | null> => ({
  ...{ scope: null, rank: null },
  ...(scopeValues(scope) as Record<string, number>),
})

function buildFindAccount({ db }: Books): (accountId: number, scope: Scope | null) => boolean {
  const find = db.query(
    `SELECT 1 FROM (SELECT id AS account_id FROM account WHERE id = $account AND kind <> 'operator')
     WHERE `.concat(MINE),
  )
  return (accountId, scope) => find.get({ account: accountId, ...valuesOf(scope) }) !== null
}

function editing(books: Books): Pick<Runs<WebhookOperations>, 'createWebhook' | 'setWebhook' | 'removeWebhook'> {
  const { db, nowMs } = books
  const count = db.query('SELECT count(*) AS n FROM webhook WHERE account_id IS ?1')
  const hasAccount = buildFindAccount(books)
  const insert = db.query(
    `INSERT INTO webhook (id, account_id, url, origin, events, secret, author, created_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  const update = db.query(
    `UPDATE webhook SET url = coalesce($url, url), origin = coalesce($origin, origin),
       events = coalesce($events, events), secret = coalesce($secret, secret),
       disabled = coalesce($disabled, disabled) WHERE id = $id AND `.concat(MINE),
  )
  const remove = db.query('DELETE FROM webhook WHERE id = $id AND '.concat(MINE))
  return {
    createWebhook({ id, accountId, scope, url, origin, events, secret, author }) {
      if (accountId === null ? scope !== null : !hasAccount(accountId, scope)) return { done: 'account_unknown' }
      const most = accountId === null ? bounds.webhooksOfSiteMax : bounds.webhooksOfAccountMax
      if (Number((count.get(accountId) as { n: bigint }).n) >= most) return { done: 'too_many' }
      insert.run(id, accountId, url, origin, events, Buffer.from(secret, 'base64'), author, nowMs())
      return { done: 'created' }
    },
    setWebhook({ id, scope, url = null, origin = null, events = null, secret, disabled }) {
      const sealed = secret === undefined ? null : Buffer.from(secret, 'base64')
      const state = disabled === undefined ? null : Number(disabled)
      const values = { id, url, origin, events, secret: sealed, disabled: state, ...valuesOf(scope) }
      return { done: update.run(values).changes > 0 ? 'set' : 'unknown' }
    },
    removeWebhook({ id, scope }) {
      return { done: remove.run({ id, ...valuesOf(scope) }).changes > 0 ? 'removed' : 'unknown' }
    },
  }
}

function telling({ db, nowMs }: Books): Pick<Runs<WebhookOperations>, 'testWebhook' | 'raiseEvent' | 'noteDelivery'> {
  const insert = db.query(
    `INSERT INTO webhook_delivery (webhook_id, event, account_id, data, made_ms, due_ms)
     SELECT id, 'webhook.test', account_id, '{}', $now, $due FROM webhook
     WHERE id = $id AND `.concat(MINE, ' RETURNING id'),
  )
  const raise = db.query('INSERT INTO event (name, account_id, data) VALUES (?1, ?2, ?3)')
  const note = db.query(
    `UPDATE webhook_delivery SET attempts = attempts + 1, delivered = ?2, tried_ms = ?3, took_ms = ?4, status = ?5,
       error = ?6, due_ms = ?7 WHERE id = ?1`,
  )
  const putOff = db.query('UPDATE webhook_delivery SET due_ms = ?2 WHERE webhook_id = ?1 AND due_ms < ?2')
  const forget = db.query(
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
      if (dueMs !== null) putOff.run(webhookId, dueMs)
      else forget.run(webhookId, bounds.webhookKeptMax)
      return { done: 'noted' }
    },
  }
}

function buildSetAlert(books: Books): Runs<WebhookOperations>['setAlert'] {
  const { db } = books
  const hasAccount = buildFindAccount(books)
  const put = db.query(
    `INSERT INTO balance_alert (account_id, threshold) VALUES (?1, ?2)
     ON CONFLICT (account_id) DO UPDATE SET threshold = ?2`,
  )
  /** Told at once where it is low already. */
  const look = db.query(
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
    put.run(accountId, amountOf(threshold))
    look.run(accountId)
    return { done: 'set' }
  }
}
