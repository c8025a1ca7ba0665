// Lists every field of this dialect's requests, and whether a translation carries it to upstreams of other dialects.
import type { FieldTable } from '../request/fields.ts'
import { findLostFields } from '../request/fields.ts'
import type { Json } from '../request/json-type.ts'

export const requestFields: FieldTable = {
  model: 'read',
  max_tokens: 'read',
  messages: 'read',
  system: 'read',
  stream: 'read',
  stop_sequences: 'read',
  temperature: 'read',
  top_p: 'read',
  top_k: 'read',
  thinking: 'read',
  output_config: 'read',
  tools: 'read',
  tool_choice: 'read',
  metadata: 'read',
  service_tier: 'read',
  speed: 'read',
  cache_control: 'read',
  output_format: 'read',
  thread: 'read',
  // `betas` repeats a header; `fallbacks` is refused unless it is empty.
  betas: 'moot',
  fallbacks: 'moot',
  container: 'lost',
  diagnostics: 'lost',
  inference_geo: 'lost',
  user_profile_id: 'lost',
  workspace_id: 'lost',
  compaction: 'lost',
  context_management: 'lost',
  fallback_credit_token: 'lost',
  mcp_servers: { unless: [] },
}

export const outputFields: FieldTable = { effort: 'read', format: 'read', task_budget: 'lost' }
export const formatFields: FieldTable = { type: 'read', schema: 'read' }
export const thinkingFields: FieldTable = { type: 'read', budget_tokens: 'read', display: 'read' }
export const metadataFields: FieldTable = { user_id: 'read' }
export const choiceFields: FieldTable = { type: 'read', name: 'read', disable_parallel_tool_use: 'read' }
export const messageFields: FieldTable = { role: 'read', content: 'read' }
export const sourceFields: FieldTable = {
  type: 'read',
  data: 'read',
  media_type: 'read',
  url: 'read',
  file_id: 'read',
  content: 'read',
}
export const cacheFields: FieldTable = { type: 'read', ttl: 'read' }

export const toolFields: FieldTable = {
  name: 'read',
  type: 'read',
  description: 'read',
  input_schema: 'read',
  strict: 'read',
  cache_control: 'read',
  // Changes only how arguments are streamed.
  eager_input_streaming: 'moot',
  defer_loading: { unless: false },
  input_examples: 'lost',
  allowed_callers: { unless: ['direct'] },
}

export const searchFields: FieldTable = {
  name: 'read',
  type: 'read',
  allowed_domains: 'read',
  max_uses: 'read',
  user_location: 'read',
  cache_control: 'read',
  blocked_domains: { unless: [] },
  defer_loading: { unless: false },
  strict: { unless: false },
  allowed_callers: { unless: ['direct'] },
  response_inclusion: 'lost',
}

export const locationFields: FieldTable = {
  type: 'read',
  city: 'read',
  country: 'read',
  region: 'read',
  timezone: 'read',
}

/** The blocks that a translation carries; all others exist in this dialect only. */
export const blockFields: Readonly<Record<string, FieldTable>> = {
  text: { type: 'read', text: 'read', cache_control: 'read', citations: 'read' },
  image: { type: 'read', source: 'read', cache_control: 'read', transformations: 'lost' },
  document: {
    type: 'read',
    source: 'read',
    title: 'read',
    cache_control: 'read',
    context: 'lost',
    citations: { unless: { enabled: false } },
  },
  search_result: {
    type: 'read',
    content: 'read',
    source: 'read',
    title: 'read',
    cache_control: 'read',
    citations: { unless: { enabled: false } },
  },
  thinking: { type: 'read', thinking: 'read', signature: 'read' },
  redacted_thinking: { type: 'read', data: 'read' },
  tool_use: {
    type: 'read',
    id: 'read',
    name: 'read',
    input: 'read',
    cache_control: 'read',
    caller: 'read',
    toolset_name: 'lost',
  },
  tool_reference: { type: 'read', tool_name: 'read', cache_control: 'read' },
  tool_result: {
    type: 'read',
    tool_use_id: 'read',
    content: 'read',
    is_error: 'read',
    cache_control: 'read',
    toolset_name: 'lost',
  },
  compaction: {
    type: 'read',
    content: 'read',
    cache_control: 'read',
    encrypted_content: 'lost',
    signature: 'lost',
    tool_changes: 'lost',
  },
}

/** Collects the fields of a request that a translation cannot carry, each once. */
export class LostFields {
  readonly #paths = new Set<string>()

  addLost(json: Json, table: FieldTable, path = ''): void {
    for (const name of findLostFields(json, table, path)) this.#paths.add(name)
  }

  add(path: string): void {
    this.#paths.add(path)
  }

  get paths(): readonly string[] {
    return [...this.#paths]
  }
}
