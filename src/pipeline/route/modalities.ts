// A picture for a model that cannot see is refused before anything goes upstream: some would leave it out in silence.

import { Refusal } from '../../base/errors.ts'
import type { Modality } from '../../base/money/model-traits.ts'
import { modalities } from '../../base/money/model-traits.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Conversation, Part } from '../../protocols/neutral/conversation.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { narrowed } from '../30-route.ts'
import type { Route, Way } from '../exchange.ts'
import { fitting } from './usable.ts'

/** The route by those models alone that read all of it. What is only text is not looked at. */
export function readersOf(route: Route, call: Call, protocol: Protocol): Route {
  if (call.textOnly || protocol.codec === undefined) return route
  const readers = new Set(fitting(route.ways, way => checked(way, call, protocol)))
  return readers.size === route.ways.length ? route : narrowed(route, way => readers.has(way))!
}

function checked(way: Way, call: Call, protocol: Protocol): Way {
  checkModalities(call, protocol, way)
  return way
}

/** Throws for what the model is known not to read. */
function checkModalities(call: Call, { codec }: Protocol, { model, provider }: Way): void {
  const { reads } = model.traits ?? provider.traits
  if (codec === undefined || reads === undefined) return
  if (modalities.every(kind => reads.includes(kind))) return
  const said = meaningOf(() => codec.readConversation(call))
  const unread = said && unreadOf(said, reads)
  if (unread === undefined) return
  const hint = `It does not read ${words[unread]}, only ${reads.map(kind => words[kind]).join(', ')}.`
  throw new Refusal('modality_unsupported', `${provider.id}/${model.id}: ${unread}`, { param: 'model', hint })
}

const words: Readonly<Record<Modality, string>> = {
  text: 'text',
  image: 'images',
  audio: 'audio',
  file: 'files',
  video: 'video',
}

/** What we cannot read ourselves is left to whoever can. */
function meaningOf(read: () => Conversation): Conversation | undefined {
  try {
    return read()
  } catch (fault) {
    if (fault instanceof Refusal) return undefined
    throw fault
  }
}

function unreadOf({ turns }: Conversation, reads: readonly Modality[]): Modality | undefined {
  for (const { parts } of turns) {
    for (const part of parts) {
      const inner: readonly Part[] = part.kind === 'result' ? part.parts : [part]
      const found = inner.map(kindOf).find(kind => kind !== undefined && !reads.includes(kind))
      if (found !== undefined) return found
    }
  }
  return undefined
}

function kindOf(part: Part): Modality | undefined {
  if (!('source' in part)) return undefined
  return part.source.at === 'text' ? 'text' : part.kind
}
