// Citations as the annotations of a chat message.

import type { Citation } from '../conversation.ts'
import { isObject } from '../json-object.ts'

/** What is no citation of an address is left out. */
export function readCitations(annotations: unknown): Citation[] {
  if (!Array.isArray(annotations)) return []
  const citations: Citation[] = []
  for (const annotation of annotations as readonly unknown[]) {
    const cited = isObject(annotation) ? annotation.url_citation : undefined
    if (!isObject(cited) || typeof cited.url !== 'string') continue
    const { url, title, start_index: start, end_index: end } = cited
    citations.push({
      url,
      ...(typeof title === 'string' && { title }),
      ...(isIndex(start) && isIndex(end) && { start, end }),
    })
  }
  return citations
}

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** Where the part that cites stands in the text of its message. */
export interface CitedText {
  readonly start: number
  readonly end: number
}

/** Undefined for what has no address: chat can cite nothing else. */
export function writeAnnotation(citation: Citation, text: CitedText): object | undefined {
  const { url, title = '', start, end } = citation
  if (url === undefined) return undefined
  const place =
    start === undefined || end === undefined
      ? { start_index: text.start, end_index: text.end }
      : { start_index: text.start + start, end_index: text.start + end }
  return { type: 'url_citation', url_citation: { ...place, title, url } }
}
