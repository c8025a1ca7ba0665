// Serves one text at one path on a port of its own, for monitoring systems.

export interface TextServer {
  readonly port: number
  close(): Promise<void>
}

interface WrittenText {
  readonly text: string
  readonly contentType: string
}

export interface TextServerOptions {
  readonly host: string
  readonly port: number
  readonly path: string
  /** `accepts`: the Accept header of the request; may be empty. */
  write(accepts: string): WrittenText | Promise<WrittenText>
}

export function listenText({ host, port, path, write }: TextServerOptions): TextServer {
  const server = Bun.serve({
    hostname: host,
    port,
    async fetch(request) {
      if (new URL(request.url).pathname !== path) return new Response(null, { status: 404 })
      if (request.method !== 'GET') return new Response(null, { status: 405, headers: { allow: 'GET' } })
      const { text, contentType } = await write(request.headers.get('accept') ?? '')
      return new Response(text, { headers: { 'content-type': contentType } })
    },
    error: () => new Response(null, { status: 500 }),
  })
  return { port: server.port ?? 0, close: () => server.stop(true) }
}
