// One model as lists of models tell of it, before any dialect has put it into its own form.

import type { Traits } from '../base/money/model-traits.ts'

export interface ListedModel {
  /** `<provider>/<model>`. */
  readonly id: string
  readonly name: string
  readonly provider: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  readonly traits?: Traits
  /** What it answers to, where that is no talk: the dialects of such calls. */
  readonly sideOnly?: readonly string[]
}

/** Nobody wrote down when a model was made. */
export const unknownDate = { seconds: 0, text: '1970-01-01T00:00:00Z' } as const
