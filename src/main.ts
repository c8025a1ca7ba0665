// Starts the gateway: builds its parts and listens. The only file that knows all parts.

import packageJson from '../package.json'
import { startDemo } from '../tools/fake-upstream/demo.ts'
import { bounds } from './base/bounds.ts'
import { Deadlines } from './base/deadlines.ts'
import { Refusal } from './base/errors.ts'
import { textId } from './base/ids.ts'
import type { Log } from './base/log.ts'
import { buildLog, describeFault } from './base/log.ts'
import { formatUsd } from './base/money/money.ts'
import { shareWhilePending } from './base/share-while-pending.ts'
import { buildCountedLedger } from './billing/counted-ledger.ts'
import type { Ledger } from './billing/ledger.ts'
import { buildLedger } from './billing/ledger.ts'
import type { PriceBook } from './billing/price-book.ts'
import { openPriceBook } from './billing/price-book.ts'
import { applyConfigFile } from './boot/apply-config-file.ts'
import type { CallParts } from './boot/build-pipeline.ts'
import { buildCalls } from './boot/build-pipeline.ts'
import { accessLog, watchCalls } from './boot/call-listeners.ts'
import { Drain } from './boot/drain.ts'
import type { GatewayWatch } from './boot/gateway-status.ts'
import { watchGateway } from './boot/gateway-status.ts'
import { gatewaySettings, hostInUrl, listenOrFail, metricsSettings } from './boot/listen-fault.ts'
import { readCatalogue } from './boot/load-catalogue.ts'
import { checkDatabaseUrl } from './boot/open-engine.ts'
import type { LimitProcesses } from './boot/open-limits.ts'
import { checkRedisUrl } from './boot/open-limits.ts'
import type { Store } from './boot/open-store.ts'
import { openStore } from './boot/open-store.ts'
import { buildPublishModels } from './boot/publish-models.ts'
import type { Runtime } from './boot/runtime.ts'
import { defaultRuntime, memoryBytesMax } from './boot/runtime.ts'
import { StartGate } from './boot/start-gate.ts'
import { openMetrics } from './boot/start-metrics.ts'
import { inStartTurn } from './boot/start-turn.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config.ts'
import { buildListModels } from './features/channel-tests/list-models.ts'
import { ListedModels } from './features/listed-models/listed-models.ts'
import { LocalServers } from './features/local-servers/local-servers.ts'
import type { HttpClient } from './http/client/http-client.ts'
import { openHttpClient } from './http/client/http-client.ts'
import { BodyBudget, buildBodyBudgetBounds } from './http/server/body-budget.ts'
import { BodyDecoder } from './http/server/body-decoder.ts'
import type { ControlHandler } from './http/server/control-socket.ts'
import { listenControl } from './http/server/control-socket.ts'
import { listen } from './http/server/server.ts'
import { Gate } from './limits/gate.ts'
import type { Pages } from './management/openapi/pages.ts'
import { buildKeyReport } from './management/public/key-report.ts'
import type { PublicData, PublicParts } from './management/public/public-data.ts'
import { buildPublicData } from './management/public/public-data.ts'
import { checkRules } from './management/services/rule-check.ts'
import { siteInfo } from './management/services/site-settings.ts'
import { buildBearerCheck } from './management/web/bearer-check.ts'
import { buildRecogniseKey } from './pipeline/10-authenticate.ts'
import { buildSendUpstreamQuery } from './pipeline/attempt/upstream-query.ts'
import { ActiveCalls } from './pipeline/lifetime/active-calls.ts'
import { Disconnects } from './pipeline/lifetime/disconnects.ts'
import { KeyRevocations } from './pipeline/lifetime/key-revocation.ts'
import { defaultSilence } from './pipeline/reply/stream-reply.ts'
import { refreshRules } from './pipeline/route/refresh-rules.ts'
import { buildCheckpoint } from './pipeline/settle/checkpoints.ts'
import { LargeAnswers } from './pipeline/settle/large-answers.ts'
import { buildReservations } from './pipeline/settle/reservation.ts'
import { LargeBodyReader } from './protocols/request/large-json.ts'
import { buildDispatch } from './server/dispatch.ts'
import { buildEndpoints } from './server/endpoints.ts'
import { ResponseSockets } from './server/responses-socket/response-sockets.ts'
import { DayCloser } from './store/engine/day-closer.ts'
import { Housekeeping } from './store/engine/housekeeping.ts'
import type { Catalogue } from './upstreams/catalogue.ts'

