// Passes the events of a socket to its owner: first to the dial that opens it, then to the connection.

export type Socket = Bun.Socket<SocketOwner>

export interface SocketOwner {
  opened(socket: Socket): void
  handshakeDone(authorized: boolean, fault: Error | null): void
  received(bytes: Buffer): void
  /** The socket accepts more bytes. */
  flush(): void
  /** The other side has finished sending. */
  ended(): void
  /** `fault` is empty if no error is known. */
  closed(fault: string): void
  failed(fault: string): void
}

export const socketHandlers: Bun.SocketHandler<SocketOwner> = {
  open: socket => socket.data.opened(socket),
  handshake: (socket, _success, fault) => socket.data.handshakeDone(socket.authorized, fault),
  data: (socket, bytes) => socket.data.received(bytes),
  drain: socket => socket.data.flush(),
  end: socket => socket.data.ended(),
  timeout: socket => socket.data.failed('idle for too long'),
  error: (socket, fault) => socket.data.failed(fault.message),
  close: (socket, fault) => socket.data.closed(fault?.message ?? ''),
  connectError: (socket, fault) => socket.data.failed(describeConnectFault(fault)),
}

export function describeConnectFault(fault: unknown): string {
  const { code, message } = fault as { code?: string; message?: string }
  return `cannot connect: ${code ?? message ?? 'unknown reason'}`
}

/** Ignores all events: for a socket that was replaced by its TLS socket. */
export const noOwner: SocketOwner = {
  opened() {},
  handshakeDone() {},
  received() {},
  flush() {},
  ended() {},
  closed() {},
  failed() {},
}
