// Takes the data folder for this process alone: the ledger's thread, readers, keys, bodies, the auditor, and what an
// operator can do with them. The same for a running gateway and for a command that finds none.

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
import { openGuardedPost } from '../http/client/post-webhook.ts'
import { KeyDirectory } from '../identity/key-directory.ts'
import type { KeyFinderParts } from '../identity/key-finder.ts'
import { KeyFinder } from '../identity/key-finder.ts'
import { PasswordDesk } from '../identity/password-hashing.ts'
import type { Commands, KeyEnding } from '../management/command.ts'
import type { Running } from '../management/live-gateway.ts'
import type { ManagementParts } from '../management/management-parts.ts'
import type { GatewayState } from '../management/metrics/gateway-state.ts'
import { buildOperator } from '../management/operator.ts'
import { PriceTrials } from '../management/prices/trials.ts'
import { buildBooksWatch } from '../management/services/ledger-auditor.ts'
import { SiteBook } from '../management/services/site-settings.ts'
import { buildTurns } from '../management/services/write-queue.ts'
import type { Webhooks } from '../management/webhooks/webhooks.ts'
import { buildWebhooks } from '../management/webhooks/webhooks.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import { openFolder } from '../store/engine/folder.ts'
import { lockFolder } from '../store/engine/lock.ts'
import { Reader } from '../store/engine/reader.ts'
import { Writer } from '../store/engine/writer.ts'
import type { WriterStart } from '../store/engine/writer-messages.ts'
import { BooksReader } from '../store/ledger/books-reader.ts'
import { hashingAt } from '../store/people/hash-password.ts'
import { Desk } from '../store/queries/query-worker.ts'
import { Bodies } from '../store/records/bodies.ts'
import type { DeletingParts } from '../store/records/delete-records.ts'
import { RecordDeleting } from '../store/records/delete-records.ts'
import type { Rules } from '../store/rules/rules.ts'
import { RuleBook } from '../store/rules/rules-book.ts'
import { Rotation } from '../store/secrets/rotation.ts'
import { checkSecrets } from '../store/secrets/secret-check.ts'
import { Rolling } from '../store/statistics/rolling.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Vault } from '../vault/vault.ts'
import { openVault } from '../vault/vault.ts'
import { readCatalogue, readProviderFile } from './load-catalogue.ts'
import type { World } from './runtime.ts'
import { realWorld } from './runtime.ts'

const { version } = packageJson

/** A call has its hold long before; a record that is younger is left to the auditor's next look. */
const AUDIT_LAG_MS = 2 * bounds.bodyMsMax

/** Where built-in providers answer is known only while a gateway runs. */
const UNKNOWN_URL = 'http://127.0.0.1'

export interface Store {
  readonly folder: DataFolder
  readonly writer: Writer
  readonly reader: Reader
  readonly keys: KeyDirectory
  readonly operator: Commands
  /** What people manage over the web is made with this. */
  readonly management: ManagementParts
  readonly books: BooksReader
  readonly auditor: Auditor
  readonly bodies: Bodies
  readonly vault: Vault
  readonly webhooks: Webhooks
  readonly seal: Seal
  readonly rules: Pick<RuleBook, 'current' | 'problem' | 'follow'>
  readonly rotation: Rotation
  readonly deleting: RecordDeleting
  mintId(): number
  /** From now on these are told, and tell. */
  follow(listeners: Partial<Told>): void
  /** What an operator's words are held against; until then, what the files and the environment say. */
  useCatalogue(catalogue: Catalogue): void
  close(): Promise<void>
}

export interface StoreOptions {
  /** What rests on secrets that are not there any more does not stop it. */
  readonly givesUp?: boolean
}

