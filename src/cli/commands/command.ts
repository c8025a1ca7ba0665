// A command is a row: how it is written, what it is for, and what it asks the gateway. Most need no code of their own.

import { parseArgs } from 'node:util'
import { nearest } from '../../base/text/nearest-name.ts'
import type { Wanted } from '../checks/problem.ts'
import type { Fields } from '../connect.ts'
import { ask, UsageProblem } from '../connect.ts'
import { fieldLines, harmlessLines, jsonText } from '../print.ts'
import type { Step } from '../progress.ts'
import { openProgress } from '../progress.ts'

export interface Row {
  readonly usage: string
  readonly about: string
  run(args: readonly string[]): Promise<void>
}

export interface AskingRow {
  readonly usage: string
  readonly about: string
  readonly command: string
  /** The names of what stands after the command; with `?` at the end it may be left out, with `…` it is a list. */
  readonly places?: readonly string[]
  readonly options?: readonly string[]
  /** Options without a value. */
  readonly flags?: readonly string[]
  /** Changes what was written before it is asked. */
  prepare?(input: Fields): Fields | Promise<Fields>
  /** Asks for more than one answer where one page is not enough. */
  ask?(input: Fields): Promise<Fields>
  /** Only this is printed, unless as JSON. */
  print?(answer: Fields): readonly string[]
  /** It may take long: what is told meanwhile. */
  progress?(input: Fields): Step
  /** Whether the answer is bad news: then the command ends with 1. */
  isBad?(answer: Fields): boolean
}

export const say = (line: string): void => void process.stdout.write(`${line}\n`)

export function asking(row: AskingRow): Row {
  return {
    usage: row.usage,
    about: row.about,
    async run(args) {
      const { json, progress: isWanted, ...written } = readArgs(row, args)
      const input = row.prepare === undefined ? written : await row.prepare(written)
      const run = (): Promise<Fields> => (row.ask ?? (asked => ask(row.command, asked)))(input)
      const step = row.progress?.(input)
      const answer = await (step === undefined ? run() : openProgress(isWanted === true)(step, run))
      if (json === true) say(jsonText(answer))
      else tell(answer, row.print ?? fieldLines)
      if (row.isBad?.(answer)) process.exitCode = 1
    },
  }
}

/** A warning is for whoever reads, and not for what reads on. */
function tell({ warning, ...answer }: Fields, print: (answer: Fields) => readonly string[]): void {
  for (const line of print(answer)) say(line)
  if (typeof warning === 'string') process.stderr.write(`weir: warning: ${harmlessLines(warning)}\n`)
}

/** For a command that takes nothing: what is written behind it is a mistake, and not to be passed over. */
export function alone(usage: string, run: () => Promise<void>): Row['run'] {
  return async args => {
    if (args.length > 0) throw new UsageProblem(`Usage: weir ${usage}`)
    await run()
  }
}

/** For one that takes nothing but the wish for JSON. */
export function onlyJson(args: readonly string[], usage: string): Wanted {
  if (args.some(arg => arg !== '--json')) throw new UsageProblem(`Usage: weir ${usage}`)
  return { json: args.length > 0 }
}

/** Stands before a negative amount, which would else be taken for an option. */
const GUARD = '\u0000'

/** A value is written with `=` or behind its option, so that one that begins with two dashes is a mistake, too. */
function unknownOption(name: string, known: readonly string[], usage: string): UsageProblem {
  const near = nearest(name, known)
  const told = /^[\w-]{1,40}$/.test(name) ? `--${name}` : 'that is written so'
  const hint = near === undefined ? `Usage: weir ${usage}` : `Did you mean --${near}? Usage: weir ${usage}`
  return new UsageProblem(`There is no option ${told}. ${hint}`)
}

function readArgs(row: AskingRow, args: readonly string[]): Fields {
  const { usage, places = [], options = [], flags = [], progress } = row
  const guarded = args.map(arg => (/^-[\d.]/.test(arg) ? GUARD + arg : arg))
  const known = ['json', 'help', ...(progress ? ['progress'] : []), ...options, ...flags]
  const end = guarded.indexOf('--')
  const written = (end < 0 ? guarded : guarded.slice(0, end)).flatMap(arg => /^--([^=]+)/.exec(arg)?.[1] ?? [])
  const strange = written.find(name => !known.includes(name))
  if (strange !== undefined) throw unknownOption(strange, known, usage)
  const { values, positionals } = parseArgs({
    args: guarded,
    allowPositionals: true,
    options: {
      json: { type: 'boolean' },
      ...(progress && { progress: { type: 'boolean' } as const }),
      ...Object.fromEntries(options.map(name => [name, { type: 'string' }] as const)),
      ...Object.fromEntries(flags.map(name => [name, { type: 'boolean' }] as const)),
    },
  })
  const needed = places.filter(name => !name.endsWith('?')).length
  const list = places.at(-1)?.endsWith('…')
  const isFit = positionals.length >= needed && (list || positionals.length <= places.length)
  if (!isFit) throw new UsageProblem(`Usage: weir ${usage}`)
  const bare = (value: unknown): unknown => (typeof value === 'string' ? value.replace(GUARD, '') : value)
  const input: Fields = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, bare(value)]))
  const alone = list ? places.slice(0, -1) : places
  positionals.slice(0, alone.length).forEach((value, at) => (input[alone[at]!.replace('?', '')] = bare(value)))
  if (list) input[places.at(-1)!.slice(0, -1)] = positionals.slice(alone.length).map(bare)
  return input
}
