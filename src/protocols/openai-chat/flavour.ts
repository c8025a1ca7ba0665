// What differs between the dialects that are chat at heart. Everything else of a codec is shared by all of them.

export interface Flavour {
  readonly dialect: string
  /** An assistant's message bears the state of its thoughts, as `encrypted_content`. */
  readonly bearsState: boolean
  /** `max_tokens` bounds what is shown of an answer, and its thoughts come on top of that. */
  readonly capsShownAlone: boolean
  /** Thinking is switched by `thinking.type`, beside the word of effort. */
  readonly switchesThinking: boolean
  /** Has what OpenAI added to chat: tools of free text, searches, refusals, verbosity, a key and marks to cache by. */
  readonly isFull: boolean
  /** The word for looking at an image as closely as can be. */
  readonly closestDetail: string
  /** Fetches sounds and files by itself, as every chat upstream does with images. */
  readonly fetchesFiles: boolean
  readonly choicesMax: number
  /** The classes of service that it can be asked for. */
  readonly serviceClasses: readonly string[]
  /** The tiers that its answers name. OpenAI answers `priority` where `fast` was asked for. */
  readonly servedTiers: readonly string[]
}

export const openaiChat: Flavour = {
  dialect: 'openai-chat',
  bearsState: false,
  capsShownAlone: false,
  switchesThinking: false,
  isFull: true,
  closestDetail: 'original',
  fetchesFiles: false,
  choicesMax: 128,
  serviceClasses: ['auto', 'default', 'flex', 'scale', 'priority', 'fast'],
  servedTiers: ['auto', 'default', 'flex', 'scale', 'priority'],
}
