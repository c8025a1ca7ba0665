// Defines what a CLI command is: its usage, its description, and the requests that it sends to the gateway.

import { parseArgs } from 'node:util'
import { nearestName } from '../../base/text/nearest-name.ts'
import type { ControlHandler } from '../../http/server/control-socket.ts'
import type { CommandFields, ConnectOptions } from '../connect.ts'
import { splitList } from '../input.ts'
import { fieldLines, harmlessLines, jsonText } from '../print.ts'
import { PartialFailure, UsageProblem } from '../problem.ts'
import type { ProgressStep } from '../progress.ts'
import { openProgress } from '../progress.ts'
import { refuseRemote, withGateway } from '../remote.ts'
import type { Send } from '../send.ts'
import { buildSend } from '../send.ts'

export interface CliCommand extends CommandArguments {
  readonly description: string
  run(args: readonly string[]): Promise<void>
  /** Sends the requests of the command for arguments that were read already. */
  ask?(input: CommandFields, request: ControlHandler): Promise<CommandFields>
}

/** The arguments of a command. */
export interface CommandArguments {
  readonly usage: string
  /** The names of the positional arguments. A `?` at the end: optional. A `…` at the end: a list. */
  readonly positionals?: readonly string[]
  readonly options?: readonly string[]
  /** Options without a value. */
  readonly flags?: readonly string[]
  /** The options that the command needs. */
  readonly required?: readonly string[]
  /** The letters of options that have a short form, such as `-f`. */
  readonly shorts?: Readonly<Record<string, string>>
  /** The only words that an option or a positional argument takes: one of them, or several with commas between. */
  readonly values?: Readonly<Record<string, readonly string[]>>
  /** False: the command prints no answer, so it does not take --json. */
  readonly hasJson?: boolean
  /** What the user types for fields of the requests that have other names than their options. */
  readonly fields?: Readonly<Record<string, string>>
  /** For commands that may take long: the progress to show meanwhile. */
  progress?(input: CommandFields): ProgressStep
}

export interface CommandDefinition extends CommandArguments {
  readonly description: string
  /** The sentence for an id or a name that does not exist. */
  readonly unknown?: string
  /** Adds what is read from the terminal or from standard input. */
  prepare?(input: CommandFields): CommandFields | Promise<CommandFields>
  /**
   * Sends the requests of the command and returns the answer to print. `say` prints lines before that; undefined if the
   * answer is printed as JSON.
   */
  ask(input: CommandFields, send: Send, say?: SayLines): Promise<CommandFields>
  /** The lines to print, unless the user wants JSON. */
  print?(answer: CommandFields, input: CommandFields): readonly string[]
  /** True if the answer means a failure. Then the exit code is 1. */
  isFailure?(answer: CommandFields): boolean
  /** How the data may be opened if no gateway runs. */
  connects?(input: CommandFields): ConnectOptions
}

/** Prints lines for people at once. */
export type SayLines = (lines: readonly string[]) => void

export const printLine = (line: string): void => void process.stdout.write(`${line}\n`)

const sayLines: SayLines = lines => lines.forEach(printLine)

export function defineCommand(row: CommandDefinition): CliCommand {
  const texts = { names: namesOf(row), unknown: row.unknown }
  const ask = (input: CommandFields, request: ControlHandler, say?: SayLines): Promise<CommandFields> =>
    row.ask(input, buildSend(request, texts), say)
  return {
    ...row,
    ask,
    async run(args) {
      const { json, progress: isProgressWanted, ...given } = readArgs(row, args)
      const input = row.prepare === undefined ? given : await row.prepare(given)
      const say = json === true ? undefined : sayLines
      const run = (): Promise<CommandFields> =>
        withGateway(row.connects?.(input) ?? {}, request => ask(input, request, say))
      const step = row.progress?.(input)
      const answering = step === undefined ? run() : openProgress(isProgressWanted === true)(step, run)
      const answer = await answering.catch((fault: unknown) => {
        if (json === true && fault instanceof PartialFailure) printLine(jsonText(fault.answer))
        throw fault
      })
      if (json === true) printLine(jsonText(answer))
      else printAnswer(answer, shown => (row.print ?? fieldLines)(shown, input))
      if (row.isFailure?.(answer)) process.exitCode = 1
    },
  }
}