/** Brings the data up to date and recovers what a crash left. */
export async function openStore(
  config: Config,
  replaced: Partial<World> = {},
  { givesUp = false }: StoreOptions = {},
): Promise<Store> {
  const world: World = { ...realWorld, ...replaced }
  const folder = openFolder(config.dataFolder, config.env, givesUp)
  const lock = lockFolder(folder.path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${folder.path}.`)
  const log = buildLog(config.logLevel, world.writeLog)
  const { onLedgerLost: onLost, ledgerWaitMs } = world
  const [writer, start] = await openWriter(config, { folder, log, givesUp, onLost, ledgerWaitMs }).catch(fault => {
    lock.release()
    throw fault
  })
  const reader = new Reader(folder.database)
  const books = new BooksReader(folder.database)
  const watch = buildBooksWatch({
    ...{ folder, writer, version, everyMs: config.auditMs, lagMs: AUDIT_LAG_MS },
    log,
  })
  const mintId = buildIdMinter(world.clock.dateMs, start.lastId)
  const { keys, finder } = openKeys({ reader, writer, pepper: folder.secrets.pepper }, world)
  const { dateMs } = world.clock
  const { bodies, seal, vault } = openKept(config, { folder, writer, reader, log, dateMs })
  const { rules, catalogue, useCatalogue } = openRules(config, { reader, seal, log })
  const told: Told = { price: () => {}, keyEnds: noCalls, running: undefined, state: () => undefined }
  const desk = new Desk(folder.database)
  const site = new SiteBook(reader, config.siteName)
  const retentionDays = (): number => site.current.retentionDays
  const kept = { folder, writer, desk, bodies, reader, log, dateMs, retentionDays }
  const { rolling, deleting, ...records } = openRecords(kept)
  const { providerFolders } = config
  const priceTrials = new PriceTrials({ path: folder.database, providerFolders, dateMs })
  const webhooks = openWebhooks(config, { reader, writer, seal, world, log })
  const rotation = openRotation(config, { folder, writer, bodies, reader, world, log, keys, finder })
  const management: ManagementParts = {
    ...{ desk, writer, reader, bodies, books, mintId, dateMs, rolling, deleting, webhooks, priceTrials },
    ...{ pepper: folder.secrets.pepper, jwtSecret: folder.secrets.jwt, seal, log, nowMs: world.clock.nowMs },
    ...{ site, secureCookies: config.secureCookies },
    passwords: new PasswordDesk(hashingAt(world.passwordCost)),
    onKeyChanged: () => keys.forget(),
    ...telling(told),
    ...{ audit: watch.audit, backUp: watch.backUp, auditor: watch.auditor },
    ...{ rules, rotation, catalogue, inTurn: buildTurns(), readProviderFile },
  }
  const operator = buildOperator(management)
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
    reader.close() // before the writer: the last one to close the file folds its log into it, and a reader cannot
    await writer.close()
    lock?.release()
  }
  return {
    ...{ folder, writer, reader, books, auditor: watch.auditor, keys, bodies, vault, seal, operator, mintId, close },
    ...{ rules, rotation, useCatalogue, management, deleting, webhooks },
    follow: listeners => void Object.assign(told, listeners),
  }
}

/** Whoever is told by then: it is not known yet. */
const telling = (told: Told) => ({
  keyEnds: {
    end: (id: number) => told.keyEnds.end(id),
    expires: (id: number, expiresMs: number) => told.keyEnds.expires(id, expiresMs),
    renewed: (id: number, untilMs: number) => told.keyEnds.renewed(id, untilMs),
  },
  onPriceAdded: (row: PriceRow) => told.price(row),
  running: () => told.running,
  state: () => told.state(),
})

const noCalls: KeyEnding = { end: () => {}, expires: () => {}, renewed: () => {} }

interface RecordParts extends Omit<DeletingParts, 'rolling'> {
  readonly folder: DataFolder
  readonly log: Log
}

/** What becomes of records after they were written: summed up, and deleted by rule. */
function openRecords({ folder, log, ...parts }: RecordParts) {
  const { database, statistics } = folder
  const rolling = new Rolling({
    ...{ database, statistics, writer: parts.writer },
    onTrouble: detail => log.warn('statistics are late', { detail }),
  })
  const deleting = new RecordDeleting({ ...parts, rolling })
  async function close(): Promise<void> {
    const halted = deleting.close()
    await rolling.close() // whoever waits for it is told so
    await halted
  }
  return { rolling, deleting, close }
}

interface Opening {
  readonly folder: DataFolder
  readonly log: Log
  readonly givesUp: boolean
  readonly ledgerWaitMs: World['ledgerWaitMs']
  onLost(detail: string): void
}

interface Keeping extends Pick<Store, 'folder' | 'writer' | 'reader'> {
  readonly log: Log
  dateMs(): number
}

/** What is kept of callers' words, all of it sealed. */
function openKept(config: Config, { folder, writer, reader, log, dateMs }: Keeping) {
  const { encryption } = folder.secrets
  const bodies = new Bodies({
    ...{ path: folder.bodies, encryption, days: config.bodiesDays, dateMs },
    onTrouble: detail => log.warn('bodies dropped', { detail }),
  })
  const seal = new Seal(encryption)
  const vault = openVault({
    ...{ writer, reader, seal, days: config.responsesDays, dateMs },
    onTrouble: detail => log.warn('not kept', { detail }),
  })
  return { bodies, seal, vault }
}

interface WebhookWorld {
  readonly reader: Reader
  readonly writer: Writer
  readonly seal: Seal
  readonly world: World
  readonly log: Log
}

function openWebhooks({ privateHosts }: Config, { reader, writer, seal, world, log }: WebhookWorld): Webhooks {
  const outside = openGuardedPost({ ...world.webhooks, privateHosts, nowMs: world.clock.nowMs })
  return buildWebhooks({
    ...{ reader: reader.webhooks, writer, seal, outside, log, everyMs: world.webhooksEveryMs },
    ...{ dateMs: world.clock.dateMs, chance: world.chance },
  })
}

/** The ledger, if the secrets are those that its data was made with. */
async function openWriter(config: Config, opening: Opening): Promise<[Writer, WriterStart]> {
  const { folder, log, givesUp, onLost, ledgerWaitMs } = opening
  if (folder.lacksDatabase) log.error('no database beside the secrets: an empty one is made', { folder: folder.path })
  for (const file of folder.closedFiles) log.warn('others could read a secret until now', { file })
  const { ballastBytes, databaseBytesMax, responsesBytesMax } = config
  const options = { path: folder.database, ballastBytes, databaseBytesMax, responsesBytesMax }
  const opened = await Writer.open(options, onLost, ledgerWaitMs)
  try {
    const by = { actor: `weir ${version}` }
    const rotated = await checkSecrets({ ...folder, folder: folder.path, writer: opened[0], givesUp, by })
    for (const kind of rotated) log.info('another secret than before', { kind, mark: folder.secrets[kind].newestMark })
    return opened
  } catch (fault) {
    await opened[0].close()
    throw fault
  }
}

function openKeys(parts: KeyFinderParts, { clock }: World): { keys: KeyDirectory; finder: KeyFinder } {
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

interface RotationWorld extends Pick<Store, 'folder' | 'writer' | 'bodies' | 'reader' | 'keys'> {
  readonly world: World
  readonly log: Log
  readonly finder: KeyFinder
}

function openRotation(config: Config, { world, log, reader, keys, finder, ...parts }: RotationWorld): Rotation {
  return new Rotation({
    ...parts,
    ...{ carriedDays: config.responsesDays, dateMs: world.clock.dateMs, pause: world.pause },
    marks: kind => reader.marks(kind),
    onChanged(kind) {
      log.info('secrets changed', { kind, marks: parts.folder.secrets[kind].marks })
      if (kind !== 'pepper') return
      finder.forget()
      keys.forget()
    },
    onTrouble: fault => log.warn('not all is sealed with the newest key yet', { fault: describeFault(fault) }),
  })
}

/** Who hears of it and who tells, once there is somebody: until then the next start reads it. */
interface Told {
  /** A price that an operator adds. */
  price(row: PriceRow): void
  /** What becomes of the calls of a key that ends. */
  keyEnds: KeyEnding
  /** How the gateway is. */
  state(): GatewayState | undefined
  /** What only a running gateway knows and can do. */
  running: Running | undefined
}

interface RuleParts {
  readonly reader: Reader
  readonly seal: Seal
  readonly log: Log
}

/** The rules, and the channels that they are for. */
function openRules(config: Config, { reader, seal, log }: RuleParts) {
  const rules = new RuleBook({
    ...{ reader: reader.rules, seal },
    onTrouble: detail => log.error('a channel is not used: what is sealed of it does not open', { detail }),
  })
  rules.renew()
  let catalogue: Catalogue | undefined
  function useCatalogue(used: Catalogue): Catalogue {
    useRules(used, rules.current)
    return (catalogue = used)
  }
  // Before all others: the channels that they look at must be as the rules are.
  rules.follow(current => catalogue && useRules(catalogue, current))
  const found = (): Catalogue => readCatalogue(config, config.demo ? UNKNOWN_URL : undefined)
  return { rules, useCatalogue, catalogue: () => catalogue ?? useCatalogue(found()) }
}

function useRules(catalogue: Catalogue, rules: Rules): void {
  catalogue.lay(rules)
  catalogue.setRules(rules.channels)
}
