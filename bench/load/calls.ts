// The calls of the load generator: a chat with a system prompt and a question, plain or streamed, or with a megabyte of
// turns before the question. One call for each key.

import { plainAnswer, wholeStream } from '../upstreams/answers.ts'
import { streamText } from '../upstreams/dialects.ts'
import type { Call } from './connection.ts'
import { checkAnswerText, checkBytes, checkStreamText } from './expected.ts'

export const SYSTEM = 'You are a patient guide to rivers. Answer in two or three sentences, without lists.'
export const QUESTION = 'What is a weir, what is it good for, and why does it also measure its river?'

const chat = {
  model: 'openai/gpt-4o-mini',
  messages: [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: QUESTION },
  ],
  temperature: 0.7,
  max_tokens: 400,
}

const CHAT_PATH = '/v1/chat/completions'

/** How calls to a subject are sent and checked. */
export interface Manner {
  readonly path: string
  readonly model: string
  /** In addition to the headers of every call. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether answers are compared byte by byte. If not, only their text is compared. */
  readonly isExact: boolean
}

export const usualManner: Manner = { path: CHAT_PATH, model: chat.model, headers: {}, isExact: true }

export function plainCalls(keys: readonly string[], manner = usualManner): readonly Call[] {
  const { path, model, headers, isExact } = manner
  const check = isExact ? checkBytes(plainAnswer) : checkAnswerText(plainAnswer)
  return keys.map(key => ({ request: requestOf(path, { ...chat, model }, key, headers), check }))
}

export function streamCalls(keys: readonly string[], chunks: number, manner = usualManner): readonly Call[] {
  const { path, model, headers, isExact } = manner
  const check = isExact
    ? checkBytes(wholeStream(chunks))
    : checkStreamText({ text: streamText('chat', chunks), ...chatStream })
  const body = { ...chat, model, stream: true, stream_options: { include_usage: true } }
  return keys.map(key => ({ request: requestOf(path, body, key, headers), check }))
}

interface ChatChunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[]
}

/** The text of an event of Chat Completions, and the end of the stream. */
export const chatStream = {
  textOf: (event: unknown): string | undefined => (event as ChatChunk).choices?.[0]?.delta?.content ?? undefined,
  end: 'data: [DONE]\n\n',
} as const

/** Calls like those of a coding agent: many turns, lines and quotes, and some characters beyond ASCII. */
export function promptCalls(keys: readonly string[], bytes: number): readonly Call[] {
  const line = 'if (level > "2.4 m") { open(gate) } // écluse, siehe §4\n'
  const turn = line.repeat(80)
  const turns = Math.ceil(bytes / Buffer.byteLength(JSON.stringify(turn)))
  const conversation = Array.from({ length: turns }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: turn,
  }))
  const [system, question] = chat.messages
  const body = { ...chat, model: 'openai/gpt-4.1-mini', messages: [system, ...conversation, question] }
  const check = checkBytes(plainAnswer)
  return keys.map(key => ({ request: requestOf(CHAT_PATH, body, key), check }))
}

export function requestOf(path: string, json: object, key: string, headers: Manner['headers'] = {}): Buffer {
  const body = JSON.stringify(json)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    'Accept: */*',
    'User-Agent: weir-bench',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
