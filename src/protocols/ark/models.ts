// Writes the list of models in Ark's form.

import type { ListedModel } from '../listed-model.ts'
import { unknownDate, writesOnce } from '../listed-model.ts'

export const writeModelList = (models: readonly ListedModel[]): string =>
  `{"object":"list","data":[${models.map(writeModel).join()}]}`

const writeModel = writesOnce(buildModel)

function buildModel(model: ListedModel): object {
  const { id, name, contextTokens, outputTokensMax, traits } = model
  const { domain, task, writes } = findKind(model)
  return {
    id,
    name,
    version: '',
    object: 'model',
    created: unknownDate.seconds,
    domain,
    task_type: [task],
    ...(traits?.reads && { modalities: { input_modalities: traits.reads, output_modalities: [writes] } }),
    ...(traits && { features: { structured_outputs: { json_object: true, json_schema: traits.schema !== false } } }),
    token_limits: {
      ...(contextTokens !== undefined && { context_window: contextTokens }),
      ...(outputTokensMax !== undefined && { max_output_token_length: outputTokensMax }),
    },
  }
}

interface ModelKind {
  readonly domain: string
  readonly task: string
  readonly writes: string
}

/** The kind of a passthrough model, by a word in the name of its dialect. */
const KINDS_BY_DIALECT: readonly (readonly [word: string, kind: ModelKind])[] = [
  ['multimodal-embeddings', { domain: 'Embedding', task: 'MultimodalEmbedding', writes: 'embedding' }],
  ['embed', { domain: 'Embedding', task: 'TextEmbedding', writes: 'embedding' }],
  ['image', { domain: 'ImageGeneration', task: 'TextToImage', writes: 'image' }],
  ['tasks', { domain: 'VideoGeneration', task: 'TextToVideo', writes: 'video' }],
  ['speech', { domain: 'Audio', task: 'TextToSpeech', writes: 'audio' }],
  ['transcription', { domain: 'Audio', task: 'SpeechToText', writes: 'text' }],
]

const OTHER_KIND: ModelKind = { domain: 'Other', task: 'Other', writes: 'text' }

function findKind({ passthroughDialects, traits }: ListedModel): ModelKind {
  if (passthroughDialects === undefined) {
    const readsPictures = traits?.reads?.some(kind => kind === 'image' || kind === 'video') ?? false
    return {
      domain: readsPictures ? 'VLM' : 'LLM',
      task: readsPictures ? 'VisualQuestionAnswering' : 'TextGeneration',
      writes: 'text',
    }
  }
  return (
    KINDS_BY_DIALECT.find(([word]) => passthroughDialects.some(dialect => dialect.includes(word)))?.[1] ?? OTHER_KIND
  )
}
