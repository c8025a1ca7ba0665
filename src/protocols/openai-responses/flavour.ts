// Two dialects are spoken with the same words: OpenAI's own, and Ark's under /api/v3. What differs is data, here.

export interface Flavour {
  readonly name: 'openai-responses' | 'ark-responses'
  /** Fields of a request that an upstream of it does not know. */
  readonly lacks: ReadonlySet<string>
  /** Classes of service that an upstream of it knows. */
  readonly classes: readonly string[]
  /** Has a role for developers beside the one for the system. */
  readonly developers: boolean
  /** Parts of a prompt may bear marks of where its cache is to be cut. */
  readonly cacheMarks: boolean
  /** Has tools that take free text. */
  readonly customTools: boolean
  /** A choice may be among some of the tools. */
  readonly allowedTools: boolean
  /** Reads thoughts that nobody has signed. */
  readonly plainThoughts: boolean
  /** Has a switch for thinking beside the word for its effort, and shows thoughts unasked. */
  readonly thinkingSwitch: boolean
  /** Takes sounds and films by their address. */
  readonly films: boolean
  /** A search may be told how wide and where to look. */
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
