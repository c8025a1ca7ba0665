// Reads images and audio of a chat answer. Chat has no official field for images. Upstreams that create images send a
// list of them.

import type { MediaPart } from '../neutral/conversation.ts'
import { isObject } from '../request/json-body.ts'

export function readImages(images: unknown): MediaPart[] {
  if (!Array.isArray(images)) return []
  return images.flatMap((image: unknown) => {
    const url = findUrl(image)
    return typeof url === 'string' && url !== '' ? [{ kind: 'image', source: sourceOf(url) }] : []
  })
}

/** Some upstreams send the URL instead of an object with it, or the image as base64. */
function findUrl(image: unknown): unknown {
  if (!isObject(image)) return image
  const { image_url: inner, b64_json: base64 } = image
  return (isObject(inner) ? inner.url : inner) ?? base64
}

function sourceOf(url: string): MediaPart['source'] {
  const head = /^data:([^;,]{0,100})[^,]{0,100};base64,/i.exec(url.slice(0, 256))
  if (head !== null) return { at: 'inline', mime: head[1] || 'image/png', base64: url.slice(head[0].length) }
  return /[:.]/.test(url.slice(0, 64)) ? { at: 'url', url } : { at: 'inline', mime: 'image/png', base64: url }
}

/** Joins the pieces of an audio answer. Each piece is valid base64. */
export class AudioReader {
  readonly #pieces: Buffer[] = []
  /** A whole answer has an audio file. A stream sends raw samples. */
  #mime = 'audio/wav'

  addPiece(data: unknown, isPiece: boolean): void {
    if (typeof data !== 'string' || data === '') return
    this.#pieces.push(Buffer.from(data, 'base64'))
    if (isPiece) this.#mime = 'audio/pcm'
  }

  end(): MediaPart | undefined {
    if (this.#pieces.length === 0) return undefined
    const base64 = Buffer.concat(this.#pieces).toString('base64')
    return { kind: 'audio', source: { at: 'inline', mime: this.#mime, base64 } }
  }
}
