// Says what a value must be, from the issue that a schema has found: as a code with values, and as English.

import type * as z from 'zod'

const typeNames: Readonly<Record<string, string>> = { int: 'a whole number', array: 'a list', object: 'an object' }

/** What a value must be, by the code of the problem. */
export const musts = {
  one_of: ({ allowed }: { readonly allowed: string }) => `it must be one of: ${allowed}`,
  type: ({ type }: { readonly type: string }) => `it must be ${typeNames[type] ?? `a ${type}`}`,
  at_least: ({ min }: { readonly min: string }) => `it must be at least ${min}`,
  at_most: ({ max }: { readonly max: string }) => `it must be at most ${max}`,
  characters_min: ({ min }: { readonly min: string }) => `it must have at least ${min} characters`,
  characters_max: ({ max }: { readonly max: string }) => `it must have at most ${max} characters`,
  items_min: ({ min }: { readonly min: string }) => `it must have at least ${min} items`,
  items_max: ({ max }: { readonly max: string }) => `it must have at most ${max} items`,
  /** For everything else. The text is English. */
  invalid: ({ must }: { readonly must: string }) => must,
} as const

type MustCode = keyof typeof musts

/** A code of `musts` with the values that its text needs. */
export type Must = { readonly [Code in MustCode]: [Code, Parameters<(typeof musts)[Code]>[0]] }[MustCode]

/** What the value must be. Zod's own messages are not sentences. */
export function mustOf(issue: z.core.$ZodIssue): Must {
  if (issue.code === 'invalid_value') return ['one_of', { allowed: issue.values.join(', ') }]
  if (issue.code === 'invalid_type') return ['type', { type: issue.expected }]
  if (issue.code === 'too_small') {
    const min = { min: `${issue.minimum}` }
    return [issue.origin === 'string' ? 'characters_min' : issue.origin === 'array' ? 'items_min' : 'at_least', min]
  }
  if (issue.code !== 'too_big') return ['invalid', { must: issue.message }]
  const max = { max: `${issue.maximum}` }
  return [issue.origin === 'string' ? 'characters_max' : issue.origin === 'array' ? 'items_max' : 'at_most', max]
}

export function mustText([code, values]: Must): string {
  const write = musts[code] as (of: typeof values) => string
  return write(values)
}

export const issueText = (issue: z.core.$ZodIssue): string => mustText(mustOf(issue))
