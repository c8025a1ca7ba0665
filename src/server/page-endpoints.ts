// The URLs of what anybody may read: public data, the description of the interface, and a word of welcome.

import type { KeptPage } from '../http/server/cached-page.ts'
import { keepPage, replyWith } from '../http/server/cached-page.ts'
import type { Pages } from '../management/openapi/pages.ts'
import type { PublicData } from '../management/public/public-data.ts'
import type { Answer, Endpoint } from './endpoint.ts'

const open = { method: 'GET', auth: 'nobody' } as const

const kept =
  (page: () => KeptPage | Promise<KeptPage>): Answer =>
  async ({ header }) =>
    replyWith(await page(), header('if-none-match'))

/** `pages` are made by the first who reads one of them. */
export function pageEndpoints(data: PublicData, pages: () => Promise<Pages>): readonly Endpoint[] {
  const pricing: Answer = ({ header, query }) => replyWith(data.pricing(query('tier')), header('if-none-match'))
  return [
    { ...open, path: '/api/public/models', answer: kept(() => data.models) },
    { ...open, path: '/api/public/providers', answer: kept(() => data.providers) },
    { ...open, path: '/api/public/pricing', answer: pricing },
    { ...open, path: '/api/public/settings', answer: kept(() => data.settings) },

    { ...open, path: '/openapi.json', answer: kept(async () => (await pages()).openapi) },
    { ...open, path: '/docs', answer: kept(async () => (await pages()).docs) },
    { ...open, path: '/llms.txt', answer: kept(async () => (await pages()).llms) },
    { ...open, path: '/', answer: kept(() => welcome) },
  ]
}

const WELCOME = `Weir is running.

How to call it:  /docs  (for programs: /openapi.json, in one screen: /llms.txt)
What it serves:  /v1/models, /api/public/pricing
How it is:       /health/ready
`

const welcome = keepPage(WELCOME, {
  contentType: 'text/plain; charset=utf-8',
  headers: { link: '</docs>; rel="service-doc", </openapi.json>; rel="service-desc"' },
})
