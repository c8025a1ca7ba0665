// Somebody who is told things: keeps what came, and answers as a test wants it to. Checks signatures by itself.

import { timingSafeEqual } from 'node:crypto'

export interface Came {
  readonly path: string
  readonly headers: Headers
  readonly body: string
  readonly event: { readonly id: string; readonly type: string; readonly account: string | null } & {
    readonly data: Record<string, unknown>
  }
}

export interface Receiver {
  readonly url: string
  readonly came: Came[]
  /** How it answers; 200 at first. */
  answer: (came: Came) => Response | Promise<Response>
  stop(): void
}

export function startReceiver(port = 0): Receiver {
  const came: Came[] = []
  const receiver: { answer: Receiver['answer'] } = { answer: () => new Response('thanks') }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 60,
    async fetch(request) {
      const body = await request.text()
      const event = JSON.parse(body || 'null') as Came['event']
      const one = { path: new URL(request.url).pathname, headers: request.headers, body, event }
      came.push(one)
      return await receiver.answer(one)
    },
  })
  return Object.assign(receiver, {
    url: `http://127.0.0.1:${server.port}/hook`,
    came,
    stop: () => void server.stop(true),
  })
}

/** As whoever is told would check it, with the Web's own cryptography and nothing of ours. */
export async function isSignedWith(secret: string, { headers, body }: Came): Promise<boolean> {
  const fields = new URLSearchParams((headers.get('x-weir-signature') ?? '').replaceAll(',', '&'))
  const encoder = new TextEncoder()
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), hmac, false, ['sign'])
  const expected = await crypto.subtle.sign('HMAC', key, encoder.encode(`${fields.get('t')}.${body}`))
  const given = Buffer.from(fields.get('v1') ?? '', 'hex')
  const isFresh = Math.abs(Date.now() / 1_000 - Number(fields.get('t'))) < 86_400 * 30
  return isFresh && given.length === 32 && timingSafeEqual(given, new Uint8Array(expected))
}
