// Posts to the URL of a webhook, and reads only the status of the response. Public hosts require https; private hosts
// that the operator has listed may use http.

import { bounds } from '../../base/bounds.ts'
import type { Hint } from '../../base/hints.ts'
import { HintedError, hintOf } from '../../base/hints.ts'
import { Stop } from '../../base/stop.ts'
import type { AddressGuardOptions } from '../address/guard.ts'
import { AddressGuard, ForbiddenHost } from '../address/guard.ts'
import { hostOf } from '../address/operator-address.ts'
import type { OneOffContext } from './one-off-request.ts'
import { isReservedPort, sendOneOffRequest } from './one-off-request.ts'

export interface WebhookClientOptions extends AddressGuardOptions {
  /** A certificate authority that is trusted instead of the public ones. */
  readonly ca?: string
  readonly msMax?: number
}

export interface WebhookPost {
  readonly url: string
  /** Headers of the gateway; they contain no text of a user. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The post failed. The message is for the person who configured the webhook. */
export class WebhookPostError extends HintedError {}

export interface WebhookClient {
  /** Why a URL can never be used; undefined if it can. */
  checkUrl(url: string): Hint | undefined
  /** Returns the status of the response. Rejects with a WebhookPostError. */
  post(request: WebhookPost): Promise<number>
  close(): void
}

export function openWebhookClient(options: WebhookClientOptions = {}): WebhookClient {
  const guard = new AddressGuard({ namesOf: 'callers', ...options })
  const context: OneOffContext = { guard, ca: options.ca, abandoned: { count: 0 } }
  const activePosts = new Set<Stop<Error>>()

  function readUrl(text: string): URL {
    const url = text.length > bounds.webhookUrlCharsMax ? null : URL.parse(text)
    if (url === null) throw new WebhookPostError(hintOf('url_invalid'))
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new WebhookPostError(hintOf('url_scheme'))
    if (url.username !== '' || url.password !== '') throw new WebhookPostError(hintOf('url_credentials'))
    const isListed = guard.isListed(hostOf(url))
    if (url.protocol === 'http:' && !isListed) throw new WebhookPostError(hintOf('url_https'))
    if (isReservedPort(url) && !isListed) throw new WebhookPostError(hintOf('url_port'))
    return url
  }

  async function send({ url: text, headers, body }: WebhookPost, stop: Stop<Error>): Promise<number> {
    const url = readUrl(text)
    const bytes = Buffer.from(body)
    const head = [
      `POST ${url.pathname}${url.search} HTTP/1.1`,
      `Host: ${url.host}`,
      'User-Agent: weir',
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${bytes.length}`,
      'Accept-Encoding: identity',
      'Connection: close',
      '',
      '',
    ].join('\r\n')
    const incoming = await sendOneOffRequest({ url, head, body: bytes }, context, stop)
    incoming.discard()
    return incoming.status
  }

  return {
    checkUrl(text) {
      // The URL parser leaves out line breaks, and encodes other control characters: a list would show another URL.
      if (/[\p{Cc}\s]/u.test(text)) return hintOf('url_invalid')
      try {
        guard.checkHost(hostOf(readUrl(text)))
        return undefined
      } catch (fault) {
        return fault instanceof WebhookPostError || fault instanceof ForbiddenHost ? fault.hint : hintOf('url_invalid')
      }
    },
    async post(request) {
      const stop = new Stop<Error>()
      const late = (): void => stop.stop(new WebhookPostError(hintOf('url_late')))
      const timer = setTimeout(late, options.msMax ?? bounds.webhookMsMax)
      activePosts.add(stop)
      try {
        return await stop.race(send(request, stop))
      } catch (fault) {
        if (fault instanceof WebhookPostError) throw fault
        throw new WebhookPostError(
          fault instanceof ForbiddenHost ? fault.hint : hintOf('url_unreachable', { problem: messageOf(fault) }),
        )
      } finally {
        clearTimeout(timer)
        activePosts.delete(stop)
      }
    },
    close() {
      for (const stop of activePosts) stop.stop(new WebhookPostError(hintOf('url_stopped')))
    },
  }
}

const messageOf = (fault: unknown): string => (fault instanceof Error ? fault.message.slice(0, 200) : 'unknown')
