// The LLM endpoints, one row each. A test compares them with the table of endpoints: none is missing or superfluous.

import type { ErrorDialectName } from '../../protocols/protocols.ts'
import type { Parameter } from './operation.ts'
import { count, flag, listOf, pathParameter, queryParameter, text } from './operation.ts'

export interface CallRow {
  readonly method?: 'GET' | 'DELETE'
  readonly path: string
  readonly id: string
  readonly tag: string
  readonly summary: string
  readonly dialect: ErrorDialectName
  /** True: its answers have X-Pipeline-* headers of all stages; others have them only for a refused key. */
  readonly generates?: boolean
  /** True: the call is forwarded, holds money and is billed. Other endpoints are free. */
  readonly forwarded?: boolean
  readonly streams?: boolean
  /** True: its JSON answer is a list, unless the caller wants events. */
  readonly answersList?: boolean
  readonly parameters?: readonly Parameter[]
  /** The name of a schema of call-bodies.ts, and an example. */
  readonly body?: readonly [schema: string, example: unknown]
  /** The fields of a multipart form. */
  readonly form?: Readonly<Record<string, string>>
  /** The content type of the answer if it is not JSON. */
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

const inPath = [
  pathParameter('model', 'The model: its name, or `<provider>/<model>`; the slash may be written as `/` or `%2F`.'),
]
const asEvents = queryParameter('alt', {
  type: 'string',
  enum: ['sse', 'json'],
  description: '`sse` for server-sent events.',
})

/** Google's paths begin with /v1beta or /v1. */
const google = (rows: (prefix: string, name: string) => readonly CallRow[]): readonly CallRow[] =>
  (
    [
      ['/v1beta', ''],
      ['/v1', 'V1'],
    ] as const
  ).flatMap(([prefix, name]) => rows(`${prefix}/models/{model}`, name))

const generations: readonly CallRow[] = [
  {
    ...call,
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    dialect: openaiChat,
    summary: "Answer a conversation, in OpenAI's chat dialect.",
    body: ['ChatRequest', chat],
  },
  {
    ...call,
    path: '/v1/messages',
    id: 'createMessage',
    dialect: anthropic,
    summary: "Answer a conversation, in Anthropic's dialect.",
    body: ['MessagesRequest', messages],
  },
  {
    ...call,
    path: '/v1/responses',
    id: 'createResponse',
    dialect: responses,
    summary: "Answer a conversation, in OpenAI's Responses dialect. A GET opens a WebSocket for the same calls.",
    body: ['ResponsesRequest', { model, input: 'Hello' }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...call,
      path: `${path}:generateContent`,
      id: `generateContent${name}`,
      dialect: 'gemini',
      streams: false,
      summary: "Answer a conversation, in Google's dialect.",
      parameters: inPath,
      body: ['GeminiRequest', gemini],
    },
    {
      ...call,
      path: `${path}:streamGenerateContent`,
      id: `streamGenerateContent${name}`,
      dialect: 'gemini',
      summary: "Answer a conversation as a stream, in Google's dialect.",
      parameters: [...inPath, asEvents],
      body: ['GeminiRequest', gemini],
      answersList: true,
    },
  ]),
  {
    ...call,
    path: '/api/v3/chat/completions',
    id: 'createArkChatCompletion',
    dialect: 'ark',
    summary: "Answer a conversation, in Volcengine Ark's dialect.",
    body: ['ArkChatRequest', chat],
  },
  {
    ...call,
    path: '/api/v3/responses',
    id: 'createArkResponse',
    dialect: 'ark',
    summary: "Answer a conversation, in Ark's form of the Responses dialect.",
    body: ['ResponsesRequest', { model, input: 'Hello' }],
  },
  {
    ...call,
    path: '/v1beta/openai/chat/completions',
    id: 'createChatCompletionBeta',
    dialect: openaiChat,
    summary: "The same as /v1/chat/completions, under the path of Google's OpenAI-compatible clients.",
    body: ['ChatRequest', chat],
  },
  {
    ...call,
    path: '/v1/completions',
    id: 'createCompletion',
    dialect: openaiChat,
    summary: 'Continue a text. Only for completion models; the request is not translated.',
    body: ['CompletionsRequest', { model: 'provider/model', prompt: 'Once upon a time' }],
  },
  {
    ...call,
    path: '/api/v3/bots/chat/completions',
    id: 'createArkBotCompletion',
    dialect: 'ark',
    summary: 'Answer a conversation with a bot that was built at Ark.',
    body: ['ChatRequest', { ...chat, model: 'provider/bot' }],
  },
  {
    ...call,
    path: '/api/v3/context/chat/completions',
    id: 'createArkContextCompletion',
    dialect: 'ark',
    summary: 'Answer a conversation that begins with a stored context.',
    body: ['ContextChatRequest', { ...chat, model: 'provider/model', context_id: context }],
  },
]

