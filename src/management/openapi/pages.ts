// Builds the descriptions of the interface: OpenAPI, an HTML page, and llms.txt. They are built on the first request and
// then cached, because they do not change while the gateway runs.

import type { CachedPage } from '../../http/server/cached-page.ts'
import { buildCachedPage } from '../../http/server/cached-page.ts'
import { buildFileSchema } from '../config-file/file-schema.ts'
import { describedEndpoints } from './described-endpoints.ts'
import { buildDocument } from './document.ts'
import { writeLlmsText } from './llms-text.ts'
import { writePage } from './page.ts'

export interface Pages {
  readonly openapi: CachedPage
  readonly docs: CachedPage
  readonly llms: CachedPage
  /** The JSON Schema of configuration files. */
  readonly configSchema: CachedPage
}

export async function buildPages(version: string): Promise<Pages> {
  const document = await buildDocument({ endpoints: describedEndpoints, version, pause })
  const { html, policy } = await writePage(document, pause)
  return {
    openapi: buildCachedPage(JSON.stringify(document)),
    configSchema: buildCachedPage(JSON.stringify(buildFileSchema())),
    docs: buildCachedPage(html, { contentType: 'text/html; charset=utf-8', headers: { ...PLAIN, ...policy } }),
    llms: buildCachedPage(writeLlmsText(document), { contentType: 'text/plain; charset=utf-8', headers: PLAIN }),
  }
}

/** Lets the event loop serve calls in between. */
const pause = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const PLAIN = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }
