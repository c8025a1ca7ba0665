// A receiver of webhooks: stores what it receives, answers as a test wants, and checks signatures by itself.

import { timingSafeEqual } from 'node:crypto'

export interface Notification {
  readonly path: string
  readonly headers: Headers
  readonly body: string
  readonly event: { readonly id: string; readonly type: string; readonly account: string | null } & {
    readonly data: Record<string, unknown>
  }
}

export interface Receiver {
  readonly url: string
  readonly received: Notification[]
  /** The answer; 200 by default. */
  answer: (notification: Notification) => Response | Promise<Response>
  stop(): void
}

export function startReceiver(port = 0): Receiver {
  const received: Notification[] = []
  const receiver: { answer: Receiver['answer'] } = { answer: () => new Response('thanks') }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 60,
    async fetch(request) {
      const body = await request.text()
      const event = JSON.parse(body || 'null') as Notification['event']
      const notification = { path: new URL(request.url).pathname, headers: request.headers, body, event }
      received.push(notification)
      return await receiver.answer(notification)
    },
  })
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    stop: () => void server.stop(true),
  })
}

/** Checks the signature as a receiver would, with Web Crypto and no code of the gateway. */
export async function isSignedWith(secret: string, { headers, body }: Notification): Promise<boolean> {
  const fields = new URLSearchParams((headers.get('x-weir-signature') ?? '').replaceAll(',', '&'))
  const encoder = new TextEncoder()
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), hmac, false, ['sign'])
  const expected = await crypto.subtle.sign('HMAC', key, encoder.encode(`${fields.get('t')}.${body}`))
  const signature = Buffer.from(fields.get('v1') ?? '', 'hex')
  const isFresh = Math.abs(Date.now() / 1_000 - Number(fields.get('t'))) < 86_400 * 30
  return isFresh && signature.length === 32 && timingSafeEqual(signature, new Uint8Array(expected))
}
