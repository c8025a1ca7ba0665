// The endpoints of passthrough calls, and aliases of OpenAI endpoints in other dialects.

import type { EndpointName } from '../identity/key-rights.ts'
import { passthroughProtocols as passthrough } from '../protocols/passthrough-protocols.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { protocols } from '../protocols/protocols.ts'
import type { Endpoint } from './endpoint.ts'

const calls: readonly (readonly [kind: EndpointName, path: string, call: Protocol])[] = [
  ['completions', '/v1/completions', passthrough['openai-completions']],
  ['embeddings', '/v1/embeddings', passthrough['openai-embeddings']],
  ['images', '/v1/images/generations', passthrough['openai-images']],
  ['images', '/v1/images/edits', passthrough['openai-image-edits']],
  ['audio', '/v1/audio/speech', passthrough['openai-speech']],
  ['audio', '/v1/audio/transcriptions', passthrough['openai-transcription']],
  ['rerank', '/v1/rerank', passthrough['openai-rerank']],
  ['moderations', '/v1/moderations', passthrough['openai-moderations']],

  ['chat', '/v1beta/openai/chat/completions', protocols['openai-chat']],
  ['embeddings', '/v1beta/openai/embeddings', passthrough['openai-embeddings']],
  ['images', '/v1beta/openai/images/generations', passthrough['openai-images']],

  ['embeddings', '/api/v3/embeddings', passthrough['ark-embeddings']],
  ['embeddings', '/api/v3/embeddings/multimodal', passthrough['ark-multimodal-embeddings']],
  ['images', '/api/v3/images/generations', passthrough['ark-images']],
  ['ark', '/api/v3/bots/chat/completions', passthrough['ark-bots']],
  ['ark', '/api/v3/context/create', passthrough['ark-context-create']],
  ['ark', '/api/v3/context/chat/completions', passthrough['ark-context-chat']],
]

const post = { method: 'POST', auth: 'key' } as const

const geminiEmbeddings: readonly Endpoint[] = ['/v1beta/*', '/v1/*'].flatMap(path => [
  { ...post, kind: 'embeddings', path, ending: ':embedContent', call: passthrough['gemini-embed'] },
  { ...post, kind: 'embeddings', path, ending: ':batchEmbedContents', call: passthrough['gemini-batch-embed'] },
])

export const passthroughEndpoints: readonly Endpoint[] = [
  ...calls.map(([kind, path, call]) => ({ ...post, kind, path, call })),
  ...geminiEmbeddings,
]
