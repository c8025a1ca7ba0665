// Writes lists of models in the form that Google's clients read.

import type { ListedModel } from '../listed-model.ts'
import type { Verb } from './path.ts'

const GENERATION_METHODS: readonly Verb[] = ['generateContent', 'streamGenerateContent', 'countTokens']
const EMBEDDING_METHODS: readonly Verb[] = ['embedContent', 'batchEmbedContents', 'countTokens']

/** The methods of this dialect that the gateway serves for a model. */
function listMethods({ sideOnly }: ListedModel): readonly Verb[] {
  if (sideOnly === undefined) return GENERATION_METHODS
  return sideOnly.some(dialect => EMBEDDINGS_DIALECT.test(dialect)) ? EMBEDDING_METHODS : []
}

/** Dialects of embeddings, which the gateway translates into each other. */
const EMBEDDINGS_DIALECT = /^(openai|ark)-embeddings$|^gemini-(batch-)?embed$/

function buildModel(model: ListedModel): object {
  const { id, name, contextTokens, outputTokensMax, traits } = model
  return {
    name: `models/${id}`,
    version: '001',
    displayName: name,
    ...(contextTokens !== undefined && { inputTokenLimit: contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokenLimit: outputTokensMax }),
    supportedGenerationMethods: listMethods(model),
    ...(traits?.thinking !== undefined && { thinking: traits.thinking !== 'none' }),
  }
}

export const writeModel = (model: ListedModel): string => JSON.stringify(buildModel(model))

export interface ModelPage {
  /** The token of the next page; absent on the last page. */
  readonly nextPageToken?: string
}

export function writeModelList(models: readonly ListedModel[], { nextPageToken }: ModelPage): string {
  return JSON.stringify({ models: models.map(buildModel), ...(nextPageToken !== undefined && { nextPageToken }) })
}
