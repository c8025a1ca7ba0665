// Endpoints for webhooks: create, change, test and remove them, list their deliveries and send one again.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { Hint as HintValue, hintOf, readHint } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import type { WebhookSecretText } from '../../identity/webhook-secret.ts'
import { isStrongWebhookSecret, mintWebhookSecret, sealWebhookSecret } from '../../identity/webhook-secret.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { DeliveryView, SentDeliveryView, WebhookView } from '../../store/queries/webhooks.ts'
import type { Actor } from '../actor.ts'
import { operator, shareOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { must } from '../web/issue-text.ts'
import { accountEvents, eventHeaders, eventId, eventText, siteEvents } from '../webhooks/events.ts'
import type { WebhookInput } from '../webhooks/new-webhook.ts'
import { InvalidWebhookUrl, insertWebhook, originOf, webhookOrigin } from '../webhooks/new-webhook.ts'
import { shownUrl } from '../webhooks/shown-url.ts'
import { secretFrom } from './channel-schemas.ts'
import type { ManagementRequest, WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, managedBy, noContent, time, version } from './endpoint.ts'
import { Hint } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'

const Webhook = z
  .object({
    id: z.string(),
    account: z.string().nullable().meta({ description: 'Null: a webhook of the whole site.' }),
    accountName: z.string().nullable(),
    url: z.string().meta({ description: 'Support sees only the origin, because the rest may be a secret.' }),
    events: z.array(z.enum(siteEvents)),
    disabled: z.boolean(),
    secretFrom,
    secretMark: z
      .string()
      .nullable()
      .meta({ description: 'Tells whether two secrets are the same; null for a generated secret' }),
    waiting: z.number().meta({ description: 'The number of pending deliveries.' }),
    dropped: z
      .number()
      .meta({ description: 'The number of events that were dropped, because too many deliveries were pending.' }),
    author: z.string(),
    created: time,
    version,
    managedBy,
  })
  .meta({ id: 'Webhook' })

const withSecret = Webhook.extend({
  secret: z.string().meta({ description: 'The secret of the signatures. It is never shown again.' }),
})

const Delivery = z
  .object({
    id: z.string(),
    event: z.string(),
    state: z.enum(['delivered', 'waiting', 'given up']),
    made: time,
    attempts: z.number(),
    tried: time.nullable(),
    status: z.number().nullable(),
    ms: z.number().nullable(),
    error: z.string().nullable(),
    errorHint: Hint.nullable().meta({
      description: 'The error as data; null also for one that an earlier version stored',
    }),
    next: time.nullable(),
  })
  .meta({ id: 'WebhookDelivery' })

const DeliveryInFull = Delivery.extend({
  request: z
    .object({
      url: z.string().meta({ description: 'Support sees only the origin.' }),
      headers: z
        .record(z.string(), z.string())
        .meta({ description: 'Without the signature, which is different for each attempt' }),
      body: z.string().meta({ description: 'The same text in each attempt' }),
    })
    .meta({ id: 'WebhookRequest' }),
}).meta({ id: 'WebhookDeliveryInFull' })

export const eventList = <E extends string>(events: readonly [E, ...E[]]) =>
  z
    .array(z.enum(events))
    .min(1)
    .refine(some => new Set(some).size === some.length, must('must_be_events_once'))

/** A secret that a configuration file refers to. */
const ownSecret = {
  secret: z
    .string()
    .refine(isStrongWebhookSecret, must('must_be_secret'))
    .optional()
    .meta({
      writeOnly: true,
      description: 'Default: a generated secret',
      examples: ['whsec_a-long-random-text-of-at-least-32-characters'],
    }),
  secretFrom: secretFrom.optional(),
}
/**
 * Members of an account would choose a secret that can be guessed. An exported file has the reference, and whoever applies
 * the file reads it on a machine of the operator.
 */
const reserved = { secret: 'admin', secretFrom: 'operator' } as const

const disabled = z.boolean().optional()
export const webhookUrl = z.string().min(1).max(bounds.webhookUrlCharsMax)
const params = z.object({ webhook: idOf('hook') })
const deliveryParams = z.object({ webhook: idOf('hook'), delivery: idOf('evt') })

const showWebhook =
  (actor: Actor) =>
  ({ id, accountId, createdMs, events, url: fullUrl, ...row }: WebhookView) => ({
    ...row,
    id: textId('hook', id),
    url: shownUrl(actor, fullUrl),
    account: accountId === null ? null : textId('acc', accountId),
    events: (events ?? []) as z.output<typeof Webhook>['events'],
    created: timeText(createdMs),
  })

const errorOf = (error: HintValue | string | null) =>
  error instanceof HintValue ? { error: error.text, errorHint: error.data } : { error, errorHint: null }

const showDelivery = (row: DeliveryView): z.input<typeof Delivery> => ({
  id: eventId(row.id),
  event: row.event,
  made: timeText(row.madeMs),
  attempts: row.attempts,
  state: row.delivered ? 'delivered' : row.dueMs === null ? 'given up' : 'waiting',
  tried: timeOrNull(row.triedMs),
  status: row.status,
  ms: row.tookMs,
  ...errorOf(row.error === null ? null : (readHint(row.error) ?? row.error)),
  next: row.dueMs === 0 ? timeText(row.madeMs) : timeOrNull(row.dueMs),
})

const showSent = (actor: Actor, row: SentDeliveryView): z.input<typeof DeliveryInFull> => ({
  ...showDelivery(row),
  request: { url: shownUrl(actor, row.url), headers: eventHeaders(row), body: eventText(row) },
})

export const webhookEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...readEndpoints(parts),
  ...createEndpoints(parts),
  ...changeEndpoints(parts),
  ...testEndpoints(parts),
]

