// Commands about the books: records, statements, prices, audit, backup, restore.

import { readFileSync } from 'node:fs'
import { readConfig } from '../../config.ts'
import type { Fields } from '../connect.ts'
import { ask, folderOf, Problem } from '../connect.ts'
import { harmlessLines, tableLines } from '../print.ts'
import { writtenTo } from '../progress.ts'
import { restore, restoreUsage } from '../restore.ts'
import type { Row } from './command.ts'
import { asking, onlyJson, say } from './command.ts'
import { filterOptions, filterUsage, recordRows } from './records.ts'

const ROWS_DEFAULT = 50
const PRICES_CHECK = 'prices check'

export const bookRows: Readonly<Record<string, Row>> = {
  'statement': asking({
    usage: 'statement <account or key> [--limit n] [--next …]',
    about: 'list the transfers of an account, newest first',
    command: 'statement',
    places: ['account'],
    options: ['limit', 'next'],
    ask: input => askPages('statement', input, { rows: 'transfers', cursor: 'next' }),
    print: ({ transfers, next }) => pageLines(transfers as Fields[], next),
  }),
  ...recordRows,
  'records': asking({
    usage: `records [${filterUsage}] [--limit n] [--before …]`,
    about: 'list calls, newest first',
    command: 'records',
    options: [...filterOptions, 'limit', 'before'],
    ask: input => askPages('records', input, { rows: 'records', cursor: 'before' }),
    print: ({ records, next }) => pageLines(records as Fields[], next),
  }),
  'record': asking({
    usage: 'record <call id>',
    about: 'show a call in full: what it cost and why, its attempts, its timings',
    command: 'record',
    places: ['call'],
  }),
  'bodies': asking({
    usage: 'bodies <call id>',
    about: 'print the request body and the response body of a call, if they were stored',
    command: 'bodies',
    places: ['call'],
    print: ({ request, answer }) => [harmlessLines(String(request)), '', harmlessLines(String(answer))],
  }),
  'prices show': asking({
    usage: 'prices show [<provider/model>]',
    about: 'show the newest price of each model, or every version of one',
    command: 'prices-show',
    places: ['model?'],
    print: ({ prices }) => pageLines(prices as Fields[], null),
  }),
  'prices set': asking({
    usage: 'prices set <provider/model> <JSON or file>',
    about: 'set the price of a model; it replaces the price of the provider file',
    command: 'prices-set',
    places: ['model', 'price'],
    prepare: ({ price, model }) => ({ model, price: textOrFile(String(price)), author: 'cli' }),
  }),
  'prices withdraw': asking({
    usage: 'prices withdraw <provider/model>',
    about: 'remove the price that you set; the price of the provider file applies again',
    command: 'prices-withdraw',
    places: ['model'],
    prepare: ({ model }) => ({ model, author: 'cli' }),
  }),
  'prices backtest': asking({
    usage:
      'prices backtest [<provider/model>] [<price as JSON or file>] [--tier name --multiplier n] ' +
      '[--days 30] [--account …]',
    about:
      'calculate what past calls would have cost: with another price of their model, or with another multiplier of ' +
      'their tier (in thousandths)',
    command: 'prices-backtest',
    places: ['model?', 'price?'],
    options: ['tier', 'multiplier', 'days', 'account'],
    prepare: ({ price, ...input }) => (price === undefined ? input : { ...input, price: textOrFile(String(price)) }),
  }),
  'prices check': {
    usage: PRICES_CHECK,
    about: 'compare the prices of the provider files with public price data; exit code 1 if they differ',
    run: async args => {
      const { json } = onlyJson(args, PRICES_CHECK)
      const { checkInstalledPrices } = await import('../checks/prices.ts')
      process.exitCode = await checkInstalledPrices({ folders: readConfig(process.env).providerFolders, json }, say)
    },
  },
  'audit': asking({
    usage: 'audit [--progress]',
    about: 'check that balances, holds, charges and records agree; exit code 1 if they do not',
    command: 'audit',
    progress: () => ({ doing: 'reading the books' }),
    isBad: ({ findings }) => (findings as Fields[]).length > 0,
  }),
  'backup': asking({
    usage: 'backup <folder> [--progress]',
    about: 'copy all data to a new folder and audit the copy; works while Weir runs',
    command: 'backup',
    places: ['folder'],
    prepare: ({ folder }) => ({ folder: folderOf(folder, 'backup <folder>') }),
    progress: ({ folder }) => ({ doing: 'copying and auditing', more: () => writtenTo(String(folder)) }),
    isBad: ({ findings }) => (findings as Fields[]).length > 0,
  }),
  'restore': {
    usage: restoreUsage,
    about: 'replace the data with a backup; the old data is kept in a folder beside it; Weir must not be running',
    run: args => restore(args, say),
  },
}

function textOrFile(argument: string): string {
  if (argument.trimStart().startsWith('{')) return argument
  try {
    return readFileSync(argument, 'utf8')
  } catch (fault) {
    throw new Problem(`The price is neither JSON nor a file that can be read: ${(fault as Error).message}.`)
  }
}

/** Requests pages until there are enough rows. The gateway may return a short page if its filter matches few rows. */
async function askPages(command: string, input: Fields, names: { rows: string; cursor: string }): Promise<Fields> {
  const wanted = input.limit === undefined ? ROWS_DEFAULT : Number(input.limit)
  let answer = await ask(command, input)
  const rows = [...(answer[names.rows] as Fields[])]
  while (answer.next !== null && rows.length < wanted) {
    const page = { ...input, limit: String(wanted - rows.length), [names.cursor]: answer.next }
    answer = await ask(command, page)
    rows.push(...(answer[names.rows] as Fields[]))
  }
  return { [names.rows]: rows, next: answer.next }
}

function pageLines(rows: readonly Fields[], next: unknown): readonly string[] {
  if (rows.length === 0) return ['nothing found']
  return [...tableLines(rows), ...(next === null ? [] : ['', `more rows from ${String(next)}`])]
}
