// Reads config, builds the parts, listens. The only file that knows everything: time, chance, network and storage
// enter the gateway here.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'
import { bounds } from './base/bounds.ts'
import type { Clock } from './base/clock.ts'
import { Deadlines } from './base/deadlines.ts'
import { systemClock } from './base/clock.ts'
import { Refusal } from './base/errors.ts'
import { buildIdMinter, textId } from './base/ids.ts'
import type { Log } from './base/log.ts'
import { buildLog } from './base/log.ts'
import { formatUsd } from './base/money.ts'
import type { Ledger } from './billing/ledger.ts'
import { buildLedger } from './billing/ledger.ts'
import type { PriceBook, PriceRow } from './billing/price-book.ts'
import { openPriceBook } from './billing/price-book.ts'
import { TokenCounter } from './billing/token-counter.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config.ts'
import { buildEndpoints } from './endpoints.ts'
import { startFakeUpstream } from './fake-upstream/server.ts'
import { buildFrontDoor } from './front-door.ts'
import type { BodyBounds } from './http/body.ts'
import { defaultBodyBounds } from './http/body.ts'
import type { Handle } from './http/control-socket.ts'
import { listenControl } from './http/control-socket.ts'
import { send } from './http/outgoing.ts'
import type { Listening, ListenOptions } from './http/server.ts'
import { listen } from './http/server.ts'
import { KeyDirectory } from './identity/key-directory.ts'
import { verifyToken } from './identity/token.ts'
import { RateLimiter } from './limits/gcra.ts'
import { buildKeyReport } from './management/key-report.ts'
import type { Command } from './management/operator.ts'
import { buildOperator } from './management/operator.ts'
import { buildPriceCommands } from './management/price-commands.ts'
import { buildPublicData } from './management/public-data.ts'
import { buildAuthenticate } from './pipeline/10-authenticate.ts'
import { buildLimitRate } from './pipeline/20-limit-rate.ts'
import { buildRoute } from './pipeline/30-route.ts'
import { buildHold } from './pipeline/35-hold.ts'
import { buildForward } from './pipeline/50-forward.ts'
import { buildDeduct } from './pipeline/70-deduct.ts'
import type { Silence } from './pipeline/answer-stream.ts'
import { defaultSilence } from './pipeline/answer-stream.ts'
import { buildAnswering } from './pipeline/answering.ts'
import type { AttemptTimes } from './pipeline/attempt.ts'
import { defaultAttemptTimes } from './pipeline/attempt.ts'
import { buildCheckpoint } from './pipeline/checkpoints.ts'
import { buildPipeline } from './pipeline/pipeline.ts'
import { buildSettling } from './pipeline/settling.ts'
import { UnderWay } from './pipeline/under-way.ts'
import type { DataFolder } from './store/folder.ts'
import { openFolder } from './store/folder.ts'
import { lockFolder } from './store/lock.ts'
import { Reader } from './store/reader.ts'
import { Writer } from './store/writer.ts'
import type { Catalogue } from './upstreams/catalogue.ts'
import { buildCatalogue } from './upstreams/catalogue.ts'

const { version } = packageJson

/** The demo answers on the thread that serves calls. */
const DEMO_BOUNDS = { keepRequests: 0, bodyBytesMax: 1024 * 1024 }

const SHIPPED_PROVIDERS = join(import.meta.dir, '..', 'providers')

/** What a test may replace. */
export interface World {
  readonly clock: Clock
  readonly attemptTimes: AttemptTimes
  /** Else as the settings say. */
  readonly silence?: Silence
  readonly bodyBounds: BodyBounds
  /** How long a connection may be idle after an answer. */
  readonly answeredSeconds: number
  writeLog(line: string): void
  /** The ledger's thread is gone: nothing can be promised any more. */
  onLedgerLost(detail: string): void
}

export interface Gateway {
  readonly url: string
  readonly operator: Readonly<Record<string, Command>>
  readonly underWay: number
  /** No start before this one has made the first key. */
  readonly firstStart: boolean
  /** Accepts no more, lets calls end, ends the rest after the window, closes. A second call hurries. */
  drain(): Promise<void>
}

const realWorld: World = {
  clock: systemClock,
  attemptTimes: defaultAttemptTimes,
  bodyBounds: defaultBodyBounds,
  answeredSeconds: 30,
  writeLog: line => void process.stderr.write(line),
  onLedgerLost: () => process.exit(1),
}

