// Sentences in answers, as data: a client can show them in another language than English.

import * as z from 'zod'
import type { Hint as BaseHint } from '../../base/hints.ts'
import { hintCodes } from '../../base/hints.ts'
import { jsonValue } from './fields.ts'

export const Hint = z
  .object({
    code: z.enum(hintCodes as [string, ...string[]]),
    values: z.record(z.string(), jsonValue).meta({ description: 'Texts, numbers, and further hints' }),
  })
  .meta({ id: 'Hint', description: 'A sentence of this answer as a code with values, for programs' })

/** The warnings of a change. */
export const warnings = {
  warnings: z.array(z.string()).readonly().meta({ description: 'What was done but may be a mistake' }),
  warningHints: z.array(Hint).readonly().meta({ description: 'The same warnings as data' }),
}

export const shownWarnings = (hints: readonly BaseHint[]) => ({
  warnings: hints.map(({ text }) => text),
  warningHints: hints.map(({ data }) => data),
})