/** What the user typed for each field of a request: `--credit-limit` for `creditLimit`, `<amount>` for an argument. */
export function namesOf({
  positionals = [],
  options = [],
  fields = {},
}: CommandArguments): Readonly<Record<string, string>> {
  const camel = (option: string): string => option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return {
    ...Object.fromEntries(options.map(option => [camel(option), `--${option}`])),
    ...Object.fromEntries(positionals.map(name => name.replace(/[?…]$/, '')).map(name => [name, `<${name}>`])),
    ...fields,
  }
}

/** Warnings go to stderr, so that a program that reads stdout does not see them. */
function printAnswer(answer: CommandFields, print: (answer: CommandFields) => readonly string[]): void {
  const { warnings = [], ...shown } = answer
  for (const line of print(shown)) printLine(line)
  for (const text of warnings as readonly string[])
    process.stderr.write(`weir: warning: ${harmlessLines(String(text))}\n`)
}

/** Defines a command that does something else than send requests and print the answer. */
export const defineOwnCommand = (
  row: CommandArguments & Pick<CliCommand, 'description'>,
  run: (input: CommandFields) => void | Promise<void>,
): CliCommand => ({ ...row, run: async args => run(readArgs(row, args)) })

/** Defines a command that changes data of this machine. */
export const defineMachineCommand: typeof defineOwnCommand = (row, run) =>
  defineOwnCommand(row, input => {
    refuseRemote()
    return run(input)
  })

/** Put before a negative amount, which parseArgs would otherwise read as an option. */
const GUARD = '\u0000'

/** A value that begins with two dashes is refused, too: it can be written as --option=value. */
function unknownOption(typed: string, known: readonly string[], usage: string): UsageProblem {
  const near = nearestName(typed.replace(/^-+/, ''), known)
  // Text that does not look like an option may be a secret, so the message does not repeat it.
  const shown = /^--?[\w-]{1,40}$/.test(typed) ? `Unknown option ${typed}.` : 'Unknown option.'
  const hint = near === undefined ? `Usage: weir ${usage}` : `Did you mean --${near}? Usage: weir ${usage}`
  return new UsageProblem(`${shown} ${hint}`)
}

/** The error for what parseArgs refuses. Its own sentences are those of a library, and name no usage. */
function argumentProblem(fault: unknown, usage: string): unknown {
  const { code, message } = fault as { readonly code?: unknown; readonly message: string }
  if (typeof code !== 'string' || !code.startsWith('ERR_PARSE_ARGS')) return fault
  const option = /'(?:-\w, )?(--[\w-]+)/.exec(message)?.[1]
  if (option === undefined) return new UsageProblem(`Unknown option. Usage: weir ${usage}`)
  const problem = message.includes('does not take')
    ? `${option} takes no value.`
    : message.includes('ambiguous')
      ? `${option} needs a value. A value that begins with a dash is written as ${option}=-value.`
      : `${option} needs a value.`
  return new UsageProblem(`${problem} Usage: weir ${usage}`)
}

/** Whether an option is written with one dash. parseArgs would take each of its letters for an option. */
const isAfterOneDash = (arg: string, known: readonly string[]): boolean =>
  /^-[a-z]\w/i.test(arg) && nearestName(arg.slice(1), known) !== undefined

const shortOf = (short: string | undefined): { readonly short?: string } => (short === undefined ? {} : { short })

/** All options of a command, without those that every command has. */
export const optionsOf = ({ options = [], flags = [], hasJson = true, progress }: CommandArguments) => ({
  texts: options,
  flags: [...flags, ...(progress === undefined ? [] : ['progress']), ...(hasJson ? ['json'] : [])],
})

/** Refuses other words than those that an option or an argument takes. The message does not repeat what was typed. */
function checkValues({ values = {}, positionals = [] }: CommandArguments, input: CommandFields): void {
  for (const [name, allowed] of Object.entries(values)) {
    const wrong = splitList(input[name]).find(word => !allowed.includes(word))
    if (wrong === undefined) continue
    // A short word is near to many others: "no" must not become "on".
    const near = nearestName(wrong, allowed, Math.min(2, Math.floor((wrong.length - 1) / 2)))
    const place = positionals.some(one => one.replace(/[?…]$/, '') === name) ? `<${name}>` : `--${name}`
    const hint = near === undefined ? '' : ` Did you mean ${near}?`
    throw new UsageProblem(`${place} must be one of: ${allowed.join(', ')}.${hint}`)
  }
}

