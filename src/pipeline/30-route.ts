// Permit + model name → Route: what the name stands for, at which price, and the channels that can serve it.

import { Refusal } from '../base/errors.ts'
import type { Price } from '../base/money/price.ts'
import type { Units } from '../base/money/usage.ts'
import { classOf, hasBasis, hasClass, hasSearch, hasUnit } from '../billing/price.ts'
import type { PriceBook } from '../billing/price-book.ts'
import { checkModel } from '../identity/key-rights.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Service } from '../protocols/request/services.ts'
import type { Permit, Route, Way } from './exchange.ts'
import type { ChannelSeat, Lane, Lanes } from './route/targets.ts'
import { fitting } from './route/usable.ts'

export interface RouteParts {
  readonly lanes: Pick<Lanes, 'find'>
  readonly prices: Pick<PriceBook, 'current'>
  dateMs(): number
}

export interface Asked {
  /** As the caller wrote it. */
  readonly model: string
  /** The caller's. */
  readonly protocol: Protocol
  /** As the caller wrote it. */
  readonly serviceClass: string | undefined
  /** The provider is asked to search, too. */
  readonly searches: boolean
  /** What else its own upstream would do for it, and may bill. */
  readonly services?: readonly Service[] | undefined
  /** What it is counted in besides tokens. */
  readonly units?: Units | undefined
  /** Where what it follows is kept, and its name there. */
  readonly keptAt?: KeptAt | undefined
  /** Told of each model that is left out while others are not. */
  onUnfit?(model: string, why: Refusal): void
}

export interface KeptAt {
  readonly channel: string
  readonly upstreamId: string
}

export type RouteCall = (permit: Permit, asked: Asked) => Route

export function buildRoute({ lanes, prices, dateMs }: RouteParts): RouteCall {
  /**
   * A price that nobody knows is not a price of nothing. That a model has none is ours to mend; what a request asks for
   * besides is the caller's to leave out, and no program need try it again.
   */
  function priceOf({ provider, model, spoken, option }: Lane, asked: Asked): CurrentOrFree {
    const { protocol, serviceClass, units, services = [] } = asked
    if (provider.free || model.free || protocol.free) return undefined
    const current = prices.current(option.name)
    if (current === undefined) throw new Refusal('price_unknown', option.name)
    if (!hasClass(current.price, serviceClass)) {
      const hint = `It is not known for the service class "${serviceClass}".`
      throw new Refusal('service_unpriced', option.name, { param: 'service_tier', hint })
    }
    // No other dialect has them, so that elsewhere they are left out.
    const passing = spoken === protocol ? services : []
    const unknown = passing.find(one => !isKnown(one, current.price, provider.included))
    if (unknown !== undefined) throw unknownService(option.name, unknown)
    if (!hasBasis(current.price, units)) {
      const hint = 'It is not known for calls of this kind.'
      throw new Refusal('price_unknown', `${option.name}: ${protocol.name}`, { hint })
    }
    return current
  }

  function wayBy(lane: Lane, asked: Asked, permit: Permit): Way {
    checkModel(permit.caller, asked.model, lane.option.name)
    const current = priceOf(lane, asked)
    const withoutSearch = asked.searches && current !== undefined && !knowsSearch(current.price, lane.provider.included)
    // What a caller wrote in the upstream's own dialect is not ours to change.
    if (withoutSearch && lane.spoken === asked.protocol) {
      const hint = 'It is not known what a search costs on this model: leave it out.'
      throw new Refusal('service_unpriced', `${lane.option.name}: search`, { hint })
    }
    const { perMille } = permit.caller
    const price = current && { ...current, perMille, serviceClass: classOf(asked.serviceClass), atMs: dateMs() }
    return withoutSearch ? { ...lane, price, withoutSearch } : { ...lane, price }
  }

  return function route(permit, asked) {
    const group = lanes.find(asked.model, asked.protocol, permit.caller.requires)
    const onUnfit = (lane: Lane, why: Refusal): void => asked.onUnfit?.(lane.option.name, why)
    const ways = fitting(group.lanes, lane => wayBy(lane, asked, permit), onUnfit)
    const options = ways.length === group.options.length ? group.options : ways.map(({ option }) => option)
    const found = { ...ways[0]!, permit, asked: group.asked, policy: group.policy, ways, options } as Route
    return asked.keptAt === undefined ? found : (atKeeper(found, asked.keptAt, asked.protocol) ?? found)
  }
}

/** The upstream that keeps what a call follows need only be told its name. */
function atKeeper(route: Route, { channel, upstreamId }: KeptAt, protocol: Protocol): Route | undefined {
  const isKept = ({ provider, spoken }: Way, { id }: ChannelSeat): boolean =>
    provider.can.keepsResponses && spoken === protocol && id === channel
  const kept = narrowed(route, isKept)
  if (kept === undefined) return undefined
  const ways = kept.ways.map(way => ({ ...way, follows: upstreamId }))
  return { ...kept, follows: upstreamId, ways } as Route
}

/** By those channels alone; undefined where none is left. */
export function narrowed(route: Route, keeps: (way: Way, seat: ChannelSeat) => boolean): Route | undefined {
  const ways: Way[] = []
  for (const way of route.ways) {
    const seats = way.seats.filter(seat => keeps(way, seat))
    if (seats.length > 0) ways.push({ ...way, seats, option: { ...way.option, seats } })
  }
  if (ways.length === 0) return undefined
  return { ...onWay(route, ways[0]!), ways, options: ways.map(({ option }) => option) } as Route
}

/** By all other ways, each as it was; undefined where there is none. */
export function withoutWay(route: Route, unfit: Way): Route | undefined {
  const ways = route.ways.filter(way => way !== unfit)
  return ways.length === 0 ? undefined : ({ ...route, ways, options: ways.map(({ option }) => option) } as Route)
}

/** With another of its ways in use. */
export const onWay = (route: Route, way: Way): Route => ({ ...route, ...bare, ...way }) as Route

/** What one way may have and another has not. */
const bare = { follows: undefined, withoutSearch: undefined }

/** Whether it is known what this costs: so much each, or nothing beyond the rest of the price. */
function isKnown({ name, unit }: Service, price: Price, included: readonly string[]): boolean {
  return included.includes(name) || price.included?.includes(name) || (unit !== undefined && hasUnit(price, unit))
}

/** A search has a price, or is in that of the call. */
const knowsSearch = (price: Price, included: readonly string[]): boolean =>
  hasSearch(price) || included.includes('web_search') || Boolean(price.included?.includes('web_search'))

function unknownService(model: string, { name, param = 'tools' }: Service): Refusal {
  const hint =
    `It is not known what "${name}" costs on this model: leave it out. ` +
    'An operator can allow it by a price that names it (docs/prices.md, "Tools and fields").'
  return new Refusal('service_unpriced', `${model}: ${name}`, { param, hint })
}

type CurrentOrFree = ReturnType<PriceBook['current']>