const vectors = { model: 'provider/model', input: ['Hello', 'Goodbye'] }
const picture = { model: 'provider/model', prompt: 'A weir in the morning mist' }

const others: readonly CallRow[] = [
  ...['/v1', '/v1beta/openai'].flatMap((prefix, at): readonly CallRow[] => [
    {
      ...other,
      path: `${prefix}/embeddings`,
      id: `createEmbedding${at ? 'Beta' : ''}`,
      dialect: openaiChat,
      summary: 'Create embeddings of texts.',
      body: ['EmbeddingsRequest', vectors],
    },
    {
      ...other,
      path: `${prefix}/images/generations`,
      id: `createImage${at ? 'Beta' : ''}`,
      dialect: openaiChat,
      summary: 'Create images.',
      body: ['ImagesRequest', picture],
      streams: true,
    },
  ]),
  {
    ...other,
    path: '/v1/images/edits',
    id: 'editImage',
    dialect: openaiChat,
    streams: true,
    summary: 'Edit images.',
    form: { model: 'text', image: 'file', prompt: 'text', n: 'text', stream: 'text' },
  },
  {
    ...other,
    path: '/v1/audio/speech',
    id: 'createSpeech',
    dialect: openaiChat,
    answers: 'audio/*',
    summary: 'Convert text to speech.',
    body: ['SpeechRequest', { model: 'provider/model', input: 'Hello', voice: 'alloy' }],
  },
  {
    ...other,
    path: '/v1/audio/transcriptions',
    id: 'createTranscription',
    dialect: openaiChat,
    streams: true,
    summary: 'Transcribe speech to text.',
    form: { model: 'text', file: 'file', response_format: 'text', stream: 'text' },
  },
  {
    ...other,
    path: '/v1/rerank',
    id: 'rerank',
    dialect: openaiChat,
    summary: 'Rank documents by their relevance to a query.',
    body: ['RerankRequest', { model: 'provider/model', query: 'Which is a river?', documents: ['Rhine', 'Oslo'] }],
  },
  {
    ...other,
    path: '/v1/moderations',
    id: 'createModeration',
    dialect: openaiChat,
    summary: 'Classify texts as harmful or harmless.',
    body: ['ModerationsRequest', { model: 'provider/model', input: 'Hello' }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...other,
      path: `${path}:embedContent`,
      id: `embedContent${name}`,
      dialect: 'gemini',
      parameters: inPath,
      summary: 'Create an embedding of a text.',
      body: ['EmbedContentRequest', { content: gemini.contents[0] }],
    },
    {
      ...other,
      path: `${path}:batchEmbedContents`,
      id: `batchEmbedContents${name}`,
      dialect: 'gemini',
      summary: 'Create embeddings of texts.',
      parameters: inPath,
      body: ['BatchEmbedContentsRequest', { requests: [{ content: gemini.contents[0] }] }],
    },
  ]),
  {
    ...other,
    path: '/api/v3/embeddings',
    id: 'createArkEmbedding',
    dialect: 'ark',
    summary: 'Create embeddings of texts.',
    body: ['EmbeddingsRequest', vectors],
  },
  {
    ...other,
    path: '/api/v3/embeddings/multimodal',
    id: 'createArkMultimodalEmbedding',
    dialect: 'ark',
    summary: 'Create common embedding of texts and images.',
    body: ['MultimodalEmbeddingsRequest', { model: 'provider/model', input: [{ type: 'text', text: 'Hello' }] }],
  },
  {
    ...other,
    path: '/api/v3/images/generations',
    id: 'createArkImage',
    dialect: 'ark',
    streams: true,
    summary: 'Create images.',
    body: ['ImagesRequest', picture],
  },
  {
    ...other,
    path: '/api/v3/context/create',
    id: 'createArkContext',
    dialect: 'ark',
    summary: 'Store the beginning of conversations at the provider.',
    body: ['ContextRequest', { ...chat, model: 'provider/model', ttl: 3600 }],
  },
]

const counting = { tag: 'Counting' } as const

const counts: readonly CallRow[] = [
  {
    ...counting,
    path: '/v1/messages/count_tokens',
    id: 'countMessageTokens',
    dialect: anthropic,
    summary: 'Count the tokens of a request to /v1/messages.',
    body: ['CountMessagesRequest', { model, messages: chat.messages }],
  },
  {
    ...counting,
    path: '/v1/responses/input_tokens',
    id: 'countResponseTokens',
    dialect: responses,
    summary: 'Count the tokens of a request to /v1/responses.',
    body: ['CountResponsesRequest', { model, input: 'Hello' }],
  },
  {
    ...counting,
    path: '/api/v3/tokenization',
    id: 'countArkTokens',
    dialect: 'ark',
    summary: 'Count the tokens of texts.',
    body: ['TokenizationRequest', { model, text: ['Hello'] }],
  },
  ...google((path, name): readonly CallRow[] => [
    {
      ...counting,
      path: `${path}:countTokens`,
      id: `countTokens${name}`,
      dialect: 'gemini',
      parameters: inPath,
      summary: 'Count the tokens of a request.',
      body: ['GeminiRequest', gemini],
    },
  ]),
]

