// The operations on webhooks, deliveries and balance alerts. Triggers of the database write the deliveries of an event,
// in the transaction that causes the event.

import { bounds } from '../../base/bounds.ts'
import { FIRST_VERSION } from '../audit-log/first-version.ts'
import type { StepsOf } from '../engine/operation.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'
import type { Scope } from '../queries/paging.ts'
import { scopeSql } from '../queries/paging.ts'

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
    result: { done: 'created' | 'account_unknown' | 'too_many' | 'url_taken' }
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
    result: { done: 'set' | 'unknown' | 'url_taken' }
  }
  removeWebhook: { input: ScopedWebhook & { readonly id: number }; result: { done: 'removed' | 'unknown' } }
  /** Creates a test delivery for one webhook. It is due at `dueMs`, unless it is sent earlier. */
  testWebhook: {
    input: ScopedWebhook & { readonly id: number; readonly dueMs: number }
    result: { done: 'made'; delivery: number } | { done: 'unknown' }
  }
  /** Makes a delivery due now, also one that has ended, together with those that wait: their order stays. */
  sendAgain: {
    input: ScopedWebhook & { readonly id: number; readonly webhookId: number; readonly dueMs: number }
    result: { done: 'due' | 'unknown' | 'disabled' }
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
      /** A hint as JSON. */
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

/** The condition that a webhook is in the scope of an actor. The first parameter of the scope is null without a scope. */
const inScope = (actorId: string, rank: string): string =>
  `(CAST(${actorId} AS BIGINT) IS NULL OR ${scopeSql('account_id', actorId, rank)})`

const scopeOf = (scope: Scope | null): [actorId: number | null, rank: number | null] =>
  scope === null ? [null, null] : [scope.actorId, scope.rank]

const findAccount = query(
  `SELECT 1 FROM (SELECT id AS account_id FROM account WHERE id = ?1 AND kind <> 'operator') a
   WHERE `.concat(inScope('?2', '?3')),
)

function* hasAccount(accountId: number, scope: Scope | null): Steps<boolean> {
  return (yield* findAccount.get(accountId, ...scopeOf(scope))) !== undefined
}

const count = query<{ n: bigint }>('SELECT count(*) AS n FROM webhook WHERE account_id IS NOT DISTINCT FROM ?1')
// A configuration file knows a webhook by its account and URL.
const findUrl = query('SELECT 1 FROM webhook WHERE account_id IS NOT DISTINCT FROM ?1 AND url = ?2 LIMIT 1')
// Two webhooks may have one URL since before this was refused; a change that keeps it is not about the URL.
const findOther = query(
  `SELECT 1 FROM webhook WHERE id = ?1 AND url <> ?4 AND EXISTS
     (SELECT 1 FROM webhook o WHERE o.account_id IS NOT DISTINCT FROM webhook.account_id AND o.url = ?4)
   AND `.concat(inScope('?2', '?3')),
)
const insert = query(
  `INSERT INTO webhook (id, account_id, url, origin, events, secret, author, created_ms, secret_from, secret_mark,
     disabled) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
)
const update = query(
  `UPDATE webhook SET url = coalesce(?4, url), origin = coalesce(?5, origin), events = coalesce(?6, events),
     secret = coalesce(?7, secret), secret_from = CASE WHEN ?7 IS NULL THEN secret_from ELSE ?8 END,
     secret_mark = CASE WHEN ?7 IS NULL THEN secret_mark ELSE ?9 END, disabled = coalesce(?10, disabled)
   WHERE id = ?1 AND `.concat(inScope('?2', '?3')),
)
const remove = query('DELETE FROM webhook WHERE id = ?1 AND '.concat(inScope('?2', '?3')))

const editOperations: Pick<StepsOf<WebhookOperations>, 'createWebhook' | 'setWebhook' | 'removeWebhook'> = {
  *createWebhook(input, { nowMs }) {
    const { id, accountId, scope, url, origin, events, secret, author, disabled = false } = input
    const isKnown = accountId === null ? scope === null : yield* hasAccount(accountId, scope)
    if (!isKnown) return { done: 'account_unknown' }
    const countMax = accountId === null ? bounds.webhooksOfSiteMax : bounds.webhooksOfAccountMax
    if ((yield* count.get(accountId))!.n >= countMax) return { done: 'too_many' }
    if ((yield* findUrl.get(accountId, url)) !== undefined) return { done: 'url_taken' }
    const { secretFrom = null, secretMark = null } = input
    const sealed = Buffer.from(secret, 'base64')
    const state = Number(disabled)
    yield* insert.run(id, accountId, url, origin, events, sealed, author, nowMs(), secretFrom, secretMark, state)
    return { done: 'created' }
  },
  *setWebhook({ id, scope, url = null, origin = null, events = null, secret, disabled, ...noted }) {
    const isTaken = url !== null && (yield* findOther.get(id, ...scopeOf(scope), url)) !== undefined
    if (isTaken) return { done: 'url_taken' }
    const sealed = secret === undefined ? null : Buffer.from(secret, 'base64')
    const state = disabled === undefined ? null : Number(disabled)
    const { secretFrom = null, secretMark = null } = noted
    const values = [url, origin, events, sealed, secretFrom, secretMark, state]
    return { done: (yield* update.run(id, ...scopeOf(scope), ...values)) > 0 ? 'set' : 'unknown' }
  },
  *removeWebhook({ id, scope }) {
    return { done: (yield* remove.run(id, ...scopeOf(scope))) > 0 ? 'removed' : 'unknown' }
  },
}

const insertTest = query<{ id: bigint }>(
  `INSERT INTO webhook_delivery (webhook_id, event, account_id, data, made_ms, due_ms)
   SELECT id, 'webhook.test', account_id, '{}', CAST(?4 AS BIGINT), CAST(?5 AS BIGINT) FROM webhook
   WHERE id = ?1 AND `.concat(inScope('?2', '?3'), ' RETURNING id'),
)
const findState = query<{ disabled: bigint }>(
  `SELECT disabled FROM webhook WHERE id = ?1 AND EXISTS
     (SELECT 1 FROM webhook_delivery d WHERE d.id = ?4 AND d.webhook_id = ?1) AND `.concat(inScope('?2', '?3')),
)
const restart = query('UPDATE webhook_delivery SET attempts = 0, delivered = 0, due_ms = ?2 WHERE id = ?1')
// A test is sent by whoever asked for it.
const hurry = query(
  "UPDATE webhook_delivery SET due_ms = ?2 WHERE webhook_id = ?1 AND due_ms > ?2 AND event <> 'webhook.test'",
)
const raise = query('INSERT INTO event (name, account_id, data) VALUES (?1, ?2, ?3)')
const note = query(
  `UPDATE webhook_delivery SET attempts = attempts + 1, delivered = ?2, tried_ms = ?3, took_ms = ?4, status = ?5,
     error = ?6, due_ms = ?7 WHERE id = ?1`,
)
const postpone = query('UPDATE webhook_delivery SET due_ms = ?2 WHERE webhook_id = ?1 AND due_ms < ?2')
const deleteOldest = query(
  `DELETE FROM webhook_delivery WHERE webhook_id = ?1 AND due_ms IS NULL AND id <=
     (SELECT id FROM webhook_delivery WHERE webhook_id = ?1 AND due_ms IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
)

const deliveryOperations: Pick<
  StepsOf<WebhookOperations>,
  'testWebhook' | 'sendAgain' | 'raiseEvent' | 'noteDelivery'
> = {
  *testWebhook({ id, scope, dueMs }, { nowMs }) {
    const row = yield* insertTest.get(id, ...scopeOf(scope), nowMs(), dueMs)
    return row === undefined ? { done: 'unknown' } : { done: 'made', delivery: Number(row.id) }
  },
  *sendAgain({ id, webhookId, scope, dueMs }) {
    const row = yield* findState.get(webhookId, ...scopeOf(scope), id)
    if (row === undefined) return { done: 'unknown' }
    if (Number(row.disabled) === 1) return { done: 'disabled' }
    yield* restart.run(id, dueMs)
    yield* hurry.run(webhookId, dueMs)
    return { done: 'due' }
  },
  *raiseEvent({ event, accountId, data }) {
    yield* raise.run(event, accountId, data)
    return { done: 'raised' }
  },
  *noteDelivery({ id, webhookId, delivered, triedMs, tookMs, status, error, dueMs }) {
    yield* note.run(id, Number(delivered), triedMs, tookMs, status, error, dueMs)
    if (dueMs !== null) yield* postpone.run(webhookId, dueMs)
    else yield* deleteOldest.run(webhookId, bounds.finishedDeliveriesMax)
    return { done: 'noted' }
  },
}

const upsertAlert = query(
  `INSERT INTO balance_alert (account_id, threshold, version) VALUES (?1, ?2, ${FIRST_VERSION})
   ON CONFLICT (account_id) DO UPDATE SET threshold = excluded.threshold`,
)
/** Sets the level at once, so that an account that is low already causes an event. */
const updateLevel = query(
  `UPDATE balance_alert SET level = (SELECT v.level FROM balance_level v WHERE v.account_id = ?1)
   WHERE account_id = ?1`,
)
const deleteAlert = query('DELETE FROM balance_alert WHERE account_id = ?1')

export const webhookOperations: StepsOf<WebhookOperations> = {
  ...editOperations,
  ...deliveryOperations,
  *setAlert({ accountId, scope, threshold }) {
    if (!(yield* hasAccount(accountId, scope))) return { done: 'account_unknown' }
    if (threshold === null) {
      yield* deleteAlert.run(accountId)
      return { done: 'removed' }
    }
    yield* upsertAlert.run(accountId, readAmount(threshold))
    yield* updateLevel.run(accountId)
    return { done: 'set' }
  },
}