/**
 * A script with an empty variable must not lift a restriction, and of an option that is used twice all values but one
 * would be lost.
 */
function checkGiven(options: readonly (readonly [name: string, value: unknown])[], usage: string): void {
  const names = options.map(([name]) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) {
    const hint = 'Give it once; the values of a list are separated by commas.'
    throw new UsageProblem(`--${twice} is given more than once. ${hint} Usage: weir ${usage}`)
  }
  const [empty] = options.find(([, value]) => typeof value === 'string' && /^[\s,]*$/.test(value)) ?? []
  if (empty !== undefined) {
    throw new UsageProblem(
      `The value of --${empty} is empty. Leave --${empty} out, or give a value. Usage: weir ${usage}`,
    )
  }
}

function checkRequired({ usage, required = [] }: CommandArguments, input: CommandFields): void {
  const missing = required.find(name => (input[name] ?? '') === '')
  if (missing !== undefined) throw new UsageProblem(`--${missing} is missing. Usage: weir ${usage}`)
}

/** Refuses in sentences of ours what parseArgs refuses. */
function parseOptions(row: CommandArguments, args: readonly string[]) {
  const { shorts = {}, usage } = row
  const { texts, flags } = optionsOf(row)
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      tokens: true,
      options: {
        ...Object.fromEntries(texts.map(name => [name, { type: 'string', ...shortOf(shorts[name]) }] as const)),
        ...Object.fromEntries(flags.map(name => [name, { type: 'boolean' }] as const)),
      },
    })
  } catch (fault) {
    throw argumentProblem(fault, usage)
  }
}

function readArgs(row: CommandArguments, args: readonly string[]): CommandFields {
  const { usage, positionals: places = [] } = row
  const { texts, flags } = optionsOf(row)
  const guarded = args.map(arg => (/^-[\d.]/.test(arg) ? GUARD + arg : arg))
  const known = ['help', ...texts, ...flags]
  const end = guarded.indexOf('--')
  const words = end < 0 ? guarded : guarded.slice(0, end)
  const names = words.flatMap(arg => /^--?[a-z][^=]*|^--[^=]+/i.exec(arg)?.[0] ?? [])
  const unknown = names.find(name =>
    name.startsWith('--') ? !known.includes(name.slice(2)) : isAfterOneDash(name, known),
  )
  if (unknown !== undefined) throw unknownOption(unknown, known, usage)
  const { values, positionals, tokens } = parseOptions(row, guarded)
  const given = tokens.flatMap(token => (token.kind === 'option' ? [[token.name, token.value] as const] : []))
  checkGiven(
    given.filter(([name]) => texts.includes(name)),
    usage,
  )
  const needed = places.filter(name => !name.endsWith('?')).length
  const endsInList = places.at(-1)?.endsWith('…')
  const hasRightCount = positionals.length >= needed && (endsInList || positionals.length <= places.length)
  if (!hasRightCount) throw new UsageProblem(`Usage: weir ${usage}`)
  const emptyPlace =
    places[
      Math.min(
        positionals.findIndex(value => value.trim() === ''),
        places.length - 1,
      )
    ]
  if (emptyPlace !== undefined) {
    throw new UsageProblem(`<${emptyPlace.replace(/[?…]$/, '')}> is empty. Usage: weir ${usage}`)
  }
  const unguarded = (value: unknown): unknown => (typeof value === 'string' ? value.replace(GUARD, '') : value)
  const input: CommandFields = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, unguarded(value)]),
  )
  const single = endsInList ? places.slice(0, -1) : places
  positionals.slice(0, single.length).forEach((value, at) => (input[single[at]!.replace('?', '')] = unguarded(value)))
  if (endsInList) input[places.at(-1)!.slice(0, -1)] = positionals.slice(single.length).map(unguarded)
  checkRequired(row, input)
  checkValues(row, input)
  return input
}
