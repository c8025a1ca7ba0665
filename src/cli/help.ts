// weir help: all commands in a line each, or how some of them are written.

import { nearest } from '../base/text/nearest-name.ts'
import type { Row } from './commands/command.ts'
import { groups, rows } from './commands/commands.ts'
import { UsageProblem } from './connect.ts'

const COLUMNS = 92

const wordOf = (name: string): string => name.split(' ')[0]!

/** What a command is for, without what else there is to know of it. */
const briefly = (about: string): string => about.split(/[;:(]/)[0]!.trim()

/** Those of a word; the one that is the word alone comes first. */
const rowsOf = (word: string): readonly (readonly [string, Row])[] => {
  const own = Object.entries(rows).filter(([name]) => wordOf(name) === word)
  return [...own.filter(([name]) => name === word), ...own.filter(([name]) => name !== word)]
}

export function helpLines(): readonly string[] {
  const width = Math.max(...Object.keys(rows).map(name => name.length)) + 2
  const lists = groups.flatMap(([title, words]) => {
    const own = words.flatMap(rowsOf)
    return ['', title, ...own.map(([name, { about }]) => `  ${name.padEnd(width)}${briefly(about)}`)]
  })
  return [
    'weir <command>',
    ...lists,
    '',
    'How one is written: weir help <command>, such as weir help keys. Commands that answer take --json.',
    'A command ends with 0; with 1 if it could not be done or is bad news; with 2 if it is not written right.',
    'Settings come from the environment; .env.example lists them.',
  ]
}

/** Of one command, or of all that begin so. */
export function helpOn(words: readonly string[]): readonly string[] {
  const asked = words.join(' ')
  const found = Object.entries(rows).filter(([name]) => name === asked || name.startsWith(`${asked} `))
  if (found.length === 0) throw new UsageProblem('There is no such command. See: weir help')
  return found.flatMap(([, row]) => usageLines(row))
}

export const usageLines = ({ usage, about }: Row): readonly string[] => [
  ...wrapped(`weir ${usage}`, / (?=\[)/).map((line, at) => (at === 0 ? line : `        ${line}`)),
  ...wrapped(about, / /).map(line => `    ${line}`),
]

/** Lines that a terminal has room for, broken only where `at` fits. */
function wrapped(text: string, at: RegExp): readonly string[] {
  const lines: string[] = []
  for (const part of text.split(at)) {
    const longer = `${lines.at(-1) ?? ''} ${part}`
    if (lines.length === 0 || longer.length > COLUMNS) lines.push(part)
    else lines[lines.length - 1] = longer
  }
  return lines
}

/** What to say of words that are no command. */
export function notACommand(argv: readonly string[]): UsageProblem {
  const [word = '', ...others] = argv
  const names = Object.keys(rows)
  const isBegin = names.some(name => wordOf(name) === word)
  if (isBegin && others.length === 0) return new UsageProblem(`Say which: weir help ${word}`)
  const second = others[0] !== undefined && /^[a-z-]{1,20}$/.test(others[0]) ? others[0] : undefined
  const pair =
    second === undefined
      ? undefined
      : nearest(
          `${word} ${second}`,
          names.filter(name => name.includes(' ')),
        )
  const isWord = /^[a-z-]{1,20}$/.test(word)
  const alone = isBegin ? undefined : nearest(word, [...names, ...names.map(wordOf)])
  const near = isWord ? (pair ?? alone) : undefined
  if (near !== undefined) {
    const written = pair === undefined ? word : `${word} ${second}`
    const help = `See: weir help ${wordOf(near)}`
    return new UsageProblem(`There is no command "${written}". Did you mean: weir ${near}? ${help}`)
  }
  if (isBegin && second !== undefined) {
    const own = names.filter(name => wordOf(name) === word).map(name => name.slice(word.length + 1))
    return new UsageProblem(`There is no command "${word} ${second}". After "${word}" comes: ${own.join(', ')}.`)
  }
  // What does not look like a command may be a key in the wrong place.
  const named = isWord ? `command "${word}"` : 'such command'
  const like = others.length > 0 ? ', or not like this' : ''
  return new UsageProblem(`There is no ${named}${like}. See: weir help${isBegin ? ` ${word}` : ''}`)
}
