// The URLs of calls that are only ever passed on, and of the aliases under which OpenAI's are known elsewhere.

import { protocols } from './protocols/list.ts'
import { sideProtocols as side } from './protocols/side-list.ts'
import type { Protocol } from './protocols/protocol.ts'

const calls: readonly (readonly [path: string, call: Protocol])[] = [
  ['/v1/completions', side['openai-completions']],
  ['/v1/embeddings', side['openai-embeddings']],
  ['/v1/images/generations', side['openai-images']],
  ['/v1/images/edits', side['openai-image-edits']],
  ['/v1/audio/speech', side['openai-speech']],
  ['/v1/audio/transcriptions', side['openai-transcription']],
  ['/v1/rerank', side['openai-rerank']],
  ['/v1/moderations', side['openai-moderations']],

  ['/v1beta/openai/chat/completions', protocols['openai-chat']],
  ['/v1beta/openai/embeddings', side['openai-embeddings']],
  ['/v1beta/openai/images/generations', side['openai-images']],

  ['/api/v3/embeddings', side['ark-embeddings']],
  ['/api/v3/embeddings/multimodal', side['ark-multimodal-embeddings']],
  ['/api/v3/images/generations', side['ark-images']],
  ['/api/v3/bots/chat/completions', side['ark-bots']],
  ['/api/v3/context/create', side['ark-context-create']],
  ['/api/v3/context/chat/completions', side['ark-context-chat']],
]

const post = { method: 'POST', auth: 'key' } as const

const embeds = ['/v1beta/*', '/v1/*'].flatMap(path => [
  { ...post, path, ending: ':embedContent', call: side['gemini-embed'] },
  { ...post, path, ending: ':batchEmbedContents', call: side['gemini-batch-embed'] },
])

export const sideEndpoints = [...calls.map(([path, call]) => ({ ...post, path, call })), ...embeds]
