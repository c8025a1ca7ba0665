// Sends one request to an upstream and hands back its head and its bytes as they come.
//
// No redirects, no cookies, no decompression (we ask for identity, and an answer that is encoded all the same is
// the upstream's fault), no headers but the ones given.

export interface OutgoingRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface Piece {
  readonly value?: Uint8Array
}

export interface Incoming {
  readonly status: number
  header(name: string): string | null
  /** The next bytes; none at the end. Rejects when the connection breaks or is aborted. */
  read(): Promise<Piece>
  /** Everything, or undefined when there is more than that. */
  readWhole(bytesMax: number): Promise<Buffer | undefined>
  /** Gives up the rest and the connection with it. */
  discard(): void
}

export type Send = (request: OutgoingRequest, signal: AbortSignal) => Promise<Incoming>

export const send: Send = async (request, signal) => {
  const response = await fetch(request.url, {
    method: 'POST',
    headers: request.headers,
    body: request.body,
    redirect: 'manual',
    decompress: false,
    signal,
  } as BunFetchRequestInit)
  return new Answer(response)
}

/** What we use of a stream's reader; the runtime's own types of it disagree with each other. */
interface ByteReader {
  read(): Promise<Piece>
  cancel(): Promise<void>
}

class Answer implements Incoming {
  readonly #response: Response
  #reader: ByteReader | undefined

  constructor(response: Response) {
    this.#response = response
  }

  get status(): number {
    return this.#response.status
  }

  header(name: string): string | null {
    return this.#response.headers.get(name)
  }

  read(): Promise<Piece> {
    this.#reader ??= this.#response.body?.getReader() as ByteReader | undefined
    return this.#reader?.read() ?? Promise.resolve({})
  }

  async readWhole(bytesMax: number): Promise<Buffer | undefined> {
    // Beside chunks a length says nothing: the chunks win, and may be any number.
    const announced = this.header('transfer-encoding') === null ? this.header('content-length') : null
    if (announced !== null && Number(announced) <= bytesMax) return viewOf(await this.#response.bytes())
    const chunks: Uint8Array[] = []
    let length = 0
    for (;;) {
      const { value: chunk } = await this.read()
      if (chunk === undefined) return Buffer.concat(chunks, length)
      length += chunk.byteLength
      if (length > bytesMax) {
        this.discard()
        return undefined
      }
      chunks.push(chunk)
    }
  }

  discard(): void {
    const gone = this.#reader === undefined ? this.#response.body?.cancel() : this.#reader.cancel()
    gone?.catch(() => {})
  }
}

/** The same bytes, not a copy of them. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
