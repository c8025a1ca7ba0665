// What only a running gateway can tell and do for those who manage it: how channels are, a trial of one, the models
// that an upstream has.

import type { Deadlines } from '../base/deadlines.ts'
import type { PriceBook } from '../billing/price-book.ts'
import type { Tried } from '../features/channel-tests/channel-test.ts'
import { buildTryChannel, cheapestOf, talkOf } from '../features/channel-tests/channel-test.ts'
import { buildListModels, Untold } from '../features/channel-tests/list-models.ts'
import type { OutgoingRequest, Send } from '../http/client/request.ts'
import type { Running, Trial } from '../management/live-gateway.ts'
import { NotTold } from '../management/live-gateway.ts'
import { OperatorError } from '../management/operator-error.ts'
import { Unfit } from '../management/services/channels.ts'
import { buildAskWhole } from '../pipeline/attempt/upstream-query.ts'
import type { Lanes } from '../pipeline/route/targets.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Channel } from '../upstreams/channel.ts'
import type { Model, Provider } from '../upstreams/provider.ts'
import { maskedRequest } from '../upstreams/sign-request.ts'

export interface RunningParts {
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly lanes: Pick<Lanes, 'healthOf'>
  readonly send: Send
  readonly deadlines: Deadlines
  nowMs(): number
}

/** What an attempt came to, and what an operator can do about it. */
const advice: Readonly<Record<Tried['verdict'], string>> = {
  answered: 'It works.',
  caller_at_fault: 'The upstream refused the request itself. Look at what it says, and at what the channel changes.',
  credential_bad: 'The upstream refuses the credential. Give the channel another.',
  forbidden: 'The credential may not do this. Look at its rights at the provider, or try another model.',
  rate_limited: 'The upstream has had enough for now. It will be well again by itself.',
  quota_spent: 'Nothing is left to spend for this credential. Pay the provider, or raise its budget there.',
  not_here: 'The upstream does not have this model for this credential. Fetch its models, or try another.',
  broken: 'No usable answer came. Look at the address, at the proxy, and whether the provider is well.',
  too_slow: 'No answer came in time. Try again, or give the channel more time.',
}

export function buildRunning({ catalogue, prices, lanes, send, deadlines, nowMs }: RunningParts): Running {
  const askWhole = buildAskWhole(send, deadlines)
  const healthOf = ({ id }: Channel) => lanes.healthOf(id)
  const tryChannel = buildTryChannel({ askWhole, deadlines, healthOf })
  const listModels = buildListModels(askWhole)

  function find(id: string): { readonly channel: Channel; readonly provider: Provider } {
    const channel = catalogue.channelNamed(id)
    if (channel !== undefined) return { channel, provider: catalogue.providers.get(channel.providerId)! }
    const problem = catalogue.problems.get(id)
    throw new Unfit(problem ?? 'There is no such channel, or it cannot be used.')
  }

  return {
    prices,
    health: id => lanes.healthOf(id)?.snapshot(nowMs()),
    resetHealth: id => lanes.healthOf(id)?.reset(),
    async tryChannel(id, wanted) {
      const { channel, provider } = find(id)
      const model = modelOf(provider, wanted, prices)
      const spoken = talkOf(provider, model)
      if (spoken === undefined) throw new OperatorError('This model does not talk: name one that does.')
      const { sent, headMs, totalMs, verdict, ...tried } = await tryChannel({ provider, channel, model, spoken })
      const shown = await shownRequest(sent, { provider, channel, dialect: spoken.name })
      return {
        ...{ channel: channel.id, ok: verdict === 'answered', verdict, advice: advice[verdict] },
        ...{ model: tried.model, dialect: tried.dialect, status: tried.status, timings: { headMs, totalMs } },
        ...{ sent: { ...shown, overrides: tried.overrides }, received: tried.received, fault: tried.fault },
      }
    },
    async listModels(id) {
      const { channel, provider } = find(id)
      try {
        return await listModels(provider, channel)
      } catch (fault) {
        throw fault instanceof Untold ? new NotTold(fault.message) : fault
      }
    },
  }
}

/** By its id, or as callers name it. */
function modelOf(provider: Provider, wanted: string | undefined, prices: PriceBook): Model {
  const id = wanted?.startsWith(`${provider.id}/`) ? wanted.slice(provider.id.length + 1) : wanted
  const found = id === undefined ? cheapestOf(provider, prices) : provider.models.get(id)
  if (found !== undefined) return found
  if (id === undefined) throw new OperatorError(`${provider.name} lists no model that talks: name one.`)
  if (provider.openModels && /^[\x21-\x7e]{1,200}$/.test(id)) return { id }
  throw new OperatorError(`${provider.name} has no such model.`)
}

interface Destination {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
}

/** As it was sent, without what proves that it is us. */
async function shownRequest(sent: OutgoingRequest, to: Destination): Promise<Omit<Trial['sent'], 'overrides'>> {
  const { channel } = to
  const clean = (text: string): string => channel.key.scrub(text)
  const { method = 'POST', url, headers, body } = await maskedRequest(sent, to)
  return {
    method,
    url: clean(url),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, clean(value)])),
    body: clean(Buffer.from(body).toString('utf8')),
  }
}