const stored = (
  [
    ['/v1/responses', '', responses],
    ['/api/v3/responses', 'Ark', 'ark'],
  ] as const
).flatMap(([root, name, dialect]): readonly CallRow[] => {
  const common = { tag: 'Stored responses', dialect, parameters: [pathParameter('id', 'The id of a response.')] }
  const replay = [
    queryParameter('stream', flag('True: the events of the response are sent again.')),
    queryParameter('starting_after', count('The number of the last event that you have received.')),
  ]
  const paged = [
    queryParameter('after', text('The id of the last item of the previous page.')),
    queryParameter('limit', count('Items per page.', { minimum: 1, maximum: 100 })),
    queryParameter('order', { type: 'string', enum: ['asc', 'desc'], description: 'Oldest or newest first.' }),
  ]
  return [
    {
      tag: 'Stored responses',
      dialect,
      path: `${root}/compact`,
      id: `compact${name}Response`,
      summary: 'Compact a conversation into one item.',
      body: ['CompactRequest', { model, input: 'Hello' }],
    },
    {
      ...common,
      method: 'GET',
      path: `${root}/{id}`,
      id: `get${name}Response`,
      streams: true,
      summary: 'Show a response, or send its events again.',
      parameters: [...common.parameters, ...replay],
    },
    {
      ...common,
      method: 'GET',
      path: `${root}/{id}/input_items`,
      id: `list${name}ResponseInput`,
      summary: 'List the input items of a response.',
      parameters: [...common.parameters, ...paged],
    },
    {
      ...common,
      path: `${root}/{id}/cancel`,
      id: `cancel${name}Response`,
      summary: 'Cancel a response that runs in the background.',
    },
    {
      ...common,
      method: 'DELETE',
      path: `${root}/{id}`,
      id: `delete${name}Response`,
      summary: 'Delete a response, here and at its upstream.',
    },
  ]
})

const TASKS = '/api/v3/contents/generations/tasks'
const owned = { tag: 'Tasks and files', dialect: 'ark' } as const
const ofTask = [pathParameter('id', 'The id of a task.')]
const ofFile = [pathParameter('id', 'The id of a file.')]
const listed = [
  queryParameter('page_num', count('The number of the page.', { minimum: 1, maximum: 500 })),
  queryParameter('page_size', count('Rows per page.', { minimum: 1, maximum: 500 })),
  queryParameter('filter.status', text('Only tasks with this status.')),
  queryParameter('filter.task_ids', listOf({ type: 'string' }, 'Only tasks with these ids.')),
  queryParameter('filter.model', text('Only tasks of this model.')),
]

const ownedRows: readonly CallRow[] = [
  {
    ...owned,
    path: TASKS,
    id: 'createTask',
    forwarded: true,
    summary: 'Start a video generation task.',
    body: ['TaskRequest', { model: 'provider/model', content: [{ type: 'text', text: 'A river, seen from above' }] }],
  },
  { ...owned, method: 'GET', path: TASKS, id: 'listTasks', summary: "List the account's tasks.", parameters: listed },
  { ...owned, method: 'GET', path: `${TASKS}/{id}`, id: 'getTask', summary: 'Show a task.', parameters: ofTask },
  {
    ...owned,
    method: 'DELETE',
    path: `${TASKS}/{id}`,
    id: 'deleteTask',
    parameters: ofTask,
    summary: 'Cancel a waiting task, or delete a finished one.',
  },
  {
    ...owned,
    path: '/api/v3/files',
    id: 'uploadFile',
    form: { file: 'file', purpose: 'text' },
    summary: 'Upload a file to the provider.',
  },
  { ...owned, method: 'GET', path: '/api/v3/files', id: 'listFiles', summary: "List the account's files." },
  { ...owned, method: 'GET', path: '/api/v3/files/{id}', id: 'getFile', summary: 'Show a file.', parameters: ofFile },
  {
    ...owned,
    method: 'DELETE',
    path: '/api/v3/files/{id}',
    id: 'deleteFile',
    summary: 'Delete a file.',
    parameters: ofFile,
  },
]

export const callRows: readonly CallRow[] = [...generations, ...others, ...counts, ...stored, ...ownedRows]
