// Writes lists of models in the form that Google's clients read.

import type { ListedModel } from '../listed-model.ts'
import { writesOnce } from '../listed-model.ts'
import type { GeminiMethod } from './path.ts'

const GENERATION_METHODS: readonly GeminiMethod[] = ['generateContent', 'streamGenerateContent', 'countTokens']
const EMBEDDING_METHODS: readonly GeminiMethod[] = ['embedContent', 'batchEmbedContents', 'countTokens']

/** The methods of this dialect that the gateway serves for a model. */
function listMethods({ passthroughDialects }: ListedModel): readonly GeminiMethod[] {
  if (passthroughDialects === undefined) return GENERATION_METHODS
  return passthroughDialects.some(dialect => EMBEDDINGS_DIALECT.test(dialect)) ? EMBEDDING_METHODS : []
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

export const writeModel = writesOnce(buildModel)

export interface GeminiModelPage {
  /** The token of the next page; absent on the last page. */
  readonly nextPageToken?: string
}

export function writeModelList(models: readonly ListedModel[], { nextPageToken }: GeminiModelPage): string {
  const next = nextPageToken === undefined ? '' : `,"nextPageToken":${JSON.stringify(nextPageToken)}`
  return `{"models":[${models.map(writeModel).join()}]${next}}`
}
