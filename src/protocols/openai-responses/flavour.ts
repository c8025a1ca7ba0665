// The differences between the two variants of the Responses dialect: OpenAI's, and Ark's under /api/v3.

export interface ResponsesFlavour {
  readonly name: 'openai-responses' | 'ark-responses'
  /** Request fields that upstreams of this flavour do not have. */
  readonly missingFields: ReadonlySet<string>
  /** The least cap on output tokens that upstreams of this flavour accept. */
  readonly outputTokensMin: number
  /** Service tiers that upstreams of this flavour have. */
  readonly serviceTiers: readonly string[]
  /** Has the role `developer` in addition to `system`. */
  readonly hasDeveloperRole: boolean
  /** Parts of the prompt may have cache breakpoints. */
  readonly hasCacheBreakpoints: boolean
  /** Has custom tools, which take free text. */
  readonly hasCustomTools: boolean
  /** `tool_choice` may be a list of allowed tools. */
  readonly hasAllowedTools: boolean
  /** Accepts thoughts without reasoning state. */
  readonly acceptsPlainThoughts: boolean
  /** Has a switch for thinking in addition to the effort, and shows thoughts by default. */
  readonly hasThinkingSwitch: boolean
  /** Accepts audio and video by URL. */
  readonly acceptsMediaUrls: boolean
  /** Reads files of text. Otherwise PDF is the only type of a file. */
  readonly readsTextFiles: boolean
  /** A file has a detail, as an image has. */
  readonly hasFileDetail: boolean
  /** A web search has options for its domains and the size of its context. */
  readonly hasSearchOptions: boolean
}

export const openaiFlavour: ResponsesFlavour = {
  name: 'openai-responses',
  missingFields: new Set(),
  outputTokensMin: 16,
  serviceTiers: ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'],
  hasDeveloperRole: true,
  hasCacheBreakpoints: true,
  hasCustomTools: true,
  hasAllowedTools: true,
  acceptsPlainThoughts: false,
  hasThinkingSwitch: false,
  acceptsMediaUrls: false,
  readsTextFiles: true,
  hasFileDetail: true,
  hasSearchOptions: true,
}

export const arkFlavour: ResponsesFlavour = {
  name: 'ark-responses',
  missingFields: new Set(['metadata', 'top_logprobs', 'verbosity', 'prompt_cache_options', 'user']),
  outputTokensMin: 1,
  serviceTiers: ['auto', 'default'],
  hasDeveloperRole: false,
  hasCacheBreakpoints: false,
  hasCustomTools: false,
  hasAllowedTools: false,
  acceptsPlainThoughts: true,
  hasThinkingSwitch: true,
  acceptsMediaUrls: true,
  readsTextFiles: false,
  hasFileDetail: false,
  hasSearchOptions: false,
}
