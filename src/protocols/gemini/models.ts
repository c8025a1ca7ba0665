// Lists of models, as Google's clients read them.

import type { ListedModel } from '../listed-model.ts'
import type { Verb } from './path.ts'

const talkMethods: readonly Verb[] = ['generateContent', 'streamGenerateContent', 'countTokens']
const embedMethods: readonly Verb[] = ['embedContent', 'batchEmbedContents', 'countTokens']

/** What of this dialect is served for it. */
function methodsOf({ sideOnly }: ListedModel): readonly Verb[] {
  if (sideOnly === undefined) return talkMethods
  return sideOnly.some(dialect => EMBEDS.test(dialect)) ? embedMethods : []
}

/** Dialects of vectors of texts, which are translated into each other. */
const EMBEDS = /^(openai|ark)-embeddings$|^gemini-(batch-)?embed$/

function modelOf(model: ListedModel): object {
  const { id, name, contextTokens, outputTokensMax, traits } = model
  return {
    name: `models/${id}`,
    version: '001',
    displayName: name,
    ...(contextTokens !== undefined && { inputTokenLimit: contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokenLimit: outputTokensMax }),
    supportedGenerationMethods: methodsOf(model),
    ...(traits?.thinking !== undefined && { thinking: traits.thinking !== 'none' }),
  }
}

export const writeModel = (model: ListedModel): string => JSON.stringify(modelOf(model))

export interface ModelPage {
  /** The list goes on behind it; absent at its end. */
  readonly nextPageToken?: string
}

export function writeModelList(models: readonly ListedModel[], { nextPageToken }: ModelPage): string {
  return JSON.stringify({ models: models.map(modelOf), ...(nextPageToken !== undefined && { nextPageToken }) })
}
