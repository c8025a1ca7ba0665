// Commands that move money or say what it may be spent on.

import type { Fields } from '../connect.ts'
import { listLines } from '../print.ts'
import type { AskingRow, Row } from './command.ts'
import { asking } from './command.ts'
import { webhookRows } from './webhooks.ts'

const accountSettings = ['credit-limit', 'bodies', 'tier', 'allow', 'deny']

const topUp: AskingRow = {
  usage: 'top-up <account or key> <usd> [--reference text]',
  about: 'book money that came in; the same reference is booked once',
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
    usage: 'accounts list [--name begins] [--limit n] [--after cursor]',
    about: 'list accounts, newest first',
    command: 'accounts-list',
    options: ['name', 'limit', 'after'],
    print: ({ accounts, next }) => listLines(accounts, 'no accounts', next),
  }),
  'accounts create': asking({
    usage: 'accounts create --name text [--personal] [what accounts set takes]',
    about: 'make an account, for a team unless it is personal, without keys and money',
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
      'set what an account may: go below zero to its credit limit, or postpaid, as far as its calls take it; ' +
      'the tier of its new keys; which models all of its keys may use',
    command: 'accounts-set',
    places: ['account'],
    options: ['name', ...accountSettings],
    flags: ['prepaid', 'postpaid'],
  }),
  'accounts freeze': asking({
    usage: 'accounts freeze <account or key>',
    about: 'refuse the calls of an account',
    command: 'accounts-freeze',
    places: ['account'],
  }),
  'accounts unfreeze': asking({
    usage: 'accounts unfreeze <account or key>',
    about: 'serve an account again, for instance after its books have been checked',
    command: 'accounts-unfreeze',
    places: ['account'],
  }),
  'top-up': asking(topUp),
  'topup': asking({ ...topUp, usage: topUp.usage.replace('top-up', 'topup'), about: 'the same as top-up' }),
  'gift': asking({
    usage: 'gift <account or key> <usd> [--reference text]',
    about: 'give credit away',
    command: 'gift',
    places: ['account', 'amount'],
    options: ['reference'],
  }),
  'adjust': asking({
    usage: 'adjust <account or key> <+usd or -usd> [--reference text]',
    about: 'correct a balance, against revenue',
    command: 'adjust',
    places: ['account', 'amount'],
    options: ['reference'],
  }),
  'refund': asking({
    usage: 'refund <call id> [<usd>] [--reference text]',
    about: 'give back what a call was charged, or a part of it, once',
    command: 'refund',
    places: ['call', 'amount?'],
    options: ['reference'],
  }),
  'codes create': asking({
    usage: 'codes create --count n --amount usd [--batch name] [--expires days]',
    about: 'make redemption codes; prints them, once',
    command: 'codes-create',
    options: ['count', 'amount', 'batch', 'expires'],
    print: ({ codes }) => codes as string[],
  }),
  'codes redeem': asking({
    usage: 'codes redeem <code> <account or key>',
    about: 'turn a code into credit',
    command: 'codes-redeem',
    places: ['code', 'account'],
  }),
  'codes list': asking({
    usage: 'codes list [<batch>] [--limit n]',
    about: 'list the batches of codes, or the codes of one; never what is written on them',
    command: 'codes-list',
    places: ['batch?'],
    options: ['limit'],
    print: ({ batches, codes }) => listLines((batches ?? codes) as Fields[], 'no codes'),
  }),
  'codes void': asking({
    usage: 'codes void <batch or code id>',
    about: 'take back a code, or those of a batch, that nobody has redeemed',
    command: 'codes-void',
    places: ['codes'],
  }),
  ...webhookRows,
  'budgets set': asking({
    usage: 'budgets set <key or account id> <total|day|month> <usd|none>',
    about: 'bound what a key or an account may spend; days and months are UTC',
    command: 'budgets-set',
    places: ['scope', 'span', 'amount'],
    print: answer => budgetLines(answer),
  }),
  'budgets show': asking({
    usage: 'budgets show <key or account id>',
    about: 'show its budgets; of an account, also those of its keys',
    command: 'budgets-show',
    places: ['scope'],
    print: answer => budgetLines(answer),
  }),
}

const budgetLines = ({ budgets }: Fields): readonly string[] => listLines(budgets as Fields[], 'no budgets')
