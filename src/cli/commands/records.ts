// Commands that export and delete records.

import { createWriteStream } from 'node:fs'
import { parseArgs } from 'node:util'
import type { CommandFields } from '../connect.ts'
import { Problem, sendCommand, UsageProblem } from '../connect.ts'
import { tableLines } from '../print.ts'
import { openProgress } from '../progress.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

/** Options that filter records. */
export const filterOptions = [
  'account',
  'key',
  'model',
  'provider',
  'channel',
  'outcome',
  'error',
  'status',
  'user',
  'streamed',
  'min-cost',
  'max-cost',
  'day',
  'since',
  'until',
]
export const filterUsage =
  '--account|--key|--model|--provider|--channel|--outcome|--error|--status|--user|--min-cost|--max-cost …] ' +
  '[--streamed on|off] [--day YYYY-MM-DD] [--since|--until time'

const EXPORT = `records export [${filterUsage}] [--format ndjson|csv] [--out file] [--progress]`

export const recordRows: Readonly<Record<string, CliCommand>> = {
  'records export': {
    usage: EXPORT,
    description: 'export all matching calls as NDJSON or CSV, to standard output or to a file',
    run: exportRecords,
  },
  'records delete': defineCommand({
    usage: 'records delete [--account|--key|--user …] [--day YYYY-MM-DD] [--since|--until time]',
    description: 'delete records and bodies in the background; money and statistics do not change',
    command: 'records-delete',
    options: ['account', 'key', 'user', 'day', 'since', 'until'],
  }),
  'records deletions': defineCommand({
    usage: 'records deletions',
    description: 'list the deletions and their progress',
    command: 'records-deletions',
    print: ({ deletions }) =>
      (deletions as CommandFields[]).length === 0 ? ['nothing found'] : tableLines(deletions as CommandFields[]),
  }),
}

async function exportRecords(args: readonly string[]): Promise<void> {
  const named = [...filterOptions, 'format', 'out'].map(name => [name, { type: 'string' }] as const)
  const options = { ...Object.fromEntries(named), progress: { type: 'boolean' }, json: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  if (positionals.length > 0) throw new UsageProblem(`Usage: weir ${EXPORT}`)
  const { out, progress, json: _json, ...input } = values as CommandFields
  const target = out === undefined ? process.stdout : createWriteStream(String(out), { mode: 0o600 })
  const during = openProgress(progress === true)
  let rows = 0
  await during({ label: 'exporting', detail: () => `${rows} records` }, async () => {
    for (let next: unknown; next !== null; ) {
      const slice = await sendCommand('records-export', next === undefined ? input : { ...input, next })
      await write(target, String(slice.text))
      rows += Number(slice.rows)
      next = slice.next
    }
  })
  if (target !== process.stdout) await new Promise<void>(resolve => target.end(resolve))
}

/** Waits until the text is written, so that the export does not run ahead of a slow reader. */
function write(target: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (fault: Error): void => reject(new Problem(`The file cannot be written: ${fault.message}.`))
    target.once('error', refuse)
    target.write(text, () => {
      target.removeListener('error', refuse)
      resolve()
    })
  })
}
