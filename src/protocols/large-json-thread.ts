// Looks at large bodies in a thread of its own: 32 MiB can take the better part of a second.

import { findObject } from './json-object.ts'
import type { FromLargeJson, ToLargeJson } from './large-json.ts'

declare const self: Worker

self.onmessage = ({ data }: MessageEvent<ToLargeJson>) => {
  const { id, bytes } = data
  const found = findObject(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  postMessage({ id, found, bytes } satisfies FromLargeJson, [bytes.buffer as ArrayBuffer])
}
