// Requests of programs that cannot be installed from npm or PyPI, in the form that their documentation and source
// describe.

import type { Recording } from '../../scripts/proof/agents/record.ts'

const tool = {
  type: 'function',
  function: {
    name: 'read_file',
    description: 'Reads a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  },
}
const call = { id: 'call_read', type: 'function', function: { name: 'read_file', arguments: '{"path":"notes.txt"}' } }

/** Zed: crates/open_ai/src/open_ai.rs of its repository. */
const zed: Recording = {
  program: 'zed',
  version: 'documented',
  requests: [
    {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json' },
      body: {
        model: 'player',
        messages: [
          { role: 'system', content: 'You are a coding agent.' },
          { role: 'user', content: [{ type: 'text', text: 'What is in notes.txt?' }] },
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', content: [{ type: 'text', text: 'status: draft' }], tool_call_id: call.id },
        ],
        stream: true,
        stream_options: { include_usage: true },
        max_completion_tokens: 4096,
        temperature: 1,
        tool_choice: 'auto',
        parallel_tool_calls: false,
        tools: [tool],
      },
    },
  ],
}

/** Cursor, with a custom model whose name has neither `claude` nor `gpt`: Chat. */
const cursor: Recording = {
  program: 'cursor',
  version: 'documented',
  requests: [
    { method: 'GET', path: '/v1/models', headers: {}, body: undefined },
    {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', 'user-agent': 'Go-http-client/2.0' },
      body: {
        model: 'player',
        messages: [
          { role: 'system', content: 'You are a coding agent.' },
          { role: 'user', content: 'What is in notes.txt?' },
          { role: 'assistant', content: '', tool_calls: [call] },
          { role: 'tool', content: 'status: draft', tool_call_id: call.id },
        ],
        stream: true,
        stream_options: { include_usage: true },
        temperature: 0,
        user: 'github|user_01',
        tools: [tool],
        tool_choice: 'auto',
      },
    },
  ],
}

export const documented: readonly Recording[] = [zed, cursor]
