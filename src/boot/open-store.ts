// Opens the data folder for this process alone: writer thread, readers, keys, bodies, auditor, and the management interface.
// Used by a running gateway, and by a command when no gateway runs.

import packageJson from '../../package.json'
import { bounds } from '../base/bounds.ts'
import { buildIdMinter } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { buildLog, describeFault } from '../base/log.ts'
import { Seal } from '../base/secrets/seal.ts'
import type { Auditor } from '../billing/auditor.ts'
import type { PriceRow } from '../billing/price-book.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
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
import type { DataFolder } from '../store/engine/folder.ts'
import { openFolder } from '../store/engine/folder.ts'
import { lockFolder } from '../store/engine/lock.ts'
import type { Reader } from '../store/engine/reader.ts'
import { openCallReader } from '../store/engine/reader.ts'
import { Writer } from '../store/engine/writer.ts'
import type { WriterStart } from '../store/engine/writer-messages.ts'
import { LedgerTotalsReader } from '../store/ledger/ledger-totals.ts'
import { buildPasswordHasher } from '../store/people/password-hash.ts'
import { QueryWorker } from '../store/queries/query-worker.ts'
import { BodyStore } from '../store/records/bodies.ts'
import type { RecordDeleterParts } from '../store/records/record-deleter.ts'
import { RecordDeleter } from '../store/records/record-deleter.ts'
import { LiveRules } from '../store/rules/live-rules.ts'
import type { Rules } from '../store/rules/rules.ts'
import { Rotation } from '../store/secrets/rotation.ts'
import { checkSecrets } from '../store/secrets/secret-check.ts'
import { StatisticsWorker } from '../store/statistics/statistics-worker.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Vault } from '../vault/vault.ts'
import { openVault } from '../vault/vault.ts'
import { readCatalogue, readProviderFile } from './load-catalogue.ts'
import type { Runtime } from './runtime.ts'
import { defaultRuntime } from './runtime.ts'

const { version } = packageJson

/** The auditor skips records that are younger than this and checks them in a later pass. */
const AUDIT_LAG_MS = 2 * bounds.bodyMsMax

/** The address of built-in providers is known only while a gateway runs. */
const UNKNOWN_URL = 'http://127.0.0.1'

