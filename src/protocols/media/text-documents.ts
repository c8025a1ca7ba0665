// Text documents: which files are plain text, and the media type of a file that came without one. All dialects use the
// same rules, so that a file means the same in each of them.

import type { MediaSource } from '../neutral/conversation.ts'
import { isPdf } from './pdf-pages.ts'

const TEXTUAL =
  /^text\/|^application\/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml|sql|javascript|typescript)\b|^application\/[^;]*\+(?:json|xml)\b/i

/** The text of a text document, whether it arrived as text or as base64. Undefined for any other source. */
export function readPlainText(source: MediaSource): string | undefined {
  if (source.at === 'text') return source.text
  if (source.at !== 'inline' || !TEXTUAL.test(source.mime)) return undefined
  const bytes = Buffer.from(source.base64, 'base64')
  // A PDF with a wrong type was reserved as pages, and its bytes are far more tokens than its pages.
  return isPdf(bytes) ? undefined : bytes.toString('utf8')
}

const PDF = 'application/pdf'
const OFFICE = 'application/vnd.openxmlformats-officedocument'

const TYPE_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['pdf', PDF],
  ['txt', 'text/plain'],
  ['log', 'text/plain'],
  ['md', 'text/markdown'],
  ['markdown', 'text/markdown'],
  ['csv', 'text/csv'],
  ['tsv', 'text/tab-separated-values'],
  ['html', 'text/html'],
  ['htm', 'text/html'],
  ['css', 'text/css'],
  ['xml', 'text/xml'],
  ['json', 'application/json'],
  ['jsonl', 'application/x-ndjson'],
  ['ndjson', 'application/x-ndjson'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['toml', 'application/toml'],
  ['sql', 'application/sql'],
  ['js', 'text/javascript'],
  ['ts', 'text/x-typescript'],
  ['py', 'text/x-python'],
  ['sh', 'text/x-sh'],
  ['c', 'text/x-c'],
  ['cpp', 'text/x-c++'],
  ['java', 'text/x-java'],
  ['go', 'text/x-go'],
  ['rs', 'text/x-rust'],
  ['docx', `${OFFICE}.wordprocessingml.document`],
  ['pptx', `${OFFICE}.presentationml.presentation`],
  ['xlsx', `${OFFICE}.spreadsheetml.sheet`],
])

/** `%PDF-` in base64, up to the last whole character. */
const PDF_START = 'JVBERi'

/** Says nothing about a file. Programs declare it for each file whose type they do not know. */
const UNKNOWN = 'application/octet-stream'

export interface NamedFile {
  readonly base64: string
  readonly name: string | undefined
  /** As the caller declared it; empty if the caller did not. */
  readonly mime: string
}

/**
 * The declared type of a file. If it says nothing: what the first bytes or the extension of the name say. A file about
 * which nothing is known is a PDF, which every provider reads.
 */
export function findFileType({ base64, name = '', mime }: NamedFile): string {
  if (mime !== '' && mime !== UNKNOWN) return mime
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase()
  const found = base64.startsWith(PDF_START) ? PDF : TYPE_BY_EXTENSION.get(extension ?? '')
  return found ?? (mime === '' && extension === undefined ? PDF : UNKNOWN)
}

/** Whether a file at a URL is certainly no PDF, by its declared type or by the extension in the URL. */
export function isOtherThanPdf({ url, mime = '' }: { readonly url: string; readonly mime?: string }): boolean {
  const name = url.replace(/[?#].*$/s, '').replace(/^.*\//s, '')
  const type = findFileType({ base64: '', name, mime })
  return type !== PDF && type !== UNKNOWN
}
