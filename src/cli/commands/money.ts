// Commands that move money, and commands about accounts, codes and budgets.

import type { Fields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { AskingRow, Row } from './command.ts'
import { asking } from './command.ts'
import { webhookRows } from './webhooks.ts'

const accountSettings = ['credit-limit', 'bodies', 'tier', 'allow', 'deny']

const topUp: AskingRow = {
  usage: 'top-up <account or key> <usd> [--reference text]',
  about: 'add money that was paid to an account; the same reference is booked only once',
  command: 'top-up',
  places: ['account', 'amount'],
  options: ['reference'],
}

export const moneyRows: Readonly<Record<string, Row>> = {
  'balance': asking({
    usage: 'balance <key or key id>',
    about: "show the balance of a key's account",
    command: 'balance',
    places: ['key'],
  }),
  'accounts list': asking({
    usage: 'accounts list [--name prefix] [--limit n] [--after cursor]',
    about: 'list accounts, newest first',
    command: 'accounts-list',
    options: ['name', 'limit', 'after'],
    print: ({ accounts, next }) => listLines(accounts, 'no accounts', next),
  }),
  'accounts create': asking({
    usage: 'accounts create --name text [--personal] [options of accounts set]',
    about: 'create an account without keys and money; it is a team account unless --personal is set',
    command: 'accounts-create',
    options: ['name', ...accountSettings],
    flags: ['personal', 'prepaid', 'postpaid'],
  }),
  'accounts show': asking({
    usage: 'accounts show <account or key>',
    about: 'show an account with its keys and budgets',
    command: 'accounts-show',
    places: ['account'],
  }),
  'accounts set': asking({
    usage:
      'accounts set <account or key> [--credit-limit usd] [--prepaid|--postpaid] [--bodies on|off] [--name text] ' +
      "[--tier name|none] [--allow 'a/*,b/*'] [--deny 'a/b*']",
    about:
      'change the settings of an account: a prepaid account may go below zero down to its credit limit, a postpaid ' +
      'one without a limit; --tier is the tier of its new keys; --allow and --deny say which models its keys may use',
    command: 'accounts-set',
    places: ['account'],
    options: ['name', ...accountSettings],
    flags: ['prepaid', 'postpaid'],
  }),
  'accounts freeze': asking({
    usage: 'accounts freeze <account or key>',
    about: 'refuse all calls of an account',
    command: 'accounts-freeze',
    places: ['account'],
  }),
  'accounts unfreeze': asking({
    usage: 'accounts unfreeze <account or key>',
    about: 'serve the calls of a frozen account again',
    command: 'accounts-unfreeze',
    places: ['account'],
  }),
  'top-up': asking(topUp),
  'topup': asking({ ...topUp, usage: topUp.usage.replace('top-up', 'topup'), about: 'the same as top-up' }),
  'gift': asking({
    usage: 'gift <account or key> <usd> [--reference text]',
    about: 'add free credit to an account',
    command: 'gift',
    places: ['account', 'amount'],
    options: ['reference'],
  }),
  'adjust': asking({
    usage: 'adjust <account or key> <+usd or -usd> [--reference text]',
    about: 'correct a balance; the other side of the booking is revenue',
    command: 'adjust',
    places: ['account', 'amount'],
    options: ['reference'],
  }),
  'refund': asking({
    usage: 'refund <call id> [<usd>] [--reference text]',
    about: 'refund a call, in full or in part; a call can be refunded once',
    command: 'refund',
    places: ['call', 'amount?'],
    options: ['reference'],
  }),
  'codes create': asking({
    usage: 'codes create --count n --amount usd [--batch name] [--expires days]',
    about: 'create redemption codes; prints the codes, which are never shown again',
    command: 'codes-create',
    options: ['count', 'amount', 'batch', 'expires'],
    print: ({ codes }) => codes as string[],
  }),
  'codes redeem': asking({
    usage: 'codes redeem <code> <account or key>',
    about: 'redeem a code: add its amount to an account',
    command: 'codes-redeem',
    places: ['code', 'account'],
  }),
  'codes list': asking({
    usage: 'codes list [<batch>] [--limit n]',
    about: 'list the batches of codes, or the codes of one batch; the codes themselves are never shown',
    command: 'codes-list',
    places: ['batch?'],
    options: ['limit'],
    print: ({ batches, codes }) => listLines((batches ?? codes) as Fields[], 'no codes'),
  }),
  'codes void': asking({
    usage: 'codes void <batch or code id>',
    about: 'cancel a code, or all codes of a batch, that nobody has redeemed',
    command: 'codes-void',
    places: ['codes'],
  }),
  ...webhookRows,
  'budgets set': asking({
    usage: 'budgets set <key or account id> <total|day|month> <usd|none>',
    about: 'limit what a key or an account may spend in total, per day or per month (UTC); none removes the limit',
    command: 'budgets-set',
    places: ['scope', 'span', 'amount'],
    print: answer => budgetLines(answer),
  }),
  'budgets show': asking({
    usage: 'budgets show <key or account id>',
    about: 'show the budgets of a key, or of an account and its keys',
    command: 'budgets-show',
    places: ['scope'],
    print: answer => budgetLines(answer),
  }),
}

const budgetLines = ({ budgets }: Fields): readonly string[] => listLines(budgets as Fields[], 'no budgets')
