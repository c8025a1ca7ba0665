// Commands about webhooks: create, list, test, remove; and their deliveries.

import { parseTextId, textId } from '../../base/ids.ts'
import { timeOrNull } from '../../base/time.ts'
import type { ListQuery } from '../../store/queries/paging.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import { parseRowLimit, resolveAccount } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import { accountEvents, eventId, siteEvents } from '../webhooks/events.ts'
import { InvalidWebhookUrl, insertWebhook } from '../webhooks/new-webhook.ts'

export function webhookCommands(parts: OperatorParts): OperatorCommands {
  return {
    'webhooks-list': input => listWebhooks(parts, input),
    'webhooks-create': input => createWebhook(parts, input),
    'webhooks-deliveries': input => listDeliveries(parts, input),
    async 'webhooks-test'(input) {
      const id = webhookIdOf(input)
      const made = await parts.writer.run(
        'testWebhook',
        { id, scope: null, dueMs: parts.dateMs() + 60_000 },
        byOperator,
      )
      if (made.done === 'unknown') throw absent()
      const told = await parts.webhooks.deliverer.deliverOnce(made.delivery)
      if (told === undefined) throw absent()
      const { delivered, status, tookMs, error } = told
      return { event: eventId(made.delivery), delivered, status, ms: tookMs, error }
    },
    async 'webhooks-remove'(input) {
      const id = webhookIdOf(input)
      const { done } = await parts.writer.run('removeWebhook', { id, scope: null }, byOperator)
      if (done === 'unknown') throw absent()
      return { removed: textId('hook', id) }
    },
  }
}

const absent = (): OperatorError => new OperatorError('Unknown webhook. Use its id (hook_…).')

function webhookIdOf({ webhook }: CommandInput): number {
  const id = parseTextId('hook', String(webhook ?? ''))
  if (id === undefined) throw absent()
  return id
}

async function createWebhook(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const accountId = input.account === undefined ? null : Number(resolveAccount(parts, input.account).id)
  const known: readonly string[] = accountId === null ? siteEvents : accountEvents
  const events = [
    ...new Set(
      String(input.events ?? '')
        .split(',')
        .filter(event => event !== ''),
    ),
  ]
  if (events.length === 0 || !events.every(event => known.includes(event))) {
    throw new OperatorError(`--events must be a list of these, separated by commas: ${known.join(', ')}.`)
  }
  try {
    const wanted = { accountId, scope: null, url: String(input.url ?? ''), events }
    const { id, secret, result } = await insertWebhook(parts, wanted, byOperator)
    if (result.done === 'too_many') throw new OperatorError('There are too many webhooks. Remove some first.')
    if (result.done === 'account_unknown') throw new OperatorError('Unknown account.')
    return { webhook: textId('hook', id), secret }
  } catch (fault) {
    throw fault instanceof InvalidWebhookUrl
      ? new OperatorError(`The URL cannot be used for a webhook: ${fault.message}.`)
      : fault
  }
}

const askOf = (filters: ListQuery['filters'], sort: string, limit: number): ListQuery => ({
  scope: null,
  filters,
  sort,
  descending: true,
  limit,
})

async function listWebhooks(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const account = input.account === undefined ? undefined : Number(resolveAccount(parts, input.account).id)
  const { rows } = await parts.queryWorker.query('webhooks', askOf({ account }, 'created', parseRowLimit(input.limit)))
  const webhooks = rows.map(({ id, accountId, url, events, disabled, waiting, dropped }) => ({
    webhook: textId('hook', id),
    account: accountId === null ? 'site' : textId('acc', accountId),
    url,
    events: events ?? [],
    state: disabled ? 'off' : 'on',
    waiting,
    dropped,
  }))
  return { webhooks }
}

async function listDeliveries(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const webhook = webhookIdOf(input)
  const { rows } = await parts.queryWorker.query('deliveries', askOf({ webhook }, 'made', parseRowLimit(input.limit)))
  const deliveries = rows.map(({ id, event, madeMs, attempts, delivered, dueMs, status, tookMs, error }) => ({
    made: timeOrNull(madeMs),
    id: eventId(id),
    event,
    attempts,
    status,
    ms: tookMs,
    error,
    state: delivered ? 'delivered' : dueMs === null ? 'given up' : 'waiting',
    next: timeOrNull(dueMs || null),
  }))
  return { deliveries }
}
