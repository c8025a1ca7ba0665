// Commands about call records: list, show, export, delete.

import { once } from 'node:events'
import type { WriteStream } from 'node:fs'
import { createWriteStream } from 'node:fs'
import type { NanosPerMillion } from '../../base/money/money.ts'
import { bill, findMultiplier, parseUsd } from '../../base/money/money.ts'
import { exportFormats } from '../../base/text/export-lines.ts'
import { outcomes } from '../../billing/who-pays.ts'
import type { CommandFields } from '../connect.ts'
import {
  findAccount,
  findKey,
  ON_OFF,
  optionally,
  parseDay,
  parseSwitch,
  parseTime,
  text,
  UNKNOWN_CALL,
} from '../input.ts'
import { fieldLines, harmlessLines, listLines } from '../print.ts'
import { Problem } from '../problem.ts'
import { openProgress } from '../progress.ts'
import { withGateway } from '../remote.ts'
import type { Send } from '../send.ts'
import { buildSend, getPages, queryOf } from '../send.ts'
import type { CliCommand } from './command.ts'
import { defineCommand, defineOwnCommand, namesOf } from './command.ts'
import { callId } from './money.ts'

const DAY_MS = 86_400_000

/** Options that filter records. */
const filterOptions = [
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
const filterUsage =
  '--account|--key|--model|--provider|--channel|--outcome|--error|--status|--user|--min-cost|--max-cost …] ' +
  '[--streamed on|off] [--day YYYY-MM-DD] [--since|--until time'
const fields = { costMin: '--min-cost', costMax: '--max-cost', endUser: '--user', from: '--since', before: '--until' }

/** The filter of a search, an export or a deletion. */
async function filterOf(input: CommandFields, send: Send): Promise<CommandFields> {
  const { account, key, user, day, since, until, streamed, 'min-cost': costMin, 'max-cost': costMax, ...others } = input
  return {
    ...others,
    account: await optionally(account, given => findAccount(send, given)),
    key: await optionally(key, given => findKey(send, given)),
    endUser: user,
    streamed: parseSwitch(streamed, '--streamed'),
    costMin,
    costMax,
    ...rangeOf({ day, since, until }),
  }
}

/** A day lasts from its midnight to the next. */
function rangeOf({ day, since, until }: CommandFields): CommandFields {
  const from = since === undefined ? undefined : parseTime(since, '--since must be')
  const before = until === undefined ? undefined : parseTime(until, '--until must be')
  if (day === undefined) return { from, before }
  const first = parseDay(day, '--day')
  return { from: first, before: new Date(Date.parse(first) + DAY_MS).toISOString() }
}

const columns = [
  'time',
  'id',
  'account',
  'key',
  'model',
  'status',
  'outcome',
  'inputTokens',
  'outputTokens',
  'cost',
  'durationMs',
  'loss',
]
const deletionColumns = ['id', 'account', 'key', 'ofEndUser', 'from', 'before', 'deleted', 'made', 'done']

const values = { outcome: Object.keys(outcomes), streamed: ON_OFF }

const exporting = {
  usage: `records export [${filterUsage}] [--format ndjson|csv] [--out file] [--progress]`,
  description: 'export all matching calls as NDJSON or CSV, to standard output or to a file',
  options: [...filterOptions, 'format', 'out'],
  flags: ['progress'],
  values: { ...values, format: exportFormats },
  fields,
}

export const recordRows: Readonly<Record<string, CliCommand>> = {
  'records export': defineOwnCommand(exporting, exportRecords),
  'records delete': defineCommand({
    unknown: 'Unknown account, or the key belongs to another account.',
    usage: 'records delete [--account|--key|--user …] [--day YYYY-MM-DD] [--since|--until time]',
    description: 'delete records and bodies in the background; money and statistics do not change',
    options: ['account', 'key', 'user', 'day', 'since', 'until'],
    fields,
    ask: async (input, send) => send('POST', '/api/web/records/deletions', await filterOf(input, send)),
  }),
  'records deletions': defineCommand({
    usage: 'records deletions [--limit n] [--after cursor]',
    description: 'list the deletions and their progress',
    options: ['limit', 'after'],
    ask: (query, send) => getPages(send, '/api/web/records/deletions', query),
    print: answer => listLines(answer, 'no deletions', deletionColumns),
  }),
  'records': defineCommand({
    usage: `records [${filterUsage}] [--limit n] [--after cursor]`,
    description: 'list calls of the last 90 days, or of 90 other days, newest first',
    options: [...filterOptions, 'limit', 'after'],
    values,
    fields,
    ask: async (input, send) => getPages(send, '/api/web/records', await filterOf(input, send)),
    print: answer => listLines(answer, 'no calls', columns),
  }),
  'record': defineCommand({
    unknown: UNKNOWN_CALL,
    usage: 'record <call id>',
    description: 'show a call in full: what it cost and why, its attempts, its timings',
    positionals: ['call'],
    ask: async ({ call }, send) => send.get(`/api/web/records/${callId(call)}`),
    print: recordLines,
  }),
  'bodies': defineCommand({
    unknown: 'No bodies are stored for this call.',
    usage: 'bodies <call id>',
    description: 'print the request body and the response body of a call, if they were stored',
    positionals: ['call'],
    ask: async ({ call }, send) => send.get(`/api/web/records/${callId(call)}/bodies`),
    print: ({ request, answer }) => [bodyText(request), '', bodyText(answer)],
  }),
}

export function recordLines(record: CommandFields): readonly string[] {
  const multiplier = multiplierOf(record)
  return fieldLines(multiplier === undefined ? record : { ...record, multiplier })
}

/** The multiplier of the tier, if it is not 1 and only one follows from the lines and the cost. */
function multiplierOf(record: CommandFields): number | undefined {
  const { lines, cost } = record as {
    readonly lines: readonly { count: number; rate: string }[]
    readonly cost: string
  }
  const rated = lines.map(({ count, rate }) => ({ count, rate: (parseUsd(rate) ?? 0n) as NanosPerMillion }))
  const charged = parseUsd(cost) ?? 0n
  if (charged === bill(rated)) return undefined
  const perMille = findMultiplier(rated, charged)
  return typeof perMille === 'bigint' ? Number(perMille) / 1_000 : undefined
}

function bodyText(body: unknown): string {
  const { text: whole, truncated } = body as { readonly text: string; readonly truncated: boolean }
  return harmlessLines(whole) + (truncated ? '\n[cut here]' : '')
}

async function exportRecords({ out, progress, json: _json, ...input }: CommandFields): Promise<void> {
  // In a terminal, the records themselves show the progress.
  const isShown = out === undefined && process.stdout.isTTY === true
  const during = openProgress(progress === true)
  let bytes = 0
  await withGateway({}, async request => {
    const send = buildSend(request, { names: namesOf(exporting) })
    const query = queryOf(await filterOf(input, send))
    const answer = await send.open({ method: 'GET', path: '/api/web/records/export', query })
    const target = out === undefined ? process.stdout : await openFile(text(out))
    const copy = async (): Promise<void> => {
      for await (const chunk of readWhole(answer)) {
        await write(target, chunk)
        bytes += chunk.length
      }
    }
    const step = { label: 'exporting', detail: () => `${Math.round(bytes / 1024)} KiB` }
    await (isShown ? copy() : during(step, copy))
    if (target !== process.stdout) await new Promise<void>(resolve => target.end(resolve))
  })
}

async function openFile(path: string): Promise<WriteStream> {
  const target = createWriteStream(path, { mode: 0o600 })
  await once(target, 'open').catch((fault: Error) => {
    throw unwritable(fault)
  })
  return target
}

const unwritable = ({ message }: Error): Problem => new Problem(`The file cannot be written: ${message}.`)

/** An export that the gateway ends early must not look complete. */
async function* readWhole(answer: Response): AsyncIterable<Uint8Array> {
  const reader = answer.body!.getReader()
  for (;;) {
    const part = await reader.read().catch(() => {
      throw new Problem('The export broke off before its end. Try it again.')
    })
    if (part.done) return
    yield part.value
  }
}

/** Waits until the bytes are written, so that the export does not run ahead of a slow reader. */
function write(target: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (fault: Error): void => reject(unwritable(fault))
    target.once('error', refuse)
    target.write(bytes, () => {
      target.removeListener('error', refuse)
      resolve()
    })
  })
}
