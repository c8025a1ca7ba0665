// The table of passthrough dialects: calls in them are forwarded and never translated.

import { bots, contextChat } from './ark-passthrough/bots.ts'
import { images as arkImages } from './ark-passthrough/images.ts'
import {
  embeddings as arkEmbeddings,
  contextCreate,
  multimodalEmbeddings,
  tokenization,
} from './ark-passthrough/input-only.ts'
import { tasks } from './ark-passthrough/tasks.ts'
import { batchEmbedContents, embedContent } from './gemini/embeddings.ts'
import { completions } from './openai-passthrough/completions.ts'
import { imageEdits, images } from './openai-passthrough/images.ts'
import { embeddings, moderations, rerank } from './openai-passthrough/input-only.ts'
import { speech } from './openai-passthrough/speech.ts'
import { transcription } from './openai-passthrough/transcription.ts'
import type { Protocol } from './protocol.ts'

export const passthroughProtocols = {
  'openai-completions': completions,
  'openai-embeddings': embeddings,
  'openai-images': images,
  'openai-image-edits': imageEdits,
  'openai-speech': speech,
  'openai-transcription': transcription,
  'openai-rerank': rerank,
  'openai-moderations': moderations,
  'gemini-batch-embed': batchEmbedContents,
  'gemini-embed': embedContent,
  'ark-embeddings': arkEmbeddings,
  'ark-multimodal-embeddings': multimodalEmbeddings,
  'ark-images': arkImages,
  'ark-tasks': tasks,
  'ark-tokenization': tokenization,
  'ark-bots': bots,
  'ark-context-create': contextCreate,
  'ark-context-chat': contextChat,
} as const satisfies Record<string, Protocol>
