// The LLM endpoints, one row each. A test holds them against the table of endpoints: none is missing, none is too much.

import type { ErrorDialectName } from '../../protocols/list.ts'
import type { Parameter } from './operation.ts'
import { count, flag, listOf, pathParameter, queryParameter, text } from './operation.ts'

export interface CallRow {
  readonly method?: 'GET' | 'DELETE'
  readonly path: string
  readonly id: string
  readonly tag: string
  readonly about: string
  readonly dialect: ErrorDialectName
  /** Whose answers tell by X-Pipeline-* what each stage did; others tell it only of a refused key. */
  readonly generates?: boolean
  /** It is forwarded, held and billed. Anything else is answered here or asked of an upstream for nothing. */
  readonly forwarded?: boolean
  readonly streams?: boolean
  /** Its JSON is a list, unless events are asked for. */
  readonly answersList?: boolean
  readonly parameters?: readonly Parameter[]
  /** Of call-bodies.ts, and an example of it. */
  readonly body?: readonly [schema: string, example: unknown]
  /** A form, by the fields that are read. */
  readonly form?: Readonly<Record<string, string>>
  /** What the answer is, where it is no JSON. */
  readonly answers?: string
  readonly auth?: 'nobody'
}

const model = 'demo/echo'
const chat = { model, messages: [{ role: 'user', content: 'Hello' }] }
const messages = { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
const gemini = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
const context = 'ctx-20270131000000-abcde'
const [openaiChat, responses, anthropic] = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const

const call = { tag: 'Calls', generates: true, forwarded: true, streams: true } as const
const other = { tag: 'Other calls', forwarded: true } as const

const inPath = [pathParameter('model', 'The model, as `<provider>/<model>`; its slash may be raw or `%2F`.')]
const asEvents = queryParameter('alt', { type: 'string', enum: ['sse', 'json'], description: '`sse` for events.' })

/** Google's paths begin with either. */
const google = (rows: (prefix: string, name: string) => readonly CallRow[]): readonly CallRow[] =>
  (
    [
      ['/v1beta', ''],
      ['/v1', 'V1'],
    ] as const
  ).flatMap(([prefix, name]) => rows(`${prefix}/models/{model}`, name))

const talks: readonly CallRow[] = [
  {
    ...{ ...call, path: '/v1/chat/completions', id: 'createChatCompletion', dialect: openaiChat },
    about: "Answer a conversation, in OpenAI's chat dialect.",
    body: ['ChatRequest', chat],
  },
  {
    ...{ ...call, path: '/v1/messages', id: 'createMessage', dialect: anthropic },
    about: "Answer a conversation, in Anthropic's dialect.",
    body: ['MessagesRequest', messages],
  },
  {
    ...{ ...call, path: '/v1/responses', id: 'createResponse', dialect: responses },
    about: "Answer a conversation, in OpenAI's Responses dialect.",
    body: ['ResponsesRequest', { model, input: 'Hello' }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...{ ...call, path: `${path}:generateContent`, id: `generateContent${name}`, dialect: 'gemini', streams: false },
      ...{ about: "Answer a conversation, in Google's dialect.", parameters: inPath },
      body: ['GeminiRequest', gemini],
    },
    {
      ...{ ...call, path: `${path}:streamGenerateContent`, id: `streamGenerateContent${name}`, dialect: 'gemini' },
      ...{ about: "Answer a conversation as a stream, in Google's dialect.", parameters: [...inPath, asEvents] },
      ...{ body: ['GeminiRequest', gemini], answersList: true },
    },
  ]),
  {
    ...{ ...call, path: '/api/v3/chat/completions', id: 'createArkChatCompletion', dialect: 'ark' },
    about: "Answer a conversation, in Volcengine Ark's dialect.",
    body: ['ArkChatRequest', chat],
  },
  {
    ...{ ...call, path: '/api/v3/responses', id: 'createArkResponse', dialect: 'ark' },
    about: "Answer a conversation, in Ark's form of the Responses dialect.",
    body: ['ResponsesRequest', { model, input: 'Hello' }],
  },
  {
    ...{ ...call, path: '/v1beta/openai/chat/completions', id: 'createChatCompletionBeta', dialect: openaiChat },
    about: "The same as /v1/chat/completions, where clients of Google's look for it.",
    body: ['ChatRequest', chat],
  },
  {
    ...{ ...call, path: '/v1/completions', id: 'createCompletion', dialect: openaiChat },
    about: 'Go on from a text. For models that are made for it; not translated.',
    body: ['CompletionsRequest', { model: 'provider/model', prompt: 'Once upon a time' }],
  },
  {
    ...{ ...call, path: '/api/v3/bots/chat/completions', id: 'createArkBotCompletion', dialect: 'ark' },
    about: 'Ask a bot that was put together at Ark.',
    body: ['ChatRequest', { ...chat, model: 'provider/bot' }],
  },
  {
    ...{ ...call, path: '/api/v3/context/chat/completions', id: 'createArkContextCompletion', dialect: 'ark' },
    about: 'Answer a conversation that begins with a context.',
    body: ['ContextChatRequest', { ...chat, model: 'provider/model', context_id: context }],
  },
]

