// Commands about webhooks.

import type { CommandFields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

export const webhookRows: Readonly<Record<string, CliCommand>> = {
  'webhooks list': defineCommand({
    usage: 'webhooks list [--account …] [--limit n]',
    description: 'list the webhooks',
    command: 'webhooks-list',
    options: ['account', 'limit'],
    print: ({ webhooks }) => listLines(webhooks as CommandFields[], 'no webhooks'),
  }),
  'webhooks create': defineCommand({
    usage: 'webhooks create <url> --events balance.low,… [--account …]',
    description:
      'send events of an account, or of the site, to a URL; prints the signing secret, which is never shown again',
    command: 'webhooks-create',
    positionals: ['url'],
    options: ['events', 'account'],
  }),
  'webhooks deliveries': defineCommand({
    usage: 'webhooks deliveries <webhook id> [--limit n]',
    description: 'list the deliveries of a webhook, newest first, also those still to come',
    command: 'webhooks-deliveries',
    positionals: ['webhook'],
    options: ['limit'],
    print: ({ deliveries }) => listLines(deliveries as CommandFields[], 'no deliveries'),
  }),
  'webhooks test': defineCommand({
    usage: 'webhooks test <webhook id>',
    description: 'send a test event to a webhook now; exit code 1 if the webhook did not accept it',
    command: 'webhooks-test',
    positionals: ['webhook'],
    isFailure: ({ delivered }) => delivered !== true,
  }),
  'webhooks remove': defineCommand({
    usage: 'webhooks remove <webhook id>',
    description: 'remove a webhook and its pending deliveries',
    command: 'webhooks-remove',
    positionals: ['webhook'],
  }),
}
