// Builds the stages of a call and their parts. It contains no logic of the stages themselves.

import { bounds } from '../base/bounds.ts'
import type { CallSummary } from '../base/call-summary.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Price } from '../base/money/price.ts'
import type { Ledger } from '../billing/ledger.ts'
import type { PriceBook } from '../billing/price-book.ts'
import { parsePriceRow } from '../billing/price-book.ts'
import { TokenCounter } from '../billing/token-counter.ts'
import { buildExplainFor, buildRunOrExplain } from '../features/explain/dry-run.ts'
import { FileService } from '../features/files/files.ts'
import { buildBackground } from '../features/stored-responses/background.ts'
import { buildCompaction } from '../features/stored-responses/compaction.ts'
import { buildPreviousResponses } from '../features/stored-responses/previous-response.ts'
import { ReadingTurns } from '../features/stored-responses/reading-turns.ts'
import { buildStoredResponseRequests } from '../features/stored-responses/requests.ts'
import { settleWithResponse } from '../features/stored-responses/store-response.ts'
import { buildStoringUpstreams } from '../features/stored-responses/upstream-responses.ts'
import { settleUnlessStarted } from '../features/tasks/settle-task.ts'
import { TaskService } from '../features/tasks/tasks.ts'
import { buildFactorLearning } from '../features/token-counts/learned-factors.ts'
import { buildCountCall } from '../features/token-counts/token-counts.ts'
import type { HttpClient } from '../http/client/http-client.ts'
import { openMediaFetch } from '../http/client/media-fetch.ts'
import { DayUsageWriter, restoreDayUsage } from '../limits/day-usage.ts'
import type { Gate } from '../limits/gate.ts'
import { WaitQueues } from '../limits/wait-queue.ts'
import { buildAuthenticate } from '../pipeline/10-authenticate.ts'
import {
  buildCheckLimits,
  buildExplanationLimit,
  buildLimitRate,
  buildRefuseUnread,
} from '../pipeline/20-limit-rate.ts'
import { buildRoute } from '../pipeline/30-route.ts'
import { buildHold } from '../pipeline/35-hold.ts'
import { buildForward } from '../pipeline/50-forward.ts'
import { buildDeduct } from '../pipeline/70-deduct.ts'
import { buildResolveMedia } from '../pipeline/attempt/media.ts'
import type { MediaMemoryMax } from '../pipeline/attempt/media-memory.ts'
import { MediaMemory } from '../pipeline/attempt/media-memory.ts'
import {
  buildOpenUpstreamQuery,
  buildQueryUpstream,
  buildSendUpstreamQuery,
} from '../pipeline/attempt/upstream-query.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { ActiveCalls } from '../pipeline/lifetime/active-calls.ts'
import type { Disconnects } from '../pipeline/lifetime/disconnects.ts'
import { buildIdempotencyCheck } from '../pipeline/lifetime/idempotency.ts'
import { summarizeCall } from '../pipeline/lifetime/summarize-call.ts'
import type { PipelineParts, Stages } from '../pipeline/pipeline.ts'
import { AnswerMemory } from '../pipeline/reply/memory-budget.ts'
import { buildReplies } from '../pipeline/reply/reply.ts'
import type { SilenceTimes } from '../pipeline/reply/stream-reply.ts'
import { ChannelPicker } from '../pipeline/route/channel-picker.ts'
import { buildConversationId } from '../pipeline/route/conversation-key.ts'
import { ReferenceCheck, settleWithReferences } from '../pipeline/route/references.ts'
import { Targets } from '../pipeline/route/targets.ts'
import { AnswerQuota } from '../pipeline/settle/answer-quota.ts'
import { buildBodyStorage } from '../pipeline/settle/keep-bodies.ts'
import type { LargeAnswers } from '../pipeline/settle/large-answers.ts'
import type { Reservations } from '../pipeline/settle/reservation.ts'
import { buildSettler } from '../pipeline/settle/settle.ts'
import type { LargeBodyReader } from '../protocols/request/large-json.ts'
import { Affinity } from '../routing/choice/affinity.ts'
import { SharedAffinity } from '../routing/choice/shared-affinity.ts'
import { RetryBudget } from '../routing/retry-budget.ts'
import { buildExplainCall } from '../server/explain-call.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { Catalogue, FoundProviders } from '../upstreams/catalogue.ts'
import type { Model } from '../upstreams/provider.ts'
import { buildLiveGateway } from './build-live-gateway.ts'
import type { LimitProcesses } from './open-limits.ts'
import { openLimits } from './open-limits.ts'
import type { Store } from './open-store.ts'
import type { Runtime } from './runtime.ts'

