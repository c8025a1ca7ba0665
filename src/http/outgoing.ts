// Sends one request to an upstream and hands back its head and its bytes as they come.
//
// No redirects, no cookies, no decompression (we ask for identity, and an answer that is encoded all the same is
// the upstream's fault), no headers but the ones given.

export interface OutgoingRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface Incoming {
  readonly status: number
  header(name: string): string | null
  /** The next bytes, or undefined at the end. Rejects when the connection breaks or is aborted. */
  read(): Promise<Uint8Array | undefined>
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
  const reader = response.body?.getReader()
  return {
    status: response.status,
    header: name => response.headers.get(name),
    read: async () => (reader === undefined ? undefined : (await reader.read()).value),
    discard: () => void reader?.cancel().catch(() => {}),
  }
}

/** Reads to the end within a bound; undefined when there is more than that. */
export async function readWhole(incoming: Incoming, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const chunk = await incoming.read()
    if (chunk === undefined) return chunks.length === 1 ? Buffer.from(chunks[0]!) : Buffer.concat(chunks, length)
    length += chunk.byteLength
    if (length > bytesMax) {
      incoming.discard()
      return undefined
    }
    chunks.push(chunk)
  }
}
