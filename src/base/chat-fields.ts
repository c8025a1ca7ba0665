// Parts of OpenAI's chat requests that not every upstream of the dialect has. Some upstreams refuse a request with a field
// that they do not know, so a translated request has only those that the provider declares (`can.chatFields`), and none of
// those that it lacks (`can.missingChatFields`). A request that is forwarded in its own dialect keeps all of its fields.

/**
 * - `custom_tools`: tools that take free text, and their calls
 * - `prompt_cache_breakpoint`: on parts of a message, so also texts in a list; and the request's `prompt_cache_options`
 * - `prompt_cache_key`, `user`, `verbosity`: fields of the request
 * - `random_seed`: the seed, where the provider gives it this name and lacks `seed`
 * - `refusal`: a field of the model's messages
 * - `strict`: holds the model to the schema of a function or of the answer
 */
export const CHAT_FIELDS = [
  'custom_tools',
  'prompt_cache_breakpoint',
  'prompt_cache_key',
  'random_seed',
  'refusal',
  'strict',
  'user',
  'verbosity',
] as const

export type ChatField = (typeof CHAT_FIELDS)[number]

/** What upstreams accept that declare nothing: almost all accept it. */
export const defaultChatFields: readonly ChatField[] = ['user']

/** What upstreams accept unless they declare that they lack it. `name` is a field of messages. */
export const BASIC_CHAT_FIELDS = [
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'n',
  'name',
  'parallel_tool_calls',
  'presence_penalty',
  'seed',
  'service_tier',
  'stop',
  'top_logprobs',
] as const

export type BasicChatField = (typeof BASIC_CHAT_FIELDS)[number]
