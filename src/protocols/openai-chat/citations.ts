// Reads and writes citations, which are annotations of a chat message.

import type { Citation } from '../neutral/conversation.ts'
import type { FieldTable, LossPath } from '../request/fields.ts'
import { findLostFields, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'

/** The limit for one message. */
export const CITATIONS_MAX = 256

const annotationFields: FieldTable = tableOf('read', 'type index url_citation file_citation file_path file')

const citedFields: FieldTable = {
  ...tableOf('read', 'type url title filename name file_id content start_index end_index'),
  ...tableOf('moot', 'index hash'),
}

/** Annotations that cite nothing are losses. */
export function readCitations(annotations: unknown, losses: LossPath['losses']): Citation[] {
  if (!Array.isArray(annotations)) return []
  const citations: Citation[] = []
  for (const annotation of annotations.slice(0, CITATIONS_MAX) as readonly unknown[]) {
    const citation = readCitation(annotation, losses)
    if (citation === undefined) losses.add('citations')
    else citations.push(citation)
  }
  if (annotations.length > CITATIONS_MAX) losses.add('citations')
  return citations
}

/** A cited file has its name as title, or its id if it has no name. */
function readCitation(annotation: unknown, losses: LossPath['losses']): Citation | undefined {
  if (!isObject(annotation)) return undefined
  const cited = annotation.url_citation ?? annotation.file_citation ?? annotation.file_path ?? annotation.file
  if (!isObject(cited)) return undefined
  for (const path of findLostFields(annotation, annotationFields, 'citations')) losses.add(path)
  for (const path of findLostFields(cited, citedFields, 'citations')) losses.add(path)
  const { url, title, filename, name, file_id: id, content, start_index: start, end_index: end } = cited
  const names = [title, filename, name, id].filter(one => typeof one === 'string' && one !== '')
  if (typeof url !== 'string' && names.length === 0) return undefined
  return {
    ...(typeof url === 'string' && { url }),
    ...(names.length > 0 && { title: names[0] as string }),
    ...(typeof content === 'string' && content !== '' && { citedText: content }),
    ...(isIndex(start) && isIndex(end) && { start, end }),
  }
}

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

/** The range of a text part in the text of its message. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** Undefined for a citation without a URL, because chat can cite only URLs. `content` has the words of the source. */
export function writeAnnotation(citation: Citation, text: TextRange): object | undefined {
  const { url, title = '', citedText = '', start, end } = citation
  if (url === undefined) return undefined
  const range =
    start === undefined || end === undefined
      ? { start_index: text.start, end_index: text.end }
      : { start_index: text.start + start, end_index: text.start + end }
  return {
    type: 'url_citation',
    url_citation: { ...range, title, url, ...(citedText !== '' && { content: citedText }) },
  }
}
