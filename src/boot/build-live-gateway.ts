// Builds what management can ask of a running gateway: the health of channels, a test of a channel, and the models of an
// upstream.

import type { Deadlines } from '../base/deadlines.ts'
import { refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import type { PriceBook } from '../billing/price-book.ts'
import type { ChannelTestResult } from '../features/channel-tests/channel-test.ts'
import { buildTestChannel, cheapestModel, conversationProtocol } from '../features/channel-tests/channel-test.ts'
import { buildListModels, ModelListUnavailable } from '../features/channel-tests/list-models.ts'
import type { OutgoingRequest, SendRequest } from '../http/client/request.ts'
import type { LimitCounter } from '../limits/limit-counter.ts'
import { limitedKeyOf } from '../limits/limited-call.ts'
import type { ChannelTestReport, LiveGateway } from '../management/live-gateway.ts'
import { buildSendUpstreamQuery } from '../pipeline/attempt/upstream-query.ts'
import type { Targets } from '../pipeline/route/targets.ts'
import type { Changes } from '../store/engine/store-engine.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Channel } from '../upstreams/channel.ts'
import type { Model, Provider } from '../upstreams/provider.ts'
import { maskRequest } from '../upstreams/request-signature.ts'

export interface LiveGatewayParts {
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly targets: Pick<Targets, 'healthOf' | 'problemOf'>
  readonly limits: Pick<LimitCounter, 'quotasOfKey'>
  readonly changes: Pick<Changes, 'askForReset'>
  readonly send: SendRequest
  readonly deadlines: Deadlines
  readonly explain: LiveGateway['explain']
  nowMs(): number
}

/** What an operator can do about the result of a channel test. */
const advice: Readonly<Record<ChannelTestResult['verdict'], string>> = {
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

export function buildLiveGateway({
  catalogue,
  prices,
  targets,
  limits,
  changes,
  send,
  deadlines,
  explain,
  nowMs,
}: LiveGatewayParts): LiveGateway {
  const askWhole = buildSendUpstreamQuery(send, deadlines)
  const healthOf = ({ id }: Channel) => targets.healthOf(id)
  const tryChannel = buildTestChannel({ askWhole, deadlines, healthOf })
  const listModels = buildListModels(askWhole)

  function find(id: string): { readonly channel: Channel; readonly provider: Provider } {
    const channel = catalogue.findChannel(id)
    if (channel !== undefined) return { channel, provider: catalogue.providers.get(channel.providerId)! }
    const problem = catalogue.problems.get(id)
    throw refusal('state_unfit', problem ?? hintOf('channel_unusable'))
  }

  return {
    prices,
    explain,
    quotasOf: async key => await limits.quotasOfKey(limitedKeyOf({ ...key, keyId: key.id }), nowMs()),
    modelProblem: (name, rights) => targets.problemOf(name, rights),
    health: id => targets.healthOf(id)?.snapshot(nowMs()),
    async resetHealth(id) {
      targets.healthOf(id)?.reset()
      await changes.askForReset(id)
    },
    async testChannel(id, modelName) {
      const { channel, provider } = find(id)
      const model = findModel(provider, modelName, prices)
      const spoken = conversationProtocol(provider, model)
      if (spoken === undefined) throw refusal('field_invalid', hintOf('test_not_chat'))
      const { sent, headMs, totalMs, verdict, ...result } = await tryChannel({
        provider,
        channel,
        model,
        upstreamProtocol: spoken,
      })
      const maskedSent = await showMaskedRequest(sent, { provider, channel, dialect: spoken.name })
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
        faultHint: result.faultHint?.data ?? null,
      }
    },
    async listModels(id) {
      const { channel, provider } = find(id)
      try {
        return (await listModels(provider, channel)).ids
      } catch (fault) {
        throw fault instanceof ModelListUnavailable ? refusal('upstream_unusable', fault.hint) : fault
      }
    },
  }
}

/** Finds a model by its id or by the name that callers use; without a name, the cheapest chat model. */
function findModel(provider: Provider, name: string | undefined, prices: PriceBook): Model {
  const id = name?.startsWith(`${provider.id}/`) ? name.slice(provider.id.length + 1) : name
  const model = id === undefined ? cheapestModel(provider, prices) : provider.models.get(id)
  if (model !== undefined) return model
  if (id === undefined) throw refusal('field_invalid', hintOf('test_no_chat_model', { provider: provider.name }))
  if (provider.openModels && /^[\x21-\x7e]{1,200}$/.test(id)) return { id }
  throw refusal('field_invalid', hintOf('test_no_model', { provider: provider.name, model: id }))
}

interface RequestTarget {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
}

/** The request as it was sent, without secrets. */
async function showMaskedRequest(
  sent: OutgoingRequest,
  to: RequestTarget,
): Promise<Omit<ChannelTestReport['sent'], 'overrides'>> {
  const { channel } = to
  const clean = (text: string): string => channel.key.scrub(text)
  const { method = 'POST', url, headers, body } = await maskRequest(sent, to)
  return {
    method,
    url: clean(url),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, clean(value)])),
    body: clean(Buffer.from(body).toString('utf8')),
  }
}