const vectors = { model: 'provider/model', input: ['Hello', 'Goodbye'] }
const picture = { model: 'provider/model', prompt: 'A weir in the morning mist' }

const others: readonly CallRow[] = [
  ...['/v1', '/v1beta/openai'].flatMap((prefix, at): readonly CallRow[] => [
    {
      ...{ ...other, path: `${prefix}/embeddings`, id: `createEmbedding${at ? 'Beta' : ''}`, dialect: openaiChat },
      ...{ about: 'Turn texts into vectors.', body: ['EmbeddingsRequest', vectors] },
    },
    {
      ...{ ...other, path: `${prefix}/images/generations`, id: `createImage${at ? 'Beta' : ''}`, dialect: openaiChat },
      ...{ about: 'Draw pictures.', body: ['ImagesRequest', picture], streams: true },
    },
  ]),
  {
    ...{ ...other, path: '/v1/images/edits', id: 'editImage', dialect: openaiChat, streams: true },
    ...{ about: 'Change pictures.', form: { model: 'text', image: 'file', prompt: 'text', n: 'text', stream: 'text' } },
  },
  {
    ...{ ...other, path: '/v1/audio/speech', id: 'createSpeech', dialect: openaiChat, answers: 'audio/*' },
    ...{ about: 'Speak a text.', body: ['SpeechRequest', { model: 'provider/model', input: 'Hello', voice: 'alloy' }] },
  },
  {
    ...{ ...other, path: '/v1/audio/transcriptions', id: 'createTranscription', dialect: openaiChat, streams: true },
    about: 'Write down what is said.',
    form: { model: 'text', file: 'file', response_format: 'text', stream: 'text' },
  },
  {
    ...{ ...other, path: '/v1/rerank', id: 'rerank', dialect: openaiChat, about: 'Put texts in order, by a question.' },
    body: ['RerankRequest', { model: 'provider/model', query: 'Which is a river?', documents: ['Rhine', 'Oslo'] }],
  },
  {
    ...{ ...other, path: '/v1/moderations', id: 'createModeration', dialect: openaiChat, about: 'Judge texts.' },
    body: ['ModerationsRequest', { model: 'provider/model', input: 'Hello' }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...{ ...other, path: `${path}:embedContent`, id: `embedContent${name}`, dialect: 'gemini', parameters: inPath },
      ...{ about: 'Turn a text into a vector.', body: ['EmbedContentRequest', { content: gemini.contents[0] }] },
    },
    {
      ...{ ...other, path: `${path}:batchEmbedContents`, id: `batchEmbedContents${name}`, dialect: 'gemini' },
      ...{ about: 'Turn texts into vectors.', parameters: inPath },
      body: ['BatchEmbedContentsRequest', { requests: [{ content: gemini.contents[0] }] }],
    },
  ]),
  {
    ...{ ...other, path: '/api/v3/embeddings', id: 'createArkEmbedding', dialect: 'ark' },
    ...{ about: 'Turn texts into vectors.', body: ['EmbeddingsRequest', vectors] },
  },
  {
    ...{ ...other, path: '/api/v3/embeddings/multimodal', id: 'createArkMultimodalEmbedding', dialect: 'ark' },
    about: 'Turn texts and pictures into one vector.',
    body: ['MultimodalEmbeddingsRequest', { model: 'provider/model', input: [{ type: 'text', text: 'Hello' }] }],
  },
  {
    ...{ ...other, path: '/api/v3/images/generations', id: 'createArkImage', dialect: 'ark', streams: true },
    ...{ about: 'Draw pictures.', body: ['ImagesRequest', picture] },
  },
  {
    ...{ ...other, path: '/api/v3/context/create', id: 'createArkContext', dialect: 'ark' },
    about: 'Keep the beginning of conversations at the provider.',
    body: ['ContextRequest', { ...chat, model: 'provider/model', ttl: 3600 }],
  },
]

const counting = { tag: 'Counting' } as const

