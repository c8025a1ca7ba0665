// Lists of models, as Google's clients read them.

import type { Verb } from './path.ts'

export interface ListedModel {
  /** `<provider>/<model>`. */
  readonly id: string
  readonly name?: string
  readonly description?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  readonly thinks?: boolean
  readonly methods?: readonly Verb[]
}

export interface ModelPage {
  /** The list goes on behind it; absent at its end. */
  readonly nextPageToken?: string
}

const usualMethods: readonly Verb[] = ['generateContent', 'streamGenerateContent', 'countTokens']

function modelOf({ id, name, description, contextTokens, outputTokensMax, thinks, methods }: ListedModel): object {
  return {
    name: `models/${id}`,
    version: '001',
    displayName: name ?? id,
    ...(description !== undefined && { description }),
    ...(contextTokens !== undefined && { inputTokenLimit: contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokenLimit: outputTokensMax }),
    supportedGenerationMethods: methods ?? usualMethods,
    ...(thinks !== undefined && { thinking: thinks }),
  }
}

export const writeModel = (model: ListedModel): string => JSON.stringify(modelOf(model))

export function writeModelList(models: readonly ListedModel[], { nextPageToken }: ModelPage): string {
  return JSON.stringify({ models: models.map(modelOf), ...(nextPageToken !== undefined && { nextPageToken }) })
}
