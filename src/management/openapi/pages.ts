// What there is to read about the gateway: its description for programs, for people, and in one screen. Made by the
// first who asks, and then kept: nothing of it changes while the gateway runs.

import type { KeptPage } from '../../http/kept-page.ts'
import { keepPage } from '../../http/kept-page.ts'
import type { WebEndpoint } from '../resources/endpoint.ts'
import { buildDocument } from './document.ts'
import { writeLlmsText } from './llms-text.ts'
import { writePage } from './page.ts'

export interface Pages {
  readonly openapi: KeptPage
  readonly docs: KeptPage
  readonly llms: KeptPage
}

export interface PagesParts {
  readonly managed: readonly WebEndpoint[]
  readonly version: string
}

export function buildPages(parts: PagesParts): Pages {
  const document = buildDocument(parts)
  const { html, policy } = writePage(document)
  return {
    openapi: keepPage(JSON.stringify(document)),
    docs: keepPage(html, { contentType: 'text/html; charset=utf-8', headers: { ...PLAIN, ...policy } }),
    llms: keepPage(writeLlmsText(document), { contentType: 'text/plain; charset=utf-8', headers: PLAIN }),
  }
}

const PLAIN = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }
