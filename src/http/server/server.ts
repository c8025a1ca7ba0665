// The HTTP server. It converts each request of the runtime to an Arrival, which is all that the rest of the gateway
// sees.

import type { WebSocketOwner } from './web-socket.ts'
import { socketHandlers } from './web-socket.ts'

export interface Arrival {
  readonly request: Request
  readonly method: string
  /**
   * All headers, with names in lower case. One call of the runtime reads them all, which is faster than one for each.
   */
  readonly headers: Readonly<Record<string, string>>
  /** Percent-decoded once. The runtime has resolved dot segments. Dispatch may replace it by the path that it means. */
  path: string
  /** The query string, without the question mark. */
  readonly search: string
  query(name: string): string | null
  /** All values of a query parameter. */
  queries(name: string): readonly string[]
  /** The remote address of the socket. */
  socketAddress(): string
  /** Removes the idle timeout: an answer may take long, and the gateway has deadlines of its own. */
  disableIdleTimeout(): void
  /** Closes the connection as soon as it is idle. */
  closeConnection(): void
  /** Sets the idle timeout again: for a caller that does not read its answer, and for the next request. */
  releaseConnection(): void
  /**
   * Answers the request with a WebSocket for `owner`. Returns the response that the server expects and does not send, or
   * undefined where the request is no valid handshake.
   */
  openSocket(owner: WebSocketOwner, headers: Readonly<Record<string, string>>): Response | undefined
}

export interface HttpServer {
  readonly port: number
  /** Requests that are being answered. */
  readonly pending: number
  /** Accepts no new connections; open ones continue. */
  stop(): void
  /** Closes all connections after all answers were sent and WebSockets closed, or after a short time. */
  kill(): Promise<void>
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port. The kernel spreads the connections. */
  readonly sharesPort?: boolean
  /** How long a connection may not finish a request head, or be idle before its first request. */
  readonly idleSeconds: number
  /** How long a caller may not read a complete answer, or be idle after it. */
  readonly answeredSeconds: number
  /** The largest message of a WebSocket. A larger one closes its connection with the code 1009. */
  readonly messageBytesMax: number
  answer(arrival: Arrival): Promise<Response> | Response
}

const HAND_OVER_MS = 2_000

export function listen(options: ListenOptions): HttpServer {
  const server = Bun.serve<WebSocketOwner>({
    hostname: options.host,
    port: options.port,
    reusePort: options.sharesPort ?? false,
    idleTimeout: options.idleSeconds,
    // Bun would refuse large bodies without an error message; body.ts refuses them in the caller's dialect.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) => options.answer(new BunArrival(request, server, options.answeredSeconds)),
    websocket: socketHandlers(options.messageBytesMax),
    error: () => new Response(null, { status: 500 }),
  })
  const openCount = (): number => server.pendingRequests + server.pendingWebSockets
  return {
    port: server.port ?? 0,
    get pending() {
      return server.pendingRequests
    },
    stop: () => void server.stop(false),
    async kill() {
      const giveUpMs = performance.now() + HAND_OVER_MS
      while (openCount() > 0 && performance.now() < giveUpMs) await Bun.sleep(5)
      await server.stop(true)
    },
  }
}

class BunArrival implements Arrival {
  readonly request: Request
  readonly headers: Readonly<Record<string, string>>
  path: string
  readonly search: string
  readonly #server: Bun.Server<WebSocketOwner>
  readonly #answeredSeconds: number
  #parameters: URLSearchParams | undefined

  constructor(request: Request, server: Bun.Server<WebSocketOwner>, answeredSeconds: number) {
    this.request = request
    this.#answeredSeconds = answeredSeconds
    this.headers = request.headers.toJSON()
    this.#server = server
    const [path, search] = splitUrl(request.url)
    this.path = path
    this.search = search
  }

  get method(): string {
    return this.request.method
  }

  query(name: string): string | null {
    return this.#mayHave(name) ? this.#searchParams().get(name) : null
  }

  queries(name: string): readonly string[] {
    return this.#mayHave(name) ? this.#searchParams().getAll(name) : []
  }

  /** A fast check: a parameter that is not literally in the query string can only be there in an escaped form. */
  #mayHave(name: string): boolean {
    const { search } = this
    return search !== '' && (search.includes(name) || search.includes('%') || search.includes('+'))
  }

  /** Parsed once: a query string may have tens of thousands of parameters, and several parts read it. */
  #searchParams(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.search)
    return this.#parameters
  }

  socketAddress(): string {
    return this.#server.requestIP(this.request)?.address ?? ''
  }

  disableIdleTimeout(): void {
    this.#server.timeout(this.request, 0)
  }

  closeConnection(): void {
    this.#server.timeout(this.request, 1)
  }

  releaseConnection(): void {
    this.#server.timeout(this.request, this.#answeredSeconds)
  }

  openSocket(owner: WebSocketOwner, headers: Readonly<Record<string, string>>): Response | undefined {
    return this.#server.upgrade(this.request, { data: owner, headers }) ? new Response(null) : undefined
  }
}

/**
 * Written by hand: a URL object would cost more than everything else before authentication. The runtime leaves out the origin
 * where the request has no host, as in HTTP/1.0, or none that can be in a URL.
 */
function splitUrl(url: string): readonly [path: string, search: string] {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const queryMark = url.indexOf('?', start)
  const path = start < 0 ? '/' : url.slice(start, queryMark < 0 ? undefined : queryMark)
  return [path.includes('%') ? decodeOnce(path) : path, queryMark < 0 ? '' : url.slice(queryMark + 1)]
}

function decodeOnce(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
