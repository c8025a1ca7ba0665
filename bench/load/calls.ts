// The calls that are made: one chat with a system prompt and a question, plain or streamed, or with a megabyte before
// the question, once for each key.

import { plainAnswer, wholeStream } from '../upstreams/answers.ts'
import type { Call } from './connection.ts'
import { exactly } from './expected.ts'

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

export function plainCalls(keys: readonly string[]): readonly Call[] {
  const check = exactly(plainAnswer)
  return keys.map(key => ({ request: requestOf(CHAT_PATH, chat, key), check }))
}

export function streamCalls(keys: readonly string[], chunks: number): readonly Call[] {
  const check = exactly(wholeStream(chunks))
  const body = { ...chat, stream: true, stream_options: { include_usage: true } }
  return keys.map(key => ({ request: requestOf(CHAT_PATH, body, key), check }))
}

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

export function requestOf(path: string, json: object, key: string): Buffer {
  const body = JSON.stringify(json)
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    'Accept: */*',
    'User-Agent: weir-bench',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
