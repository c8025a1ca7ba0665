// Tests which files at a URL are known to be no PDF.

import { expect, test } from 'bun:test'
import { isOtherThanPdf } from './text-documents.ts'

test.each([
  ['https://a.example/report.pdf', undefined, false],
  ['https://a.example/report.PDF?x=a.txt', undefined, false],
  ['https://a.example/report', undefined, false],
  ['https://arxiv.example/pdf/2401.00001', undefined, false],
  ['https://a.example/download.php', undefined, false],
  ['https://a.example/notes.txt', undefined, true],
  ['https://a.example/notes.md?raw=true#top', undefined, true],
  ['https://a.example/data.csv', 'application/pdf', false],
  ['https://a.example/data', 'text/csv', true],
  ['https://a.example/data.csv', 'application/octet-stream', true],
])('%s of the type %s is certainly no PDF: %s', (url, mime, expected) => {
  expect(isOtherThanPdf({ url, ...(mime !== undefined && { mime }) })).toBe(expected)
})
