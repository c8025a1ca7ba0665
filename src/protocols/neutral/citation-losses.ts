// Reports the fields of a citation that the dialect of the answer, or of the request, has no place for.

import type { Citation } from './conversation.ts'
import type { Losses } from './losses.ts'

const NAMES: Readonly<Record<keyof Citation, string>> = {
  url: 'url',
  title: 'title',
  citedText: 'cited_text',
  start: 'start_index',
  end: 'end_index',
}

/** `lacking`: the fields that the dialect does not have. Only those that the citation has are losses. */
export function addCitationLosses(citation: Citation, lacking: readonly (keyof Citation)[], losses: Losses): void {
  for (const field of lacking) {
    const value = citation[field]
    if (value !== undefined && value !== '') losses.add(`citations.${NAMES[field]}`)
  }
}
