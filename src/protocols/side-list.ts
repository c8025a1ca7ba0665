// Every dialect that is only ever passed on, one line each.

import { bots, contextChat } from './ark-side/bots.ts'
import { images as arkImages } from './ark-side/images.ts'
import { contextCreate, embeddings as arkEmbeddings, multimodalEmbeddings, tokenization } from './ark-side/reading.ts'
import { tasks } from './ark-side/tasks.ts'
import { completions } from './openai-side/completions.ts'
import { imageEdits, images } from './openai-side/images.ts'
import { embeddings, moderations, rerank } from './openai-side/reading.ts'
import { speech } from './openai-side/speech.ts'
import { transcription } from './openai-side/transcription.ts'
import { batchEmbedContents, embedContent } from './gemini/embed.ts'
import type { Protocol } from './protocol.ts'

export const sideProtocols = {
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
