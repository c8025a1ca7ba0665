// Sends a recorded answer of the gateway to an official SDK, byte for byte, and returns what the SDK made of it.

import type { Caller } from '../forwarding/caller.ts'
import type { Client, Fault, Reply, Way } from './clients/client.ts'

export interface SdkResult {
  readonly reply?: Reply
  readonly fault?: Fault
}

export interface Replay {
  replay(client: Client, way: Way, answer: Caller): Promise<SdkResult>
  stop(): Promise<void>
}

/** The headers that SDKs read. */
const HEADERS = ['content-type', 'x-request-id', 'request-id', 'x-should-retry', 'retry-after', 'retry-after-ms']

export function startReplay(): Replay {
  let next: Caller | undefined
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      const answer = next!
      const headers = new Headers()
      for (const name of HEADERS) if (answer.header(name) !== undefined) headers.set(name, answer.header(name)!)
      return new Response(answer.body, { status: answer.status, headers })
    },
  })
  return {
    async replay(client, way, answer) {
      next = answer
      const session = client.connect(`http://127.0.0.1:${server.port}`, 'wk-x')
      try {
        return { reply: await session.ask(way, { model: 'up/echo', turns: [session.user('x')] }) }
      } catch (error) {
        return { fault: session.fault(error) }
      }
    },
    stop: () => server.stop(true),
  }
}
