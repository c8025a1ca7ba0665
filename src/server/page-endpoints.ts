// The endpoints that need no credential: public data, the description of the API, and the welcome page.

import type { CachedPage } from '../http/server/cached-page.ts'
import { buildCachedPage, replyWithPage } from '../http/server/cached-page.ts'
import type { Pages } from '../management/openapi/pages.ts'
import type { PublicData } from '../management/public/public-data.ts'
import { redirectToConsole } from './console-endpoints.ts'
import type { Endpoint, EndpointHandler } from './endpoint.ts'

const publicGet = { method: 'GET', auth: 'nobody' } as const

const cachedPage =
  (page: () => CachedPage | Promise<CachedPage>): EndpointHandler =>
  async ({ header }) =>
    replyWithPage(await page(), header('if-none-match'))

/** `pages`: built by the first request for one of them. */
export function pageEndpoints(data: PublicData, pages: () => Promise<Pages>, hasConsole: boolean): readonly Endpoint[] {
  const pricing: EndpointHandler = async ({ header, query }) =>
    replyWithPage(await data.pricing(query('tier')), header('if-none-match'))
  const welcome = buildWelcome(hasConsole)
  /** Browsers get the console, programs a text. */
  const root: EndpointHandler = ({ header }) =>
    hasConsole && header('accept')?.includes('text/html')
      ? redirectToConsole()
      : replyWithPage(welcome, header('if-none-match'))
  return [
    { ...publicGet, path: '/api/public/models', answer: cachedPage(() => data.models) },
    { ...publicGet, path: '/api/public/providers', answer: cachedPage(() => data.providers) },
    { ...publicGet, path: '/api/public/pricing', answer: pricing },
    { ...publicGet, path: '/api/public/settings', answer: cachedPage(() => data.settings) },

    { ...publicGet, path: '/openapi.json', answer: cachedPage(async () => (await pages()).openapi) },
    { ...publicGet, path: '/weir.schema.json', answer: cachedPage(async () => (await pages()).configSchema) },
    { ...publicGet, path: '/docs', answer: cachedPage(async () => (await pages()).docs) },
    { ...publicGet, path: '/llms.txt', answer: cachedPage(async () => (await pages()).llms) },
    { ...publicGet, path: '/', answer: root },
  ]
}

const buildWelcome = (hasConsole: boolean): CachedPage => {
  const text = `Weir is running.

How to call it:  /docs  (for programs: /openapi.json, in one screen: /llms.txt)
${hasConsole ? 'For people:      /console/\n' : ''}What it serves:  /v1/models, /api/public/pricing
How it is:       /health/ready
`
  return buildCachedPage(text, {
    contentType: 'text/plain; charset=utf-8',
    headers: { vary: 'accept', link: '</docs>; rel="service-doc", </openapi.json>; rel="service-desc"' },
  })
}
