// The arguments of `npm run bench:ab`.

import { parseArgs } from 'node:util'
import { kinds } from './kinds.ts'

const USAGE =
  'npm run bench:ab -- <commit> [<commit>] [--only <what>] [--rounds <n>] [--quick]: the first commit is A; B is the ' +
  'second one, or the working tree.'

const ROUNDS = 40
const ROUNDS_MAX = 1_000

export interface ComparisonOptions {
  readonly a: string
  /** Undefined for the working tree. */
  readonly b: string | undefined
  readonly only: readonly string[]
  readonly rounds: number
  readonly quick: boolean
}

export function readArguments(args: readonly string[]): ComparisonOptions {
  const options = {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: String(ROUNDS) },
    quick: { type: 'boolean', default: false },
  } as const
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  const [a, b, ...others] = positionals
  if (a === undefined || others.length > 0) throw new Error(USAGE)
  const only = values.only ?? ['plain', 'stream']
  const unknown = only.find(name => !Object.hasOwn(kinds, name))
  if (unknown !== undefined) throw new Error(`--only takes ${Object.keys(kinds).join(', ')}, not "${unknown}".`)
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX) {
    throw new Error(`--rounds takes a whole number from 1 to ${ROUNDS_MAX}, not "${values.rounds}".`)
  }
  return { a, b, only: [...new Set(only)], rounds, quick: values.quick }
}
