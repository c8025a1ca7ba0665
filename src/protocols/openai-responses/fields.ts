// Tables of the fields of a request, and of its items, parts and tools, that a translation carries. A field that is in
// no table is lost.

import type { FieldTable } from '../request/fields.ts'

const common: FieldTable = {
  model: 'moot',
  input: 'read',
  instructions: 'read',
  stream: 'read',
  stream_options: 'moot',
  max_output_tokens: 'read',
  temperature: 'read',
  top_p: 'read',
  tools: 'read',
  tool_choice: 'read',
  parallel_tool_calls: 'read',
  reasoning: 'read',
  text: 'read',
  include: 'read',
  service_tier: 'read',
  safety_identifier: 'read',
  prompt_cache_key: 'read',
  // The gateway stores responses itself.
  store: 'moot',
  max_tool_calls: 'lost',
  // Before a call is translated, the previous response has been merged into its input.
  previous_response_id: 'lost',
  context_management: { unless: [] },
}

export const openaiFields: FieldTable = {
  ...common,
  background: 'moot',
  // Fields of Open Responses that OpenAI does not have.
  frequency_penalty: 'read',
  presence_penalty: 'read',
  metadata: 'read',
  user: 'read',
  top_logprobs: 'read',
  prompt_cache_options: 'read',
  conversation: 'lost',
  prompt: 'lost',
  prompt_cache_retention: 'lost',
  moderation: 'lost',
  image: 'lost',
  access_programs: 'lost',
  truncation: 'read',
}

export const arkFields: FieldTable = {
  ...common,
  thinking: 'read',
  caching: 'lost',
  expire_at: 'moot',
  session: 'lost',
}

export const reasoningFields: FieldTable = {
  effort: 'read',
  summary: 'read',
  generate_summary: 'read',
  context: 'lost',
  mode: 'lost',
}

export const textFields: FieldTable = { format: 'read', verbosity: 'read' }

export const cacheOptionFields: FieldTable = {
  mode: 'read',
  ttl: 'read',
  comparison_response_id: 'lost',
  prewarm: 'lost',
}

/** Fields of all items. Other dialects do not need the id and the status of an item. */
const item: FieldTable = { type: 'read', id: 'moot', status: 'moot', created_by: 'moot' }

const result: FieldTable = {
  ...item,
  call_id: 'read',
  output: 'read',
  name: 'read',
  caller: 'moot',
  namespace: 'read',
}

export const itemFields: Readonly<Record<string, FieldTable>> = {
  message: { ...item, role: 'read', content: 'read', phase: 'lost' },
  function_call: {
    ...item,
    call_id: 'read',
    name: 'read',
    arguments: 'read',
    caller: 'moot',
    namespace: 'read',
    async: { unless: false },
  },
  custom_tool_call: {
    ...item,
    call_id: 'read',
    name: 'read',
    input: 'read',
    caller: 'moot',
    namespace: 'read',
    async: { unless: false },
  },
  function_call_output: result,
  custom_tool_call_output: result,
  reasoning: { ...item, summary: 'read', content: 'read', encrypted_content: 'read' },
}

const part: FieldTable = { type: 'read', prompt_cache_breakpoint: 'read' }

export const partFields: Readonly<Record<string, FieldTable>> = {
  input_text: { ...part, text: 'read' },
  output_text: { ...part, text: 'read', annotations: 'read', logprobs: 'moot' },
  refusal: { ...part, refusal: 'read' },
  input_image: { ...part, image_url: 'read', file_id: 'read', detail: 'read' },
  input_file: { ...part, file_data: 'read', file_url: 'read', file_id: 'read', filename: 'read', detail: 'read' },
  input_audio: { ...part, input_audio: 'read', audio_url: 'read', file_id: 'read' },
  input_video: { ...part, video_url: 'read', file_id: 'read' },
}

/** The tools of a namespace have the fields of other tools. */
export const namespaceFields: FieldTable = { type: 'read', name: 'read', description: 'read', tools: 'read' }

export const toolFields: Readonly<Record<string, FieldTable>> = {
  function: {
    type: 'read',
    name: 'read',
    description: 'read',
    parameters: 'read',
    strict: 'read',
    // In other dialects only the model can call tools.
    allowed_callers: 'moot',
    defer_loading: 'moot',
    async: { unless: false },
    output_schema: 'lost',
  },
  custom: {
    type: 'read',
    name: 'read',
    description: 'read',
    format: 'read',
    allowed_callers: 'moot',
    defer_loading: 'moot',
    async: { unless: false },
  },
  search: {
    type: 'read',
    filters: 'read',
    search_context_size: 'read',
    user_location: 'read',
    external_web_access: { unless: true },
    search_content_types: 'lost',
  },
}
