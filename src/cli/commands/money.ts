// Commands that move money, and commands about accounts, codes and budgets.

import type { CommandFields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { CliCommand, CommandDefinition } from './command.ts'
import { defineCommand } from './command.ts'
import { webhookRows } from './webhooks.ts'

const accountSettings = ['credit-limit', 'bodies', 'tier', 'allow', 'deny']

const topUp: CommandDefinition = {
  usage: 'top-up <account or key> <usd> [--reference text]',
  description: 'add money that was paid to an account; the same reference is booked only once',
  command: 'top-up',
  positionals: ['account', 'amount'],
  options: ['reference'],
}

export const moneyRows: Readonly<Record<string, CliCommand>> = {
  'balance': defineCommand({
    usage: 'balance <key or key id>',
    description: "show the balance of a key's account",
    command: 'balance',
    positionals: ['key'],
  }),
  'accounts list': defineCommand({
    usage: 'accounts list [--name prefix] [--limit n] [--after cursor]',
    description: 'list accounts, newest first',
    command: 'accounts-list',
    options: ['name', 'limit', 'after'],
    print: ({ accounts, next }) => listLines(accounts, 'no accounts', next),
  }),
  'accounts create': defineCommand({
    usage: 'accounts create --name text [--personal] [options of accounts set]',
    description: 'create an account without keys and money; it is a team account unless --personal is set',
    command: 'accounts-create',
    options: ['name', ...accountSettings],
    flags: ['personal', 'prepaid', 'postpaid'],
  }),
  'accounts show': defineCommand({
    usage: 'accounts show <account or key>',
    description: 'show an account with its keys and budgets',
    command: 'accounts-show',
    positionals: ['account'],
  }),
  'accounts set': defineCommand({
    usage:
      'accounts set <account or key> [--credit-limit usd] [--prepaid|--postpaid] [--bodies on|off] [--name text] ' +
      "[--tier name|none] [--allow 'a/*,b/*'] [--deny 'a/b*']",
    description:
      'change the settings of an account: a prepaid account may go below zero down to its credit limit, a postpaid ' +
      'one without a limit; --tier is the tier of its new keys; --allow and --deny say which models its keys may use',
    command: 'accounts-set',
    positionals: ['account'],
    options: ['name', ...accountSettings],
    flags: ['prepaid', 'postpaid'],
  }),
  'accounts freeze': defineCommand({
    usage: 'accounts freeze <account or key>',
    description: 'refuse all calls of an account',
    command: 'accounts-freeze',
    positionals: ['account'],
  }),
  'accounts unfreeze': defineCommand({
    usage: 'accounts unfreeze <account or key>',
    description: 'serve the calls of a frozen account again',
    command: 'accounts-unfreeze',
    positionals: ['account'],
  }),
  'top-up': defineCommand(topUp),
  'topup': defineCommand({
    ...topUp,
    usage: topUp.usage.replace('top-up', 'topup'),
    description: 'the same as top-up',
  }),
  'gift': defineCommand({
    usage: 'gift <account or key> <usd> [--reference text]',
    description: 'add free credit to an account',
    command: 'gift',
    positionals: ['account', 'amount'],
    options: ['reference'],
  }),
  'adjust': defineCommand({
    usage: 'adjust <account or key> <+usd or -usd> [--reference text]',
    description: 'correct a balance; the other side of the booking is revenue',
    command: 'adjust',
    positionals: ['account', 'amount'],
    options: ['reference'],
  }),
  'refund': defineCommand({
    usage: 'refund <call id> [<usd>] [--reference text]',
    description: 'refund a call, in full or in part; a call can be refunded once',
    command: 'refund',
    positionals: ['call', 'amount?'],
    options: ['reference'],
  }),
  'codes create': defineCommand({
    usage: 'codes create --count n --amount usd [--batch name] [--expires days]',
    description: 'create redemption codes; prints the codes, which are never shown again',
    command: 'codes-create',
    options: ['count', 'amount', 'batch', 'expires'],
    print: ({ codes }) => codes as string[],
  }),
  'codes redeem': defineCommand({
    usage: 'codes redeem <code> <account or key>',
    description: 'redeem a code: add its amount to an account',
    command: 'codes-redeem',
    positionals: ['code', 'account'],
  }),
  'codes list': defineCommand({
    usage: 'codes list [<batch>] [--limit n]',
    description: 'list the batches of codes, or the codes of one batch; the codes themselves are never shown',
    command: 'codes-list',
    positionals: ['batch?'],
    options: ['limit'],
    print: ({ batches, codes }) => listLines((batches ?? codes) as CommandFields[], 'no codes'),
  }),
  'codes void': defineCommand({
    usage: 'codes void <batch or code id>',
    description: 'cancel a code, or all codes of a batch, that nobody has redeemed',
    command: 'codes-void',
    positionals: ['codes'],
  }),
  ...webhookRows,
  'budgets set': defineCommand({
    usage: 'budgets set <key or account id> <total|day|month> <usd|none>',
    description:
      'limit what a key or an account may spend in total, per day or per month (UTC); none removes the limit',
    command: 'budgets-set',
    positionals: ['scope', 'span', 'amount'],
    print: answer => budgetLines(answer),
  }),
  'budgets show': defineCommand({
    usage: 'budgets show <key or account id>',
    description: 'show the budgets of a key, or of an account and its keys',
    command: 'budgets-show',
    positionals: ['scope'],
    print: answer => budgetLines(answer),
  }),
}

const budgetLines = ({ budgets }: CommandFields): readonly string[] =>
  listLines(budgets as CommandFields[], 'no budgets')
