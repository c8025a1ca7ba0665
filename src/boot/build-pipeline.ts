// Builds the stages of a call and their parts. It contains no logic of the stages themselves.

import { bounds } from '../base/bounds.ts'
import type { EndedCall } from '../base/call-summary.ts'
import type { Deadlines } from '../base/deadlines.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Price } from '../base/money/price.ts'
import type { Ledger } from '../billing/ledger.ts'
import type { PriceBook } from '../billing/price-book.ts'
import { readRow } from '../billing/price-book.ts'
import { TokenCounter } from '../billing/token-counter.ts'
import { buildExplained } from '../features/explain/dry-run.ts'
import { FileService } from '../features/files/files.ts'
import { buildBackground } from '../features/stored-responses/background.ts'
import { buildCompacting } from '../features/stored-responses/compaction.ts'
import { buildFollowing } from '../features/stored-responses/previous-response.ts'
import { buildResponsesAsking } from '../features/stored-responses/requests.ts'
import { keepingSettle } from '../features/stored-responses/store-response.ts'
import { buildUpstreamAsking } from '../features/stored-responses/upstream-responses.ts'
import { TaskService } from '../features/tasks/tasks.ts'
import { buildLearning } from '../features/token-counts/learned-factors.ts'
import { buildCounting } from '../features/token-counts/token-counts.ts'
import { openGuardedFetch } from '../http/client/fetch-media.ts'
import type { Client } from '../http/client/send-request.ts'
import { DayNotes, rememberedDebts } from '../limits/day-usage.ts'
import type { Gate } from '../limits/gate.ts'
import { Limits } from '../limits/limits.ts'
import { WaitingLines } from '../limits/wait-queue.ts'
import { buildAuthenticate } from '../pipeline/10-authenticate.ts'
import {
  buildExplanationLimit,
  buildLimitRate,
  buildLookAtLimits,
  buildRefuseUnread,
} from '../pipeline/20-limit-rate.ts'
import { buildRoute } from '../pipeline/30-route.ts'
import { buildHold } from '../pipeline/35-hold.ts'
import { buildForward } from '../pipeline/50-forward.ts'
import { buildDeduct } from '../pipeline/70-deduct.ts'
import { buildResolveMedia } from '../pipeline/attempt/media.ts'
import { buildAskUpstream } from '../pipeline/attempt/upstream-query.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { UnderWay } from '../pipeline/lifetime/active-calls.ts'
import { endedCall } from '../pipeline/lifetime/call-summary.ts'
import { Leaving } from '../pipeline/lifetime/disconnects.ts'
import { buildLookBack } from '../pipeline/lifetime/idempotency.ts'
import type { PipelineParts } from '../pipeline/pipeline.ts'
import { AnswerMemory } from '../pipeline/reply/memory-budget.ts'
import { buildAnswering } from '../pipeline/reply/reply.ts'
import type { Silence } from '../pipeline/reply/stream-reply.ts'
import { Picking } from '../pipeline/route/channel-picker.ts'
import { owningSettle, ReferenceCheck } from '../pipeline/route/references.ts'
import { Lanes } from '../pipeline/route/targets.ts'
import { buildKeeping } from '../pipeline/settle/keep-bodies.ts'
import { buildSettling } from '../pipeline/settle/settle.ts'
import { Affinity } from '../routing/choice/affinity.ts'
import { RetryBudget } from '../routing/retry-budget.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import { buildRunning } from './build-live-gateway.ts'
import type { Store } from './open-store.ts'
import type { World } from './runtime.ts'

export interface CallParts {
  readonly ledger: Ledger
  readonly silence: Silence
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly upstreams: Pick<Client, 'send'>
  readonly store: Store
  readonly underWay: UnderWay
  readonly gate: Gate
  readonly deadlines: Deadlines
  readonly world: World
  readonly log: Log
  /** The most attempts of one call. */
  readonly attemptsMax: number
  /** The most bytes of answers that all calls together hold in memory. */
  readonly answersHeldBytesMax: number
  /** Called for each finished call; undefined without metrics and access log. */
  readonly onEnd: ((call: EndedCall) => void) | undefined
}

