// The URLs of calls that are only ever passed on, and of the aliases under which OpenAI's are known elsewhere.

import type { EndpointName } from '../identity/key-rights.ts'
import { protocols } from '../protocols/list.ts'
import { sideProtocols as side } from '../protocols/passthrough-list.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Endpoint } from './endpoint.ts'

const calls: readonly (readonly [kind: EndpointName, path: string, call: Protocol])[] = [
  ['completions', '/v1/completions', side['openai-completions']],
  ['embeddings', '/v1/embeddings', side['openai-embeddings']],
  ['images', '/v1/images/generations', side['openai-images']],
  ['images', '/v1/images/edits', side['openai-image-edits']],
  ['audio', '/v1/audio/speech', side['openai-speech']],
  ['audio', '/v1/audio/transcriptions', side['openai-transcription']],
  ['rerank', '/v1/rerank', side['openai-rerank']],
  ['moderations', '/v1/moderations', side['openai-moderations']],

  ['chat', '/v1beta/openai/chat/completions', protocols['openai-chat']],
  ['embeddings', '/v1beta/openai/embeddings', side['openai-embeddings']],
  ['images', '/v1beta/openai/images/generations', side['openai-images']],

  ['embeddings', '/api/v3/embeddings', side['ark-embeddings']],
  ['embeddings', '/api/v3/embeddings/multimodal', side['ark-multimodal-embeddings']],
  ['images', '/api/v3/images/generations', side['ark-images']],
  ['ark', '/api/v3/bots/chat/completions', side['ark-bots']],
  ['ark', '/api/v3/context/create', side['ark-context-create']],
  ['ark', '/api/v3/context/chat/completions', side['ark-context-chat']],
]

const post = { method: 'POST', auth: 'key' } as const

const embeds: readonly Endpoint[] = ['/v1beta/*', '/v1/*'].flatMap(path => [
  { ...post, kind: 'embeddings', path, ending: ':embedContent', call: side['gemini-embed'] },
  { ...post, kind: 'embeddings', path, ending: ':batchEmbedContents', call: side['gemini-batch-embed'] },
])

export const sideEndpoints: readonly Endpoint[] = [
  ...calls.map(([kind, path, call]) => ({ ...post, kind, path, call })),
  ...embeds,
]
