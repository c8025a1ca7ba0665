// Penalties for repetitions. Some models refuse a request that has one.

import type { ConversationTarget } from '../protocol.ts'
import type { GenerationSettings } from './conversation.ts'

/** The penalties that the model accepts. A penalty of 0 is the default, so leaving it out is no loss. */
export function acceptedPenalties(
  { frequencyPenalty, presencePenalty }: GenerationSettings,
  { traits, notes }: Pick<ConversationTarget, 'traits' | 'notes'>,
): Pick<GenerationSettings, 'frequencyPenalty' | 'presencePenalty'> {
  if (traits.penalties === false) {
    if (frequencyPenalty) notes.losses.add('frequency_penalty')
    if (presencePenalty) notes.losses.add('presence_penalty')
    return {}
  }
  return {
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
  }
}