const { version } = packageJson

/** The demo upstream runs on the thread that serves calls, so it keeps little. */
const DEMO_BOUNDS = { keepRequests: 0, bodyBytesMax: 1024 * 1024 }

export interface Gateway {
  readonly url: string
  /** Null when metrics are off. */
  readonly metricsUrl: string | null
  /** Answers the requests of the operator on this machine. */
  readonly manage: ControlHandler
  readonly activeCalls: number
  /** Creates the first key by `work`, unless an earlier start, or another process that starts now, has created it. */
  inFirstStart<T>(work: () => Promise<T>): Promise<T | undefined>
  /** Whether an owner has been set up. */
  readonly hasOwner: boolean
  /** Refuses new calls after the delay, waits for active calls, ends the rest, closes. A second call skips the waiting. */
  drain(delayMs?: number): Promise<void>
}

export async function startGateway(config: Config, overrides: Partial<Runtime> = {}): Promise<Gateway> {
  const world: Runtime = { ...defaultRuntime, ...overrides }
  const opened: Closable[] = []
  try {
    const log = buildLog(config.logLevel, world.writeLog)
    if (config.redisUrl !== undefined) await checkRedisUrl(config.redisUrl, log)
    if (config.databaseUrl !== undefined) await checkDatabaseUrl(config.databaseUrl)
    const store = await openStore(config, world)
    opened.push(store, startHousekeeping(store, config, world))
    const demo = config.demo ? await startDemo(DEMO_BOUNDS) : undefined
    if (demo !== undefined) opened.push({ close: () => demo.stop() })
    const { privateHosts } = config
    const upstreams = openHttpClient({ ...world.upstreams, privateHosts, nowMs: world.clock.nowMs })
    opened.push(upstreams)
    const signing = { send: upstreams.send, dateMs: world.clock.dateMs }
    const catalogue = readCatalogue(config, demo?.url, { signing, parse: world.parseProvider })
    applyRules(store, catalogue, log)
    const prices = await inStartTurn(store.jobs, async () =>
      openPriceBook({
        shipped: catalogue.prices(),
        rows: await store.reader.prices(),
        writer: store.writer,
        author: `weir ${version}`,
        isVariant: catalogue.isVariant,
      }),
    )
    opened.push(listenControl(store.folder.socket, store.manage))
    return await openGateway({ config, world, store, catalogue, prices, upstreams, opened })
  } catch (fault) {
    await closeAll(opened)
    throw fault
  }
}

/** Invalid rules stop the start. A rule for something that no longer exists affects only the calls that need it. */
function applyRules(store: Store, catalogue: Catalogue, log: Log): void {
  store.useCatalogue(catalogue)
  const { problem, notes } = checkRules(store.rules.current, catalogue)
  const invalid = store.rules.problem ?? problem
  if (invalid !== undefined) throw new ConfigError(invalid.text)
  for (const note of notes) log.warn('a rule refers to something that does not exist', { note })
  for (const [id, why] of catalogue.problems)
    log.warn('a configured provider or channel cannot be used', { id, why: why.text })
}

/** Deletes expired data while the gateway runs. */
function startHousekeeping(
  { writer, bodies, engine, recordDeletion }: Store,
  { logLevel }: Config,
  { clock, writeLog }: Runtime,
): Closable {
  const log = buildLog(logLevel, writeLog)
  const onTrouble = (fault: unknown): void => log.warn('housekeeping failed', { fault: describeFault(fault) })
  const { jobs } = engine
  const dayCloser = new DayCloser({ queries: engine.queries, writer, dateMs: clock.dateMs })
  const parts = { writer, bodies, recordDeleter: recordDeletion, dayCloser, jobs }
  return new Housekeeping({ ...parts, dateMs: clock.dateMs, onError: onTrouble })
}

interface Closable {
  close(): Promise<void> | void
}

