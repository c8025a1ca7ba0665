// Says what a value must be, from the issue that a schema has found: as a code with values, and as English.

import type * as z from 'zod'
import { musts } from '../../base/hint-sentences.ts'
import type { FromHint, Must } from '../../base/hints.ts'
import { Hint, hintOf } from '../../base/hints.ts'

/** The rules of fields, by their English texts: a schema keeps only the text of a rule. */
const rules = new Map<string, Hint>()

/** The text of a rule for a schema. An error about the rule has its code. */
export const must = ((...rule: Parameters<typeof Hint.of>): string => {
  const hint = Hint.of(...rule)
  rules.set(hint.text, hint)
  return hint.text
}) as FromHint<string>

/** Messages of the schema library, which are not sentences. */
const libraryMessages = new Map([
  ['Invalid input', hintOf('must_be_valid')],
  ['Invalid ISO datetime', hintOf('must_be_time')],
])

/** What the value must be. */
export function mustOf(issue: z.core.$ZodIssue): Must {
  if (issue.code === 'invalid_value') return ['one_of', { allowed: issue.values.join(', ') }]
  if (issue.code === 'invalid_type') return ['type', { type: issue.expected }]
  if (issue.code === 'too_small') {
    const min = { min: `${issue.minimum}` }
    return [issue.origin === 'string' ? 'characters_min' : issue.origin === 'array' ? 'items_min' : 'at_least', min]
  }
  if (issue.code !== 'too_big') return ['invalid', { must: ruleOf(issue) }]
  const max = { max: `${issue.maximum}` }
  return [issue.origin === 'string' ? 'characters_max' : issue.origin === 'array' ? 'items_max' : 'at_most', max]
}

function ruleOf(issue: z.core.$ZodIssue): Hint | string {
  const { message } = issue
  if (issue.code === 'custom' && issue.params?.hint instanceof Hint) return issue.params.hint
  if (issue.code === 'invalid_format' && message.startsWith('Invalid string: must match pattern')) {
    return hintOf('must_match', { pattern: String(issue.pattern) })
  }
  const kinds = /^Invalid discriminator value\. Expected (.*)$/.exec(message)?.[1]
  return kinds === undefined
    ? (rules.get(message) ?? libraryMessages.get(message) ?? message)
    : hintOf('must_be_kind', { allowed: kinds })
}

function mustText([code, values]: Must): string {
  const write = musts[code] as (of: typeof values) => string
  return write(values)
}

export const issueText = (issue: z.core.$ZodIssue): string => mustText(mustOf(issue))