const buildShow =
  ({ queryWorker }: ManagementParts) =>
  async (id: number, { scope, actor }: Pick<ManagementRequest<never, never, never>, 'scope' | 'actor'>) => {
    const row = requireFound(await queryWorker.query('webhook', { id, scope }))
    return { body: showWebhook(actor)(row), version: row.version }
  }

function readEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker } = parts
  const show = buildShow(parts)
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/webhooks',
      who: { account: 'manager' },
      summary: 'List webhooks: all of them, or those of the accounts that you manage.',
      query: listQuery({ account: idOf('acc').optional() }, ['created']),
      answer: listOf(Webhook),
      async run({ query, scope, actor }) {
        const pageQuery = buildListQuery(query, scope, 'created')
        return listAnswer(await queryWorker.query('webhooks', pageQuery), pageQuery, showWebhook(actor))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/webhooks/{webhook}',
      who: { account: 'manager' },
      summary: 'Show a webhook.',
      params,
      answer: Webhook,
      run: ({ params: { webhook }, ...request }) => show(webhook, request),
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/webhooks/{webhook}/deliveries',
      who: { account: 'manager' },
      summary: `List the deliveries of a webhook, newest first, also pending ones. The last ${bounds.finishedDeliveriesMax} are kept.`,
      params,
      query: listQuery({}, ['made']),
      answer: listOf(Delivery),
      async run({ params: { webhook }, query, scope }) {
        requireFound(await queryWorker.query('webhook', { id: webhook, scope }))
        const pageQuery = buildListQuery({ ...query, webhook }, scope, '-made')
        return listAnswer(await queryWorker.query('deliveries', pageQuery), pageQuery, showDelivery)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/webhooks/{webhook}/deliveries/{delivery}',
      who: { account: 'manager' },
      summary: 'Show a delivery of a webhook, with the request that is sent.',
      params: deliveryParams,
      answer: DeliveryInFull,
      async run({ params: { webhook, delivery }, scope, actor }) {
        return { body: showSent(actor, await readDelivery(parts, { webhook, delivery, scope })) }
      },
    }),
  ]
}

async function readDelivery(
  { queryWorker }: ManagementParts,
  { webhook, delivery: id, scope }: z.output<typeof deliveryParams> & { readonly scope: Scope | null },
): Promise<SentDeliveryView> {
  const row = requireFound(await queryWorker.query('delivery', { id, scope }))
  if (row.webhookId !== webhook) throw resourceUnknown()
  return row
}

/** Turns a bad URL into a refusal of the field "url". */
async function refuseBadUrl<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (fault) {
    if (!(fault instanceof InvalidWebhookUrl)) throw fault
    throw refusal('field_invalid', hintOf('webhook_url', { problem: fault.hint }), 'url')
  }
}

const urlTaken = (): Refusal => refusal('state_unfit', hintOf('webhook_url_taken'), 'url')

function createEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const show = buildShow(parts)
  async function make(
    wanted: WebhookInput,
    { by, actor }: Pick<ManagementRequest<never, never, never>, 'by' | 'actor'>,
  ) {
    const { id, secret, result } = await refuseBadUrl(() => insertWebhook(parts, wanted, by))
    requireDone(result, {
      account_unknown: resourceUnknown,
      too_many: () => new Refusal('state_unfit', 'too many', { hint: hintOf('webhooks_max') }),
      url_taken: urlTaken,
    })
    const shown = await show(id, { scope: null, actor })
    return { ...shown, body: { ...shown.body, secret } }
  }
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/webhooks',
      who: { site: 'admin' },
      summary: 'Create a webhook for events of all accounts and of the site.',
      body: z.strictObject({ url: webhookUrl, events: eventList(siteEvents), disabled, ...ownSecret }),
      reserved,
      answer: withSecret,
      status: 201,
      run: ({ body, ...request }) => make({ ...body, accountId: null, scope: null }, request),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/accounts/{account}/webhooks',
      who: { account: 'manager' },
      summary: 'Create a webhook for events of an account.',
      params: z.object({ account: idOf('acc') }),
      body: z.strictObject({ url: webhookUrl, events: eventList(accountEvents), disabled, ...ownSecret }),
      reserved,
      answer: withSecret,
      status: 201,
      run: ({ params: { account }, body, ...request }) =>
        make({ ...body, accountId: account, scope: request.scope }, request),
    }),
  ]
}

function changeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { writer, seal, queryWorker } = parts
  const show = buildShow(parts)
  return [
    endpoint({
      method: 'PATCH',
      path: '/api/web/webhooks/{webhook}',
      who: { account: 'manager' },
      summary: 'Change, disable or enable a webhook.',
      params,
      changes: ({ webhook }) => [`webhooks/${textId('hook', webhook)}`],
      body: z.strictObject({
        url: webhookUrl.optional(),
        events: eventList(siteEvents).optional(),
        disabled,
        ...ownSecret,
      }),
      reserved,
      answer: Webhook,
      async run({ params: { webhook: id }, body: { events, ...body }, scope, by, actor }) {
        const { accountId } = requireFound(await queryWorker.query('webhook', { id, scope }))
        const isSiteEvent = (event: string): boolean => !(accountEvents as readonly string[]).includes(event)
        if (accountId !== null && events?.some(isSiteEvent)) {
          const hint = hintOf('webhook_events', { events: accountEvents.join(', ') })
          throw new Refusal('field_invalid', 'events', { param: 'events', hint })
        }
        const { url: newUrl } = body
        const address =
          newUrl === undefined ? {} : { url: newUrl, origin: await refuseBadUrl(() => webhookOrigin(parts, newUrl)) }
        const secret = body.secret as WebhookSecretText | undefined
        const sealed = secret === undefined ? {} : { secret: sealWebhookSecret(seal, id, secret), ...originOf(body) }
        const input = { id, scope, ...address, events: events?.join(), disabled: body.disabled, ...sealed }
        const result = await writer.run('setWebhook', input, by)
        requireDone(result, { unknown: resourceUnknown, url_taken: urlTaken })
        return show(id, { scope, actor })
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/webhooks/{webhook}/secret',
      who: { account: 'manager' },
      summary: 'Create a new secret for a webhook. Deliveries are signed with it from now on.',
      params,
      changes: ({ webhook }) => [`webhooks/${textId('hook', webhook)}`],
      answer: withSecret,
      async run({ params: { webhook: id }, scope, by, actor }) {
        const secret = mintWebhookSecret()
        const input = { id, scope, secret: sealWebhookSecret(seal, id, secret) }
        const result = await writer.run('setWebhook', input, by)
        requireDone(result, { unknown: resourceUnknown, url_taken: urlTaken })
        const shown = await show(id, { scope, actor })
        return { ...shown, body: { ...shown.body, secret } }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/webhooks/{webhook}',
      who: { account: 'manager' },
      summary: 'Remove a webhook and its pending deliveries.',
      params,
      changes: ({ webhook }) => [`webhooks/${textId('hook', webhook)}`],
      answer: noContent,
      status: 204,
      async run({ params: { webhook: id }, scope, by }) {
        requireDone(await writer.run('removeWebhook', { id, scope }, by), { unknown: resourceUnknown })
        return {}
      },
    }),
  ]
}

/** The regular deliverer does not send the test event before this time. */
const TEST_DUE_MS = 2 * bounds.webhookMsMax

function testEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { writer, webhooks, dateMs } = parts
  const tries = new AttemptCounter('webhook-test', rateOf(bounds.webhookTestsPerMinuteMax, spansMs.minute), parts)
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/webhooks/{webhook}/test',
      who: { account: 'manager' },
      summary: 'Send a test event (webhook.test) to a webhook now, without retries, and show the result.',
      params,
      answer: z.object({
        id: z.string(),
        delivered: z.boolean(),
        status: z.number().nullable(),
        ms: z.number(),
        error: z.string().nullable(),
        errorHint: Hint.nullable(),
      }),
      async run({ params: { webhook: id }, actor, scope, by }) {
        if (actor !== operator) await tries.countOrRefuse(shareOf(actor))
        const dueMs = dateMs() + TEST_DUE_MS
        const made = requireDone(await writer.run('testWebhook', { id, scope, dueMs }, by), {
          unknown: resourceUnknown,
        })
        const delivery = 'delivery' in made ? made.delivery : 0
        const { tookMs, error, ...result } = requireFound(await webhooks.deliverer.deliverOnce(delivery))
        return { body: { id: eventId(delivery), ...result, ...errorOf(error), ms: tookMs } }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/webhooks/{webhook}/deliveries/{delivery}/send-again',
      who: { account: 'manager' },
      summary:
        'Send a delivery again, with the same id and body. Pending deliveries of the webhook are tried now, too.',
      params: deliveryParams,
      answer: DeliveryInFull,
      async run({ params: { webhook, delivery }, actor, scope, by }) {
        if (actor !== operator) await tries.countOrRefuse(shareOf(actor))
        const result = await writer.run('sendAgain', { id: delivery, webhookId: webhook, scope, dueMs: dateMs() }, by)
        requireDone(result, {
          unknown: resourceUnknown,
          disabled: () => new Refusal('state_unfit', 'disabled', { hint: hintOf('webhook_disabled') }),
        })
        return { body: showSent(actor, await readDelivery(parts, { webhook, delivery, scope })) }
      },
    }),
  ]
}
