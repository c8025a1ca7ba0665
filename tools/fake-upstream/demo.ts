// The built-in `demo` provider. It listens at once, but the fake upstream is loaded by its first connection: most gateways
// never call their demo.

import { createServer } from 'node:net'
import { listenOn, socketOptions } from './listen.ts'
import type { FakeUpstreamOptions, RunningUpstream } from './server.ts'

export interface DemoProvider {
  readonly url: string
  stop(): Promise<void>
}

export async function startDemo(options: FakeUpstreamOptions): Promise<DemoProvider> {
  let isStopped = false
  let upstream: Promise<RunningUpstream> | undefined
  const server = createServer(socketOptions, async socket => {
    socket.on('error', () => {}) // an error before the upstream listens for it
    upstream ??= import('./server.ts').then(({ RunningUpstream }) => new RunningUpstream(options))
    const loaded = await upstream
    if (isStopped) socket.destroy()
    else if (!socket.destroyed) loaded.accept(socket)
  })
  return {
    url: await listenOn(server, '127.0.0.1', 0),
    async stop() {
      isStopped = true
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      await (await upstream)?.stop()
      await closed
    },
  }
}