export interface CallParts {
  readonly ledger: Ledger
  readonly reservations: Reservations
  readonly largeAnswers: Pick<LargeAnswers, 'has'>
  readonly silence: SilenceTimes
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly upstreams: Pick<HttpClient, 'send'>
  readonly store: Store
  /** The processes that count limits together; undefined for a gateway of one process. */
  readonly limitProcesses: LimitProcesses | undefined
  readonly refreshModels: Stages['refreshModels']
  /** The stored uses of day limits. */
  readonly limitDebts: readonly LimitDebt[]
  readonly activeCalls: ActiveCalls
  readonly gate: Gate
  readonly deadlines: Deadlines
  readonly disconnects: Disconnects
  readonly largeJson: Pick<LargeBodyReader, 'read'>
  readonly runtime: Runtime
  readonly log: Log
  /** The most attempts of one call. */
  readonly attemptsMax: number
  /** The most bytes of answers that all calls together hold in memory. */
  readonly answerMemoryBytesMax: number
  /** The most memory of fetched media. */
  readonly mediaMemoryMax: MediaMemoryMax
  /** Called for each finished call; undefined without metrics and access log. */
  readonly onEnd: ((call: CallSummary) => void) | undefined
}

/** Builds everything that answers calls. */
export function buildCalls(parts: CallParts) {
  const { catalogue, prices, upstreams, ledger, store, activeCalls, gate, deadlines, runtime, log, silence } = parts
  const { nowMs, dateMs } = runtime.clock
  const counter = new TokenCounter(detail => log.error('the token counter failed', { detail }), runtime.tokenCounter)
  const { seal, vault, jobs } = store
  const compaction = buildCompaction(seal)
  const turns = new ReadingTurns()
  const previousResponses = buildPreviousResponses({
    responses: vault.responses,
    compaction,
    catalogue,
    largeJson: parts.largeJson,
    turns,
  })
  const learning = buildFactorLearning({ factors: vault.factors, countTokens: counter.count })
  const bodyStorage = buildBodyStorage({ seal, answerQuota: new AnswerQuota(nowMs), bodies: store.bodies })
  const deduct = buildDeduct(ledger)
  const settling = buildSettler({
    deduct,
    bodyStorage,
    log,
    unsettledMax: runtime.unsettledMax,
  })
  const authenticate = buildAuthenticate({ keys: store.keys, pepper: store.folder.secrets.pepper, dateMs })
  const { limits, closeLimits, limitRate, refuseUnread, lookAtLimits, countExplanation, dayNotes, affinity } =
    buildLimits(parts)
  const queryUpstream = buildQueryUpstream(upstreams.send, deadlines)
  const references = new ReferenceCheck({ references: vault.references, catalogue })
  const { targets, channelPicker, waitQueues, channels, standing } = buildChoice(parts, affinity)
  const files = new FileService({
    files: vault.files,
    catalogue,
    targets,
    limitRate,
    gate,
    accounts: store.reader.accounts,
    queryUpstream,
    dateMs,
  })
  const stages: Stages = {
    configuration: store.engine.changes,
    authenticate,
    limitRate,
    refuseUnread,
    targets,
    references,
    idempotency: buildIdempotencyCheck({ reader: store.reader, seal, log, dateMs }),
    route: buildRoute({ targets, prices, dateMs }),
    refreshModels: parts.refreshModels,
    previousResponses,
    conversationId: buildConversationId(store.folder.secrets.pepper),
    recallChannel: (route, exchange) => channelPicker.recall(route, exchange),
    hold: buildHold({ ledger, countTokens: counter.count, largeAnswers: parts.largeAnswers }),
    forward: buildForward({
      channelPicker,
      send: upstreams.send,
      deadlines,
      reservations: parts.reservations,
      memory: new AnswerMemory(parts.answerMemoryBytesMax, runtime.eventBytesMax),
      times: runtime.attemptTimes,
      reasoning: vault.reasoning,
      resolveMedia: buildResolveMedia(openMediaFetch(runtime.media).fetchMedia, new MediaMemory(parts.mediaMemoryMax)),
      onForward: exchange => learning.begin(exchange),
      onAttemptFailed: (channel, detail) => log.warn('attempt failed', { channel, detail }),
    }),
  }
  const stallMs = runtime.attemptTimes?.betweenChunksMs ?? bounds.betweenChunksMsMax
  const silenceTimes = runtime.silence ?? silence
  const settleReferences = settleWithReferences(settling.settle, { references: vault.references, log })
  const settle = settleWithResponse(settleReferences, { responses: vault.responses, log })
  const { reservations, disconnects } = parts
  const replyParts = { settle, reservations, log, silence: silenceTimes, deadlines, disconnects, stallMs }
  const background = buildBackground({
    responses: vault.responses,
    jobs,
    disconnects,
    log,
    heartbeatMs: silenceTimes.heartbeatMs,
  })
  const pipeline: PipelineParts = {
    stages,
    replies: buildReplies(replyParts),
    background,
    disconnects: notifyEnd({ disconnects, channelPicker, learning }),
    activeCalls,
    gate,
    settler: {
      checkUnsettled() {
        // Such calls would only wait for a hold that fails.
        if (!store.engine.processes.isAlive) throw new Refusal('storage_away', 'the lease of this process has run out')
        settling.checkUnsettled()
      },
    },
    nowMs,
    dateMs,
    onEnd: summarizeCalls(parts),
  }
  const explaining = {
    pipeline,
    targets,
    channelPicker,
    countTokens: counter.count,
    largeAnswers: parts.largeAnswers,
    reasoning: vault.reasoning,
    log,
    dateMs,
    accounts: store.reader.accounts,
    checkLimits: lookAtLimits,
    countExplanation,
  }
  const runCall = buildRunOrExplain(explaining)
  const { changes } = store.engine
  changes.onReset(channel => targets.healthOf(channel)?.reset())
  store.connect({
    running: buildLiveGateway({
      catalogue,
      prices,
      targets,
      limits,
      changes,
      send: upstreams.send,
      deadlines,
      explain: buildExplainCall({ explainFor: buildExplainFor(explaining), dateMs }),
      nowMs,
    }),
  })
  const countCall = buildCountCall({
    targets,
    limitRate,
    countTokens: counter.count,
    sendQuery: buildSendUpstreamQuery(upstreams.send, deadlines),
    nowMs,
    factors: vault.factors,
    previousResponses,
    learning,
    references,
    dateMs,
    onFailed: (channel, detail) => log.warn('the provider did not count tokens', { channel, detail }),
  })
  const responses = buildStoredResponseRequests({
    responses: vault.responses,
    background,
    previousResponses,
    turns,
    deadlines,
    log,
    dateMs,
    upstreams: buildStoringUpstreams({
      catalogue,
      openQuery: buildOpenUpstreamQuery(upstreams.send, deadlines),
      deadlines,
    }),
  })
  const settleUnstarted = settleUnlessStarted(settle, { tasks: vault.tasks, bodyStorage, log, dateMs })
  const tasks = new TaskService({
    pipeline: { ...pipeline, replies: buildReplies({ ...replyParts, settle: settleUnstarted }) },
    hold: buildHold({
      ledger: { hold: request => ledger.hold({ ...request, kind: 'task' }) },
      countTokens: counter.count,
      largeAnswers: parts.largeAnswers,
    }),
    tasks: vault.tasks,
    jobs,
    deduct,
    catalogue,
    log,
    dateMs,
    channelPicker,
    queryUpstream,
    everyMs: runtime.tasksEveryMs,
    chance: runtime.random,
    priceOf: version => readPrice(store, version),
  })
  const served = { authenticate, runCall, countCall, responses, tasks, files }
  const { route, refreshModels } = stages
  const forSockets = { previousResponses, route, refreshModels, refuseUnread, stallMs }
  const watched = { channels, standing, waiting: () => waitQueues.counts }
  return { ...served, ...forSockets, ...watched, limits, closeLimits, dayNotes, limitRate, settling, counter }
}

