// Checks the rules that are stored in the database against the providers of the environment and the provider files.

import type { Seal } from '../../base/secrets/seal.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { checkRules } from '../../management/services/rule-check.ts'
import { LiveRules } from '../../store/rules/live-rules.ts'
import type { RulesReader } from '../../store/rules/rules-reader.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import { note, problem } from './findings.ts'

export async function checkStoredRules(
  reader: RulesReader,
  seal: Seal,
  catalogue: Catalogue,
): Promise<readonly CheckFinding[]> {
  const troubles: CheckFinding[] = []
  const onTrouble = (detail: string): void => void troubles.push(problem('rules', detail, 'weir channels set'))
  const rules = new LiveRules({ reader, seal, onError: onTrouble })
  await rules.reload()
  catalogue.configure(rules.current)
  catalogue.setRules(rules.current.channels)
  const { problem: unusable = rules.problem, notes } = checkRules(rules.current, catalogue)
  if (unusable !== undefined) troubles.push(problem('rules', unusable.text, ''))
  return [
    ...troubles,
    ...Array.from(catalogue.problems, ([id, why]) =>
      problem(id, `Its stored configuration cannot be used: ${why.text}`, ''),
    ),
    ...notes.map(text => note('rules', `A rule refers to something that does not exist: ${text}`, '')),
  ]
}
