// Commands about webhooks.

import type { Fields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

export const webhookRows: Readonly<Record<string, Row>> = {
  'webhooks list': asking({
    usage: 'webhooks list [--account …] [--limit n]',
    about: 'list the webhooks',
    command: 'webhooks-list',
    options: ['account', 'limit'],
    print: ({ webhooks }) => listLines(webhooks as Fields[], 'no webhooks'),
  }),
  'webhooks create': asking({
    usage: 'webhooks create <url> --events balance.low,… [--account …]',
    about: 'send events of an account, or of the site, to a URL; prints the signing secret, which is never shown again',
    command: 'webhooks-create',
    places: ['url'],
    options: ['events', 'account'],
  }),
  'webhooks deliveries': asking({
    usage: 'webhooks deliveries <webhook id> [--limit n]',
    about: 'list the deliveries of a webhook, newest first, also those still to come',
    command: 'webhooks-deliveries',
    places: ['webhook'],
    options: ['limit'],
    print: ({ deliveries }) => listLines(deliveries as Fields[], 'no deliveries'),
  }),
  'webhooks test': asking({
    usage: 'webhooks test <webhook id>',
    about: 'send a test event to a webhook now; exit code 1 if the webhook did not accept it',
    command: 'webhooks-test',
    places: ['webhook'],
    isBad: ({ delivered }) => delivered !== true,
  }),
  'webhooks remove': asking({
    usage: 'webhooks remove <webhook id>',
    about: 'remove a webhook and its pending deliveries',
    command: 'webhooks-remove',
    places: ['webhook'],
  }),
}
