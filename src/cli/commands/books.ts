// Commands about the books: records, statements, prices, audit, backup, restore.

import { readFileSync } from 'node:fs'
import { readConfig } from '../../config.ts'
import type { CommandFields } from '../connect.ts'
import { Problem, resolveFolder, sendCommand } from '../connect.ts'
import { harmlessLines, tableLines } from '../print.ts'
import { writtenSize } from '../progress.ts'
import { restore, restoreUsage } from '../restore.ts'
import type { CliCommand } from './command.ts'
import { defineCommand, printLine, readJsonFlag } from './command.ts'
import { filterOptions, filterUsage, recordRows } from './records.ts'

const ROWS_DEFAULT = 50
const PRICES_CHECK = 'prices check'

export const bookRows: Readonly<Record<string, CliCommand>> = {
  'statement': defineCommand({
    usage: 'statement <account or key> [--limit n] [--next …]',
    description: 'list the transfers of an account, newest first',
    command: 'statement',
    positionals: ['account'],
    options: ['limit', 'next'],
    send: input => askPages('statement', input, { rows: 'transfers', cursor: 'next' }),
    print: ({ transfers, next }) => pageLines(transfers as CommandFields[], next),
  }),
  ...recordRows,
  'records': defineCommand({
    usage: `records [${filterUsage}] [--limit n] [--before …]`,
    description: 'list calls, newest first',
    command: 'records',
    options: [...filterOptions, 'limit', 'before'],
    send: input => askPages('records', input, { rows: 'records', cursor: 'before' }),
    print: ({ records, next }) => pageLines(records as CommandFields[], next),
  }),
  'record': defineCommand({
    usage: 'record <call id>',
    description: 'show a call in full: what it cost and why, its attempts, its timings',
    command: 'record',
    positionals: ['call'],
  }),
  'bodies': defineCommand({
    usage: 'bodies <call id>',
    description: 'print the request body and the response body of a call, if they were stored',
    command: 'bodies',
    positionals: ['call'],
    print: ({ request, answer }) => [harmlessLines(String(request)), '', harmlessLines(String(answer))],
  }),
  'prices show': defineCommand({
    usage: 'prices show [<provider/model>]',
    description: 'show the newest price of each model, or every version of one',
    command: 'prices-show',
    positionals: ['model?'],
    print: ({ prices }) => pageLines(prices as CommandFields[], null),
  }),
  'prices set': defineCommand({
    usage: 'prices set <provider/model> <JSON or file>',
    description: 'set the price of a model; it replaces the price of the provider file',
    command: 'prices-set',
    positionals: ['model', 'price'],
    prepare: ({ price, model }) => ({ model, price: textOrFile(String(price)), author: 'cli' }),
  }),
  'prices withdraw': defineCommand({
    usage: 'prices withdraw <provider/model>',
    description: 'remove the price that you set; the price of the provider file applies again',
    command: 'prices-withdraw',
    positionals: ['model'],
    prepare: ({ model }) => ({ model, author: 'cli' }),
  }),
  'prices backtest': defineCommand({
    usage:
      'prices backtest [<provider/model>] [<price as JSON or file>] [--tier name --multiplier n] ' +
      '[--days 30] [--account …]',
    description:
      'calculate what past calls would have cost: with another price of their model, or with another multiplier of ' +
      'their tier (in thousandths)',
    command: 'prices-backtest',
    positionals: ['model?', 'price?'],
    options: ['tier', 'multiplier', 'days', 'account'],
    prepare: ({ price, ...input }) => (price === undefined ? input : { ...input, price: textOrFile(String(price)) }),
  }),
  'prices check': {
    usage: PRICES_CHECK,
    description: 'compare the prices of the provider files with public price data; exit code 1 if they differ',
    run: async args => {
      const { json } = readJsonFlag(args, PRICES_CHECK)
      const { checkInstalledPrices } = await import('../checks/prices.ts')
      process.exitCode = await checkInstalledPrices(
        { folders: readConfig(process.env).providerFolders, json },
        printLine,
      )
    },
  },
  'audit': defineCommand({
    usage: 'audit [--progress]',
    description: 'check that balances, holds, charges and records agree; exit code 1 if they do not',
    command: 'audit',
    progress: () => ({ label: 'reading the books' }),
    isFailure: ({ findings }) => (findings as CommandFields[]).length > 0,
  }),
  'backup': defineCommand({
    usage: 'backup <folder> [--progress]',
    description: 'copy all data to a new folder and audit the copy; works while Weir runs',
    command: 'backup',
    positionals: ['folder'],
    prepare: ({ folder }) => ({ folder: resolveFolder(folder, 'backup <folder>') }),
    progress: ({ folder }) => ({ label: 'copying and auditing', detail: () => writtenSize(String(folder)) }),
    isFailure: ({ findings }) => (findings as CommandFields[]).length > 0,
  }),
  'restore': {
    usage: restoreUsage,
    description: 'replace the data with a backup; the old data is kept in a folder beside it; Weir must not be running',
    run: args => restore(args, printLine),
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
async function askPages(
  command: string,
  input: CommandFields,
  names: { rows: string; cursor: string },
): Promise<CommandFields> {
  const wanted = input.limit === undefined ? ROWS_DEFAULT : Number(input.limit)
  let answer = await sendCommand(command, input)
  const rows = [...(answer[names.rows] as CommandFields[])]
  while (answer.next !== null && rows.length < wanted) {
    const page = { ...input, limit: String(wanted - rows.length), [names.cursor]: answer.next }
    answer = await sendCommand(command, page)
    rows.push(...(answer[names.rows] as CommandFields[]))
  }
  return { [names.rows]: rows, next: answer.next }
}

function pageLines(rows: readonly CommandFields[], next: unknown): readonly string[] {
  if (rows.length === 0) return ['nothing found']
  return [...tableLines(rows), ...(next === null ? [] : ['', `more rows from ${String(next)}`])]
}
