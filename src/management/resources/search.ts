// The endpoint that finds things of all kinds by a text.

import * as z from 'zod'
import { parseTextId, textId } from '../../base/ids.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { Actor } from '../actor.ts'
import { rankOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { channelViews } from '../services/channel-views.ts'
import { shownUrl } from '../webhooks/shown-url.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint } from './endpoint.ts'

const HITS_MAX = 20
const HITS_OF_KIND_MAX = 5
/** The number of the newest webhooks that are compared, because webhooks have no names. */
const WEBHOOKS_MAX = 200

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

interface WebhookSearch {
  readonly text: string
  readonly scope: Scope | null
  readonly actor: Actor
}

/** The webhook with the text as its id, and those that contain the text in what this actor sees of their URLs. */
async function webhookHits({ queryWorker }: ManagementParts, { text, scope, actor }: WebhookSearch) {
  const managed = scope && { ...scope, rank: rankOf('manager') }
  const id = parseTextId('hook', text)
  const named = id === undefined ? null : await queryWorker.query('webhook', { id, scope: managed })
  const recent = { scope: managed, filters: {}, sort: 'created', descending: true, limit: WEBHOOKS_MAX }
  const { rows } = await queryWorker.query('webhooks', recent)
  const hits = [...(named === null ? [] : [named]), ...rows].map(
    (row): HitBody => ({ kind: 'webhook', id: textId('hook', row.id), name: shownUrl(actor, row.url), detail: null }),
  )
  const wanted = text.toLowerCase()
  return hits.filter(hit => hit.id === text || hit.name.toLowerCase().includes(wanted)).slice(0, HITS_OF_KIND_MAX)
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
      async run({ query: { text }, scope, actor }) {
        const [found, webhooks] = await Promise.all([
          parts.queryWorker.query('search', { scope, text, limit: HITS_OF_KIND_MAX }),
          webhookHits(parts, { text, scope, actor }),
        ])
        const inMemory = scope === null ? hitsInMemory(parts, text) : []
        const hits: readonly HitBody[] = [...found, ...webhooks, ...inMemory]
        const unique = new Map(hits.map(hit => [`${hit.kind} ${hit.id}`, hit]))
        return { body: { data: [...unique.values()].slice(0, HITS_MAX) } }
      },
    }),
  ]
}
