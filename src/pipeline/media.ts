// What lies at the addresses that a conversation names, for an upstream whose dialect must hold it itself.

import { Stop } from '../base/stop.ts'
import type { FetchMedia } from '../http/guarded-fetch.ts'
import type { Conversation, Part } from '../protocols/conversation.ts'
import type { Codec, ConversationTarget } from '../protocols/protocol.ts'
import type { StopReason } from './exchange.ts'

type Media = ConversationTarget['media']

export type ResolveMedia = (said: Conversation, codec: Codec, stop: Stop<StopReason>) => Promise<Media>

const none: Media = new Map()
const over = new Error('the call is over')

export function buildResolveMedia(fetchMedia: FetchMedia): ResolveMedia {
  return async function resolveMedia(said, codec, stop) {
    if (codec.mustHold === undefined) return none
    const urls = new Set<string>()
    for (const { parts } of said.turns) for (const part of parts) addUrls(part, codec.mustHold, urls)
    if (urls.size === 0) return none
    const fetching = new Stop<Error>()
    stop.onStop(() => fetching.stop(over))
    const found = [...urls].map(async url => {
      const { mime, bytes } = await fetchMedia(url, fetching)
      return [url, { mime, base64: bytes.toString('base64') }] as const
    })
    return new Map(await stop.during(Promise.all(found)))
  }
}

function addUrls(part: Part, mustHold: NonNullable<Codec['mustHold']>, urls: Set<string>): void {
  if (part.kind === 'result') for (const inner of part.parts) addUrls(inner, mustHold, urls)
  if (!('source' in part) || part.source.at !== 'url' || !mustHold(part.source, part.kind)) return
  urls.add(part.source.url)
}
