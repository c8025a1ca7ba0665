// Asks an upstream through one of its channels for the list of its models, page by page.

import { bounds } from '../../base/bounds.ts'
import { HintedError, hintOf } from '../../base/hints.ts'
import type { OutgoingRequest } from '../../http/client/request.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { SendUpstreamQuery } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import { parseUpstreamJson } from '../../protocols/request/json-body.ts'
import type { ModelIdPage, UpstreamModelList } from '../../protocols/upstream-models.ts'
import { findUpstreamModelList } from '../../protocols/upstream-models.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'

/** The upstream does not list its models; the message says why. */
export class ModelListUnavailable extends HintedError {}

export interface UpstreamModels {
  readonly ids: readonly string[]
  readonly owners: ReadonlySet<string>
  /** What the list says of each model, where it says more than ids. */
  readonly rows: ReadonlyMap<string, Readonly<Record<string, unknown>>>
}

export type ListModels = (provider: Provider, channel: Channel, msMax?: number) => Promise<UpstreamModels>

/** Leaves out names that could not be called, and stops at a limit. */
export function buildListModels(askWhole: SendUpstreamQuery): ListModels {
  async function pageOf(
    listing: UpstreamModelList,
    next: string | undefined,
    to: UpstreamChannel,
  ): Promise<ModelIdPage> {
    const { provider, channel, msMax } = to
    const { dialect } = listing
    const request: OutgoingRequest = {
      method: 'GET',
      url: channel.baseUrl + listing.path(next),
      headers: {
        'accept': 'application/json',
        ...fixedHeaders,
        ...findProtocol(dialect)?.headers,
      },
      body: new Uint8Array(),
    }
    const asking = { provider, channel, dialect, bytesMax: bounds.modelListBytesMax, msMax }
    const { status, body } = await askWhole(asking, request)
    const clean = (message: string): string => scrubUpstreamError({ status, message }, channel).message.slice(0, 300)
    if (status !== 200) {
      throw new ModelListUnavailable(hintOf('list_status', { status, text: clean(body.toString('utf8', 0, 4_096)) }))
    }
    const page = listing.read(parseUpstreamJson(body))
    if (page === undefined) throw new ModelListUnavailable(hintOf('list_unreadable'))
    return page
  }

  return async function listModels(provider, channel, msMax = bounds.modelListMsMax) {
    const listing = findUpstreamModelList(provider.speaks)
    if (listing === undefined) throw new ModelListUnavailable(hintOf('list_unknown', { provider: provider.name }))
    const [ids, owners] = [new Set<string>(), new Set<string>()]
    const rows = new Map<string, Readonly<Record<string, unknown>>>()
    let next: string | undefined
    try {
      for (let pages = 0; pages < bounds.modelListPagesMax && ids.size < bounds.modelsListedMax; pages++) {
        const page = await pageOf(listing, next, { provider, channel, msMax })
        for (const id of page.ids) if (isCallable(id) && ids.size < bounds.modelsListedMax) ids.add(id)
        for (const [id, row] of page.rows ?? []) if (ids.has(id)) rows.set(id, row)
        for (const owner of page.owners ?? []) if (owners.size < OWNERS_MAX) owners.add(owner)
        if (page.next === undefined || page.next === next) break
        next = page.next
      }
    } catch (fault) {
      if (!(fault instanceof UpstreamQueryFailed)) throw fault
      const problem = scrubUpstreamError({ status: 0, message: fault.message }, channel).message
      throw new ModelListUnavailable(hintOf('list_failed', { problem }))
    }
    return { ids: [...ids].sort(), owners, rows }
  }
}

interface UpstreamChannel {
  readonly provider: Provider
  readonly channel: Channel
  readonly msMax: number
}

/** Callers only want to know whether there is one owner, and which. */
const OWNERS_MAX = 10

const isCallable = (id: string): boolean => /^[\x21-\x7e]{1,200}$/.test(id)
