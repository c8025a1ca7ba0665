// WebSockets of the HTTP server. The runtime speaks the protocol (RFC 6455): it closes a connection whose client breaks
// the rules about masks, reserved bits, control frames, fragments, UTF-8 or close codes.

import { bounds } from '../../base/bounds.ts'

/** An open WebSocket. */
export interface ServerSocket {
  send(text: string): number
  ping(): number
  /** The bytes that were sent here and that the socket has not taken yet. */
  getBufferedAmount(): number
  /** Writes everything that `run` sends as one piece. */
  cork(run: () => void): void
  close(code: number, reason: string): void
  terminate(): void
}

/** What belongs to one WebSocket and gets its events. */
export interface WebSocketOwner {
  onOpen(socket: ServerSocket): void
  /** A whole message: a string, or bytes if the client sent it as binary. */
  onMessage(message: string | Uint8Array): void
  /** The socket has taken bytes that were waiting. */
  onRoom(): void
  onClose(): void
}

/** A client that sends nothing for this long, not even the answer to a ping, has gone. */
const IDLE_SECONDS = 120

/** The handlers of the runtime's server. Messages are not compressed, so that a small one cannot become a large one. */
export const socketHandlers = (messageBytesMax: number): Bun.WebSocketHandler<WebSocketOwner> => ({
  maxPayloadLength: messageBytesMax,
  idleTimeout: IDLE_SECONDS,
  sendPings: true,
  perMessageDeflate: false,
  backpressureLimit: bounds.socketBufferBytesMax,
  closeOnBackpressureLimit: true,
  open: socket => socket.data.onOpen(socket),
  message: (socket, message) => socket.data.onMessage(message),
  drain: socket => socket.data.onRoom(),
  close: socket => socket.data.onClose(),
})
