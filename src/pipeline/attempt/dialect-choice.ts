// Chooses the dialect of a translated request, where the provider speaks several. The provider's first dialect is used
// unless another one carries more of this request.

import { Refusal } from '../../base/errors.ts'
import type { Conversation, GenerationSettings } from '../../protocols/neutral/conversation.ts'
import { isRequested } from '../../protocols/neutral/default-settings.ts'
import type { Codec, Protocol } from '../../protocols/protocol.ts'
import type { Candidate } from '../exchange.ts'
import { unfetchedMedia } from './media.ts'
import type { AttemptContext } from './translation.ts'
import { openTranslation, writeTranslated } from './translation.ts'

/** Returns the same context, or one whose candidate has another dialect of the provider. */
export function chooseDialect(context: AttemptContext, conversation: Conversation): AttemptContext {
  const { candidate } = context
  if (candidate.otherProtocols === undefined) return context
  const better = candidate.otherProtocols.filter(other => mayCarryMore(candidate, other, conversation))
  if (better.length === 0) return context
  // Only such requests are written more than once.
  let best = context
  let fewest = countLosses(context, conversation)
  for (const upstreamProtocol of better) {
    const other = { ...context, candidate: { ...candidate, upstreamProtocol } }
    const losses = countLosses(other, conversation)
    if (losses < fewest) [best, fewest] = [other, losses]
  }
  return best
}

/**
 * Whether the request has a setting that the other dialect has, and the first one has not.
 *
 * Models that think refuse most of these settings in every dialect, and their thoughts are carried best by the first
 * dialect. If it is not known whether a model thinks, another dialect is tried only where the first one certainly refuses
 * the request.
 */
function mayCarryMore(
  { upstreamProtocol, model, provider }: Candidate,
  other: Protocol,
  { settings }: Conversation,
): boolean {
  const { thinking } = model.traits ?? provider.traits
  if (thinking !== undefined && thinking !== 'none') return false
  const lostThere = lostSettings(other.codec, settings)
  const gained = lostSettings(upstreamProtocol.codec, settings).filter(name => !lostThere.includes(name))
  return thinking === 'none' ? gained.length > 0 : gained.includes('choices')
}

/** The settings of the request that a dialect does not have. */
function lostSettings(codec: Codec | undefined, settings: GenerationSettings): readonly (keyof GenerationSettings)[] {
  const missing = (codec?.missingSettings ?? []).filter(name => isRequested(settings, name))
  const isBelowLeast = (settings.outputTokensMax ?? Infinity) < (codec?.outputTokensMin ?? 0)
  return isBelowLeast ? [...missing, 'outputTokensMax'] : missing
}

/** How much a request in the dialect of the candidate loses. Infinite where it would be refused. */
function countLosses(context: AttemptContext, conversation: Conversation): number {
  const translation = openTranslation(context)
  const media = unfetchedMedia(conversation, translation.upstreamCodec)
  try {
    writeTranslated(translation, context, { conversation, media })
  } catch (fault) {
    if (!(fault instanceof Refusal)) throw fault
    return Number.POSITIVE_INFINITY
  }
  return translation.source.notes.losses.codes.length
}
