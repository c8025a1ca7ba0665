// Commands about webhooks.

import { siteEvents } from '../../management/webhooks/events.ts'
import { findAccount, optionally, splitList, text, UNKNOWN_ACCOUNT } from '../input.ts'
import { fieldLines, listLines } from '../print.ts'
import { getPages } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const columns = ['id', 'account', 'url', 'events', 'disabled', 'waiting', 'dropped']
const deliveryColumns = ['made', 'id', 'event', 'attempts', 'status', 'ms', 'error', 'state', 'next']

const UNKNOWN_WEBHOOK = 'Unknown webhook. Use its id (hook_…).'

export const webhookRows: Readonly<Record<string, CliCommand>> = {
  'webhooks list': defineCommand({
    usage: 'webhooks list [--account …] [--limit n] [--after cursor]',
    description: 'list the webhooks',
    options: ['account', 'limit', 'after'],
    async ask({ account, ...query }, send) {
      const id = await optionally(account, given => findAccount(send, given))
      return await getPages(send, '/api/web/webhooks', { ...query, account: id, sort: '-created' })
    },
    print: answer => listLines(answer, 'no webhooks', columns),
  }),
  'webhooks create': defineCommand({
    unknown: UNKNOWN_ACCOUNT,
    usage: 'webhooks create <url> --events balance.low,… [--account …]',
    description:
      'send events of an account, or of the site, to a URL; prints the signing secret, which is never shown again',
    positionals: ['url'],
    options: ['events', 'account'],
    required: ['events'],
    values: { events: siteEvents },
    async ask({ url, events, account }, send) {
      const id = await optionally(account, given => findAccount(send, given))
      const path = id === undefined ? '/api/web/webhooks' : `/api/web/accounts/${id}/webhooks`
      return await send('POST', path, { url, events: [...new Set(splitList(events))] })
    },
    print: ({ id, secret }) => fieldLines({ id, secret }),
  }),
  'webhooks deliveries': defineCommand({
    unknown: UNKNOWN_WEBHOOK,
    usage: 'webhooks deliveries <webhook id> [--limit n] [--after cursor]',
    description: 'list the deliveries of a webhook, newest first, also those still to come',
    positionals: ['webhook'],
    options: ['limit', 'after'],
    ask: ({ webhook, ...query }, send) => getPages(send, `/api/web/webhooks/${text(webhook)}/deliveries`, query),
    print: answer => listLines(answer, 'no deliveries', deliveryColumns),
  }),
  'webhooks test': defineCommand({
    unknown: UNKNOWN_WEBHOOK,
    usage: 'webhooks test <webhook id>',
    description: 'send a test event to a webhook now; exit code 1 if the webhook did not accept it',
    positionals: ['webhook'],
    ask: ({ webhook }, send) => send('POST', `/api/web/webhooks/${text(webhook)}/test`),
    isFailure: ({ delivered }) => delivered !== true,
  }),
  'webhooks remove': defineCommand({
    unknown: UNKNOWN_WEBHOOK,
    usage: 'webhooks remove <webhook id>',
    description: 'remove a webhook and its pending deliveries',
    positionals: ['webhook'],
    ask: ({ webhook }, send) => send('DELETE', `/api/web/webhooks/${text(webhook)}`),
    print: () => ['The webhook is removed.'],
  }),
}
