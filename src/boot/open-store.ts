// Opens the data folder for this process alone, or the shared database, with all that reads and writes it, and builds the
// management interface on it. Used by a running gateway, and by a command when no gateway runs.

import packageJson from '../../package.json'
import { bounds } from '../base/bounds.ts'
import { refusal } from '../base/errors.ts'
import { forOperator } from '../base/hints.ts'
import type { Log } from '../base/log.ts'
import { buildLog, describeFault } from '../base/log.ts'
import { Seal } from '../base/secrets/seal.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { Auditor } from '../billing/auditor.ts'
import type { PriceRow } from '../billing/price-book.ts'
import type { Config } from '../config.ts'
import { openWebhookClient } from '../http/client/webhook-client.ts'
import type { ControlHandler } from '../http/server/control-socket.ts'
import { KeyDirectory } from '../identity/key-directory.ts'
import type { KeyFinderParts } from '../identity/key-finder.ts'
import { KeyFinder } from '../identity/key-finder.ts'
import { PasswordHasher } from '../identity/password-hasher.ts'
import type { LiveGateway } from '../management/live-gateway.ts'
import { buildMachineCommands } from '../management/machine/commands.ts'
import type { KeyLifetime, ManagementParts } from '../management/management-parts.ts'
import type { GatewayState } from '../management/metrics/gateway-state.ts'
import { buildOperator } from '../management/operator.ts'
import { PriceTrials } from '../management/prices/trials.ts'
import { FileOwnership } from '../management/services/file-ownership.ts'
import { buildLedgerAuditor } from '../management/services/ledger-auditor.ts'
import { SiteSettings } from '../management/services/site-settings.ts'
import { buildWriteQueue } from '../management/services/write-queue.ts'
import type { HandleWebRequest } from '../management/web/dispatch.ts'
import type { Webhooks } from '../management/webhooks/webhooks.ts'
import { buildWebhooks } from '../management/webhooks/webhooks.ts'
import type { KeyRevocations } from '../pipeline/lifetime/key-revocation.ts'
import { backUp, readLastBackupMs } from '../store/engine/backup.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import { logBytesOf } from '../store/engine/folder.ts'
import type { StoreEngine } from '../store/engine/store-engine.ts'
import { buildPasswordHasher } from '../store/people/password-hash.ts'
import { RecordDeleter } from '../store/records/record-deleter.ts'
import type { LimitCounters } from '../store/redis/limit-counters.ts'
import { LiveRules } from '../store/rules/live-rules.ts'
import type { Rules } from '../store/rules/rules.ts'
import { Rotation } from '../store/secrets/rotation.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Vault } from '../vault/vault.ts'
import { openVault } from '../vault/vault.ts'
import { readCatalogue, readProviderFile } from './load-catalogue.ts'
import { openEngine } from './open-engine.ts'
import type { Runtime } from './runtime.ts'
import { defaultRuntime } from './runtime.ts'

const { version } = packageJson

/** The address of built-in providers is known only while a gateway runs. */
const UNKNOWN_URL = 'http://127.0.0.1'

export interface Store {
  readonly folder: DataFolder
  readonly engine: StoreEngine
  readonly writer: StoreEngine['writer']
  readonly reader: StoreEngine['reader']
  readonly keys: KeyDirectory
  /** The parts of the management interface. */
  readonly management: ManagementParts
  /** Answers the requests of people. */
  readonly answerWeb: HandleWebRequest
  /** Answers the requests of the operator at the command line. */
  readonly manage: ControlHandler
  readonly auditor: Auditor
  readonly bodies: StoreEngine['bodies']
  readonly vault: Vault
  readonly jobs: StoreEngine['jobs']
  readonly webhooks: Webhooks
  readonly seal: Seal
  readonly rules: Pick<LiveRules, 'current' | 'problem' | 'subscribe'>
  readonly rotation: Rotation
  readonly recordDeletion: RecordDeleter
  mintId(): number
  /** Connects the parts of a running gateway. */
  connect(listeners: Partial<GatewayListeners>): void
  /** Sets the catalogue that operators' input is checked against. Until then it is read from files and environment. */
  useCatalogue(catalogue: Catalogue): void
  close(): Promise<void>
}

