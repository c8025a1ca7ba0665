// Permit + model name → Route: finds the targets of the name, their prices, and the channels that can serve the call.

import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import type { Price } from '../base/money/price.ts'
import { variantBase } from '../base/text/rule-names.ts'
import { hasBasis, hasClass, hasSearch, hasUnit, normalizeServiceClass } from '../billing/price.ts'
import type { PriceBook } from '../billing/price-book.ts'
import { checkModelAllowed } from '../identity/key-rights.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Service } from '../protocols/request/services.ts'
import type { Candidate, Permit, Route } from './exchange.ts'
import { sizeOn, translatedBounds } from './route/call-size.ts'
import type { Target, TargetChannel, TargetGroup, Targets } from './route/targets.ts'
import { selectUsable } from './route/usable.ts'

export interface RouteParts {
  readonly targets: Pick<Targets, 'find'>
  readonly prices: Pick<PriceBook, 'current'>
  dateMs(): number
}

export interface RouteRequest {
  readonly call: Call
  /** The caller's dialect. */
  readonly protocol: Protocol
  /** The channel that stores the response which the call continues. */
  readonly storedAt?: ResponseLocation | undefined
  /** Called with each model that cannot serve the call, where another one can. */
  onUnusable?(model: string, why: Refusal): void
}

export interface ResponseLocation {
  readonly channel: string
  readonly upstreamId: string
}

export type RouteCall = (permit: Permit, request: RouteRequest) => Route

export function buildRoute({ targets, prices, dateMs }: RouteParts): RouteCall {
  /**
   * An unknown price never means that a call is free. A model without a price is the operator's mistake. A service
   * without a price can be left out by the caller, so that refusal is one that programs do not retry.
   */
  function priceOf(target: Target, request: RouteRequest): CurrentOrFree {
    const { provider, model, upstreamProtocol, option } = target
    const { protocol, call } = request
    const { serviceClass, units, services } = call
    if (protocol.free) return undefined
    const current = prices.current(option.name)
    if (current === undefined && (provider.free || model.free)) return undefined
    if (current === undefined) throw unknownPrice(target)
    if (!hasClass(current.price, serviceClass)) {
      const hint = hintOf('call_price_class', { class: serviceClass ?? '' })
      throw new Refusal('service_unpriced', option.name, { param: 'service_tier', hint })
    }
    // Other dialects do not have these services: there, the translation leaves them out.
    const passedServices = upstreamProtocol === protocol ? services : undefined
    const unknown = passedServices?.find(service => !isPriced(service, current.price, provider.included))
    if (unknown !== undefined) throw unknownService(option.name, unknown)
    if (!hasBasis(current.price, units)) {
      const hint = hintOf('call_price_kind')
      throw new Refusal('price_unknown', `${option.name}: ${protocol.name}`, { hint })
    }
    return current
  }

  function candidateFor(target: Target, request: RouteRequest, permit: Permit): Candidate {
    const { call, protocol } = request
    checkModelAllowed(permit.caller, { requested: call.model, names: target.names })
    const current = priceOf(target, request)
    const withoutSearch =
      call.searchesMax > 0 && current !== undefined && !isSearchPriced(current.price, target.provider.included)
    // A request in the upstream's own dialect is not changed.
    if (withoutSearch && target.upstreamProtocol === protocol) {
      const hint = hintOf('call_price_search')
      throw new Refusal('service_unpriced', `${target.option.name}: search`, { hint })
    }
    const { perMille } = permit.caller
    const price = current && {
      price: current.price,
      version: current.version,
      perMille,
      serviceClass: normalizeServiceClass(call.serviceClass),
      atMs: dateMs(),
    }
    const { names, provider, model, channels, upstreamProtocol, otherProtocols, option } = target
    const found = { names, provider, model, channels, upstreamProtocol, option, price }
    const sized = { ...found, withoutSearch }
    const size = sizeOn(sized, upstreamProtocol === protocol ? call : translatedBounds(call, target))
    const candidate = { ...(withoutSearch ? sized : found), size }
    return otherProtocols === undefined ? candidate : { ...candidate, otherProtocols }
  }

  function candidatesOf({ targets: all }: TargetGroup, request: RouteRequest, permit: Permit): readonly Candidate[] {
    if (all.length === 1) return [candidateFor(all[0]!, request, permit)]
    const onUnusable = (target: Target, why: Refusal): void => request.onUnusable?.(target.option.name, why)
    return selectUsable(all, target => candidateFor(target, request, permit), onUnusable)
  }

  return function route(permit, request) {
    const { call, protocol, storedAt } = request
    const group = targets.find(call.model, protocol, permit.caller.requires)
    const candidates = candidatesOf(group, request, permit)
    const found = { permit, group, candidates } as Route
    return storedAt === undefined ? found : (narrowToStoring(found, storedAt, protocol) ?? found)
  }
}

