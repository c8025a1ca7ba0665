// weir help: lists all commands, one per line, or explains some of them.

import { nearestName } from '../base/text/nearest-name.ts'
import type { CliCommand } from './commands/command.ts'
import { cliCommands, commandGroups } from './commands/commands.ts'
import { UsageProblem } from './problem.ts'

const COLUMNS = 92

const firstWord = (name: string): string => name.split(' ')[0]!

/** The first part of a description, before any details. */
const shortDescription = (about: string): string => about.split(/[;:(]/)[0]!.trim()

/** The commands that begin with a word. The command that is the word alone comes first. */
export const commandsOf = (word: string): readonly (readonly [string, CliCommand])[] => {
  const matching = Object.entries(cliCommands).filter(([name]) => firstWord(name) === word)
  return [...matching.filter(([name]) => name === word), ...matching.filter(([name]) => name !== word)]
}

export function helpLines(): readonly string[] {
  const width = Math.max(...Object.keys(cliCommands).map(name => name.length)) + 2
  const lists = commandGroups.flatMap(([title, words]) => {
    const commands = words.flatMap(commandsOf)
    return [
      '',
      title,
      ...commands.map(([name, { description }]) => `  ${name.padEnd(width)}${shortDescription(description)}`),
    ]
  })
  return [
    'Usage: weir <command>',
    ...lists,
    '',
    'Details of a command: weir help <command>, such as weir help keys. Commands that print an answer take --json.',
    'Exit codes: 0 success; 1 the command failed or found a problem; 2 wrong usage.',
    'Settings come from the environment; .env.example lists them.',
  ]
}

/** Explains one command, or all commands that begin with these words. */
export function describeCommands(words: readonly string[]): readonly string[] {
  const prefix = words.join(' ')
  const found = Object.entries(cliCommands).filter(([name]) => name === prefix || name.startsWith(`${prefix} `))
  if (found.length === 0) throw unknownCommandError(words)
  return found.flatMap(([, row]) => usageLines(row))
}

export const usageLines = ({ usage, description }: CliCommand): readonly string[] => [
  ...wrapped(`weir ${usage}`, / (?=\[)/).map((line, at) => (at === 0 ? line : `        ${line}`)),
  ...wrapped(description, / /).map(line => `    ${line}`),
]

/** Breaks a text into lines that fit in a terminal, only where `separator` matches. */
function wrapped(text: string, separator: RegExp): readonly string[] {
  const lines: string[] = []
  for (const part of text.split(separator)) {
    const longer = `${lines.at(-1) ?? ''} ${part}`
    if (lines.length === 0 || longer.length > COLUMNS) lines.push(part)
    else lines[lines.length - 1] = longer
  }
  return lines
}

/** The error for words that are not a command. It suggests a command with a similar name. */
export function unknownCommandError(argv: readonly string[]): UsageProblem {
  const [word = '', ...others] = argv
  const names = Object.keys(cliCommands)
  const isFirstWord = names.some(name => firstWord(name) === word)
  if (isFirstWord && others.length === 0) {
    return new UsageProblem(`"weir ${word}" needs a second word. See: weir help ${word}`)
  }
  const second = others[0] !== undefined && /^[a-z-]{1,20}$/.test(others[0]) ? others[0] : undefined
  const pair =
    second === undefined
      ? undefined
      : nearestName(
          `${word} ${second}`,
          names.filter(name => name.includes(' ')),
        )
  const isWord = /^[a-z-]{1,20}$/.test(word)
  const single = isFirstWord ? undefined : nearestName(word, [...names, ...names.map(firstWord)])
  const near = isWord ? (pair ?? single) : undefined
  if (near !== undefined) {
    const typed = pair === undefined ? word : `${word} ${second}`
    const help = `See: weir help ${firstWord(near)}`
    return new UsageProblem(`Unknown command "${typed}". Did you mean: weir ${near}? ${help}`)
  }
  if (isFirstWord && second !== undefined) {
    const seconds = names.filter(name => firstWord(name) === word).map(name => name.slice(word.length + 1))
    return new UsageProblem(`Unknown command "${word} ${second}". Commands of "${word}": ${seconds.join(', ')}.`)
  }
  // Text that does not look like a command may be a secret, such as a key, so the message does not repeat it.
  const shown = isWord ? `Unknown command "${word}"` : 'Unknown command'
  const hint = others.length > 0 ? ', or wrong arguments' : ''
  return new UsageProblem(`${shown}${hint}. See: weir help${isFirstWord ? ` ${word}` : ''}`)
}
