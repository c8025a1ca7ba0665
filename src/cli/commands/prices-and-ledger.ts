// Commands about prices and about the whole ledger: audit, backup, restore.

import { readFileSync } from 'node:fs'
import { bounds } from '../../base/bounds.ts'
import type { CommandFields } from '../connect.ts'
import { daysAhead, findAccount, optionally, parseDays, parseNumber, resolveFolder, text } from '../input.ts'
import { listLines } from '../print.ts'
import { Problem, UsageProblem } from '../problem.ts'
import { writtenSize } from '../progress.ts'
import { getAll } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand, defineMachineCommand, defineOwnCommand, printLine } from './command.ts'

const BACKTEST_DAYS = 30
/** They are counted from now, and the request arrives a moment later. */
const BACKTEST_DAYS_MAX = bounds.backtestDaysMax - 1

export const bookRows: Readonly<Record<string, CliCommand>> = {
  'prices show': defineCommand({
    usage: 'prices show [<provider/model>]',
    description: 'show the current price of each model, or every version of one',
    positionals: ['model?'],
    async ask({ model }, send) {
      if (model === undefined) return await getAll(send, '/api/web/prices')
      const versions = await getAll(send, `/api/web/prices/history/${modelPath(model)}`)
      if (versions.data.length === 0) throw new Problem('This model has no price. See: weir prices show')
      return versions
    },
    print: (answer, { model }) =>
      listLines(
        answer,
        'no prices',
        model === undefined ? priceColumns : ['version', 'origin', 'author', 'made', 'price'],
      ),
  }),
  'prices set': defineCommand({
    usage: 'prices set <provider/model or provider/*> <JSON or file>',
    description:
      'set the price of a model; it replaces the price of the provider file. With * in the model: the price of all ' +
      'models that match and have none of their own',
    positionals: ['model', 'price'],
    ask: async ({ model, price }, send) => send('PUT', pricePath(model), { price: readPrice(price) }),
  }),
  'prices withdraw': defineCommand({
    unknown: 'You have set no price for this model.',
    usage: 'prices withdraw <provider/model>',
    description: 'remove the price that you set; the price of the provider file applies again',
    positionals: ['model'],
    ask: async ({ model }, send) => send('DELETE', pricePath(model)),
    print: () => ['Your price is removed.'],
  }),
  'prices backtest': defineCommand({
    usage:
      'prices backtest [<provider/model>] [<price as JSON or file>] [--tier name --multiplier n] ' +
      '[--days 30] [--account …]',
    description:
      'calculate what past calls would have cost: with another price of their model, or with another multiplier of ' +
      'their tier (in thousandths)',
    positionals: ['model?', 'price?'],
    options: ['tier', 'multiplier', 'days', 'account'],
    fields: { pricePerMille: '--multiplier', from: '--days' },
    async ask({ model, price, tier, multiplier, days, account }, send) {
      return await send('POST', '/api/web/prices/backtest', {
        from: daysAhead(-(parseDays(days, '--days', BACKTEST_DAYS_MAX) ?? BACKTEST_DAYS)),
        model,
        price: price === undefined ? undefined : readPrice(price),
        tier,
        pricePerMille: parseNumber(multiplier, '--multiplier'),
        account: await optionally(account, given => findAccount(send, given)),
      })
    },
  }),
  'prices check': defineOwnCommand(
    {
      usage: 'prices check',
      description: 'compare the prices of the provider files with public price data; exit code 1 if they differ',
    },
    async ({ json }) => {
      const { checkInstalledPrices } = await import('../checks/prices.ts')
      const { readConfig } = await import('../../config.ts')
      const folders = readConfig(process.env).providerFolders
      process.exitCode = await checkInstalledPrices({ folders, json: json === true }, printLine)
    },
  ),
  'audit': defineCommand({
    usage: 'audit [--progress]',
    description: 'check that balances, holds, charges and records agree; exit code 1 if they do not',
    ask: (_, send) => send.machine('audit'),
    progress: () => ({ label: 'reading the ledger' }),
    isFailure: ({ findings }) => (findings as CommandFields[]).length > 0,
  }),
  'backup': defineCommand({
    usage: 'backup <folder> [--progress]',
    description: 'copy all data to a new folder and audit the copy; works while Weir runs',
    positionals: ['folder'],
    prepare: ({ folder }) => ({ folder: resolveFolder(folder, 'backup <folder>') }),
    ask: (input, send) => send.machine('backup', input),
    progress: ({ folder }) => ({ label: 'copying and auditing', detail: () => writtenSize(String(folder)) }),
    isFailure: ({ findings }) => (findings as CommandFields[]).length > 0,
  }),
  'restore': defineMachineCommand(
    {
      usage: 'restore <backup folder> [--despite-findings] [--progress]',
      description:
        'replace the data with a backup; the old data is kept in a folder inside the data folder; Weir must not be running',
      positionals: ['folder'],
      flags: ['despite-findings', 'progress'],
    },
    async input => (await import('../restore.ts')).restore(input, printLine),
  ),
}

const priceColumns = ['model', 'origin', 'version', 'made', 'inUse', 'price']

const pricePath = (model: unknown): string => `/api/web/prices/${modelPath(model)}`

function modelPath(model: unknown): string {
  if (/^[^/]+\/./.test(text(model))) return text(model)
  throw new UsageProblem('The model must have the form <provider>/<model>.')
}

/** A price as JSON, or a file that contains it. */
function readPrice(argument: unknown): unknown {
  const json = text(argument).trimStart().startsWith('{') ? text(argument) : readPriceFile(text(argument))
  try {
    return JSON.parse(json)
  } catch {
    throw new Problem('The price is not valid JSON.')
  }
}

function readPriceFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (fault) {
    throw new Problem(`The price is neither JSON nor a file that can be read: ${(fault as Error).message}.`)
  }
}
