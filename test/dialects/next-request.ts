// The request that follows an answer: the caller repeats the conversation and adds the results of the tool calls.

import type { Dialect } from './upstreams.ts'

export type Json = Record<string, unknown>
type JsonList = readonly Json[]

/** The next request of a caller, after an answer in its dialect, with the results of the tool calls. */
export const nextRequests: Readonly<Record<Dialect, (answer: Json) => Json>> = {
  'openai-chat': nextChat,
  'ark': nextChat,
  'openai-responses'({ output }) {
    const calls = (output as JsonList).filter(item => item.type === 'function_call')
    const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Sunny' }))
    return { input: [{ role: 'user', content: 'Weather?' }, ...(output as JsonList), ...results] }
  },
  'anthropic-messages'({ content }) {
    const calls = (content as JsonList).filter(block => block.type === 'tool_use')
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny' }))
    const messages = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content },
      { role: 'user', content: results },
    ]
    return { max_tokens: 4_000, messages }
  },
  'gemini'({ candidates }) {
    const { content } = (candidates as readonly { content: { parts: JsonList } }[])[0]!
    const calls = content.parts.flatMap(part => (part.functionCall === undefined ? [] : [part.functionCall as Json]))
    const parts = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'Sunny' } } }))
    return { contents: [{ role: 'user', parts: [{ text: 'Weather?' }] }, content, { role: 'user', parts }] }
  },
}

function nextChat({ choices }: Json): Json {
  // Many clients drop the fields that they do not know.
  const { message } = (choices as readonly { message: Json }[])[0]!
  const { role, content, tool_calls: calls } = message
  const results = (calls as JsonList).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'Sunny' }))
  return { messages: [{ role: 'user', content: 'Weather?' }, { role, content, tool_calls: calls }, ...results] }
}