export async function startGateway(config: Config, replaced: Partial<World> = {}): Promise<Gateway> {
  const world: World = { ...realWorld, ...replaced }
  const opened: Closable[] = []
  try {
    const store = await openStore(config, world)
    opened.push(store)
    const demo = config.demo ? await startFakeUpstream(DEMO_BOUNDS) : undefined
    if (demo !== undefined) opened.push({ close: () => demo.stop() })
    const catalogue = readCatalogue(config, demo?.url)
    const prices = await openPriceBook({
      ...{ shipped: catalogue.prices(), rows: store.reader.prices() },
      ...{ writer: store.writer, author: `weir ${version}` },
    })
    store.followPrices(row => prices.add(row))
    opened.push(listenControl(store.folder.socket, buildControl(store.operator)))
    return openGateway({ config, world, store, catalogue, prices, opened })
  } catch (fault) {
    await closeAll(opened)
    throw fault
  }
}

interface Closable {
  close(): Promise<void> | void
}

/** What was opened last is closed first. */
async function closeAll(opened: readonly Closable[]): Promise<void> {
  for (const part of [...opened].reverse()) await part.close()
}

interface GatewayParts {
  readonly config: Config
  readonly world: World
  readonly store: Store
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly opened: readonly Closable[]
}

function openGateway({ config, world, store, catalogue, prices, opened }: GatewayParts): Gateway {
  const log = buildLog(config.logLevel, world.writeLog)
  const ledger = buildLedger({
    writer: store.writer,
    onShortfall: (callId, amount) =>
      log.error('cost beyond the hold and the funds', { request: textId('req', callId), usd: formatUsd(amount) }),
  })
  const checkpoint = buildCheckpoint({ ledger, log, everyMs: config.checkpointMs })
  const underWay = new UnderWay(world.clock.nowMs, checkpoint)
  const silence = { ...defaultSilence, headMs: config.silenceMs }
  const deadlines = new Deadlines(world.clock.nowMs)
  let draining = false
  const parts = { catalogue, prices, ledger, store, underWay, deadlines, world, log, silence }
  const { settling, counter, ...calls } = buildCalls(parts)
  const isReady = (): boolean => !draining && isWell(store)
  const publicData = buildPublicData({ catalogue, prices, site: { name: config.siteName, version } })
  const reportKey = buildKeyReport({ accounts: store.reader.accounts, dateMs: world.clock.dateMs })
  const answer = buildFrontDoor({
    endpoints: buildEndpoints({ publicData, reportKey, isReady }),
    ...calls,
    verifyToken: token => verifyToken(store.folder.secrets.jwt, token, world.clock.dateMs()),
    trustedProxies: config.trustedProxies,
    corsOrigin: config.corsOrigin,
    bodyBounds: world.bodyBounds,
    deadlines,
    log,
    isDraining: () => draining,
    mintId: store.mintId,
    nowMs: world.clock.nowMs,
  })
  const server = listenOrSay(config, { answer, answeredSeconds: world.answeredSeconds })
  const url = `http://${inUrl(config.host)}:${server.port}`
  log.info('listening', { address: url, providers: catalogue.providers.size })

  const endRest = (): void =>
    underWay.endAll({ outcome: 'drained', refusal: new Refusal('draining', 'the window is over') })
  async function drain(): Promise<void> {
    draining = true
    log.info('draining', { underWay: underWay.size })
    const timer = setTimeout(endRest, config.drainMs)
    server.stop()
    await underWay.whenIdle()
    clearTimeout(timer)
    await server.kill()
    if (settling.owing > 0) log.error('calls left to the next start', { count: settling.owing })
    settling.close()
    counter.close()
    await closeAll(opened)
    log.info('stopped')
  }
  let drained: Promise<void> | undefined
  return {
    url,
    operator: store.operator,
    firstStart: store.reader.setting('first_key') === undefined,
    get underWay() {
      return underWay.size
    },
    drain() {
      if (drained !== undefined) endRest()
      drained ??= drain()
      return drained
    },
  }
}

const buildControl = (operator: Store['operator']): Handle => async (command, input) => {
  const run = Object.hasOwn(operator, command) ? operator[command] : undefined
  if (run === undefined) throw new Error(`There is no command "${command}".`)
  return await run(input as Record<string, unknown>)
}

export interface Store {
  readonly folder: DataFolder
  readonly writer: Writer
  readonly reader: Reader
  readonly keys: KeyDirectory
  readonly operator: Readonly<Record<string, Command>>
  mintId(): number
  /** Calls with each price that an operator adds. */
  followPrices(listener: (row: PriceRow) => void): void
  close(): Promise<void>
}

