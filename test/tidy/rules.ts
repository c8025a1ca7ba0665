// Every rule by name, and how exceptions are taken off its findings.

import { documentRules } from './rules-documents.ts'
import { shapeRules } from './rules-shape.ts'
import { sizeRules } from './rules-size.ts'
import { wordRules } from './rules-words.ts'
import type { Finding, Rule, Tree } from './source.ts'

const table = { ...sizeRules, ...wordRules, ...shapeRules, ...documentRules }

export type RuleName = keyof typeof table

export const rules: Readonly<Record<RuleName, Rule>> = table

export const ruleNames = Object.keys(table) as readonly RuleName[]

export interface TidyException {
  readonly rule: RuleName
  /** As the finding names it. */
  readonly file: string
  /** Only for findings about this word, such as a provider's id that a file cannot do without. */
  readonly subject?: string
  readonly reason: string
}

const excuses = (row: TidyException, finding: Finding): boolean =>
  row.file === finding.file && (row.subject === undefined || row.subject === finding.subject)

/** What a rule finds, without what the exceptions allow. */
export function findings(name: RuleName, tree: Tree, exceptions: readonly TidyException[]): readonly Finding[] {
  const rows = exceptions.filter(row => row.rule === name)
  return rules[name].check(tree).filter(finding => !rows.some(row => excuses(row, finding)))
}

/** The exceptions that excuse nothing any more. They must go, or the next violation would slip through. */
export function idleExceptions(tree: Tree, exceptions: readonly TidyException[]): readonly TidyException[] {
  return exceptions.filter(row => !rules[row.rule].check(tree).some(finding => excuses(row, finding)))
}
