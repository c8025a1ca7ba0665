// Answers requests for the list of models, and for one model, in the format of each dialect.

import { jsonAnswer } from './answers.ts'
import { pathOf } from './body-fields.ts'
import { modelIds, outputWordsMax } from './demo-models.ts'
import type { Dialect } from './dialect.ts'
import { createdS } from './dialect.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script } from './script.ts'
import { script } from './script.ts'

const contextWords = 32_768
const createdAt = new Date(createdS * 1000).toISOString()

const openAi = (id: string): object => ({ id, object: 'model', created: createdS, owned_by: 'fake-upstream' })

const anthropic = (id: string): object => ({
  type: 'model',
  id,
  display_name: id,
  created_at: createdAt,
  max_input_tokens: contextWords,
})

const gemini = (id: string): object => ({
  name: `models/${id}`,
  version: '1',
  displayName: id,
  inputTokenLimit: contextWords,
  outputTokenLimit: outputWordsMax,
  supportedGenerationMethods: ['generateContent', 'countTokens', 'embedContent'],
})

const ark = (id: string): object => ({
  ...openAi(id),
  name: id,
  version: '1',
  domain: 'LLM',
  task_type: ['TextGeneration'],
  modalities: { input_modalities: ['text', 'image'], output_modalities: ['text'] },
  token_limits: { context_window: contextWords, max_output_token_length: outputWordsMax },
})

interface ModelListFormat {
  readonly one: (id: string) => object
  readonly list: (models: readonly object[]) => object
}

const OPENAI_FORMAT: ModelListFormat = { one: openAi, list: data => ({ object: 'list', data }) }
const FORMATS: Readonly<Record<string, ModelListFormat>> = {
  'anthropic-messages': {
    one: anthropic,
    list: data => ({ data, has_more: false, first_id: modelIds[0], last_id: modelIds.at(-1) }),
  },
  'gemini': { one: gemini, list: models => ({ models }) },
  'ark': { one: ark, list: data => ({ object: 'list', data }) },
}

/** Undefined for a model that does not exist. */
export function answerModels(request: ReceivedRequest, dialect: Dialect): Script | undefined {
  const format = FORMATS[dialect.name] ?? OPENAI_FORMAT
  const id = /\/models\/(.+)$/.exec(pathOf(request))?.[1]
  if (id === undefined) return script(...jsonAnswer(200, JSON.stringify(format.list(modelIds.map(format.one)))))
  const known = modelIds.find(model => model === id)
  return known && script(...jsonAnswer(200, JSON.stringify(format.one(known))))
}
