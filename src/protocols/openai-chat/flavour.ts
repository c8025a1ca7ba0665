// The differences between the dialects that are variants of chat. They share the rest of the codec.

export interface ChatFlavour {
  readonly dialect: string
  /** Assistant messages carry reasoning state in `encrypted_content`. */
  readonly carriesReasoningState: boolean
  /** `max_tokens` limits only the visible output. Thoughts are not included. */
  readonly capsVisibleOutput: boolean
  /** `thinking.type` switches thinking on and off, in addition to `reasoning_effort`. */
  readonly hasThinkingSwitch: boolean
  /**
   * May have OpenAI's additions: web search, refusals, and the fields of base/chat-fields.ts, of which each provider
   * declares its own.
   */
  readonly hasOpenaiAdditions: boolean
  /** The value of `detail` for the highest resolution of an image. */
  readonly highestDetail: string
  /** The upstream fetches audio and files from URLs. Every chat upstream fetches images. */
  readonly fetchesFiles: boolean
  readonly choicesMax: number
  /** The service tiers that a request can ask for. */
  readonly serviceClasses: readonly string[]
  /** The service tiers in answers. OpenAI answers `priority` to a request for `fast`. */
  readonly servedTiers: readonly string[]
}

export const openaiChatFlavour: ChatFlavour = {
  dialect: 'openai-chat',
  carriesReasoningState: false,
  capsVisibleOutput: false,
  hasThinkingSwitch: false,
  hasOpenaiAdditions: true,
  highestDetail: 'original',
  fetchesFiles: false,
  choicesMax: 128,
  serviceClasses: ['auto', 'default', 'flex', 'scale', 'priority', 'fast'],
  servedTiers: ['auto', 'default', 'flex', 'scale', 'priority'],
}