/** Builds everything that answers calls. */
export function buildCalls(parts: CallParts) {
  const { catalogue, prices, upstreams, ledger, store, underWay, gate, deadlines, world, log, silence } = parts
  const { nowMs, dateMs } = world.clock
  const counter = new TokenCounter(detail => log.error('the token counter failed', { detail }))
  const { seal, vault } = store
  const compacting = buildCompacting(seal)
  const following = buildFollowing({ responses: vault.responses, compacting, catalogue })
  const learning = buildLearning({ factors: vault.factors, countTokens: counter.count })
  const keeping = buildKeeping({ seal, bodies: store.bodies })
  const settling = buildSettling({ deduct: buildDeduct(ledger), keeping, log, owedMax: world.owedMax })
  const authenticate = buildAuthenticate({ keys: store.keys, pepper: store.folder.secrets.pepper, dateMs })
  const { limits, limitRate, refuseUnread, lookAtLimits, dayNotes } = buildLimits(parts)
  const askUpstream = buildAskUpstream(upstreams.send, deadlines)
  const references = new ReferenceCheck({ references: vault.references, catalogue })
  const { lanes, picking, lines, channels, standing } = buildChoice(parts)
  const files = new FileService({
    files: vault.files,
    catalogue,
    lanes,
    limitRate,
    gate,
    accounts: store.reader.accounts,
    askUpstream,
    dateMs,
  })
  const stages = {
    authenticate,
    limitRate,
    refuseUnread,
    lanes,
    references,
    lookBack: buildLookBack({ reader: store.reader, seal, log, dateMs }),
    route: buildRoute({ lanes, prices, dateMs }),
    following,
    hold: buildHold({ ledger, countTokens: counter.count }),
    forward: buildForward({
      picking,
      send: upstreams.send,
      deadlines,
      memory: new AnswerMemory(parts.answersHeldBytesMax, world.eventBytesMax),
      times: world.attemptTimes,
      reasoning: vault.reasoning,
      resolveMedia: buildResolveMedia(openGuardedFetch(world.media).fetchMedia),
      onForward: exchange => learning.begin(exchange),
      onAttemptFailed: (channel, detail) => log.warn('attempt failed', { channel, detail }),
    }),
  }
  const stallMs = world.attemptTimes?.betweenChunksMs ?? bounds.betweenChunksMsMax
  const silenceTimes = world.silence ?? silence
  const leaving = new Leaving(deadlines)
  const settleReferences = owningSettle(settling.settle, { references: vault.references, log })
  const settle = keepingSettle(settleReferences, { responses: vault.responses, log })
  const answering = buildAnswering({ settle, log, silence: silenceTimes, deadlines, leaving, stallMs })
  const background = buildBackground({ responses: vault.responses, log, heartbeatMs: silenceTimes.heartbeatMs })
  const shared = { underWay, gate, settling, nowMs, dateMs, onEnd: summarizeCalls(parts) }
  const runCall = buildExplained({
    pipeline: { ...shared, stages, answering, background, leaving: notifyEnd({ leaving, picking, learning }) },
    lanes,
    picking,
    countTokens: counter.count,
    reasoning: vault.reasoning,
    log,
    dateMs,
    accounts: store.reader.accounts,
    lookAtLimits,
    countExplanation: buildExplanationLimit({ limits, nowMs }),
  })
  const countCall = buildCounting({
    lanes,
    limitRate,
    countTokens: counter.count,
    send: upstreams.send,
    factors: vault.factors,
    following,
    learning,
    references,
    dateMs,
    onFailed: (channel, detail) => log.warn('the provider did not count tokens', { channel, detail }),
  })
  const responses = buildResponsesAsking({
    responses: vault.responses,
    background,
    following,
    compacting,
    dateMs,
    upstreams: buildUpstreamAsking({ catalogue, send: upstreams.send, deadlines }),
  })
  const tasks = new TaskService({
    tasks: vault.tasks,
    ledger,
    catalogue,
    log,
    nowMs,
    dateMs,
    limitRate,
    refuseUnread,
    askUpstream,
    route: stages.route,
    lanes,
    references,
    everyMs: world.tasksEveryMs,
    chance: world.chance,
    priceOf: version => readPrice(store, version),
  })
  const served = { authenticate, runCall, countCall, responses, tasks, files }
  const watched = { channels, standing, waiting: () => lines.standing }
  return { ...served, ...watched, limits, dayNotes, limitRate, settling, counter }
}