const counts: readonly CallRow[] = [
  {
    ...{ ...counting, path: '/v1/messages/count_tokens', id: 'countMessageTokens', dialect: anthropic },
    about: 'Tell how many tokens a request to /v1/messages has.',
    body: ['CountMessagesRequest', { model, messages: chat.messages }],
  },
  {
    ...{ ...counting, path: '/v1/responses/input_tokens', id: 'countResponseTokens', dialect: responses },
    about: 'Tell how many tokens a request to /v1/responses has.',
    body: ['CountResponsesRequest', { model, input: 'Hello' }],
  },
  {
    ...{ ...counting, path: '/api/v3/tokenization', id: 'countArkTokens', dialect: 'ark' },
    about: 'Tell how many tokens texts have.',
    body: ['TokenizationRequest', { model, text: ['Hello'] }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...{ ...counting, path: `${path}:countTokens`, id: `countTokens${name}`, dialect: 'gemini', parameters: inPath },
      ...{ about: 'Tell how many tokens a request has.', body: ['GeminiRequest', gemini] },
    },
  ]),
]

const stored = (
  [
    ['/v1/responses', '', responses],
    ['/api/v3/responses', 'Ark', 'ark'],
  ] as const
).flatMap(([root, name, dialect]): readonly CallRow[] => {
  const one = { tag: 'Stored responses', dialect, parameters: [pathParameter('id', 'Of a response.')] }
  const again = [
    queryParameter('stream', flag('Whether its events are told again.')),
    queryParameter('starting_after', count('The number of the last event that you have heard.')),
  ]
  const paged = [
    queryParameter('after', text('The id of the last item of the page before.')),
    queryParameter('limit', count('How many.', { minimum: 1, maximum: 100 })),
    queryParameter('order', { type: 'string', enum: ['asc', 'desc'], description: 'Oldest or newest first.' }),
  ]
  return [
    {
      ...{ tag: 'Stored responses', dialect, path: `${root}/compact`, id: `compact${name}Response` },
      ...{ about: 'Press a conversation into one item.', body: ['CompactRequest', { model, input: 'Hello' }] },
    },
    {
      ...{ ...one, method: 'GET', path: `${root}/{id}`, id: `get${name}Response`, streams: true },
      ...{ about: 'Show a response, or tell its events again.', parameters: [...one.parameters, ...again] },
    },
    {
      ...{ ...one, method: 'GET', path: `${root}/{id}/input_items`, id: `list${name}ResponseInput` },
      ...{ about: 'List what a response was asked.', parameters: [...one.parameters, ...paged] },
    },
    {
      ...{ ...one, path: `${root}/{id}/cancel`, id: `cancel${name}Response` },
      about: 'End a response that is being made in the background.',
    },
    {
      ...{ ...one, method: 'DELETE', path: `${root}/{id}`, id: `delete${name}Response` },
      about: 'Forget a response, here and at its upstream.',
    },
  ]
})

const TASKS = '/api/v3/contents/generations/tasks'
const owned = { tag: 'Tasks and files', dialect: 'ark' } as const
const ofTask = [pathParameter('id', 'Of a task.')]
const ofFile = [pathParameter('id', 'Of a file.')]
const listed = [
  queryParameter('page_num', count('Which page.', { minimum: 1, maximum: 500 })),
  queryParameter('page_size', count('How many rows a page has.', { minimum: 1, maximum: 500 })),
  queryParameter('filter.status', text('Only those that are so.')),
  queryParameter('filter.task_ids', listOf({ type: 'string' }, 'Only these.')),
  queryParameter('filter.model', text('Only of this model.')),
]

const ownedRows: readonly CallRow[] = [
  {
    ...{ ...owned, path: TASKS, id: 'createTask', forwarded: true, about: 'Begin a film.' },
    body: ['TaskRequest', { model: 'provider/model', content: [{ type: 'text', text: 'A river, seen from above' }] }],
  },
  { ...owned, method: 'GET', path: TASKS, id: 'listTasks', about: "List the account's tasks.", parameters: listed },
  { ...owned, method: 'GET', path: `${TASKS}/{id}`, id: 'getTask', about: 'Show a task.', parameters: ofTask },
  {
    ...{ ...owned, method: 'DELETE', path: `${TASKS}/{id}`, id: 'deleteTask', parameters: ofTask },
    about: 'Cancel a task that waits, or forget one that is over.',
  },
  {
    ...{ ...owned, path: '/api/v3/files', id: 'uploadFile', form: { file: 'file', purpose: 'text' } },
    about: 'Put a file at the provider.',
  },
  { ...owned, method: 'GET', path: '/api/v3/files', id: 'listFiles', about: "List the account's files." },
  { ...owned, method: 'GET', path: '/api/v3/files/{id}', id: 'getFile', about: 'Show a file.', parameters: ofFile },
  {
    ...{ ...owned, method: 'DELETE', path: '/api/v3/files/{id}', id: 'deleteFile', about: 'Remove a file.' },
    parameters: ofFile,
  },
]

export const callRows: readonly CallRow[] = [...talks, ...others, ...counts, ...stored, ...ownedRows]
