// What a socket to the outside reports, and to whom: to the dial that makes it, then to the connection that it becomes.

export type Socket = Bun.Socket<SocketOwner>

export interface SocketOwner {
  opened(socket: Socket): void
  shookHands(authorized: boolean, fault: Error | null): void
  received(bytes: Buffer): void
  /** There is room for more. */
  flush(): void
  /** The other end says nothing more. */
  ended(): void
  /** `fault` is empty when nothing is known to be wrong. */
  closed(fault: string): void
  failed(fault: string): void
}

export const socketHandlers: Bun.SocketHandler<SocketOwner> = {
  open: socket => socket.data.opened(socket),
  handshake: (socket, _success, fault) => socket.data.shookHands(socket.authorized, fault),
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
  return `cannot connect: ${code ?? message ?? 'for no known reason'}`
}

/** Takes what comes from a socket that somebody else has in hand, and does nothing with it. */
export const nobody: SocketOwner = {
  opened() {},
  shookHands() {},
  received() {},
  flush() {},
  ended() {},
  closed() {},
  failed() {},
}