/** Takes the data folder for this process alone, brings it up to date and recovers what a crash left. */
export async function openStore(config: Config, world: World = realWorld): Promise<Store> {
  const folder = openFolder(config.dataFolder, config.env)
  const lock = lockFolder(folder.path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${folder.path}.`)
  const [writer, start] = await Writer.open(
    { path: folder.database, ballastBytes: config.ballastBytes, databaseBytesMax: config.databaseBytesMax },
    world.onLedgerLost,
  )
  const reader = new Reader(folder.database)
  const mintId = buildIdMinter(world.clock.dateMs, start.lastId)
  const keys = new KeyDirectory({
    find: digest => reader.findKey(digest),
    nowMs: world.clock.nowMs,
    knownMax: bounds.keysCachedMax,
    unknownMax: bounds.keysUnknownCachedMax,
    unknownMs: bounds.keyUnknownMsMax,
  })
  let onPriceAdded = (_row: PriceRow): void => {} // until there is a book, the next start reads it
  const operator = buildOperator({
    writer,
    reader,
    pepper: folder.secrets.pepper,
    jwtSecret: folder.secrets.jwt,
    mintId,
    dateMs: world.clock.dateMs,
    onKeyChanged: () => keys.forget(),
  })
  async function close(): Promise<void> {
    reader.close() // first: the last one to close the file folds its log into it, and a reader cannot
    await writer.close()
    lock?.release()
  }
  return {
    ...{ folder, writer, reader, keys, mintId, close },
    operator: { ...operator, ...buildPriceCommands({ writer, onPriceAdded: row => onPriceAdded(row) }) },
    followPrices: listener => void (onPriceAdded = listener),
  }
}

interface CallParts {
  readonly ledger: Ledger
  readonly silence: Silence
  readonly catalogue: Catalogue
  readonly prices: PriceBook
  readonly store: Store
  readonly underWay: UnderWay
  readonly deadlines: Deadlines
  readonly world: World
  readonly log: Log
}

function buildCalls(parts: CallParts) {
  const { catalogue, prices, ledger, store, underWay, deadlines, world, log, silence } = parts
  const { nowMs, dateMs } = world.clock
  const counter = new TokenCounter(detail => log.error('the token counter failed', { detail }))
  const settling = buildSettling(buildDeduct(ledger), log)
  const authenticate = buildAuthenticate({ keys: store.keys, pepper: store.folder.secrets.pepper })
  const stages = {
    authenticate,
    limitRate: buildLimitRate({ limiter: new RateLimiter<number>(), nowMs }),
    route: buildRoute({ catalogue, prices, dateMs }),
    hold: buildHold({ ledger, countTokens: counter.count }),
    forward: buildForward({
      send,
      deadlines,
      times: world.attemptTimes,
      onAttemptFailed: (channel, detail) => log.warn('attempt failed', { channel, detail }),
    }),
  }
  const stallMs = world.attemptTimes.betweenChunksMs
  const heard = world.silence ?? silence
  const answering = buildAnswering({ settle: settling.settle, log, silence: heard, deadlines, stallMs })
  return { settling, counter, authenticate, runCall: buildPipeline({ stages, answering, underWay, nowMs }) }
}

function readCatalogue(config: Config, builtInUrl: string | undefined): Catalogue {
  const files = [SHIPPED_PROVIDERS, ...config.providerFolders].flatMap(folder => {
    try {
      const names = readdirSync(folder).filter(name => name.endsWith('.json')).sort()
      return names.map(name => ({ name: join(folder, name), text: readFileSync(join(folder, name), 'utf8') }))
    } catch (fault) {
      throw new ConfigError(`The provider folder ${folder} cannot be read: ${(fault as Error).message}`)
    }
  })
  return buildCatalogue({ files, env: config.env, builtInUrl })
}

/** Reads, and writes in time: a gateway that cannot reserve can serve nobody. */
function isWell({ reader, writer }: Store): boolean {
  try {
    reader.ping()
    return writer.well
  } catch {
    return false
  }
}

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** An address that is taken or not ours is the operator's to mend. */
function listenOrSay({ host, port }: Config, options: Omit<ListenOptions, 'host' | 'port'>): Listening {
  try {
    return listen({ host, port, ...options })
  } catch (fault) {
    throw new ConfigError(`Cannot listen on ${inUrl(host)}:${port}: ${(fault as Error).message}`)
  }
}
