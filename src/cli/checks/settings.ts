// Checks every setting as a start would read it, and finds environment variables that look like settings but are not.

import { nearestName } from '../../base/text/nearest-name.ts'
import type { Config } from '../../config.ts'
import { ConfigError, readConfig } from '../../config.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { problem } from './findings.ts'

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
function trackReads(env: ProcessEnvironment, known: Set<string>): ProcessEnvironment {
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
/** Shorter names are too similar to each other for a suggestion. */
const LETTERS_MIN = 8

/** Reports variables that are set but that nothing reads. */
export function checkUnknownVariables(env: ProcessEnvironment, known: ReadonlySet<string>): readonly CheckFinding[] {
  return Object.keys(env).flatMap(name => {
    if (known.has(name) || !env[name]) return []
    const suggestion = name.length < LETTERS_MIN ? undefined : nearestName(name, similarNames(name, known))
    if (!OURS.test(name) && suggestion === undefined) return []
    const remedy = suggestion === undefined ? `Remove it. ${EXAMPLE}` : `Did you mean ${suggestion}?`
    return [problem(name, 'Weir has no setting of this name, so it has no effect.', remedy)]
  })
}

/** Only names with the same first letters: names of another vendor begin differently. */
const similarNames = (name: string, known: ReadonlySet<string>): readonly string[] =>
  [...known].filter(other => other.length >= LETTERS_MIN && other.slice(0, 3) === name.slice(0, 3))
