// Asks providers whose lists of models have prices for models that the provider files do not know: when a call names an
// unknown model, and from then on at an interval, so that a changed price is noticed.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Catalogue, FoundProviders } from '../../upstreams/catalogue.ts'
import { readListedModel } from '../../upstreams/model-list.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import type { ListModels } from '../channel-tests/list-models.ts'
import { ModelListUnavailable } from '../channel-tests/list-models.ts'

export interface ListedModelsParts {
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf' | 'isDefined'>
  readonly listModels: ListModels
  readonly everyMs: number
  readonly log: Log
  nowMs(): number
  /** Makes these models callable at their prices. */
  publish(found: FoundProviders): Promise<void>
}

/** The errors of calls that a newly listed model, or its price, may answer. */
const UNSERVED: readonly ErrorCode[] = ['model_unknown', 'price_unknown']

export class ListedModels {
  readonly #parts: ListedModelsParts
  #found: FoundProviders = new Map()
  #timer: ReturnType<typeof setInterval> | undefined
  #refreshing: Promise<boolean> | undefined
  #refreshedMs = -Infinity
  #closed = false

  constructor(parts: ListedModelsParts) {
    this.#parts = parts
  }

  /** After a call was refused. Resolves to whether something has changed. */
  async refreshFor(code: ErrorCode): Promise<boolean> {
    if (!UNSERVED.includes(code) || this.#closed) return false
    const { nowMs, everyMs } = this.#parts
    const isRecent = nowMs() - this.#refreshedMs < bounds.listedModelsGapMs
    if (this.#refreshing === undefined && (isRecent || this.#providers().length === 0)) return false
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => void this.#refresh(), everyMs)
      this.#timer.unref()
    }
    return await this.#refresh()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#refreshing
  }

  #refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refreshAll()
      .catch(fault => {
        this.#parts.log.warn('listed models could not be read', { fault: describeFault(fault) })
        return false
      })
      .finally(() => {
        this.#refreshing = undefined
        this.#refreshedMs = this.#parts.nowMs()
      })
    return this.#refreshing
  }

  #providers(): readonly Provider[] {
    const { catalogue } = this.#parts
    const providers = [...catalogue.providers.values()]
    return providers.filter(({ id, modelList }) => modelList !== undefined && catalogue.channelsOf(id).length > 0)
  }

  async #refreshAll(): Promise<boolean> {
    const found: FoundProviders = new Map(
      await Promise.all(this.#providers().map(async provider => [provider.id, await this.#read(provider)] as const)),
    )
    if (this.#closed || textOf(found) === textOf(this.#found)) return false
    await this.#parts.publish(found)
    this.#found = found
    return true
  }

  /** The last list, if the provider does not answer. */
  async #read(provider: Provider): Promise<{ readonly models: readonly Model[] }> {
    const { catalogue, listModels, log } = this.#parts
    const last = this.#found.get(provider.id) ?? { models: [] }
    try {
      const { rows } = await listModels(provider, catalogue.channelsOf(provider.id)[0]!, bounds.listedModelsMsMax)
      const models = [...rows].flatMap(([id, row]) => {
        return catalogue.isDefined(provider.id, id) ? [] : (readListedModel(id, row, provider.modelList!) ?? [])
      })
      return { models: models.slice(0, bounds.listedModelsMax) }
    } catch (fault) {
      if (!(fault instanceof ModelListUnavailable)) throw fault
      log.warn('the list of models is not available', { provider: provider.id, detail: fault.message })
      return last
    }
  }
}

const textOf = (found: FoundProviders): string =>
  JSON.stringify([...found], (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
