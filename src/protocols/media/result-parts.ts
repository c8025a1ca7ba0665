// The parts of a tool result for a dialect whose results hold text only, or only some media.

import type { MediaPart, MediaSource, TextPart } from '../neutral/conversation.ts'
import { readPlainText } from './text-documents.ts'

export interface ResultParts {
  readonly texts: readonly string[]
  readonly media: readonly MediaPart[]
}

/** Separates texts and media. A text document is a text. `fetch` returns the fetched content of a source, if there is any. */
export function splitResult(
  parts: readonly (TextPart | MediaPart)[],
  fetch: (source: MediaSource) => MediaSource = source => source,
): ResultParts {
  const texts: string[] = []
  const media: MediaPart[] = []
  for (const part of parts) {
    const text = part.kind === 'text' ? part.text : writeDocument(part, fetch(part.source))
    if (text !== undefined) texts.push(text)
    else if (part.kind !== 'text') media.push(part)
  }
  return { texts, media }
}

/** A text document as text that begins with its name; undefined for other media. */
export function writeDocument({ kind, name }: MediaPart, source: MediaSource): string | undefined {
  const text = kind === 'file' ? readPlainText(source) : undefined
  return text === undefined || name === undefined ? text : `${name}\n\n${text}`
}

/** Media that follow the results of a turn begin with `heading`. `notice` is the text of a result without another text. */
export function announceMedia(name: string | undefined, callId: string): { heading: string; notice: string } {
  const what = `The result of ${name ?? 'the call'} (${callId})`
  return { heading: `${what}:`, notice: `${what} is in the next message.` }
}
