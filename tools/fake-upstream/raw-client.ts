// A client for tests that shows every byte of a socket and how the socket ended, which HTTP clients hide.

import type { Socket } from 'node:net'
import { connect } from 'node:net'

export interface RawClient {
  readonly socket: Socket
  /** Everything that has arrived so far; each byte is one character. */
  readonly received: string
  send(text: string): void
  /** Waits until `isThere` is true; fails if the socket closes before. */
  until(isThere: (received: string) => boolean): Promise<string>
  /** How the socket ended: FIN, or the code of its error. */
  readonly ending: Promise<string>
  close(): void
}

export async function rawClient(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  const ended = Promise.withResolvers<string>()
  let received = ''
  let over = false
  let check = () => {}
  const finish = (how: string) => {
    over = true
    ended.resolve(how)
    check()
  }
  socket.on('data', (data: Buffer) => {
    received += data.toString('latin1')
    check()
  })
  socket.on('end', () => finish('FIN'))
  socket.on('error', (fault: Error & { code?: string }) => finish(fault.code ?? fault.message))
  socket.on('close', () => finish('closed'))
  // A socket that is reset at once may never emit `connect`.
  await new Promise<void>(resolve => {
    socket.once('connect', resolve)
    void ended.promise.then(() => resolve())
  })
  return {
    socket,
    get received() {
      return received
    },
    send: text => void socket.write(text),
    until: isThere =>
      new Promise((resolve, reject) => {
        check = () => {
          if (isThere(received)) resolve(received)
          else if (over) reject(new Error(`the socket ended after ${JSON.stringify(received.slice(-500))}`))
        }
        check()
      }),
    ending: ended.promise,
    close: () => void socket.destroy(),
  }
}

/** The parts of an answer that tests inspect. */
export interface ChatReply {
  readonly choices: readonly {
    readonly message: {
      readonly content: string | null
      readonly tool_calls?: readonly { readonly function: { readonly name: string } }[]
    }
  }[]
  readonly usage: { readonly prompt_tokens: number }
  readonly error?: { readonly type: string; readonly code: string | null }
}

export async function readReply(response: Response): Promise<ChatReply> {
  return (await response.json()) as ChatReply
}

/** The bytes of a POST to the chat endpoint. */
export function chatPost(body: unknown): string {
  const json = typeof body === 'string' ? body : JSON.stringify(body)
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nContent-Type: application/json\r\n'
  return `${head}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${Buffer.from(json).toString('latin1')}`
}
