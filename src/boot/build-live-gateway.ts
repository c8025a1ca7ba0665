// Builds what management can ask of a running gateway: the health of channels, a test of a channel, and the models of an
// upstream.

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

/** What an operator can do about the result of a channel test. */
const advice: Readonly<Record<Tried['verdict'], string>> = {
  answered: 'It works.',
  caller_at_fault: 'The upstream refused the request. Check its error message and the overrides of the channel.',
  credential_bad: 'The upstream refuses the credential. Set another credential for the channel.',
  forbidden: 'The credential is not allowed to do this. Check its rights at the provider, or try another model.',
  rate_limited: 'The upstream limits the rate of calls. Wait and try again.',
  quota_spent: 'The quota or the funds of this credential are used up. Pay the provider, or raise its budget there.',
  not_here: 'The upstream does not offer this model for this credential. List its models, or try another model.',
  broken: 'The upstream gave no usable answer. Check the base URL, the proxy, and the status of the provider.',
  too_slow: 'The upstream did not answer in time. Try again, or raise the timeouts of the channel.',
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
    throw new Unfit(problem ?? 'The channel does not exist or cannot be used.')
  }

  return {
    prices,
    health: id => lanes.healthOf(id)?.snapshot(nowMs()),
    resetHealth: id => lanes.healthOf(id)?.reset(),
    async tryChannel(id, modelName) {
      const { channel, provider } = find(id)
      const model = findModel(provider, modelName, prices)
      const spoken = talkOf(provider, model)
      if (spoken === undefined) throw new OperatorError('This model does not support chat. Name a chat model.')
      const { sent, headMs, totalMs, verdict, ...result } = await tryChannel({ provider, channel, model, spoken })
      const maskedSent = await maskRequest(sent, { provider, channel, dialect: spoken.name })
      return {
        channel: channel.id,
        ok: verdict === 'answered',
        verdict,
        advice: advice[verdict],
        model: result.model,
        dialect: result.dialect,
        status: result.status,
        timings: { headMs, totalMs },
        sent: { ...maskedSent, overrides: result.overrides },
        received: result.received,
        fault: result.fault,
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

/** Finds a model by its id or by the name that callers use; without a name, the cheapest chat model. */
function findModel(provider: Provider, name: string | undefined, prices: PriceBook): Model {
  const id = name?.startsWith(`${provider.id}/`) ? name.slice(provider.id.length + 1) : name
  const model = id === undefined ? cheapestOf(provider, prices) : provider.models.get(id)
  if (model !== undefined) return model
  if (id === undefined) throw new OperatorError(`${provider.name} lists no chat model. Name a model.`)
  if (provider.openModels && /^[\x21-\x7e]{1,200}$/.test(id)) return { id }
  throw new OperatorError(`${provider.name} has no model "${id}".`)
}

interface RequestTarget {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
}

/** The request as it was sent, without secrets. */
async function maskRequest(sent: OutgoingRequest, to: RequestTarget): Promise<Omit<Trial['sent'], 'overrides'>> {
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