interface EndListeners {
  readonly leaving: Leaving
  readonly picking: Picking
  readonly learning: ReturnType<typeof buildLearning>
}

/** When a call ends, every part that holds state of it is notified. */
const notifyEnd = ({ leaving, picking, learning }: EndListeners): PipelineParts['leaving'] => ({
  left: exchange => leaving.left(exchange),
  over(exchange) {
    leaving.over(exchange)
    picking.over(exchange)
    learning.end(exchange)
  },
})

const summarizeCalls = ({ onEnd }: CallParts) => onEnd && ((exchange: Exchange): void => onEnd(endedCall(exchange)))

/** Builds the limits of calls and tokens. */
function buildLimits({ store, world, log }: CallParts) {
  const { nowMs, dateMs } = world.clock
  const { writer, reader } = store
  const limits = new Limits(rememberedDebts(reader.kept.limitDebts(), { nowMs: nowMs(), dateMs: dateMs() }))
  store.rules.follow(rules => limits.setRules([...rules.limits, ...rules.tierLimits]))
  const onTrouble = (fault: unknown): void =>
    log.warn('the use of day limits could not be stored', { fault: describeFault(fault) })
  const dayNotes = new DayNotes({ limits, writer, nowMs, dateMs, onTrouble })
  const parts = { limits, nowMs }
  return {
    limits,
    dayNotes,
    limitRate: buildLimitRate(parts),
    refuseUnread: buildRefuseUnread(parts),
    lookAtLimits: buildLookAtLimits(parts),
  }
}

/** Builds the parts that choose a target and a channel for each attempt. */
function buildChoice(parts: CallParts) {
  const { catalogue, prices, store, world, log, deadlines, attemptsMax } = parts
  const { clock, chance } = world
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
  const lanes = new Lanes({ catalogue, prices, chance, onCredentialOff, onQuotaSpent, onWellAgain })
  const lines = new WaitingLines(deadlines)
  const picking = new Picking({
    attemptsMax,
    chance,
    nowMs: clock.nowMs,
    pause: world.pause,
    lines,
    affinity: new Affinity(),
    retries: new RetryBudget(),
  })
  store.rules.follow(rules => lanes.setRules(rules))
  store.follow({
    price(row) {
      prices.add(row)
      lanes.forget()
    },
    running: buildRunning({ catalogue, prices, lanes, send: parts.upstreams.send, deadlines, nowMs: clock.nowMs }),
  })
  /** All channels with their current health. */
  const channels = () =>
    catalogue.all().map(({ id }) => {
      const health = lanes.healthOf(id)
      const nowMs = clock.nowMs()
      return { id, health: health?.snapshot(nowMs), brokenMs: health?.brokenMs(nowMs) }
    })
  const standing = (id: string) => lanes.healthOf(id)?.snapshot(clock.nowMs()).state
  return { lanes, picking, lines, channels, standing }
}

/** Reads the price version that a task was admitted with. The task is billed by it, also when it is old. */
function readPrice({ reader }: Store, version: number): Price {
  const row = reader.price(version)
  if (row === undefined) throw new Error(`price version ${version} does not exist`)
  return readRow(row.model, version, row.price)
}
