// The calls that are made: one chat with a system prompt and a question, plain or streamed, or with a megabyte before
// the question, once for each key.

import { plainAnswer, wholeStream } from '../upstreams/answers.ts'
import { saidBy } from '../upstreams/dialects.ts'
import type { Call } from './connection.ts'
import { answering, exactly, saying } from './expected.ts'

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

/** How a subject wants to be called. */
export interface Manner {
  readonly path: string
  readonly model: string
  /** Beside those that every call has. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the very bytes of the upstream come back; else what they say is compared. */
  readonly isExact: boolean
}

export const usualManner: Manner = { path: CHAT_PATH, model: chat.model, headers: {}, isExact: true }

export function plainCalls(keys: readonly string[], manner = usualManner): readonly Call[] {
  const { path, model, headers, isExact } = manner
  const check = isExact ? exactly(plainAnswer) : answering(plainAnswer)
  return keys.map(key => ({ request: requestOf(path, { ...chat, model }, key, headers), check }))
}

export function streamCalls(keys: readonly string[], chunks: number, manner = usualManner): readonly Call[] {
  const { path, model, headers, isExact } = manner
  const check = isExact ? exactly(wholeStream(chunks)) : saying({ text: saidBy('chat', chunks), ...chatStream })
  const body = { ...chat, model, stream: true, stream_options: { include_usage: true } }
  return keys.map(key => ({ request: requestOf(path, body, key, headers), check }))
}

interface ChatChunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[]
}

/** Where a stream of Chat Completions says something, and how it ends. */
export const chatStream = {
  textOf: (event: unknown): string | undefined => (event as ChatChunk).choices?.[0]?.delta?.content ?? undefined,
  end: 'data: [DONE]\n\n',
} as const

/** As an agent sends it again and again: many turns, lines and quotes, and here and there a letter beyond ASCII. */
export function promptCalls(keys: readonly string[], bytes: number): readonly Call[] {
  const line = 'if (level > "2.4 m") { open(gate) } // écluse, siehe §4\n'
  const turn = line.repeat(80)
  const turns = Math.ceil(bytes / Buffer.byteLength(JSON.stringify(turn)))
  const talk = Array.from({ length: turns }, (_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: turn }))
  const [system, question] = chat.messages
  const body = { ...chat, model: 'openai/gpt-4.1-mini', messages: [system, ...talk, question] }
  const check = exactly(plainAnswer)
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