interface EndListeners {
  readonly disconnects: Disconnects
  readonly channelPicker: ChannelPicker
  readonly learning: ReturnType<typeof buildFactorLearning>
}

/** When a call ends, every part that holds state of it is notified. */
const notifyEnd = ({ disconnects, channelPicker, learning }: EndListeners): PipelineParts['disconnects'] => ({
  onDisconnect: exchange => disconnects.onDisconnect(exchange),
  onCallOver(exchange) {
    disconnects.onCallOver(exchange)
    channelPicker.onCallOver(exchange)
    learning.end(exchange)
  },
})

const summarizeCalls = ({ onEnd }: CallParts) => onEnd && ((exchange: Exchange): void => onEnd(summarizeCall(exchange)))

/** Builds the limits of calls and tokens, and the rest of what processes share in Redis. */
function buildLimits({ store, limitProcesses: processes, runtime, log, limitDebts }: CallParts) {
  const { nowMs, dateMs } = runtime.clock
  const { writer } = store
  const restored = restoreDayUsage(limitDebts, { nowMs: nowMs(), dateMs: dateMs() })
  const { limits, explanationLimits, attemptCounters, connection, close } = openLimits({
    processes,
    restored,
    log,
    dateMs,
  })
  store.connect({ attemptCounters })
  store.rules.subscribe(rules => limits.setRules([...rules.limits, ...rules.tierLimits]))
  const onTrouble = (fault: unknown): void =>
    log.warn('the use of day limits could not be stored', { fault: describeFault(fault) })
  const dayNotes = new DayUsageWriter({ limits, writer, nowMs, dateMs, onTrouble })
  const parts = { limits, nowMs }
  return {
    limits,
    closeLimits: close,
    affinity: connection && processes ? new SharedAffinity({ connection, ...processes }) : new Affinity(),
    dayNotes,
    limitRate: buildLimitRate(parts),
    refuseUnread: buildRefuseUnread(parts),
    lookAtLimits: buildCheckLimits(parts),
    countExplanation: buildExplanationLimit({ ...parts, explanationLimits }),
  }
}

