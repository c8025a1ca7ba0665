// The endpoint that finds things of all kinds by a text.

import * as z from 'zod'
import { rankOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { channelViews } from '../services/channel-views.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint } from './endpoint.ts'

const HITS_MAX = 20
const HITS_OF_KIND_MAX = 5

const kinds = [
  ...(['account', 'person', 'key', 'channel', 'provider', 'model', 'route', 'tier'] as const),
  ...(['call', 'webhook', 'code_batch'] as const),
] as const

const Hit = z
  .object({ kind: z.enum(kinds), id: z.string(), name: z.string(), detail: z.string().nullable() })
  .meta({ id: 'SearchHit' })
type HitBody = z.input<typeof Hit>

/** What is in memory, and which only staff see: channels, providers, models and routes that contain the text. */
function hitsInMemory(parts: ManagementParts, text: string): readonly HitBody[] {
  const wanted = text.toLowerCase()
  const hits: HitBody[] = []
  const add = (kind: HitBody['kind'], all: Iterable<Omit<HitBody, 'kind'>>): void => {
    let count = 0
    for (const hit of all) {
      if (!`${hit.id} ${hit.name}`.toLowerCase().includes(wanted)) continue
      hits.push({ kind, ...hit })
      if (++count === HITS_OF_KIND_MAX) return
    }
  }
  const { providers } = parts.catalogue()
  const plain = (id: string): Omit<HitBody, 'kind'> => ({ id, name: id, detail: null })
  add(
    'channel',
    channelViews(parts).map(({ id, name, state }) => ({ id, name: name ?? id, detail: state })),
  )
  add(
    'provider',
    [...providers.values()].map(({ id, name }) => ({ id, name, detail: null })),
  )
  add(
    'route',
    parts.rules.current.routes.map(({ name }) => plain(name)),
  )
  add(
    'model',
    providers.values().flatMap(({ id, models }) => models.keys().map(model => plain(`${id}/${model}`))),
  )
  return hits
}

export function searchEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/search',
      who: { account: 'viewer' },
      summary: 'Find what you may see by the beginning of its name, the end of a key, or its id.',
      query: z.strictObject({ text: z.string().trim().min(1).max(200) }),
      answer: z.object({ data: z.array(Hit).meta({ description: `At most ${HITS_MAX}` }) }),
      async run({ query: { text }, scope }) {
        const webhookScope = scope && { ...scope, rank: rankOf('manager') }
        const found = await parts.queryWorker.query('search', { scope, webhookScope, text, limit: HITS_OF_KIND_MAX })
        const hits: readonly HitBody[] = [...found, ...(scope === null ? hitsInMemory(parts, text) : [])]
        const unique = new Map(hits.map(hit => [`${hit.kind} ${hit.id}`, hit]))
        return { body: { data: [...unique.values()].slice(0, HITS_MAX) } }
      },
    }),
  ]
}
