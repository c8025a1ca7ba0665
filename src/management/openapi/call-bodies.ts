// The bodies of calls as far as we read them. Whatever else a dialect has passes, or is translated, or is said to be
// lost; so each of them is open.

import type { JsonSchema } from './operation.ts'
import { count, flag, listOf, openObject, refTo, text } from './operation.ts'

const model = text('The model, as `<provider>/<model>`, or a name that the operator gave.', { examples: ['demo/echo'] })
const stream = flag('Whether the answer comes as server-sent events.')
const serviceTier = text('The class of service, where the provider has several; each may have prices of its own.')
const anything = (description: string): JsonSchema => ({ description })
const objects = (description: string): JsonSchema => listOf({ type: 'object' }, description)
const anyText = (description: string): JsonSchema => ({ description, type: ['string', 'array'], items: {} })

const metadata = openObject({}, [], 'Texts by name; they are kept in the record of the call as its tags.')

const chatMessage = openObject(
  {
    role: text('Who speaks.', { examples: ['user'] }),
    content: { description: 'What is said: a text, or a list of parts.', type: ['string', 'array', 'null'], items: {} },
  },
  ['role'],
)

const chatFields = {
  model,
  messages: { ...listOf(refTo('ChatMessage'), 'The conversation so far.'), minItems: 1 },
  stream,
  stream_options: openObject({ include_usage: flag('Whether the last chunk tells what was used.') }),
  max_completion_tokens: count('How many tokens the answer may have, with what is thought before it.'),
  max_tokens: count('The older name of the same.'),
  n: count('How many answers.', { minimum: 1 }),
  service_tier: serviceTier,
  tools: objects('Functions that the model may call, and tools of the provider.'),
  tool_choice: anything('Whether and what it must call.'),
  response_format: openObject({ type: text('`text`, `json_object` or `json_schema`.') }),
  reasoning_effort: text('How hard a model that thinks should think.'),
  temperature: { type: ['number', 'null'], description: 'From 0 to 2.' },
  stop: anyText('Where the answer ends.'),
  user: text('Who of your own users asks; kept in the record.'),
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
      max_tokens: count('How many tokens the answer may have.', { minimum: 1 }),
      messages: { ...listOf(openObject({ role: text('`user` or `assistant`.') }, ['role'])), minItems: 1 },
      system: anyText('Instructions.'),
      stream,
      tools: objects('Tools that the model may use.'),
      tool_choice: openObject({ type: text('`auto`, `any`, `tool` or `none`.') }),
      thinking: openObject({ type: text('`enabled`, `disabled` or `adaptive`.') }),
      service_tier: serviceTier,
      metadata: openObject({ user_id: text('Who of your own users asks; kept in the record.') }),
    },
    ['model', 'max_tokens', 'messages'],
  ),
  CountMessagesRequest: openObject(
    {
      model,
      messages: { ...listOf(openObject({ role: text('`user` or `assistant`.') }, ['role'])), minItems: 1 },
      system: anyText('Instructions.'),
      tools: objects('Tools that the model may use.'),
    },
    ['model', 'messages'],
  ),
  ResponsesRequest: openObject(
    {
      model,
      input: anyText('A text, or a list of items.'),
      instructions: { type: ['string', 'null'], description: 'What holds above the conversation.' },
      stream,
      max_output_tokens: count('How many tokens the answer may have, with what is thought before it.'),
      store: flag('Whether the response can be asked for again. True unless told otherwise.'),
      background: flag('Whether it is made while nobody waits; ask for it by its id.'),
      previous_response_id: { type: ['string', 'null'], description: 'The response that this one follows.' },
      tools: objects('Functions that the model may call, and tools of the provider.'),
      max_tool_calls: count('How many calls of tools of the provider.'),
      reasoning: openObject({ effort: { type: ['string', 'null'] } }, [], 'How hard it should think.'),
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
        maxOutputTokens: count('How many tokens the answer may have.'),
        candidateCount: count('How many answers.', { minimum: 1 }),
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
      parts: listOf(openObject({ text: { type: 'string' } }), 'Texts, media, calls.'),
    },
    ['parts'],
  ),
  CompletionsRequest: openObject(
    {
      ...{ model, prompt: anyText('What is to be gone on from.'), stream },
      ...{ max_tokens: count('How many tokens the answer may have.'), n: count('How many answers.') },
    },
    ['model', 'prompt'],
  ),
  EmbeddingsRequest: openObject(
    {
      model,
      input: anyText('A text, or a list of texts or tokens.'),
      dimensions: count('How many numbers each vector has.', { minimum: 1 }),
      encoding_format: text('`float` or `base64`.'),
    },
    ['model', 'input'],
  ),
  MultimodalEmbeddingsRequest: openObject({ model, input: listOf(openObject({ type: text('Of the part.') })) }, [
    ...['model', 'input'],
  ]),
  EmbedContentRequest: openObject(
    {
      content: refTo('GeminiContent'),
      taskType: text('What the vector is for.'),
      outputDimensionality: count('How many numbers it has.'),
    },
    ['content'],
  ),
  BatchEmbedContentsRequest: openObject({ requests: listOf(openObject({ content: refTo('GeminiContent') })) }, [
    'requests',
  ]),
  ImagesRequest: openObject(
    {
      model,
      prompt: text('What is to be seen.'),
      n: count('How many.', { minimum: 1 }),
      size: text('Such as `1024x1024`.'),
      quality: text('Such as `low`, `medium` or `high`.'),
      stream,
    },
    ['model', 'prompt'],
  ),
  SpeechRequest: openObject(
    {
      model,
      input: text('What is said.'),
      voice: anything('Who says it.'),
      speed: { type: 'number', minimum: 0.25, maximum: 4, description: 'How fast.' },
      stream_format: text('`sse` for events, else bytes.'),
    },
    ['model', 'input'],
  ),
  RerankRequest: openObject(
    { model, query: text('What is looked for.'), documents: listOf({}, 'Among what.'), top_n: count('How many.') },
    ['model', 'query', 'documents'],
  ),
  ModerationsRequest: openObject({ model, input: anyText('What is judged.') }, ['model', 'input']),
  ContextRequest: openObject(
    { model, messages: listOf(refTo('ChatMessage'), 'What every conversation begins with.'), ttl: count('Seconds.') },
    ['model', 'messages'],
  ),
  ContextChatRequest: openObject({ ...chatFields, context_id: text('What /api/v3/context/create gave.') }, [
    ...['model', 'messages', 'context_id'],
  ]),
  TokenizationRequest: openObject({ model, text: anyText('A text, or a list of texts.') }, ['model', 'text']),
  CompactRequest: openObject({ model, input: anyText('A text, or a list of items.') }, ['model']),
  CountResponsesRequest: openObject({ model, input: anyText('A text, or a list of items.') }, ['model']),
  TaskRequest: openObject(
    { model, content: listOf(openObject({ type: text('`text`, `image_url` …') }), 'What the film is made of.') },
    ['model', 'content'],
  ),
}
