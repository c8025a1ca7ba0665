// Schemas of the request bodies of calls, with the fields that the gateway reads. Other fields of a dialect are passed
// on, translated, or reported as lost, so all of these schemas are open.

import type { JsonSchema } from './operation.ts'
import { count, flag, listOf, openObject, refTo, text } from './operation.ts'

const model = text('The model: `<provider>/<model>`, its name alone, or a name that the operator defined.', {
  examples: ['demo/echo'],
})
const stream = flag('True: the answer comes as server-sent events.')
const serviceTier = text('The service class, if the provider has several; each may have its own prices.')
const string = { type: 'string' }
/** An object whose fields are those of the dialect. */
const part = openObject({})
const wordOrObject = (description: string): JsonSchema => ({
  ...openObject({}, [], description),
  type: ['string', 'object'],
})
const objects = (description: string): JsonSchema => listOf(part, description)
const textOr = (items: JsonSchema, description: string): JsonSchema => ({
  description,
  type: ['string', 'array'],
  items,
})

const metadata = {
  description: 'Strings by name; they are stored in the record of the call as its tags.',
  type: 'object',
  additionalProperties: string,
}
/** A text, a list of tokens, or an object such as an image. */
const textOrTokens = { ...openObject({}), type: ['string', 'integer', 'array', 'object'], items: { type: 'integer' } }

const chatMessage = openObject(
  {
    role: text('The role of the message.', { examples: ['user'] }),
    content: {
      description: 'The content: a string, or a list of parts.',
      type: ['string', 'array', 'null'],
      items: part,
    },
  },
  ['role'],
)

const chatFields = {
  model,
  messages: { ...listOf(refTo('ChatMessage'), 'The conversation so far.'), minItems: 1 },
  stream,
  stream_options: openObject({ include_usage: flag('True: the last chunk contains the usage.') }),
  max_completion_tokens: count('The largest number of tokens of the answer, including reasoning.'),
  max_tokens: count('The older name of max_completion_tokens.'),
  n: count('The number of answers.', { minimum: 1 }),
  service_tier: serviceTier,
  tools: objects('Functions that the model may call, and tools of the provider.'),
  tool_choice: wordOrObject('Whether the model may or must call a tool, and which one.'),
  response_format: openObject({ type: text('`text`, `json_object` or `json_schema`.') }),
  reasoning_effort: text('The reasoning effort of a reasoning model.'),
  temperature: { type: ['number', 'null'], description: 'From 0 to 2.' },
  stop: textOr(string, 'The answer ends before one of these strings.'),
  user: text('The id of your end user; it is stored in the record.'),
  metadata,
}

