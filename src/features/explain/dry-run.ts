// Explains a call with `X-Weir-Explain: dry`: every stage runs as for a real call, except those that count, reserve,
// send and write. The explanation says what they would have done.

import { buildErrorReply, Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { DryLedgerParts } from '../../billing/dry-ledger.ts'
import { buildDryHold } from '../../billing/dry-ledger.ts'
import type { CountTokens } from '../../billing/token-counter.ts'
import type { Authenticate, CallerInQuestion } from '../../pipeline/10-authenticate.ts'
import type { CountExplanation, LimitRate } from '../../pipeline/20-limit-rate.ts'
import type { RouteRequest } from '../../pipeline/30-route.ts'
import { buildHold } from '../../pipeline/35-hold.ts'
import { adapt, noteAdaptation } from '../../pipeline/40-adapt.ts'
import type { Forward } from '../../pipeline/50-forward.ts'
import type { ResolveMedia } from '../../pipeline/attempt/media.ts'
import { unfetchedMedia } from '../../pipeline/attempt/media.ts'
import type { OpenedPlain } from '../../pipeline/attempt/open-response.ts'
import { AttemptFailed } from '../../pipeline/attempt/open-response.ts'
import type { Exchange, Permit, Route } from '../../pipeline/exchange.ts'
import { newAttempt } from '../../pipeline/exchange.ts'
import type { Ingress, PipelineParts, RunCall } from '../../pipeline/pipeline.ts'
import { buildPipeline } from '../../pipeline/pipeline.ts'
import type { Replies } from '../../pipeline/reply/reply.ts'
import { errorHeaders, replyHeaders } from '../../pipeline/reply/reply-headers.ts'
import type { ChannelPicker } from '../../pipeline/route/channel-picker.ts'
import { candidateOf } from '../../pipeline/route/channel-picker.ts'
import type { TargetChannel, Targets } from '../../pipeline/route/targets.ts'
import { logFault, refusalOf } from '../../pipeline/settle/ending.ts'
import type { LargeAnswers } from '../../pipeline/settle/large-answers.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ReasoningStore } from '../../vault/reasoning.ts'
import type { ExplanationNotes } from './explanation.ts'
import { explanationOf } from './explanation.ts'

export interface DryRunParts extends DryLedgerParts {
  /** The parts of the pipeline for real calls. */
  readonly pipeline: PipelineParts
  /** Checks the limits without counting. */
  readonly checkLimits: LimitRate
  /** Counts one explanation of a key. Throws when there were too many. */
  readonly countExplanation: CountExplanation
  readonly targets: Pick<Targets, 'explain'>
  readonly channelPicker: Pick<ChannelPicker, 'explain'>
  readonly countTokens: CountTokens
  readonly largeAnswers: Pick<LargeAnswers, 'has'>
  readonly reasoning: Pick<ReasoningStore, 'get'>
  readonly log: Log
}

const HEADER = 'x-weir-explain'
const JSON_TYPE = 'application/json'

/** Runs calls, or explains those that ask for it. */
export function buildRunOrExplain(parts: DryRunParts): RunCall {
  const [run, dryRun] = [buildPipeline(parts.pipeline), buildDryRun(parts)]
  return (ingress, protocol) => (ingress.header(HEADER) === undefined ? run : dryRun)(ingress, protocol)
}

function buildDryRun(parts: DryRunParts): RunCall {
  const runDry = buildDryPipeline(parts)
  const { authenticate } = parts.pipeline.stages
  return function dryRun(ingress, protocol) {
    const notes: ExplanationNotes = { unusable: new Map() }
    const authenticateAndCount: Authenticate = async bearer => {
      const caller = await authenticate(bearer)
      notes.tier = caller.tier
      checkHeader(ingress)
      await parts.countExplanation(caller)
      notes.caller = caller
      return caller
    }
    return runDry({ ingress, protocol, notes, authenticate: authenticateAndCount })
  }
}

/** Explains a call of a key for a person who does not have its text. Returns the explanation as JSON text. */
export type ExplainFor = (call: ExplainedCall, about: CallerInQuestion) => Promise<string>

export interface ExplainedCall {
  readonly ingress: Ingress
  readonly protocol: Protocol
  /** Whether the person may see channels and upstream requests. */
  readonly showsRouting: boolean
}

export function buildExplainFor(parts: DryRunParts): ExplainFor {
  const runDry = buildDryPipeline(parts)
  return async function explainFor({ ingress, protocol, showsRouting }, { caller, problem }) {
    await parts.countExplanation(caller, false)
    const notes: ExplanationNotes = { unusable: new Map(), caller, showsRouting }
    const authenticate: Authenticate = () => {
      if (problem !== undefined) throw problem
      return caller
    }
    const response = await runDry({ ingress, protocol, notes, authenticate })
    // A call that is refused has an explanation, too. This is a fault, and it is in the log.
    if (response.status !== 200) throw new Refusal('gateway_fault', 'the explanation failed')
    return await response.text()
  }
}

interface DryCall {
  readonly ingress: Ingress
  readonly protocol: Protocol
  readonly notes: ExplanationNotes
  readonly authenticate: Authenticate
}

function buildDryPipeline(parts: DryRunParts): (call: DryCall) => Promise<Response> {
  const { pipeline, accounts, dateMs, countTokens, largeAnswers } = parts
  const hold = buildHold({ ledger: { hold: buildDryHold({ accounts, dateMs }) }, countTokens, largeAnswers })
  return function runDry({ ingress, protocol, notes, authenticate }) {
    const answering = dryReplies(parts, notes)
    const stages = {
      ...pipeline.stages,
      authenticate,
      limitRate: parts.checkLimits,
      // Explanations have a limit of their own, and the explanation itself reports exhausted limits.
      refuseUnread: () => undefined,
      route(permit: Permit, request: RouteRequest) {
        const onUnfit = (model: string, { code }: Refusal): void => void notes.unusable.set(model, code)
        notes.foundRoute = pipeline.stages.route(permit, { ...request, onUnusable: onUnfit })
        return notes.foundRoute
      },
      hold(route: Route, call: Call, exchange: Exchange) {
        notes.readableRoute = route
        return hold(route, call, exchange)
      },
      forward: dryForward(parts, notes),
    }
    const begin = (_exchange: Exchange, answer: () => Promise<Response>): Promise<Response> => answer()
    const background = { ...pipeline.background, begin }
    return buildPipeline({ ...pipeline, stages, replies: answering, background, onEnd: undefined })(ingress, protocol)
  }
}

function checkHeader(ingress: Ingress): void {
  if (ingress.header(HEADER)!.trim().toLowerCase() !== 'dry') throw new Refusal('explain_invalid', 'not "dry"')
}

/** Returns the explanation instead of an answer. Nothing is settled, because nothing was reserved. */
function dryReplies({ accounts, dateMs, targets, log }: DryRunParts, notes: ExplanationNotes): Replies {
  async function explain(exchange: Exchange): Promise<Response> {
    const { caller } = notes
    const account = caller && (await accounts.findByKey(caller.keyId, dateMs()))
    const body = JSON.stringify(explanationOf(exchange, notes, { account, targets }), null, 2)
    return new Response(`${body}\n`, { headers: { ...replyHeaders(exchange, JSON_TYPE), 'X-Weir-Explained': 'dry' } })
  }

  /** A caller without the right, or with a wrong header, gets the same error as for a real call. */
  function refuseExplanation(exchange: Exchange, refusal: Refusal): Response {
    const { tier } = notes
    if (tier !== undefined) exchange.timings.report('Auth', 'pass', 0, `tier=${tier}`)
    const { status, body } = exchange.protocol.writeError(buildErrorReply(refusal, exchange.requestId))
    return new Response(body, { status, headers: { ...replyHeaders(exchange, JSON_TYPE), ...errorHeaders(refusal) } })
  }

  return {
    async answer(exchange, opening) {
      await opening
      exchange.lifetime.close()
      return explain(exchange)
    },
    async replay(exchange, { status, requestId }) {
      exchange.lifetime.close()
      notes.replays = { status, requestId }
      return explain(exchange)
    },
    async refuse(exchange, fault) {
      exchange.lifetime.close()
      const refusal = refusalOf(exchange, fault)
      logFault(log, exchange, fault)
      if (!(fault instanceof Refusal) || notes.caller === undefined) return refuseExplanation(exchange, refusal)
      notes.refusal = refusal
      return explain(exchange)
    },
  }
}

const nothing: OpenedPlain = { kind: 'plain', contentType: JSON_TYPE, body: Buffer.alloc(0) }

/** Picks a channel and writes its request, and sends nothing. */
function dryForward({ channelPicker, reasoning }: DryRunParts, notes: ExplanationNotes): Forward {
  return async function forward(hold, exchange) {
    const { route } = hold
    notes.pick = channelPicker.explain(route, exchange)
    const { choice } = notes.pick
    if (choice.kind === 'none')
      throw new Refusal('no_channel', route.group.requestedModel, { retryAfterMs: choice.retryAfterMs })
    const candidate = choice.kind === 'try' ? candidateOf(route, choice.target) : route.candidates[0]!
    const { channel } = choice.kind === 'try' ? (choice.channel as TargetChannel) : candidate.channels[0]!
    exchange.attempt = newAttempt(candidate)
    const masked = { ...channel, signs: channel.maskedSigns }
    const readOnlyReasoning = { put: () => {}, get: (owner: VaultId) => reasoning.get(owner) }
    const parts = { resolveMedia: countMedia(notes), reasoning: readOnlyReasoning }
    try {
      const adapted = await adapt(parts, { hold, candidate, exchange, channel: masked })
      const { request } = adapted
      noteAdaptation(exchange, adapted)
      notes.request = { channel, request }
    } catch (fault) {
      throw fault instanceof AttemptFailed ? fault.refusal : fault
    }
    return nothing
  }
}

/** Media are not fetched; the explanation only says how many there are. */
const countMedia = (notes: ExplanationNotes): ResolveMedia =>
  async function resolveMedia(conversation, codec) {
    const media = unfetchedMedia(conversation, codec)
    notes.unfetched = media.size
    return media
  }
