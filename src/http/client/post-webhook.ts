// Tells a host that somebody has named, and reads nothing of what it says but its status. Public hosts are told over
// TLS alone; those that the operator has listed as private ones may be told without.

import { bounds } from '../../base/bounds.ts'
import { Stop } from '../../base/stop.ts'
import type { DoorOptions } from '../address/guard.ts'
import { ClosedDoor, Door } from '../address/guard.ts'
import { hostOf } from '../address/operator-address.ts'
import type { Fetching } from './one-off-request.ts'
import { askStranger, isReservedPort } from './one-off-request.ts'

export interface GuardedPostOptions extends DoorOptions {
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  readonly msMax?: number
}

export interface PostAsk {
  readonly url: string
  /** Of letters and digits; ours alone. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** It could not be told; the text is for whoever named the host. */
export class PostFault extends Error {}

export interface GuardedPost {
  /** Why an address can never be told anything; undefined where it may. */
  problemOf(url: string): string | undefined
  /** Gives the status of the answer. Rejects with a PostFault. */
  post(ask: PostAsk): Promise<number>
  close(): void
}

export function openGuardedPost(options: GuardedPostOptions = {}): GuardedPost {
  const door = new Door(options)
  const fetching: Fetching = { door, ca: options.ca, givenUp: { count: 0 } }
  const underWay = new Set<Stop<Error>>()

  function read(text: string): URL {
    const url = text.length > bounds.webhookUrlCharsMax ? null : URL.parse(text)
    if (url === null) throw new PostFault('it is not a usable URL')
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new PostFault('it is neither https nor http')
    if (url.username !== '' || url.password !== '') throw new PostFault('it holds credentials')
    const isListed = door.lists(hostOf(url))
    if (url.protocol === 'http:' && !isListed) throw new PostFault('it must be https')
    if (isReservedPort(url) && !isListed) throw new PostFault('its port may not be used')
    return url
  }

  async function tell({ url: text, headers, body }: PostAsk, stop: Stop<Error>): Promise<number> {
    const url = read(text)
    const bytes = Buffer.from(body)
    const words = [
      ...[`POST ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'User-Agent: weir'],
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ...[`Content-Length: ${bytes.length}`, 'Accept-Encoding: identity', 'Connection: close', '', ''],
    ].join('\r\n')
    const incoming = await askStranger({ url, words, body: bytes }, fetching, stop)
    incoming.discard()
    return incoming.status
  }

  return {
    problemOf(text) {
      try {
        door.judge(hostOf(read(text)))
        return undefined
      } catch (fault) {
        return fault instanceof PostFault || fault instanceof ClosedDoor ? fault.message : 'it is not a usable URL'
      }
    },
    async post(ask) {
      const stop = new Stop<Error>()
      const late = (): void => stop.stop(new PostFault('it takes too long'))
      const timer = setTimeout(late, options.msMax ?? bounds.webhookMsMax)
      underWay.add(stop)
      try {
        return await stop.during(tell(ask, stop))
      } catch (fault) {
        if (fault instanceof PostFault) throw fault
        throw new PostFault(fault instanceof ClosedDoor ? fault.message : `it cannot be reached: ${wordsOf(fault)}`)
      } finally {
        clearTimeout(timer)
        underWay.delete(stop)
      }
    },
    close() {
      for (const stop of underWay) stop.stop(new PostFault('given up'))
    },
  }
}

const wordsOf = (fault: unknown): string => (fault instanceof Error ? fault.message.slice(0, 200) : 'unknown')