export const callSchemas: Readonly<Record<string, JsonSchema>> = {
  ChatMessage: chatMessage,
  ChatRequest: openObject(chatFields, ['model', 'messages']),
  ArkChatRequest: openObject(
    { ...chatFields, thinking: openObject({ type: text('`enabled`, `disabled` or `auto`.') }) },
    ['model', 'messages'],
  ),
  MessagesRequest: openObject(
    {
      model,
      max_tokens: count('The largest number of tokens of the answer.', { minimum: 1 }),
      messages: { ...listOf(openObject({ role: text('`user` or `assistant`.') }, ['role'])), minItems: 1 },
      system: textOr(part, 'The system prompt.'),
      stream,
      tools: objects('Tools that the model may use.'),
      tool_choice: openObject({ type: text('`auto`, `any`, `tool` or `none`.') }),
      thinking: openObject({ type: text('`enabled`, `disabled` or `adaptive`.') }),
      service_tier: serviceTier,
      metadata: openObject({ user_id: text('The id of your end user; it is stored in the record.') }),
    },
    ['model', 'max_tokens', 'messages'],
  ),
  CountMessagesRequest: openObject(
    {
      model,
      messages: { ...listOf(openObject({ role: text('`user` or `assistant`.') }, ['role'])), minItems: 1 },
      system: textOr(part, 'The system prompt.'),
      tools: objects('Tools that the model may use.'),
    },
    ['model', 'messages'],
  ),
  ResponsesRequest: openObject(
    {
      model,
      input: textOr(part, 'A string, or a list of items.'),
      instructions: { type: ['string', 'null'], description: 'Instructions for the model.' },
      stream,
      max_output_tokens: count('The largest number of tokens of the answer, including reasoning.'),
      store: flag('True (default): the response is stored and can be retrieved later.'),
      background: flag('True: the response is created in the background; retrieve it by its id.'),
      previous_response_id: {
        type: ['string', 'null'],
        description: 'The id of the previous response of the conversation.',
      },
      tools: objects('Functions that the model may call, and tools of the provider.'),
      max_tool_calls: count('The largest number of calls of tools of the provider.'),
      reasoning: openObject({ effort: { type: ['string', 'null'] } }, [], 'The reasoning effort.'),
      service_tier: serviceTier,
      metadata,
    },
    ['model'],
  ),
  GeminiRequest: openObject(
    {
      contents: { ...listOf(refTo('GeminiContent'), 'The conversation so far.'), minItems: 1 },
      systemInstruction: refTo('GeminiContent'),
      generationConfig: openObject({
        maxOutputTokens: count('The largest number of tokens of the answer.'),
        candidateCount: count('The number of answers.', { minimum: 1 }),
      }),
      tools: objects('Functions that the model may call, and tools of the provider.'),
      cachedContent: text('The name of a cache at the provider.'),
      labels: metadata,
    },
    ['contents'],
  ),
  GeminiContent: openObject(
    {
      role: text('`user` or `model`.'),
      parts: listOf(openObject({ text: { type: 'string' } }), 'Texts, media, function calls.'),
    },
    ['parts'],
  ),
  CompletionsRequest: openObject(
    {
      model,
      prompt: textOr(textOrTokens, 'The text to continue.'),
      stream,
      max_tokens: count('The largest number of tokens of the answer.'),
      n: count('The number of answers.'),
    },
    ['model', 'prompt'],
  ),
  EmbeddingsRequest: openObject(
    {
      model,
      input: textOr(textOrTokens, 'A string, or a list of strings or tokens.'),
      dimensions: count('The number of dimensions of each vector.', { minimum: 1 }),
      encoding_format: text('`float` or `base64`.'),
    },
    ['model', 'input'],
  ),
  MultimodalEmbeddingsRequest: openObject(
    { model, input: listOf(openObject({ type: text('The type of the part.') })) },
    [...['model', 'input']],
  ),
  EmbedContentRequest: openObject(
    {
      content: refTo('GeminiContent'),
      taskType: text('The purpose of the vector.'),
      outputDimensionality: count('The number of dimensions of the vector.'),
    },
    ['content'],
  ),
  BatchEmbedContentsRequest: openObject({ requests: listOf(openObject({ content: refTo('GeminiContent') })) }, [
    'requests',
  ]),
  ImagesRequest: openObject(
    {
      model,
      prompt: text('A description of the image.'),
      n: count('The number of images.', { minimum: 1 }),
      size: text('Such as `1024x1024`.'),
      quality: text('Such as `low`, `medium` or `high`.'),
      stream,
    },
    ['model', 'prompt'],
  ),
  SpeechRequest: openObject(
    {
      model,
      input: text('The text to speak.'),
      voice: wordOrObject('The voice.'),
      speed: { type: 'number', minimum: 0.25, maximum: 4, description: 'The speed of the speech.' },
      stream_format: text('`sse` for server-sent events; otherwise the answer is audio bytes.'),
    },
    ['model', 'input'],
  ),
  RerankRequest: openObject(
    {
      model,
      query: text('The query.'),
      documents: listOf(wordOrObject('A text, or an object with one.'), 'The documents to rank.'),
      top_n: count('The number of results.'),
    },
    ['model', 'query', 'documents'],
  ),
  ModerationsRequest: openObject({ model, input: textOr(textOrTokens, 'The text to check.') }, ['model', 'input']),
  ContextRequest: openObject(
    {
      model,
      messages: listOf(refTo('ChatMessage'), 'The first messages of every conversation with this context.'),
      ttl: count('The lifetime in seconds.'),
    },
    ['model', 'messages'],
  ),
  ContextChatRequest: openObject({ ...chatFields, context_id: text('The id that /api/v3/context/create returned.') }, [
    ...['model', 'messages', 'context_id'],
  ]),
  TokenizationRequest: openObject({ model, text: textOr(string, 'A string, or a list of strings.') }, [
    'model',
    'text',
  ]),
  CompactRequest: openObject({ model, input: textOr(part, 'A string, or a list of items.') }, ['model']),
  CountResponsesRequest: openObject({ model, input: textOr(part, 'A string, or a list of items.') }, ['model']),
  TaskRequest: openObject(
    {
      model,
      content: listOf(
        openObject({ type: text('`text`, `image_url` …') }),
        'The texts and images from which the video is made.',
      ),
    },
    ['model', 'content'],
  ),
}