/** Closes in the reverse order of opening, each part once. */
async function closeAll(opened: Closable[]): Promise<void> {
  for (const part of opened.splice(0).reverse()) await part.close()
}

interface GatewayParts {
  readonly config: Config
  readonly world: Runtime
  readonly store: Store
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly upstreams: HttpClient
  readonly opened: Closable[]
}

async function openGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, world, store, catalogue, prices, upstreams, opened } = parts
  const log = buildLog(config.logLevel, world.writeLog)
  const ledger = openLedger(store, log)
  const { checkpointMs: everyMs, attempts: attemptsMax } = config
  const checkpoint = buildCheckpoint({ ledger, log, everyMs })
  const largeAnswers = new LargeAnswers(world.clock.nowMs)
  const reservations = buildReservations({ ledger, largeAnswers, pause: world.pause })
  const underWay: ActiveCalls = new ActiveCalls(world.clock.nowMs, (exchange, nowMs) => {
    checkpoint(exchange, nowMs)
    reservations.check(exchange)
    keyEnds.check(exchange)
  })
  const [deadlines, drain] = [new Deadlines(world.clock.nowMs), new Drain()]
  const disconnects = new Disconnects(deadlines)
  const { dateMs } = world.clock
  const keyEnds = new KeyRevocations({ activeCalls: underWay, disconnects, graceMs: config.revokedMs, dateMs })
  const silence = { ...defaultSilence, headMs: config.silenceMs }
  const closeIdleConnections = (): void => {
    upstreams.close()
    sockets.freeMemory()
  }
  const hasConnections = (): boolean => sockets.size > 0
  const shedConnections = (): void => sockets.shed()
  const gateParts = { store, runtime: world, log, closeIdle: closeIdleConnections, hasConnections, shedConnections }
  const gate = openGate(config, gateParts)
  const metrics = openMetrics(config, { catalogue, rules: store.rules })
  const countingLedger = metrics === undefined ? ledger : buildCountedLedger(ledger, metrics.calls.settled)
  const { onEnd, onRefused } = watchCalls(metrics?.calls, accessLog(config, world))
  const answersHeldBytesMax = answersHeldBytes(config)
  const inflowBounds = buildBodyBudgetBounds(config.memoryBytesMax ?? memoryBytesMax())
  const { localServers, listedModels } = openDiscovery({
    config,
    catalogue,
    prices,
    store,
    upstreams,
    deadlines,
    log,
    world,
  })
  opened.push(localServers, listedModels)
  const onFault = (detail: string): void => log.error('the thread for large bodies failed', { detail })
  const largeJson = new LargeBodyReader({ deadlines, onFault })
  const { settling, counter, countCall, responses, tasks, files, limits, closeLimits, dayNotes, ...calls } = buildCalls(
    {
      catalogue,
      prices,
      upstreams,
      ledger: countingLedger,
      reservations,
      largeAnswers,
      store,
      limitProcesses: limitProcessesOf(config, store),
      limitDebts: await store.reader.vault.limitDebts(),
      async refreshModels(code) {
        const refreshed = [localServers.refreshFor(code), listedModels.refreshFor(code)]
        return (await Promise.all([...refreshed, refreshRules(store.engine.changes, code)])).includes(true)
      },
      activeCalls: underWay,
      gate,
      deadlines,
      disconnects,
      largeJson,
      runtime: world,
      log,
      silence,
      attemptsMax,
      answerMemoryBytesMax: answersHeldBytesMax,
      mediaMemoryMax: inflowBounds.caller, // fetched media may use as much as bodies of callers
      onEnd,
    },
  )
  opened.push({ close: closeLimits }, dayNotes)
  const start = new StartGate(world.startWaitMs)
  const checkStore = shareWhilePending(() => isStoreHealthy(store))
  const isReady = async (): Promise<boolean> =>
    start.isOpen && !drain.isDraining && !gate.isClosed && (await checkStore())
  const publicData = openPublicData({ store, catalogue, prices, standing: calls.standing })
  const reportKey = buildKeyReport({ accounts: store.reader.accounts, limits, ...world.clock })
  const decoder = new BodyDecoder(deadlines, onFault)
  const inflow = new BodyBudget(inflowBounds)
  const sockets = new ResponseSockets({
    ...calls,
    gate,
    drain,
    onRefused,
    bodyBudget: inflow,
    largeJson,
    deadlines,
    log,
    socketMs: world.socketMs,
    memoryBytesMax: config.memoryBytesMax ?? memoryBytesMax(),
    mintId: store.mintId,
    dateMs: world.clock.dateMs,
  })
  const answer = buildDispatch({
    sockets,
    endpoints: buildEndpoints({
      publicData,
      reportKey,
      countCall,
      responses,
      tasks,
      files,
      isReady,
      ledgerState: () => store.auditor.state,
      answerWeb: store.answerWeb,
      pages: openPages(),
      loadConsole: config.console ? world.loadConsole : undefined,
      overloadLevel: () => gate.level,
    }),
    ...calls,
    gate,
    drain,
    start,
    onRefused,
    recognise: buildRecogniseKey({ keys: store.keys, pepper: store.folder.secrets.pepper, dateMs: world.clock.dateMs }),
    checkBearer: buildBearerCheck(store.management),
    consoleBuild: store.management.consoleBuild,
    trustedProxies: config.trustedProxies,
    corsOrigin: config.corsOrigin,
    bodyBudget: inflow,
    largeJson,
    decoder,
    bodyBounds: world.bodyBounds,
    deadlines,
    log,
    mintId: store.mintId,
    ...world.clock,
  })
  const watch = watchGateway(config, {
    metrics,
    store,
    gate,
    bodyBudget: inflow,
    activeCalls: underWay,
    settler: settling,
    runtime: world,
    isReady,
    ...calls,
    requestsOpen: () => server.pending,
    socketsOpen: () => sockets.size,
  })
  const metricsUrl = startMetricsServer(config, watch, { log, opened })
  const { idleSeconds, answeredSeconds, bodyBounds } = world
  // The port is bound before the configuration file is applied, so that a port that is taken stops the start before that.
  const messageBytesMax = Math.min(bodyBounds.bytesMax, bounds.bodyBytesMax)
  const listening = { idleSeconds, answeredSeconds, messageBytesMax }
  const server = listenOrFail(config, gatewaySettings, () => listen({ ...config, answer, ...listening }))
  const url = `http://${hostInUrl(config.host)}:${server.port}`
  // Not until there is no call at all: new ones arrive meanwhile, and are refused.
  const endCalls = (): Promise<void> =>
    underWay.endAll({ outcome: 'gateway_fault', refusal: new Refusal('storage_away', 'this process was fenced') })
  store.connect({ endCalls, keyEnds, state: () => watch.state({ url, metricsUrl }) })
  drain.connect({
    windowMs: config.drainMs,
    activeCalls: underWay,
    tasks,
    sockets,
    server,
    settler: settling,
    log,
    async close() {
      gate.close()
      counter.close()
      largeJson.close()
      decoder.close()
      await closeAll(opened)
    },
  })
  try {
    await inStartTurn(store.jobs, () => applyConfigFile(config, store, { log, onCreatedByFile: world.onCreatedByFile }))
  } catch (fault) {
    start.fail()
    await drain.begin(0)
    throw fault
  }
  store.auditor.start()
  store.webhooks.deliverer.start()
  store.rotation.start()
  await tasks.start()
  localServers.start(server.port)
  start.open()
  log.info('listening', { address: url, providers: catalogue.providers.size })
  return {
    url,
    metricsUrl,
    manage: store.manage,
    async inFirstStart(work) {
      const isFirst = async (): Promise<boolean> => (await store.reader.setting('first_key')) === undefined
      if (!(await isFirst())) return undefined
      return await inStartTurn(store.jobs, async () => ((await isFirst()) ? await work() : undefined))
    },
    hasOwner: await store.reader.people.hasOwner(),
    get activeCalls() {
      return underWay.size
    },
    drain: (delayMs = 0) => drain.begin(delayMs),
  }
}

