// The calls that are made: one chat with a system prompt and a question, plain or streamed, once for each key.

import { plainAnswer, wholeStream } from '../upstreams/answers.ts'
import type { Call } from './connection.ts'

const chat = {
  model: 'openai/gpt-4o-mini',
  messages: [
    { role: 'system', content: 'You are a patient guide to rivers. Answer in two or three sentences, without lists.' },
    { role: 'user', content: 'What is a weir, what is it good for, and why does it also measure its river?' },
  ],
  temperature: 0.7,
  max_tokens: 400,
}

export function plainCalls(keys: readonly string[]): readonly Call[] {
  const expected = Buffer.from(plainAnswer)
  return keys.map(key => ({ request: requestOf(chat, key), expected }))
}

export function streamCalls(keys: readonly string[], chunks: number): readonly Call[] {
  const expected = Buffer.from(wholeStream(chunks))
  const body = { ...chat, stream: true, stream_options: { include_usage: true } }
  return keys.map(key => ({ request: requestOf(body, key), expected }))
}

function requestOf(json: object, key: string): Buffer {
  const body = JSON.stringify(json)
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: 127.0.0.1',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    'Accept: */*',
    'User-Agent: weir-bench',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}
