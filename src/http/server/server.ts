// Listens. Turns what the runtime hands over into an Arrival, which is all that the rest of the gateway sees of it.

export interface Arrival {
  readonly request: Request
  readonly method: string
  /** All of them at once: one crossing into the runtime instead of one for each. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Decoded once and free of dot segments, which the runtime has resolved. */
  readonly path: string
  /** What stands behind the question mark. */
  readonly search: string
  query(name: string): string | null
  /** Every value of that name. */
  queries(name: string): readonly string[]
  /** The address of the socket's other end. */
  socketAddress(): string
  /** Lifts the idle timeout: the answer may take long, and deadlines of our own apply. */
  takeTime(): void
  /** Closes the connection as soon as it is seen to be idle. */
  cut(): void
  /** The idle timeout counts again: for a caller that does not read its answer, and for the next request. */
  done(): void
}

export interface Listening {
  readonly port: number
  /** Requests that are being answered. */
  readonly pending: number
  /** Accepts no more connections; those that are open go on. */
  stop(): void
  /** Closes every connection, once every answer has been handed over or has had its time. */
  kill(): Promise<void>
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** How long a caller may read nothing of an answer that is whole, or keep silent after it. */
  readonly answeredSeconds: number
  answer(arrival: Arrival): Promise<Response> | Response
}

/** Closes a connection that does not finish its head, or keeps silent between two requests. */
const IDLE_SECONDS = 10
const HAND_OVER_MS = 2_000

export function listen(options: ListenOptions): Listening {
  const server = Bun.serve({
    hostname: options.host,
    port: options.port,
    idleTimeout: IDLE_SECONDS,
    // Bun would refuse by the announced length, without a word; body.ts does it in the caller's dialect.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) => options.answer(new Arrived(request, server, options.answeredSeconds)),
    error: () => new Response(null, { status: 500 }),
  })
  return {
    port: server.port ?? 0,
    get pending() {
      return server.pendingRequests
    },
    stop: () => void server.stop(false),
    async kill() {
      const giveUpMs = performance.now() + HAND_OVER_MS
      while (server.pendingRequests > 0 && performance.now() < giveUpMs) await Bun.sleep(5)
      await server.stop(true)
    },
  }
}

class Arrived implements Arrival {
  readonly request: Request
  readonly headers: Readonly<Record<string, string>>
  readonly path: string
  readonly search: string
  readonly #server: Bun.Server<undefined>
  readonly #answeredSeconds: number
  #parameters: URLSearchParams | undefined

  constructor(request: Request, server: Bun.Server<undefined>, answeredSeconds: number) {
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
    return this.#mayAsk(name) ? this.#asked().get(name) : null
  }

  queries(name: string): readonly string[] {
    return this.#mayAsk(name) ? this.#asked().getAll(name) : []
  }

  /** A name that does not stand there cannot be asked for, unless it is written in another way. */
  #mayAsk(name: string): boolean {
    const { search } = this
    return search !== '' && (search.includes(name) || search.includes('%') || search.includes('+'))
  }

  /** Taken apart once: tens of thousands of parameters fit into a head, and several ask for one of them. */
  #asked(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.search)
    return this.#parameters
  }

  socketAddress(): string {
    return this.#server.requestIP(this.request)?.address ?? ''
  }

  takeTime(): void {
    this.#server.timeout(this.request, 0)
  }

  cut(): void {
    this.#server.timeout(this.request, 1)
  }

  done(): void {
    this.#server.timeout(this.request, this.#answeredSeconds)
  }
}

/** By hand: a URL object costs more than everything else that happens before authentication. */
function splitUrl(url: string): readonly [path: string, search: string] {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const mark = url.indexOf('?', start)
  const raw = start < 0 ? '/' : url.slice(start, mark < 0 ? undefined : mark)
  return [raw.includes('%') ? decodeOnce(raw) : raw, mark < 0 ? '' : url.slice(mark + 1)]
}

function decodeOnce(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
