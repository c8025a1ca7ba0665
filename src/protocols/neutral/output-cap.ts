// The cap on the output of a translated request. An upstream refuses a cap above the model's own limit.

import type { ConversationTarget } from '../protocol.ts'
import type { GenerationSettings } from './conversation.ts'

/** The smallest of the caller's cap, the cap that the funds impose, and the model's own limit. */
export function outputCap(
  { outputTokensMax: asked }: GenerationSettings,
  { outputTokensMax: modelMax, cap }: Pick<ConversationTarget, 'outputTokensMax' | 'cap'>,
): number | undefined {
  return asked === undefined ? cap : Math.min(asked, cap ?? asked, modelMax ?? asked)
}