type DiscoverySources = Omit<GatewayParts, 'opened'> & Pick<CallParts, 'deadlines' | 'log'>

/** What finds models that no provider file lists. */
function openDiscovery({ config, catalogue, prices, store, upstreams, deadlines, log, world }: DiscoverySources) {
  const sendQuery = buildSendUpstreamQuery(upstreams.send, deadlines)
  const shared = { catalogue, listModels: buildListModels(sendQuery), log, nowMs: world.clock.nowMs }
  const servers = { ports: config.localServers, everyMs: world.localServersEveryMs, sendQuery }
  const publish = buildPublishModels({ catalogue, prices, store })
  return {
    localServers: new LocalServers({ ...shared, ...servers }),
    listedModels: new ListedModels({ ...shared, everyMs: world.listedModelsEveryMs, publish }),
  }
}

/** The documentation pages are built by their first request. */
function openPages(): () => Promise<Pages> {
  let pages: Promise<Pages> | undefined
  return () => (pages ??= import('./management/openapi/pages.ts').then(({ buildPages }) => buildPages(version)))
}

type PublicSources = Pick<GatewayParts, 'store' | 'catalogue' | 'prices'> & Pick<PublicParts, 'standing'>

const openPublicData = ({ store, ...parts }: PublicSources): PublicData =>
  buildPublicData({
    ...parts,
    rules: store.rules,
    tiers: async () => await store.reader.tiers(),
    site: () => siteInfo(store.management.site.current, version),
  })

