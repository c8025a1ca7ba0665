// Says what a value must be, from the issue that a schema has found.

import type * as z from 'zod'

const typeNames: Readonly<Record<string, string>> = { int: 'a whole number', array: 'a list', object: 'an object' }
const unitNames: Readonly<Record<string, string>> = { string: ' characters', array: ' items' }

/** What the value must be. Zod's own messages are not sentences. */
export function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `it must be one of: ${issue.values.join(', ')}`
  if (issue.code === 'invalid_type') return `it must be ${typeNames[issue.expected] ?? `a ${issue.expected}`}`
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return issue.message
  const bound = issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`
  const unit = unitNames[issue.origin]
  return unit === undefined ? `it must be ${bound}` : `it must have ${bound}${unit}`
}
