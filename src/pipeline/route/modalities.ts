// Drops candidates whose model cannot read the media of a call. Some upstreams would ignore an image silently.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Modality } from '../../base/money/model-traits.ts'
import { modalities } from '../../base/money/model-traits.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Conversation, ConversationPart } from '../../protocols/neutral/conversation.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { narrowRoute } from '../30-route.ts'
import type { Candidate, Route } from '../exchange.ts'
import { selectUsable } from './usable.ts'

/** The route through those models only that read all of the call. A call of text only is not checked. */
export function narrowToReaders(route: Route, call: Call, protocol: Protocol): Route {
  if (call.textOnly || protocol.codec === undefined) return route
  const readers = new Set(selectUsable(route.candidates, candidate => checked(candidate, call, protocol)))
  return readers.size === route.candidates.length ? route : narrowRoute(route, candidate => readers.has(candidate))!
}

function checked(candidate: Candidate, call: Call, protocol: Protocol): Candidate {
  checkModalities(call, protocol, candidate)
  return candidate
}

/** Throws where the call has media that the model is known not to read. */
function checkModalities(call: Call, { codec }: Protocol, { model, provider }: Candidate): void {
  const { reads } = model.traits ?? provider.traits
  if (codec === undefined || reads === undefined) return
  if (modalities.every(kind => reads.includes(kind))) return
  const conversation = readOrUndefined(() => codec.readConversation(call))
  const unread = conversation && findUnread(conversation, reads)
  if (unread === undefined) return
  const only = reads.map(kind => modalityNames[kind]).join(', ')
  const hint = hintOf('call_unread', { kind: modalityNames[unread], reads: only })
  throw new Refusal('modality_unsupported', `${provider.id}/${model.id}: ${unread}`, { param: 'model', hint })
}

const modalityNames: Readonly<Record<Modality, string>> = {
  text: 'text',
  image: 'images',
  audio: 'audio',
  file: 'files',
  video: 'video',
}

/** A request that the gateway cannot read is left to its upstream. */
function readOrUndefined(read: () => Conversation): Conversation | undefined {
  try {
    return read()
  } catch (fault) {
    if (fault instanceof Refusal) return undefined
    throw fault
  }
}

function findUnread({ messages }: Conversation, reads: readonly Modality[]): Modality | undefined {
  for (const { parts } of messages) {
    for (const part of parts) {
      const inner: readonly ConversationPart[] = part.kind === 'result' ? part.parts : [part]
      const found = inner.map(modalityOf).find(kind => kind !== undefined && !reads.includes(kind))
      if (found !== undefined) return found
    }
  }
  return undefined
}

function modalityOf(part: ConversationPart): Modality | undefined {
  if (!('source' in part)) return undefined
  return part.source.at === 'text' ? 'text' : part.kind
}
