// Every setting as a start would read it, and the names that look like one and are none.

import { nearest } from '../../base/text/nearest-name.ts'
import type { Config } from '../../config.ts'
import { ConfigError, readConfig } from '../../config.ts'
import type { Trouble } from './problem.ts'
import { problem } from './problem.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface CheckedSettings {
  /** With what holds by default in place of what cannot be read. */
  readonly config: Config
  readonly troubles: readonly Trouble[]
  /** Every variable that is looked at; those that providers name are added while their files are read. */
  readonly known: Set<string>
}

const EXAMPLE = 'See .env.example.'

/** The environment, and a note of what was asked of it. */
function watched(env: Environment, known: Set<string>): Environment {
  return new Proxy(env, {
    get(target, name) {
      if (typeof name === 'string') known.add(name)
      return Reflect.get(target, name)
    },
  })
}

export function checkSettings(env: Environment): CheckedSettings {
  const known = new Set<string>()
  const troubles: Trouble[] = []
  const left: Record<string, string | undefined> = { ...env }
  for (;;) {
    try {
      return { config: readConfig(watched(left, known)), troubles, known }
    } catch (fault) {
      // It begins with the name of what is wrong; without that, the rest can be looked at.
      const name = fault instanceof ConfigError ? /^[A-Z][A-Z_]+/.exec(fault.message)?.[0] : undefined
      if (name === undefined || left[name] === undefined) throw fault
      delete left[name]
      troubles.push(problem(name, (fault as Error).message, `Change ${name}, or take it away. ${EXAMPLE}`))
    }
  }
}

const OURS = /^WEIR_/
/** Of so few letters anything is near to anything. */
const LETTERS_MIN = 8

/** What is set and nobody reads. */
export function checkNames(env: Environment, known: ReadonlySet<string>): readonly Trouble[] {
  return Object.keys(env).flatMap(name => {
    if (known.has(name) || !env[name]) return []
    const meant = name.length < LETTERS_MIN ? undefined : nearest(name, likeNames(name, known))
    if (!OURS.test(name) && meant === undefined) return []
    const remedy = meant === undefined ? `Take it away. ${EXAMPLE}` : `Did you mean ${meant}?`
    return [problem(name, 'There is no such setting: what it says is not done.', remedy)]
  })
}

/** Vendors are told apart by how they begin: what begins otherwise is another's. */
const likeNames = (name: string, known: ReadonlySet<string>): readonly string[] =>
  [...known].filter(one => one.length >= LETTERS_MIN && one.slice(0, 3) === name.slice(0, 3))
