// A valid request of each dialect that uses most fields of the dialect.

import type { CallerDialect } from './raw-callers.ts'

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

const chat = (model: string): object => ({
  model,
  messages: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
      ],
    },
    {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'map', arguments: '{"city":"Paris"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'sunny' }] },
    { role: 'user', name: 'ann', content: 'And now?' },
  ],
  tools: [{ type: 'function', function: { name: 'map', description: 'A map', parameters: schema, strict: true } }],
  tool_choice: { type: 'function', function: { name: 'map' } },
  parallel_tool_calls: false,
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
  reasoning_effort: 'low',
  max_completion_tokens: 50,
  temperature: 0.5,
  top_p: 0.9,
  stop: ['END'],
  n: 1,
  seed: 3,
  logprobs: true,
  top_logprobs: 2,
  presence_penalty: 0.1,
  frequency_penalty: 0.1,
  logit_bias: { 50256: -100 },
  metadata: { a: 'b' },
  user: 'u1',
  service_tier: 'auto',
  stream: false,
})

const messages = (model: string): object => ({
  model,
  max_tokens: 2_000,
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '5m' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'x' },
          title: 't',
          citations: { enabled: true },
        },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'map', input: { city: 'Paris' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'sunny' }], is_error: false },
        { type: 'text', text: 'And now?' },
      ],
    },
  ],
  tools: [{ name: 'map', description: 'A map', input_schema: schema }],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  thinking: { type: 'disabled' },
  output_config: { effort: 'low' },
  metadata: { user_id: 'u1' },
  stop_sequences: ['END'],
  service_tier: 'auto',
  stream: false,
})

const responses = (model: string): object => ({
  model,
  instructions: 'Be brief.',
  input: [
    { role: 'developer', content: 'Be kind.' },
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'low' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
      ],
    },
    { type: 'reasoning', id: 'rs_fake_1', summary: [{ type: 'summary_text', text: 'hm' }] },
    { type: 'function_call', call_id: 'call_1', name: 'map', arguments: '{"city":"Paris"}' },
    { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'sunny' }] },
    { role: 'user', content: 'And now?' },
  ],
  tools: [{ type: 'function', name: 'map', description: 'A map', parameters: schema, strict: true }],
  tool_choice: { type: 'function', name: 'map' },
  parallel_tool_calls: false,
  text: { format: { type: 'json_schema', name: 'x', schema, strict: true }, verbosity: 'low' },
  reasoning: { effort: 'low', summary: 'auto' },
  include: ['reasoning.encrypted_content'],
  max_output_tokens: 50,
  temperature: 0.5,
  top_p: 0.9,
  metadata: { a: 'b' },
  store: false,
  truncation: 'disabled',
  prompt_cache_key: 'k',
  safety_identifier: 'u1',
  stream: false,
})

const gemini = (): object => ({
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  contents: [
    { role: 'user', parts: [{ text: 'What is this?' }, { inlineData: { mimeType: 'image/png', data: png } }] },
    { role: 'model', parts: [{ functionCall: { name: 'map', args: { city: 'Paris' } }, thoughtSignature: 'c2ln' }] },
    { role: 'user', parts: [{ functionResponse: { name: 'map', response: { output: 'sunny' } } }] },
    { role: 'user', parts: [{ text: 'And now?' }] },
  ],
  tools: [{ functionDeclarations: [{ name: 'map', description: 'A map', parameters: schema }] }],
  toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['map'] } },
  generationConfig: {
    temperature: 0.5,
    topP: 0.9,
    topK: 3,
    candidateCount: 1,
    maxOutputTokens: 50,
    stopSequences: ['END'],
    responseMimeType: 'application/json',
    responseSchema: schema,
    thinkingConfig: { includeThoughts: true, thinkingBudget: 128 },
    seed: 3,
  },
  safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  labels: { a: 'b' },
})

export const richRequest: Readonly<Record<CallerDialect, (model: string) => object>> = {
  'openai-chat': chat,
  'ark': chat,
  'anthropic-messages': messages,
  'openai-responses': responses,
  'gemini': gemini,
  'gemini-array': gemini,
}
