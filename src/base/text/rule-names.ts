// The names of a model that rules of operators are compared with: which models a key may use, and which limits count a
// call. A rule is about the model: it must hold, whichever of the model's names the rule and the caller use.

import { matchesGlob } from './glob.ts'

/** Names are compared without regard to case, and with ".", "_" and "@" as "-": providers spell the same name differently. */
export const normalizeName = (name: string): string => name.toLowerCase().replaceAll(/[._@]/g, '-')

export interface RuleNames {
  /** As providers and operators write them. Only these can allow something, and only in their own spelling. */
  readonly written: readonly string[]
  /** What a rule with `*` that forbids or counts is compared with, normalized: the names that are written somewhere. */
  readonly listed: readonly string[]
  /** Every name that reaches the model, normalized; also those that nobody writes, such as "gpt-5-latest". */
  readonly all: ReadonlySet<string>
}

/** The names of something that has no other names. */
export function plainNames(...names: readonly string[]): RuleNames {
  const normalized = names.map(normalizeName)
  return { written: names, listed: normalized, all: new Set(normalized) }
}

export function joinNames(parts: readonly RuleNames[]): RuleNames {
  const join = (read: (names: RuleNames) => Iterable<string>): ReadonlySet<string> =>
    new Set(parts.flatMap(part => [...read(part)]))
  return {
    written: [...join(({ written }) => written)],
    listed: [...join(({ listed }) => listed)],
    all: join(({ all }) => all),
  }
}

/**
 * Whether a rule that forbids or counts is about the model. `rule` is normalized. A rule with `*` is not compared with
 * names that nobody writes: otherwise "gpt-5-*" would also mean "gpt-5", and "*-latest" every model.
 */
export function isRuleAbout(rule: string, { listed, all }: RuleNames): boolean {
  return rule.includes('*') ? listed.some(name => matchesGlob(rule, name)) : all.has(rule)
}

export function hasSameNames(one: RuleNames, other: RuleNames): boolean {
  if (one === other) return true
  if (one.all.size !== other.all.size || one.listed.length !== other.listed.length) return false
  for (const name of one.all) if (!other.all.has(name)) return false
  return one.listed.every((name, at) => name === other.listed[at])
}

/**
 * A variant of a model has words behind colons ("gpt-5:online"), or settings that are kept at the provider
 * ("gpt-5@preset/mine"; "@preset/mine" alone is a variant of no known model), or was tuned ("ft:gpt-4o:me::id"). A number
 * behind a colon is a version: "nova-lite-v1:0".
 */
const VARIANT = /^([^:]+(?::\d[^:]*)*)(?:(?::[A-Za-z][\w.-]*)+:*|:+)$/
const TUNED = /^ft:([^:]+)/i
const PRESET = /^(.*?)@preset\/.*$/is

/** The id of the model that this one is a variant of; empty if that is not known. Undefined: it is no variant. */
export function variantBase(modelId: string): string | undefined {
  const tuned = TUNED.exec(modelId)?.[1]
  if (tuned !== undefined) return tuned
  const preset = PRESET.exec(modelId)?.[1]
  return VARIANT.exec(preset ?? modelId)?.[1] ?? preset
}

/** Whether a pattern is meant for variants. */
export const isForVariants = (pattern: string): boolean => pattern.includes(':') || /@preset\//i.test(pattern)

/** Google's API writes "models/" before the id of a model. */
export const withoutModelsPath = (modelId: string): string => modelId.replace(/^(?:publishers\/[^/]+\/)?models\//i, '')