export interface Store {
  readonly folder: DataFolder
  readonly writer: Writer
  readonly reader: Reader
  readonly keys: KeyDirectory
  /** The parts of the management interface. */
  readonly management: ManagementParts
  /** Answers the requests of people. */
  readonly answerWeb: HandleWebRequest
  /** Answers the requests of the operator at the command line. */
  readonly manage: ControlHandler
  readonly books: LedgerTotalsReader
  readonly auditor: Auditor
  readonly bodies: BodyStore
  readonly vault: Vault
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
  const folder = openFolder(config.dataFolder, config.env, ignoresLostSecrets)
  const lock = lockFolder(folder.path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${folder.path}.`)
  const log = buildLog(config.logLevel, world.writeLog)
  const { onLedgerLost: onLost, ledgerWaitMs } = world
  const [writer, start] = await openWriter(config, {
    folder,
    log,
    givesUp: ignoresLostSecrets,
    onLost,
    ledgerWaitMs,
  }).catch(fault => {
    lock.release()
    throw fault
  })
  const reader = openCallReader(folder.database)
  const books = new LedgerTotalsReader(folder.database)
  const watch = buildLedgerAuditor({ folder, writer, version, everyMs: config.auditMs, lagMs: AUDIT_LAG_MS, log })
  const mintId = buildIdMinter(world.clock.dateMs, start.lastId)
  const { keys, finder } = openKeys({ reader, writer, pepper: folder.secrets.pepper }, world)
  const { dateMs } = world.clock
  const { bodies, seal, vault } = openVaultAndBodies(config, { folder, writer, reader, log, dateMs })
  const { rules, catalogue, useCatalogue } = openRules(config, { reader, seal, log })
  const listeners: GatewayListeners = { price: () => {}, keyEnds: noCalls, running: undefined, state: () => undefined }
  const desk = new QueryWorker(folder.database)
  const site = new SiteSettings(reader, config.siteName)
  const retentionDays = (): number => site.current.retentionDays
  const recordParts = { folder, writer, desk, bodies, reader, log, dateMs, retentionDays }
  const { rolling, deleting, ...records } = openRecords(recordParts)
  const { providerFolders } = config
  const priceTrials = new PriceTrials({ place: { path: folder.database }, providerFolders, dateMs })
  const webhooks = openWebhooks(config, { reader, writer, seal, world, log })
  const rotation = openRotation(config, { folder, writer, bodies, reader, world, log, keys, finder })
  const management: ManagementParts = {
    queryWorker: desk,
    writer,
    reader,
    bodies,
    mintId,
    dateMs,
    statisticsAggregator: rolling,
    recordDeleter: deleting,
    webhooks,
    priceTrials,
    pepper: folder.secrets.pepper,
    jwtSecret: folder.secrets.jwt,
    seal,
    log,
    nowMs: world.clock.nowMs,
    site,
    ownership: new FileOwnership(),
    secureCookies: config.secureCookies,
    passwords: new PasswordHasher(buildPasswordHasher(world.passwordCost)),
    onKeyChanged: () => keys.clear(),
    ...forwardTo(listeners),
    audit: watch.audit,
    backUp: watch.backUp,
    auditor: watch.auditor,
    rules,
    rotation,
    catalogue,
    writeQueue: buildWriteQueue(),
    readProviderFile,
  }
  const answerWeb = openWebApp(management)
  async function close(): Promise<void> {
    await watch.close()
    await records.close()
    await webhooks.deliverer.close()
    priceTrials.close()
    rotation.close()
    await finder.close()
    await vault.close()
    await bodies.close()
    books.close()
    desk.close()
    reader.close() // before the writer: the last connection merges the write-ahead log, and a reader cannot write
    await writer.close()
    lock?.release()
  }
  return {
    folder,
    writer,
    reader,
    books,
    auditor: watch.auditor,
    keys,
    bodies,
    vault,
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

/** The management interface is loaded by its first request, because few requests need it. */
function openWebApp(parts: ManagementParts): HandleWebRequest {
  let app: Promise<HandleWebRequest> | undefined
  return async ask => {
    app ??= import('../management/web/dispatch.ts').then(({ buildWebApp }) => buildWebApp(parts))
    return (await app)(ask)
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

const noCalls: KeyLifetime = { end: () => {}, expires: () => {}, textReplaced: () => {} }

interface RecordParts extends Omit<RecordDeleterParts, 'statistics'> {
  readonly folder: DataFolder
  readonly log: Log
}

/** Opens what happens to records after they were written: statistics and deletion by retention rules. */
function openRecords({ folder, log, ...parts }: RecordParts) {
  const { database, statistics } = folder
  const rolling = new StatisticsWorker({
    database,
    statistics,
    writer: parts.writer,
    onError: detail => log.warn('statistics could not be updated yet', { detail }),
  })
  const deleting = new RecordDeleter({ ...parts, statistics: rolling })
  async function close(): Promise<void> {
    const deletionEnded = deleting.close()
    await rolling.close() // a deletion that waits for the statistics ends with an error
    await deletionEnded
  }
  return { rolling, deleting, close }
}

interface WriterParts {
  readonly folder: DataFolder
  readonly log: Log
  readonly givesUp: boolean
  readonly ledgerWaitMs: Runtime['ledgerWaitMs']
  onLost(detail: string): void
}

interface StorageParts extends Pick<Store, 'folder' | 'writer' | 'reader'> {
  readonly log: Log
  dateMs(): number
}

/** Opens the stores of callers' content, which is encrypted: bodies and the vault. */
function openVaultAndBodies(config: Config, { folder, writer, reader, log, dateMs }: StorageParts) {
  const { encryption } = folder.secrets
  const bodies = new BodyStore({
    place: { path: folder.bodies },
    encryption,
    days: config.bodiesDays,
    dateMs,
    onError: detail => log.warn('bodies were not stored', { detail }),
  })
  const seal = new Seal(encryption)
  const vault = openVault({
    writer,
    reader,
    seal,
    days: config.responsesDays,
    dateMs,
    onProblem: detail => log.warn('the vault could not store or read something', { detail }),
  })
  return { bodies, seal, vault }
}

interface WebhookParts {
  readonly reader: Reader
  readonly writer: Writer
  readonly seal: Seal
  readonly world: Runtime
  readonly log: Log
}

function openWebhooks({ privateHosts }: Config, { reader, writer, seal, world, log }: WebhookParts): Webhooks {
  const outside = openWebhookClient({ ...world.webhooks, privateHosts, nowMs: world.clock.nowMs })
  return buildWebhooks({
    reader: reader.webhooks,
    writer,
    seal,
    outside,
    log,
    everyMs: world.webhooksEveryMs,
    dateMs: world.clock.dateMs,
    random: world.random,
  })
}

/** Opens the ledger and checks that the secrets fit its data. */
async function openWriter(config: Config, parts: WriterParts): Promise<[Writer, WriterStart]> {
  const { folder, log, givesUp, onLost, ledgerWaitMs } = parts
  if (folder.lacksDatabase)
    log.error('there are secrets but no database: an empty database is created', { folder: folder.path })
  for (const file of folder.closedFiles)
    log.warn('other users could read this secret file; its permissions are now restricted', { file })
  const { ballastBytes, databaseBytesMax, responsesBytesMax } = config
  const options = { path: folder.database, ballastBytes, databaseBytesMax, responsesBytesMax }
  const opened = await Writer.open(options, onLost, ledgerWaitMs)
  try {
    const by = { actor: `weir ${version}` }
    const rotated = await checkSecrets({
      ...folder,
      folder: folder.path,
      writer: opened[0],
      ignoresMissing: givesUp,
      by,
    })
    for (const kind of rotated)
      log.info('a secret has changed since the last start', { kind, mark: folder.secrets[kind].newestFingerprint })
    return opened
  } catch (fault) {
    await opened[0].close()
    throw fault
  }
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

interface RotationParts extends Pick<Store, 'folder' | 'writer' | 'bodies' | 'reader' | 'keys'> {
  readonly world: Runtime
  readonly log: Log
  readonly finder: KeyFinder
}

function openRotation(config: Config, { world, log, reader, keys, finder, ...parts }: RotationParts): Rotation {
  return new Rotation({
    ...parts,
    carriedDays: config.responsesDays,
    dateMs: world.clock.dateMs,
    pause: world.pause,
    readMarks: kind => reader.secretMarks(kind),
    onChanged(kind) {
      log.info('secrets changed', { kind, marks: parts.folder.secrets[kind].fingerprints })
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
  /** Ends the calls of a key that is revoked or expires. */
  keyEnds: KeyLifetime
  /** The state of the gateway. */
  state(): GatewayState | undefined
  /** What only a running gateway can answer. */
  running: LiveGateway | undefined
}

interface RuleParts {
  readonly reader: Reader
  readonly seal: Seal
  readonly log: Log
}

/** Opens the rules, and keeps the channels of the catalogue up to date with them. */
function openRules(config: Config, { reader, seal, log }: RuleParts) {
  const rules = new LiveRules({
    reader: reader.rules,
    seal,
    onError: detail => log.error('a channel is not used: its stored credential cannot be decrypted', { detail }),
  })
  rules.reload()
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
