// One model of the list of models, before a dialect writes it in its own form.

import type { ModelTraits } from '../base/money/model-traits.ts'

export interface ListedModel {
  /** `<provider>/<model>`. */
  readonly id: string
  readonly name: string
  readonly provider: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  readonly traits?: ModelTraits
  /** The passthrough dialects that the model serves, if it serves no conversations. */
  readonly passthroughDialects?: readonly string[]
}

/** Lists require a creation date, and the gateway does not know it. */
export const unknownDate = { seconds: 0, text: '1970-01-01T00:00:00Z' } as const

/** Each model is written once, because the lists are public: anybody may ask for them at any rate. */
export function writesOnce(build: (model: ListedModel) => object): (model: ListedModel) => string {
  const texts = new WeakMap<ListedModel, string>()
  return model => {
    const known = texts.get(model)
    if (known !== undefined) return known
    const text = JSON.stringify(build(model))
    texts.set(model, text)
    return text
  }
}
