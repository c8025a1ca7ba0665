// Commands about who is told what happens.

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
    about: 'have an address told what happens to an account, or to the site; prints its secret, once',
    command: 'webhooks-create',
    places: ['url'],
    options: ['events', 'account'],
  }),
  'webhooks deliveries': asking({
    usage: 'webhooks deliveries <webhook id> [--limit n]',
    about: 'list what a webhook was told and is to be told, newest first',
    command: 'webhooks-deliveries',
    places: ['webhook'],
    options: ['limit'],
    print: ({ deliveries }) => listLines(deliveries as Fields[], 'nothing'),
  }),
  'webhooks test': asking({
    usage: 'webhooks test <webhook id>',
    about: 'tell a webhook something that has not happened, now; ends with 1 if it did not take it',
    command: 'webhooks-test',
    places: ['webhook'],
    isBad: ({ delivered }) => delivered !== true,
  }),
  'webhooks remove': asking({
    usage: 'webhooks remove <webhook id>',
    about: 'remove a webhook, and what it was to be told with it',
    command: 'webhooks-remove',
    places: ['webhook'],
  }),
}
