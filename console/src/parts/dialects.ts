// The dialects in which callers write, by the names that records hold. They are names of APIs, the same in all languages.

/** In the order in which filters offer them. */
const names: Readonly<Record<string, string>> = {
  'openai-chat': 'OpenAI Chat',
  'openai-responses': 'OpenAI Responses',
  'anthropic-messages': 'Anthropic Messages',
  'gemini': 'Gemini',
  'ark': 'Volcengine Ark',
  'ark-responses': 'Ark Responses',
  'openai-completions': 'OpenAI Completions',
  'openai-embeddings': 'OpenAI Embeddings',
  'openai-images': 'OpenAI Images',
  'openai-image-edits': 'OpenAI Image Edits',
  'openai-speech': 'OpenAI Speech',
  'openai-transcription': 'OpenAI Transcription',
  'openai-rerank': 'Rerank',
  'openai-moderations': 'OpenAI Moderations',
  'gemini-embed': 'Gemini Embed',
  'gemini-batch-embed': 'Gemini Batch Embed',
  'ark-embeddings': 'Ark Embeddings',
  'ark-multimodal-embeddings': 'Ark Multimodal Embeddings',
  'ark-images': 'Ark Images',
  'ark-tasks': 'Ark Tasks',
  'ark-tokenization': 'Ark Tokenization',
  'ark-bots': 'Ark Bots',
  'ark-context-create': 'Ark Context Create',
  'ark-context-chat': 'Ark Context Chat',
}

export const dialectNames = Object.keys(names)
export const dialectName = (dialect: string): string => names[dialect] ?? dialect
