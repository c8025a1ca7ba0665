// Tables of the fields of a chat request that a translation carries into another dialect.

import type { FieldTable } from '../request/fields.ts'

const withRule = <Rule extends 'read' | 'moot' | 'lost'>(
  rule: Rule,
  ...names: readonly string[]
): Record<string, Rule> => Object.fromEntries(names.map(name => [name, rule]))

/** Some values of `read` fields are lost all the same: see read-conversation.ts. */
export const requestFields: FieldTable = {
  ...withRule('read', 'messages', 'model', 'stream', 'n', 'max_tokens', 'max_completion_tokens', 'service_tier'),
  ...withRule('read', 'temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty', 'seed', 'stop'),
  ...withRule('read', 'logprobs', 'top_logprobs', 'logit_bias', 'verbosity', 'user', 'safety_identifier', 'metadata'),
  ...withRule(
    'read',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'functions',
    'function_call',
    'web_search_options',
  ),
  ...withRule('read', 'response_format', 'prompt_cache_key', 'prompt_cache_options', 'store', 'modalities'),
  ...withRule('read', 'stream_options'),
  ...withRule('read', 'reasoning_effort', 'reasoning', 'thinking', 'enable_thinking', 'thinking_budget', 'extra_body'),
  ...withRule('lost', 'audio', 'moderation', 'prediction', 'prompt_cache_retention'),
  min_p: { unless: 0 },
  repetition_penalty: { unless: 1 },
}

/** The gateway writes usage itself. It adds no padding against eavesdroppers. */
export const streamFields: FieldTable = {
  ...withRule('read', 'include_usage'),
  ...withRule('moot', 'include_obfuscation'),
}

export const cacheOptionFields: FieldTable = withRule('read', 'mode', 'ttl')

export const messageFields: Readonly<Record<string, FieldTable>> = {
  system: withRule('read', 'role', 'content', 'name', 'cache_control'),
  developer: withRule('read', 'role', 'content', 'name', 'cache_control'),
  user: withRule('read', 'role', 'content', 'name', 'cache_control'),
  assistant: {
    ...withRule('read', 'role', 'content', 'name', 'refusal', 'tool_calls', 'function_call', 'audio', 'cache_control'),
    ...withRule('read', 'reasoning_content', 'reasoning', 'annotations'),
    // Ark's reasoning state. OpenAI's chat has none.
    ...withRule('read', 'encrypted_content'),
    // Left by SDK helpers in messages that are sent back.
    ...withRule('moot', 'parsed'),
  },
  tool: withRule('read', 'role', 'content', 'tool_call_id', 'name', 'cache_control'),
  function: withRule('read', 'role', 'content', 'name'),
}

const commonPartFields = withRule('read', 'type', 'cache_control', 'prompt_cache_breakpoint')

/** The fields of a part, and of the object in its field with the name of its type. */
export const partFields: Readonly<Record<string, readonly [part: FieldTable, inner: FieldTable]>> = {
  text: [{ ...commonPartFields, ...withRule('read', 'text') }, {}],
  refusal: [{ ...commonPartFields, ...withRule('read', 'refusal') }, {}],
  image_url: [{ ...commonPartFields, ...withRule('read', 'image_url') }, withRule('read', 'url', 'detail', 'file_id')],
  video_url: [{ ...commonPartFields, ...withRule('read', 'video_url') }, withRule('read', 'url', 'file_id')],
  input_audio: [
    { ...commonPartFields, ...withRule('read', 'input_audio') },
    withRule('read', 'data', 'format', 'url', 'file_id'),
  ],
  file: [
    { ...commonPartFields, ...withRule('read', 'file') },
    withRule('read', 'file_id', 'file_data', 'file_url', 'filename'),
  ],
}

export const callFields: FieldTable = {
  ...withRule('read', 'id', 'type', 'function', 'custom', 'extra_content'),
  ...withRule('moot', 'index'),
}

export const innerCallFields: FieldTable = withRule('read', 'name', 'arguments', 'input')

export const functionFields: FieldTable = {
  ...withRule('read', 'name', 'description', 'parameters', 'strict', 'cache_control'),
}

export const customFields: FieldTable = withRule('read', 'name', 'description', 'format', 'cache_control')

export const toolFields: FieldTable = withRule('read', 'type', 'function', 'custom', ...Object.keys(commonPartFields))

export const searchFields: FieldTable = withRule('read', 'search_context_size', 'user_location')

export const formatFields: FieldTable = withRule('read', 'name', 'description', 'schema', 'strict')