/** Builds the parts that choose a target and a channel for each attempt. */
function buildChoice(parts: CallParts, affinity: Affinity) {
  const { catalogue, prices, store, runtime, log, deadlines, attemptsMax } = parts
  const { clock, random } = runtime
  const { raise } = store.webhooks
  const onCredentialOff = (channel: string): void => {
    log.error('the provider refuses the credential of this channel; the channel is blocked for a while', { channel })
    raise('channel.down', { channel, reason: 'credential_refused' })
  }
  const onQuotaSpent = (channel: string): void => {
    log.error('the quota or the funds of this channel are used up; the channel is blocked for a while', { channel })
    raise('channel.down', { channel, reason: 'quota_spent' })
  }
  const onWellAgain = (channel: string): void => {
    log.info('the credential of this channel works again', { channel })
    raise('channel.up', { channel })
  }
  const targets = new Targets({
    catalogue,
    prices,
    chance: random,
    processes: parts.limitProcesses?.count,
    onCredentialOff,
    onQuotaSpent,
    onRecovered: onWellAgain,
  })
  const waitQueues = new WaitQueues(deadlines)
  const channelPicker = new ChannelPicker({
    attemptsMax,
    chance: random,
    nowMs: clock.nowMs,
    pause: runtime.pause,
    waitQueues,
    affinity,
    retries: new RetryBudget(),
  })
  store.rules.subscribe(rules => targets.setRules(rules))
  catalogue.setFound('prices', pricedModels(prices))
  store.connect({
    price(row) {
      prices.add(row)
      catalogue.setFound('prices', pricedModels(prices))
      targets.forget()
    },
    priceRows(rows) {
      prices.reread(catalogue.prices(), rows)
      catalogue.setFound('prices', pricedModels(prices))
      targets.forget()
    },
  })
  /** All channels with their current health. */
  const channels = () =>
    catalogue.all().map(({ id }) => {
      const health = targets.healthOf(id)
      const nowMs = clock.nowMs()
      return { id, health: health?.snapshot(nowMs), breakerOpenMs: health?.breakerOpenMs(nowMs) }
    })
  const standing = (id: string) => targets.healthOf(id)?.snapshot(clock.nowMs()).state
  return { targets, channelPicker, waitQueues, channels, standing }
}

/** Models that a provider file need not list, because an operator has set their prices. */
function pricedModels(prices: Pick<PriceBook, 'operatorModels'>): FoundProviders {
  const found = new Map<string, { readonly models: Model[] }>()
  for (const name of prices.operatorModels()) {
    const slash = name.indexOf('/')
    const [provider, id] = [name.slice(0, slash), name.slice(slash + 1)]
    if (!found.has(provider)) found.set(provider, { models: [] })
    found.get(provider)!.models.push({ id })
  }
  return found
}

/** Reads the price version that a task was admitted with. The task is billed by it, also when it is old. */
async function readPrice({ reader }: Store, version: number): Promise<Price> {
  const row = await reader.price(version)
  if (row === undefined) throw new Error(`price version ${version} does not exist`)
  return parsePriceRow(row.model, version, row.price)
}