/** An eighth of the memory, because parsing an answer takes several times its size. */
function answersHeldBytes(config: Config): number {
  const bytesMax = config.memoryBytesMax ?? memoryBytesMax()
  return Math.max(bounds.frameBytesMax, Math.min(bounds.answersHeldBytesMax, Math.floor(bytesMax / 8)))
}

interface GateSources extends Pick<CallParts, 'store' | 'runtime' | 'log'> {
  closeIdle(): void
  hasConnections(): boolean
  shedConnections(): void
}

function openGate(config: Config, { store, runtime, log, closeIdle, ...connections }: GateSources): Gate {
  const bytesMax = config.memoryBytesMax ?? memoryBytesMax()
  return new Gate({
    callsMax: config.callsMax,
    ...connections,
    nowMs: runtime.clock.nowMs,
    timerDelayMs: runtime.lateMs,
    memoryShare: () => runtime.memoryBytes() / bytesMax,
    ledgerWaitMs: () => store.writer.oldestWaitMs,
    onLevel: ({ level, ...readings }) => log.warn('overload', { overload: level, ...readings }),
    freeMemory() {
      closeIdle()
      store.keys.clear()
      store.vault.reasoning.shrink()
      // A gateway that refuses all calls allocates nothing, so the garbage collector would not run by itself.
      Bun.gc(true)
    },
  })
}

const openLedger = ({ writer }: Store, log: Log): Ledger =>
  buildLedger({
    writer,
    onShortfall: (callId, amount) =>
      log.error('cost beyond the hold and the funds', { request: textId('req', callId), usd: formatUsd(amount) }),
  })

/** Starts the metrics server and returns its URL; null when metrics are off. */
function startMetricsServer(
  { metrics }: Config,
  { listen }: GatewayWatch,
  { log, opened }: Pick<GatewayParts, 'opened'> & { readonly log: Log },
): string | null {
  if (metrics === undefined || listen === undefined) return null
  const server = listenOrFail(metrics, metricsSettings, listen)
  opened.push(server)
  const address = `http://${hostInUrl(metrics.host)}:${server.port}/metrics`
  log.info('metrics', { address })
  return address
}

/** The processes that count limits together; undefined for the only process. */
function limitProcessesOf({ redisUrl }: Config, { engine, reader }: Store): LimitProcesses | undefined {
  if (engine.kind === 'sqlite') return undefined
  const { processes } = engine
  return {
    redisUrl,
    namespace: processes.databaseName,
    process: processes.name,
    count: () => processes.count,
    loadDebts: async () => reader.vault.limitDebts(),
  }
}

/** Whether the store can be read, and written in time. Without holds the gateway cannot serve any call. */
async function isStoreHealthy({ reader, writer, engine }: Store): Promise<boolean> {
  if (!engine.processes.mayServe) return false
  try {
    await reader.ping()
    return writer.isHealthy
  } catch {
    return false
  }
}