export interface StoreOptions {
  /** Opens the store even if data was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets?: boolean
}

/** Migrates the data and settles the calls that a crash left open. */
export async function openStore(
  config: Config,
  overrides: Partial<Runtime> = {},
  { ignoresLostSecrets = false }: StoreOptions = {},
): Promise<Store> {
  const world: Runtime = { ...defaultRuntime, ...overrides }
  const log = buildLog(config.logLevel, world.writeLog)
  const listeners: GatewayListeners = {
    price: () => {},
    priceRows: () => {},
    keyEnds: noCalls,
    endCalls: async () => {},
    running: undefined,
    state: () => undefined,
    attemptCounters: undefined,
  }
  const endCalls = (): Promise<void> => listeners.endCalls()
  const { engine, folder, lock } = await openEngine(config, { world, log, ignoresLostSecrets, endCalls })
  try {
    return await buildStore(config, { folder, world, log, engine, lock, listeners })
  } catch (fault) {
    await engine.close()
    lock.release()
    throw fault
  }
}

interface StoreParts {
  readonly folder: DataFolder
  readonly world: Runtime
  readonly log: Log
  readonly engine: StoreEngine
  readonly lock: { release(): void }
  readonly listeners: GatewayListeners
}

async function buildStore(config: Config, { folder, world, log, engine, lock, listeners }: StoreParts): Promise<Store> {
  const { writer, reader, bodies, statistics, queries, jobs, mintId } = engine
  const { dateMs } = world.clock
  const isShared = engine.kind === 'postgres'
  const auditing = { source: engine.audit, writer, reader, jobs, isShared }
  const watch = buildLedgerAuditor({ ...auditing, everyMs: config.auditMs, log })
  const { keys, finder } = openKeys({ reader, writer, pepper: folder.secrets.pepper }, world)
  const seal = new Seal(folder.secrets.encryption)
  const vault = await openVault({
    writer,
    reader,
    seal,
    days: config.responsesDays,
    dateMs,
    onProblem: detail => log.warn('the vault could not store or read something', { detail }),
  })
  const { rules, catalogue, useCatalogue } = await openRules(config, { reader, seal, log })
  const site = await SiteSettings.open(reader, config.siteName)
  const retentionDays = (): number => site.current.retentionDays
  const deleting = new RecordDeleter({ writer, queries, bodies, statistics, reader, retentionDays, dateMs })
  const { providerFolders } = config
  const priceTrials = new PriceTrials({ place: engine.place, providerFolders, dateMs })
  const webhooks = openWebhooks(config, { reader, writer, jobs, seal, world, log })
  const rotation = openRotation(config, { folder, engine, world, log, keys, finder })
  const management: ManagementParts = {
    queryWorker: queries,
    writer,
    reader,
    bodies,
    mintId,
    dateMs,
    statisticsAggregator: statistics,
    recordDeleter: deleting,
    webhooks,
    priceTrials,
    pepper: folder.secrets.pepper,
    jwtSecret: folder.secrets.jwt,
    seal,
    log,
    nowMs: world.clock.nowMs,
    attemptSharing: {
      processes: () => engine.processes.count,
      get counters() {
        return listeners.attemptCounters
      },
    },
    site,
    ownership: new FileOwnership(),
    secureCookies: config.secureCookies,
    version,
    consoleBuild: world.consoleBuild(),
    passwords: new PasswordHasher(buildPasswordHasher(world.passwordCost)),
    onKeyChanged: () => keys.clear(),
    ...forwardTo(listeners),
    audit: watch.audit,
    backUp: to => (engine.kind === 'sqlite' ? backUp(folder.path, to, version) : Promise.reject(noBackup())),
    auditor: watch.auditor,
    storage: storageFacts(engine, folder.path),
    rules,
    rotation,
    catalogue,
    writeQueue: buildWriteQueue(),
    readProviderFile,
  }
  const { pepper } = folder.secrets
  followChanges(engine, { rules, site, keys, pepper, listeners, writeQueue: management.writeQueue })
  const answerWeb = openWebApp(management)
  async function close(): Promise<void> {
    await watch.close()
    const deletionEnded = deleting.close()
    await statistics.close() // a deletion that waits for the statistics ends with an error
    await deletionEnded
    await webhooks.deliverer.close()
    priceTrials.close()
    rotation.close()
    await finder.close()
    await vault.close()
    await engine.close()
    lock.release()
  }
  return {
    folder,
    engine,
    writer,
    reader,
    auditor: watch.auditor,
    keys,
    bodies,
    vault,
    jobs,
    seal,
    answerWeb,
    manage: buildOperator(answerWeb, buildMachineCommands(management)),
    mintId,
    close,
    rules,
    rotation,
    useCatalogue,
    management,
    recordDeletion: deleting,
    webhooks,
    connect: connected => void Object.assign(listeners, connected),
  }
}

function storageFacts({ kind, processes }: StoreEngine, folder: string): ManagementParts['storage'] {
  const isSqlite = kind === 'sqlite'
  return {
    kind,
    folder,
    get slot() {
      return processes.slot
    },
    list: () => processes.list(),
    lastBackupMs: () => (isSqlite ? readLastBackupMs(folder) : undefined),
    logBytes: () => (isSqlite ? logBytesOf(folder) : 0),
  }
}

interface Followers {
  readonly rules: LiveRules
  readonly site: SiteSettings
  readonly keys: KeyDirectory
  readonly pepper: SecretRing
  readonly listeners: GatewayListeners
  readonly writeQueue: ManagementParts['writeQueue']
}

/** Applies what another process has changed, as a change through this process would. */
function followChanges({ changes, reader }: StoreEngine, followers: Followers): void {
  const { rules, site, keys, pepper, listeners, writeQueue } = followers
  changes.subscribe('site', () => site.renew())
  changes.subscribe('keys', async () => {
    keys.clear()
    await listeners.keyEnds.checkAgain({
      versionsOf: ids => reader.keyVersions(ids),
      findKey: digest => reader.findKey(digest),
      hasNewText: async (id, digest) => await reader.hasNewText(id, digest, pepper.newestFingerprint),
    })
  })
  // In turn with the changes of this process, so that none of them is undone by what was read before it.
  changes.subscribe('prices', () => writeQueue(async () => listeners.priceRows(await reader.prices())))
  changes.subscribe('rules', () =>
    writeQueue(async () => {
      await rules.reload()
      // A changed provider may have other models and prices.
      listeners.priceRows(await reader.prices())
    }),
  )
}

/** The management interface is loaded by its first request, because few requests need it. */
function openWebApp(parts: ManagementParts): HandleWebRequest {
  let app: Promise<HandleWebRequest> | undefined
  return async request => {
    app ??= import('../management/web/dispatch.ts').then(({ buildWebApp }) => buildWebApp(parts))
    return (await app)(request)
  }
}

/** Functions that use the listeners of the moment, because the gateway connects them later. */
const forwardTo = (listeners: GatewayListeners) => ({
  keyLifetime: {
    end: (id: number) => listeners.keyEnds.end(id),
    expires: (id: number, expiresMs: number) => listeners.keyEnds.expires(id, expiresMs),
    textReplaced: (id: number, untilMs: number) => listeners.keyEnds.textReplaced(id, untilMs),
  },
  onPriceAdded: (row: PriceRow) => listeners.price(row),
  liveGateway: () => listeners.running,
  state: () => listeners.state(),
})

/** PostgreSQL has its own tools for this, which also work while the database is in use. */
const noBackup = (): Error =>
  refusal(
    'state_unfit',
    forOperator(
      'The data is in PostgreSQL: back it up with pg_dump or with the tools of your provider, and keep the secrets.',
    ),
  )

const noCalls: GatewayListeners['keyEnds'] = {
  end: () => {},
  expires: () => {},
  textReplaced: () => {},
  checkAgain: async () => {},
}

interface WebhookParts extends Pick<StoreEngine, 'reader' | 'writer' | 'jobs'> {
  readonly seal: Seal
  readonly world: Runtime
  readonly log: Log
}

function openWebhooks({ privateHosts }: Config, { reader, writer, jobs, seal, world, log }: WebhookParts): Webhooks {
  const outside = openWebhookClient({ ...world.webhooks, privateHosts, nowMs: world.clock.nowMs })
  return buildWebhooks({
    reader: reader.webhooks,
    writer,
    jobs,
    seal,
    outside,
    log,
    everyMs: world.webhooksEveryMs,
    dateMs: world.clock.dateMs,
    random: world.random,
  })
}

function openKeys(parts: KeyFinderParts, { clock }: Runtime): { keys: KeyDirectory; finder: KeyFinder } {
  const finder = new KeyFinder(parts)
  const keys = new KeyDirectory({
    find: (digest, key) => finder.find(digest, key),
    nowMs: clock.nowMs,
    knownMax: bounds.keysCachedMax,
    unknownMax: bounds.keysUnknownCachedMax,
    unknownMs: bounds.keyUnknownMsMax,
  })
  return { keys, finder }
}

interface RotationParts extends Pick<Store, 'folder' | 'engine' | 'keys'> {
  readonly world: Runtime
  readonly log: Log
  readonly finder: KeyFinder
}

function openRotation(config: Config, { folder, engine, world, log, keys, finder }: RotationParts): Rotation {
  const { writer, bodies, reader, secretScan: scan, jobs } = engine
  return new Rotation({
    folder,
    writer,
    bodies,
    scan,
    jobs,
    isShared: engine.kind === 'postgres',
    carriedDays: config.responsesDays,
    dateMs: world.clock.dateMs,
    pause: world.pause,
    readMarks: async kind => await reader.secretMarks(kind),
    onChanged(kind) {
      log.info('secrets changed', { kind, marks: folder.secrets[kind].fingerprints })
      if (kind !== 'pepper') return
      finder.clearPending()
      keys.clear()
    },
    onError: fault => log.warn('some data is not encrypted with the newest key yet', { fault: describeFault(fault) }),
  })
}

/** Parts of a running gateway that management uses. Until they are connected, the next start reads the changes. */
interface GatewayListeners {
  /** An operator has added a price. */
  price(row: PriceRow): void
  /** Another process has added prices, or has changed models. `rows`: the whole price table. */
  priceRows(rows: readonly PriceRow[]): void
  /** Ends the calls of a key that is revoked or expires. */
  keyEnds: KeyLifetime & Pick<KeyRevocations, 'checkAgain'>
  /** Ends all calls that are active now. It resolves when they are over. */
  endCalls(): Promise<void>
  /** The state of the gateway. */
  state(): Promise<GatewayState> | undefined
  /** What only a running gateway can answer. */
  running: LiveGateway | undefined
  /** Counts attempts for all processes. */
  attemptCounters: LimitCounters | undefined
}

interface RuleParts extends Pick<StoreEngine, 'reader'> {
  readonly seal: Seal
  readonly log: Log
}

/** Opens the rules, and keeps the channels of the catalogue up to date with them. */
async function openRules(config: Config, { reader, seal, log }: RuleParts) {
  const rules = new LiveRules({
    reader: reader.rules,
    seal,
    onError: detail => log.error('a channel is not used: its stored credential cannot be decrypted', { detail }),
  })
  await rules.reload()
  let catalogue: Catalogue | undefined
  function useCatalogue(newCatalogue: Catalogue): Catalogue {
    applyRules(newCatalogue, rules.current)
    return (catalogue = newCatalogue)
  }
  // This listener must be the first, because later listeners read the channels.
  rules.subscribe(current => catalogue && applyRules(catalogue, current))
  const readFromFiles = (): Catalogue => readCatalogue(config, config.demo ? UNKNOWN_URL : undefined)
  return { rules, useCatalogue, catalogue: () => catalogue ?? useCatalogue(readFromFiles()) }
}

function applyRules(catalogue: Catalogue, rules: Rules): void {
  catalogue.configure(rules)
  catalogue.setRules(rules.channels)
}
