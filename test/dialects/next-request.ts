// The request that follows an answer: its caller says all of it again, and what the calls gave.

import type { Dialect } from './upstreams.ts'

export type Json = Record<string, unknown>
type Listed = readonly Json[]

/** The caller's next request, after an answer in its own dialect: that answer, and what its calls gave. */
export const nextRequests: Readonly<Record<Dialect, (answer: Json) => Json>> = {
  'openai-chat': nextChat,
  'ark': nextChat,
  'openai-responses'({ output }) {
    const calls = (output as Listed).filter(item => item.type === 'function_call')
    const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Sunny' }))
    return { input: [{ role: 'user', content: 'Weather?' }, ...(output as Listed), ...results] }
  },
  'anthropic-messages'({ content }) {
    const calls = (content as Listed).filter(block => block.type === 'tool_use')
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny' }))
    const messages = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content },
      { role: 'user', content: results },
    ]
    return { max_tokens: 4_000, messages }
  },
  'gemini'({ candidates }) {
    const { content } = (candidates as readonly { content: { parts: Listed } }[])[0]!
    const calls = content.parts.flatMap(part => (part.functionCall === undefined ? [] : [part.functionCall as Json]))
    const parts = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'Sunny' } } }))
    return { contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }, content, { role: 'user', parts }] }
  },
}

function nextChat({ choices }: Json): Json {
  // Many clients drop the fields that they do not know.
  const { message } = (choices as readonly { message: Json }[])[0]!
  const { role, content, tool_calls: calls } = message
  const results = (calls as Listed).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'Sunny' }))
  return { messages: [{ role: 'user', content: 'Weather?' }, { role, content, tool_calls: calls }, ...results] }
}
