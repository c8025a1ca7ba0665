// The list of models, as Ark tells it.

import type { ListedModel } from '../listed-model.ts'
import { unknownDate } from '../listed-model.ts'

export const writeModelList = (models: readonly ListedModel[]): string =>
  JSON.stringify({ object: 'list', data: models.map(modelOf) })

function modelOf(model: ListedModel): object {
  const { id, name, contextTokens, outputTokensMax, traits } = model
  const { domain, task, writes } = kindOf(model)
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

interface Kind {
  readonly domain: string
  readonly task: string
  readonly writes: string
}

/** By what its calls are named for. */
const sideKinds: readonly (readonly [word: string, kind: Kind])[] = [
  ['multimodal-embeddings', { domain: 'Embedding', task: 'MultimodalEmbedding', writes: 'embedding' }],
  ['embed', { domain: 'Embedding', task: 'TextEmbedding', writes: 'embedding' }],
  ['image', { domain: 'ImageGeneration', task: 'TextToImage', writes: 'image' }],
  ['tasks', { domain: 'VideoGeneration', task: 'TextToVideo', writes: 'video' }],
  ['speech', { domain: 'Audio', task: 'TextToSpeech', writes: 'audio' }],
  ['transcription', { domain: 'Audio', task: 'SpeechToText', writes: 'text' }],
]

const other: Kind = { domain: 'Other', task: 'Other', writes: 'text' }

function kindOf({ sideOnly, traits }: ListedModel): Kind {
  if (sideOnly === undefined) {
    const sees = traits?.reads?.some(kind => kind === 'image' || kind === 'video') ?? false
    return { domain: sees ? 'VLM' : 'LLM', task: sees ? 'VisualQuestionAnswering' : 'TextGeneration', writes: 'text' }
  }
  return sideKinds.find(([word]) => sideOnly.some(dialect => dialect.includes(word)))?.[1] ?? other
}
