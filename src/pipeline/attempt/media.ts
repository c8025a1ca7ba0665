// What lies at the addresses that a conversation names, for an upstream whose dialect must hold it itself.

import { bounds } from '../../base/bounds.ts'
import { Portions } from '../../base/collections/account-shares.ts'
import { Refusal } from '../../base/errors.ts'
import { Stop } from '../../base/stop.ts'
import type { FetchMedia } from '../../http/client/fetch-media.ts'
import type { Conversation, Part } from '../../protocols/neutral/conversation.ts'
import type { Codec, ConversationTarget } from '../../protocols/protocol.ts'
import type { Exchange } from '../exchange.ts'

type Media = ConversationTarget['media']

export type ResolveMedia = (said: Conversation, codec: Codec, whose: MediaCall) => Promise<Media>

export type MediaCall = Pick<Exchange, 'stop' | 'permit'>

const none: Media = new Map()
const over = new Error('the call is over')

/** Of one call at a time: by so many of the largest the bound on all of them can be overshot. */
const LANES = 4

export function buildResolveMedia(fetchMedia: FetchMedia): ResolveMedia {
  // An address that never answers costs a place for seconds: nobody may have all of them.
  const places = new Portions({ all: bounds.mediaCallsMax, each: bounds.mediaCallsOfAccountMax })

  /** Each that is fetched counts against what all may hold together. */
  async function fetchAll(urls: Set<string>, fetching: Stop<Error>): Promise<Media> {
    const found = new Map<string, { readonly mime: string; readonly base64: string }>()
    const waiting = urls.values()
    let bytesLeft: number = bounds.mediaPerCallBytesMax
    async function lane(): Promise<void> {
      for (const url of waiting) {
        const { mime, bytes } = await fetchMedia(url, fetching)
        bytesLeft -= bytes.length
        if (bytesLeft < 0) throw tooMuch(`all of it is larger than ${bounds.mediaPerCallBytesMax} bytes`)
        found.set(url, { mime, base64: bytes.toString('base64') })
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    return found
  }

  return async function resolveMedia(said, codec, { stop, permit }) {
    const urls = addressesIn(said, codec)
    if (urls.size === 0) return none
    if (urls.size > bounds.mediaPerCallMax) throw tooMuch(`there are more than ${bounds.mediaPerCallMax} addresses`)
    const { accountId } = permit!.caller
    if (!places.take(accountId)) {
      throw new Refusal('overloaded', 'too many calls wait for media', { retryAfterMs: 1_000 })
    }
    const fetching = new Stop<Error>()
    const end = (): void => fetching.stop(over)
    stop.onStop(end)
    try {
      return await stop.during(fetchAll(urls, fetching))
    } finally {
      places.giveBack(accountId)
      stop.forget(end)
      end() // where one fails, nobody needs the others
    }
  }
}

const tooMuch = (why: string): Refusal => new Refusal('media_refused', why, { hint: `The reason: ${why}.` })

/** Those whose contents must stand in a request of this dialect. */
export function addressesIn({ turns }: Conversation, { mustHold }: Codec): Set<string> {
  const urls = new Set<string>()
  if (mustHold === undefined) return urls
  for (const { parts } of turns) for (const part of parts) addUrls(part, mustHold, urls)
  return urls
}

function addUrls(part: Part, mustHold: NonNullable<Codec['mustHold']>, urls: Set<string>): void {
  if (part.kind === 'result') for (const inner of part.parts) addUrls(inner, mustHold, urls)
  if (!('source' in part) || part.source.at !== 'url' || !mustHold(part.source, part.kind)) return
  urls.add(part.source.url)
}
