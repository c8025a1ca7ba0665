// Fetches the media that a conversation names by address, for an upstream whose dialect needs the content itself.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { Stop } from '../../base/stop.ts'
import type { FetchMedia } from '../../http/client/media-fetch.ts'
import type { Conversation, ConversationPart } from '../../protocols/neutral/conversation.ts'
import type { Codec, ConversationTarget } from '../../protocols/protocol.ts'
import type { Exchange } from '../exchange.ts'
import type { MediaLease, MediaMemory } from './media-memory.ts'

type Media = ConversationTarget['media']

export type ResolveMedia = (said: Conversation, codec: Codec, whose: MediaCall) => Promise<Media>

export type MediaCall = Pick<Exchange, 'lifetime' | 'permit'>

const none: Media = new Map()
const callOver = new Error('the call is over')

/** Parallel downloads of one call. */
const PARALLEL_DOWNLOADS = 4

export function buildResolveMedia(fetchMedia: FetchMedia, memory: MediaMemory): ResolveMedia {
  // An address that never answers occupies a slot for seconds, so one account may not use all slots.
  const slots = new AccountShares({ total: bounds.mediaCallsMax, perAccount: bounds.mediaCallsOfAccountMax })

  /** The bytes count while they arrive, against the limit of the call and the memory of its account. */
  async function fetchAll(urls: Set<string>, fetching: Stop<Error>, { lease, accountId }: MediaOwner): Promise<Media> {
    const found = new Map<string, { readonly mime: string; readonly base64: string }>()
    const waiting = urls.values()
    let bytesLeft: number = bounds.mediaPerCallBytesMax
    function count(bytes: number): void {
      bytesLeft -= bytes
      const refusal = bytesLeft < 0 ? tooLarge() : lease.add(bytes)
      if (refusal !== undefined) fetching.stop(refusal)
    }
    async function download(): Promise<void> {
      for (const url of waiting) {
        let counted = 0
        const onBytes = (bytes: number): void => {
          count(bytes - counted)
          counted = bytes
        }
        const { mime, bytes } = await fetchMedia(url, fetching, { accountId, onBytes })
        onBytes(bytes.length)
        fetching.throwIfStopped()
        found.set(url, { mime, base64: bytes.toString('base64') })
      }
    }
    await Promise.all(Array.from({ length: PARALLEL_DOWNLOADS }, download))
    return found
  }

  return async function resolveMedia(said, codec, { permit, lifetime }) {
    const { stop } = lifetime
    lifetime.media?.close() // those of the last attempt
    const urls = mediaUrls(said, codec)
    if (urls.size === 0) return none
    if (urls.size > bounds.mediaPerCallMax)
      throw mediaRefused(`there are more than ${bounds.mediaPerCallMax} addresses`)
    const { accountId } = permit!.caller
    if (!slots.take(accountId)) {
      throw new Refusal('overloaded', 'too many calls are downloading media', { retryAfterMs: 1_000 })
    }
    const lease = memory.open(accountId)
    lifetime.media = lease
    const fetching = new Stop<Error>()
    const end = (): void => fetching.stop(callOver)
    stop.onStop(end)
    try {
      return await stop.race(fetchAll(urls, fetching, { lease, accountId }))
    } catch (fault) {
      lease.close()
      throw fault
    } finally {
      slots.release(accountId)
      stop.removeListener(end)
      end() // if one download fails, the others are not needed
    }
  }
}

interface MediaOwner {
  readonly lease: MediaLease
  readonly accountId: number
}

const tooLarge = (): Refusal => mediaRefused(`the media together are larger than ${bounds.mediaPerCallBytesMax} bytes`)

const mediaRefused = (why: string): Refusal =>
  new Refusal('media_refused', why, { hint: hintOf('call_media', { why }) })

/** The addresses whose content a request of this dialect must contain. */
export function mediaUrls({ messages }: Conversation, { mustInline }: Codec): Set<string> {
  const urls = new Set<string>()
  if (mustInline === undefined) return urls
  for (const { parts } of messages) for (const part of parts) addUrls(part, mustInline, urls)
  return urls
}

/** Stands for the content of these addresses, in a request that is written but not sent. */
export function unfetchedMedia(conversation: Conversation, codec: Codec): Media {
  const urls = [...mediaUrls(conversation, codec)].slice(0, bounds.mediaPerCallMax)
  return new Map(urls.map(url => [url, { mime: 'application/octet-stream', base64: '' }]))
}

function addUrls(part: ConversationPart, mustHold: NonNullable<Codec['mustInline']>, urls: Set<string>): void {
  if (part.kind === 'result') for (const inner of part.parts) addUrls(inner, mustHold, urls)
  if (!('source' in part) || part.source.at !== 'url' || !mustHold(part.source, part.kind)) return
  urls.add(part.source.url)
}
