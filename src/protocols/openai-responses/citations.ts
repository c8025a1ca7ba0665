// Where a text was cited from: annotations here, citations everywhere else.

import type { Json } from '../checks.ts'
import type { Citation } from '../conversation.ts'
import { isObject } from '../json-object.ts'

export function readCitations(annotations: unknown): readonly Citation[] {
  return Array.isArray(annotations) ? annotations.flatMap(annotation => readCitation(annotation) ?? []) : []
}

export function readCitation(annotation: unknown): Citation | undefined {
  if (!isObject(annotation)) return undefined
  const { url, start_index: start, end_index: end } = annotation
  const title = annotation.title ?? annotation.filename
  const citation: Citation = {
    ...(typeof url === 'string' && { url }),
    ...(typeof title === 'string' && { title }),
    ...(typeof start === 'number' && { start }),
    ...(typeof end === 'number' && { end }),
  }
  return citation.url === undefined && citation.title === undefined ? undefined : citation
}

/** Undefined for what has no address: nothing else can be pointed at here. */
export function writeAnnotation({ url, title, start, end }: Citation, textLength: number): Json | undefined {
  if (url === undefined) return undefined
  return {
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index: start ?? 0,
    end_index: end ?? textLength,
  }
}