/** The route through the channel that stores the previous response: its upstream only needs the response's id. */
function narrowToStoring(
  route: Route,
  { channel, upstreamId }: ResponseLocation,
  protocol: Protocol,
): Route | undefined {
  const isKept = ({ provider, upstreamProtocol }: Candidate, { id }: TargetChannel): boolean =>
    provider.can.keepsResponses && upstreamProtocol === protocol && id === channel
  const kept = narrowRoute(route, isKept)
  if (kept === undefined) return undefined
  return withCandidates(
    kept,
    kept.candidates.map(candidate => ({ ...candidate, previousResponseId: upstreamId })),
  )
}

/** The route through those channels only for which `keeps` is true; undefined if there are none. */
export function narrowRoute(
  route: Route,
  keeps: (candidate: Candidate, channel: TargetChannel) => boolean,
): Route | undefined {
  const candidates: Candidate[] = []
  for (const candidate of route.candidates) {
    const channels = candidate.channels.filter(channel => keeps(candidate, channel))
    if (channels.length === 0) continue
    candidates.push({ ...candidate, channels, option: { ...candidate.option, channels } })
  }
  return candidates.length === 0 ? undefined : withCandidates(route, candidates)
}

/** The route without one candidate; undefined if no other is left. */
export function withoutCandidate(route: Route, excluded: Candidate): Route | undefined {
  const candidates = route.candidates.filter(candidate => candidate !== excluded)
  return candidates.length === 0 ? undefined : withCandidates(route, candidates)
}

export const withCandidates = (route: Route, candidates: readonly Candidate[]): Route =>
  ({ ...route, candidates }) as Route

/** Whether the price of a service is known: a price per unit, or included in the price of the call. */
function isPriced({ name, unit }: Service, price: Price, included: readonly string[]): boolean {
  return included.includes(name) || price.included?.includes(name) || (unit !== undefined && hasUnit(price, unit))
}

/** Whether a search has a price, or is included in the price of the call. */
const isSearchPriced = (price: Price, included: readonly string[]): boolean =>
  hasSearch(price) || included.includes('web_search') || Boolean(price.included?.includes('web_search'))

/** Says why, where the reason is not just that nobody has set a price. */
function unknownPrice({ provider, model, option: { name } }: Target): Refusal {
  const base = variantBase(model.id)
  const { priceProblem: problem } = model
  if (base === undefined) {
    if (problem === undefined) return new Refusal('price_unknown', name)
    return new Refusal('price_unknown', name, { hint: hintOf('call_price_problem', { problem, name }) })
  }
  const variants = model.id.startsWith(base) ? `*${model.id.slice(base.length)}` : `ft:${base}:*`
  const named = { name, pattern: `${provider.id}/${variants}` }
  const hint =
    problem === undefined
      ? hintOf('call_price_variant', { base: `${provider.id}/${base}`, ...named })
      : hintOf('call_price_problem_variant', { problem, ...named })
  return new Refusal('price_unknown', name, { hint })
}

function unknownService(model: string, { name, param = 'tools' }: Service): Refusal {
  return new Refusal('service_unpriced', `${model}: ${name}`, { param, hint: hintOf('call_price_service', { name }) })
}

type CurrentOrFree = ReturnType<PriceBook['current']>
