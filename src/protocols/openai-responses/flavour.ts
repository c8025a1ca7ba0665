// The differences between the two variants of the Responses dialect: OpenAI's, and Ark's under /api/v3.

export interface Flavour {
  readonly name: 'openai-responses' | 'ark-responses'
  /** Request fields that upstreams of this flavour do not have. */
  readonly lacks: ReadonlySet<string>
  /** Service tiers that upstreams of this flavour have. */
  readonly classes: readonly string[]
  /** Has the role `developer` in addition to `system`. */
  readonly developers: boolean
  /** Parts of the prompt may have cache breakpoints. */
  readonly cacheMarks: boolean
  /** Has custom tools, which take free text. */
  readonly customTools: boolean
  /** `tool_choice` may be a list of allowed tools. */
  readonly allowedTools: boolean
  /** Accepts thoughts without reasoning state. */
  readonly plainThoughts: boolean
  /** Has a switch for thinking in addition to the effort, and shows thoughts by default. */
  readonly thinkingSwitch: boolean
  /** Accepts audio and video by URL. */
  readonly films: boolean
  /** A web search has options for its domains and the size of its context. */
  readonly searchOptions: boolean
}

export const openaiFlavour: Flavour = {
  name: 'openai-responses',
  lacks: new Set(),
  classes: ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'],
  developers: true,
  cacheMarks: true,
  customTools: true,
  allowedTools: true,
  plainThoughts: false,
  thinkingSwitch: false,
  films: false,
  searchOptions: true,
}

export const arkFlavour: Flavour = {
  name: 'ark-responses',
  lacks: new Set(['metadata', 'top_logprobs', 'verbosity', 'prompt_cache_options', 'user']),
  classes: ['auto', 'default'],
  developers: false,
  cacheMarks: false,
  customTools: false,
  allowedTools: false,
  plainThoughts: true,
  thinkingSwitch: true,
  films: true,
  searchOptions: false,
}
