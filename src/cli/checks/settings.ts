// Checks every setting as a start would read it, and finds environment variables that look like settings but are not.

import { nearestName } from '../../base/text/nearest-name.ts'
import type { Config } from '../../config.ts'
import { ConfigError, readConfig } from '../../config.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { secretSources } from '../../store/secrets/secret-files.ts'
import { note, problem } from './findings.ts'

export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

export interface SettingsCheckResult {
  /** Invalid settings have their default values here. */
  readonly config: Config
  readonly findings: readonly CheckFinding[]
  /** Every variable that Weir reads. The check of the provider files adds their variables. */
  readonly known: Set<string>
}

const EXAMPLE = 'See .env.example.'

/** Returns the environment, and adds the name of each variable that is read to `known`. */
export function trackReads(env: ProcessEnvironment, known: Set<string>): ProcessEnvironment {
  return new Proxy(env, {
    get(target, name) {
      if (typeof name === 'string') known.add(name)
      return Reflect.get(target, name)
    },
  })
}

export function checkSettings(env: ProcessEnvironment): SettingsCheckResult {
  const known = new Set<string>()
  const troubles: CheckFinding[] = []
  const remaining: Record<string, string | undefined> = { ...env }
  for (;;) {
    try {
      return { config: readConfig(trackReads(remaining, known)), findings: troubles, known }
    } catch (fault) {
      // The message begins with the name of the invalid setting. Without that setting, the others can be checked.
      const name = fault instanceof ConfigError ? /^[A-Z][A-Z_]+/.exec(fault.message)?.[0] : undefined
      if (name === undefined || remaining[name] === undefined) throw fault
      delete remaining[name]
      // Without the database, a start would say of these that it is missing.
      if (name === 'WEIR_DATABASE_URL')
        for (const other of ['WEIR_PROCESSES', 'WEIR_REDIS_URL']) delete remaining[other]
      troubles.push(problem(name, (fault as Error).message, `Correct ${name}, or remove it. ${EXAMPLE}`))
    }
  }
}

const OURS = /^WEIR_/
/** Read by commands, and by the programs that `weir connect` sets up. */
const COMMAND_VARIABLES: readonly string[] = ['WEIR_KEY', 'WEIR_TOKEN', 'WEIR_URL']
/** Shorter names are too similar to each other for a suggestion. */
const LETTERS_MIN = 8

/** Reports variables that look like settings, and that nothing reads. `read` are those that a start has read. */
export function checkIgnoredVariables(env: ProcessEnvironment, read: ReadonlySet<string>): readonly CheckFinding[] {
  const known = new Set([...read, ...Object.values(secretSources).map(({ variable }) => variable)])
  return [...checkUnknownVariables(env, known), ...checkAliases(env, known)]
}

function checkUnknownVariables(env: ProcessEnvironment, known: ReadonlySet<string>): readonly CheckFinding[] {
  return Object.keys(env).flatMap(name => {
    if (known.has(name) || COMMAND_VARIABLES.includes(name) || !env[name]) return []
    const suggestion = suggestedName(name, known)
    if (!OURS.test(name) && suggestion === undefined) return []
    const remedy = suggestion === undefined ? `Remove it. ${EXAMPLE}` : `Did you mean ${suggestion}?`
    return [problem(name, 'Weir has no setting of this name, so it has no effect.', remedy)]
  })
}

/** Names of other programs for a setting of ours. */
const ALIASES: readonly (readonly [name: RegExp, ours: string])[] = [
  [/^GOOGLE_API_KEY$/, 'GEMINI_API_KEY'],
  [/^(?:https|all)_proxy$/i, 'WEIR_PROXY'],
  [/_KEY$/, '_API_KEY'],
  [/_API_BASE$/, '_BASE_URL'],
]

/** Reports variables that other programs read for what a setting of ours, which is not set, is for. */
function checkAliases(env: ProcessEnvironment, known: ReadonlySet<string>): readonly CheckFinding[] {
  return Object.keys(env).flatMap(name => {
    if (known.has(name) || !env[name]) return []
    const ours = ALIASES.filter(([pattern]) => pattern.test(name))
      .map(([pattern, text]) => name.replace(pattern, text))
      .find(other => other !== name && known.has(other) && !env[other])
    return ours === undefined ? [] : [note(name, 'Weir does not read this variable.', `Set ${ours} if it is for Weir.`)]
  })
}

/** The setting that a variable was probably meant for. */
function suggestedName(name: string, known: ReadonlySet<string>): string | undefined {
  // Other settings begin with WEIR_, so PORT is easily taken for WEIR_PORT.
  const withoutPrefix = name.replace(OURS, '')
  if (withoutPrefix !== name && known.has(withoutPrefix)) return withoutPrefix
  return name.length < LETTERS_MIN ? undefined : nearestName(name, similarNames(name, known))
}

/** Only names with the same first letters, in any order and case: names of another vendor begin differently. */
const similarNames = (name: string, known: ReadonlySet<string>): readonly string[] =>
  [...known].filter(other => other.length >= LETTERS_MIN && firstLetters(other) === firstLetters(name))

const firstLetters = (name: string): string => [...name.slice(0, 3).toUpperCase()].toSorted().join('')
