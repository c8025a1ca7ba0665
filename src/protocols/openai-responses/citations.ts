// Reads and writes citations, which are annotations in this dialect.

import { addCitationLosses } from '../neutral/citation-losses.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { FieldTable, LossPath } from '../request/fields.ts'
import { findLostFields, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

const CITATIONS_MAX = 256

const annotationFields: FieldTable = {
  ...tableOf('read', 'type url title filename file_id start_index end_index'),
  ...tableOf('moot', 'index container_id'),
}

/** Annotations that cite nothing are losses. */
export function readCitations(annotations: unknown, losses: LossPath['losses']): readonly Citation[] {
  if (!Array.isArray(annotations)) return []
  const citations = annotations.slice(0, CITATIONS_MAX).flatMap(annotation => readCitation(annotation, losses) ?? [])
  if (citations.length < annotations.length) losses.add('citations')
  return citations
}

export function readCitation(annotation: unknown, losses: LossPath['losses']): Citation | undefined {
  if (!isObject(annotation)) return undefined
  for (const path of findLostFields(annotation, annotationFields, 'citations')) losses.add(path)
  const { url, start_index: start, end_index: end } = annotation
  // A cited file has its name as title, or its id if it has no name.
  const title = annotation.title ?? annotation.filename ?? annotation.file_id
  const citation: Citation = {
    ...(typeof url === 'string' && { url }),
    ...(typeof title === 'string' && { title }),
    ...(typeof start === 'number' && { start }),
    ...(typeof end === 'number' && { end }),
  }
  return citation.url === undefined && citation.title === undefined ? undefined : citation
}

/** Undefined for a citation without a URL, which is lost. Annotations have no place for the words of the source. */
export function writeAnnotation(citation: Citation, textLength: number, losses: Losses): Json | undefined {
  const { url, title, start, end } = citation
  if (url === undefined) {
    losses.add('citations')
    return undefined
  }
  addCitationLosses(citation, ['citedText'], losses)
  return {
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index: start ?? 0,
    end_index: end ?? textLength,
  }
}
