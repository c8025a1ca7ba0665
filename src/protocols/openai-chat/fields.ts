// Which fields of a chat request are carried into another dialect, object by object.

import type { FieldTable } from '../request/fields.ts'

const all = <Fate extends 'read' | 'moot' | 'lost'>(fate: Fate, ...names: readonly string[]): Record<string, Fate> =>
  Object.fromEntries(names.map(name => [name, fate]))

/** What is `read` with care is lost only for some of its values: see read-conversation.ts. */
export const requestFields: FieldTable = {
  ...all('read', 'messages', 'model', 'stream', 'n', 'max_tokens', 'max_completion_tokens', 'service_tier'),
  ...all('read', 'temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty', 'seed', 'stop'),
  ...all('read', 'logprobs', 'top_logprobs', 'logit_bias', 'verbosity', 'user', 'safety_identifier', 'metadata'),
  ...all('read', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'web_search_options'),
  ...all('read', 'response_format', 'prompt_cache_key', 'prompt_cache_options', 'store', 'modalities'),
  ...all('read', 'stream_options'),
  ...all('read', 'reasoning_effort', 'reasoning', 'thinking', 'enable_thinking', 'thinking_budget', 'extra_body'),
  ...all('lost', 'audio', 'moderation', 'prediction', 'prompt_cache_retention', 'min_p', 'repetition_penalty'),
}

/** Usage is told as the caller asked, and padding against eavesdroppers is not ours. */
export const streamFields: FieldTable = { ...all('read', 'include_usage'), ...all('moot', 'include_obfuscation') }

export const messageFields: Readonly<Record<string, FieldTable>> = {
  system: all('read', 'role', 'content', 'name', 'cache_control'),
  developer: all('read', 'role', 'content', 'name', 'cache_control'),
  user: all('read', 'role', 'content', 'name', 'cache_control'),
  assistant: {
    ...all('read', 'role', 'content', 'name', 'refusal', 'tool_calls', 'function_call', 'audio', 'cache_control'),
    ...all('read', 'reasoning_content', 'reasoning', 'annotations'),
    // Ark's state of thoughts; a caller of plain chat has none.
    ...all('read', 'encrypted_content'),
    // What the SDKs' helpers leave in a message that is sent back.
    ...all('moot', 'parsed'),
  },
  tool: all('read', 'role', 'content', 'tool_call_id', 'name', 'cache_control'),
  function: all('read', 'role', 'content', 'name'),
}

const marks = all('read', 'type', 'cache_control', 'prompt_cache_breakpoint')

/** A part, and what is in it under the name of its type. */
export const partFields: Readonly<Record<string, readonly [part: FieldTable, inner: FieldTable]>> = {
  text: [{ ...marks, ...all('read', 'text') }, {}],
  refusal: [{ ...marks, ...all('read', 'refusal') }, {}],
  image_url: [{ ...marks, ...all('read', 'image_url') }, all('read', 'url', 'detail', 'file_id')],
  video_url: [{ ...marks, ...all('read', 'video_url') }, all('read', 'url', 'file_id')],
  input_audio: [{ ...marks, ...all('read', 'input_audio') }, all('read', 'data', 'format', 'url', 'file_id')],
  file: [{ ...marks, ...all('read', 'file') }, all('read', 'file_id', 'file_data', 'file_url', 'filename')],
}

export const callFields: FieldTable = {
  ...all('read', 'id', 'type', 'function', 'custom', 'extra_content'),
  ...all('moot', 'index'),
}

export const innerCallFields: FieldTable = all('read', 'name', 'arguments', 'input')

export const functionFields: FieldTable = {
  ...all('read', 'name', 'description', 'parameters', 'strict', 'cache_control'),
}

export const customFields: FieldTable = all('read', 'name', 'description', 'format', 'cache_control')

export const toolFields: FieldTable = all('read', 'type', 'function', 'custom', ...Object.keys(marks))

export const searchFields: FieldTable = all('read', 'search_context_size', 'user_location')

export const formatFields: FieldTable = all('read', 'name', 'description', 'schema', 'strict')
