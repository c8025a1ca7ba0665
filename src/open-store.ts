// Takes the data folder for this process alone: the ledger's thread, readers, keys, bodies, the auditor, and what an
// operator can do with them. The same for a running gateway and for a command that finds none.

import packageJson from '../package.json'
import { bounds } from './base/bounds.ts'
import { buildIdMinter } from './base/ids.ts'
import type { Log } from './base/log.ts'
import { buildLog } from './base/log.ts'
import type { Auditor } from './billing/auditor.ts'
import type { PriceRow } from './billing/price-book.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config.ts'
import { KeyDirectory } from './identity/key-directory.ts'
import { buildBooksWatch } from './management/books-watch.ts'
import type { Commands } from './management/command.ts'
import type { ManagementParts } from './management/management-parts.ts'
import { buildOperator } from './management/operator.ts'
import { Bodies } from './store/bodies.ts'
import { Seal } from './base/seal.ts'
import { BooksReader } from './store/books-reader.ts'
import { Desk } from './store/desk.ts'
import type { DataFolder } from './store/folder.ts'
import { openFolder } from './store/folder.ts'
import { lockFolder } from './store/lock.ts'
import { readCatalogue } from './read-catalogue.ts'
import { Reader } from './store/reader.ts'
import { RuleBook } from './store/rules-book.ts'
import { Writer } from './store/writer.ts'
import type { Catalogue } from './upstreams/catalogue.ts'
import type { Vault } from './vault/vault.ts'
import { openVault } from './vault/vault.ts'
import type { World } from './world.ts'
import { realWorld } from './world.ts'

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
  readonly seal: Seal
  readonly rules: Pick<RuleBook, 'current' | 'problem' | 'follow'>
  mintId(): number
  /** From now on these are told, and tell. */
  follow(listeners: Partial<Told>): void
  /** What an operator's words are held against; until then, what the files and the environment say. */
  useCatalogue(catalogue: Catalogue): void
  close(): Promise<void>
}

/** Brings the data up to date and recovers what a crash left. */
export async function openStore(config: Config, replaced: Partial<World> = {}): Promise<Store> {
  const world: World = { ...realWorld, ...replaced }
  const folder = openFolder(config.dataFolder, config.env)
  const lock = lockFolder(folder.path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${folder.path}.`)
  const log = buildLog(config.logLevel, world.writeLog)
  if (folder.lacksDatabase) log.error('no database beside the secrets: an empty one is made', { folder: folder.path })
  const [writer, start] = await Writer.open(
    { path: folder.database, ballastBytes: config.ballastBytes, databaseBytesMax: config.databaseBytesMax },
    world.onLedgerLost,
  )
  const reader = new Reader(folder.database)
  const books = new BooksReader(folder.database)
  const watch = buildBooksWatch({
    ...{ folder, writer, version, everyMs: config.auditMs, lagMs: AUDIT_LAG_MS },
    log,
  })
  const mintId = buildIdMinter(world.clock.dateMs, start.lastId)
  const keys = new KeyDirectory({
    find: digest => reader.findKey(digest),
    nowMs: world.clock.nowMs,
    knownMax: bounds.keysCachedMax,
    unknownMax: bounds.keysUnknownCachedMax,
    unknownMs: bounds.keyUnknownMsMax,
  })
  const { dateMs } = world.clock
  const bodies = new Bodies({
    ...{ path: folder.bodies, secret: folder.secrets.encryption, days: config.bodiesDays, dateMs },
    onTrouble: detail => log.warn('bodies dropped', { detail }),
  })
  const seal = new Seal(folder.secrets.encryption)
  const vault = openVault({
    ...{ writer, reader, seal, days: config.responsesDays, dateMs },
    onTrouble: detail => log.warn('not kept', { detail }),
  })
  const { rules, catalogue, useCatalogue } = openRules(config, { reader, seal, log })
  const told: Told = { price: () => {}, revoked: () => {}, health: () => 'not running' }
  const desk = new Desk(folder.database)
  const management: ManagementParts = {
    ...{ desk, writer, reader, bodies, books, mintId, dateMs },
    ...{ pepper: folder.secrets.pepper, jwtSecret: folder.secrets.jwt },
    onKeyChanged: () => keys.forget(),
    onKeyRevoked: id => told.revoked(id),
    onPriceAdded: row => told.price(row),
    ...{ audit: watch.audit, backUp: watch.backUp, auditor: watch.auditor },
    ...{ rules, catalogue, channelHealth: (id: string) => told.health(id) },
  }
  const operator = buildOperator(management)
  async function close(): Promise<void> {
    await watch.close()
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
    ...{ rules, useCatalogue, management },
    follow: listeners => void Object.assign(told, listeners),
  }
}

/** Who hears of it and who tells, once there is somebody: until then the next start reads it. */
interface Told {
  /** A price that an operator adds. */
  price(row: PriceRow): void
  /** A key that is revoked. */
  revoked(keyId: number): void
  /** How a channel is. */
  health(channelId: string): string
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
    onTrouble: detail => log.error('a channel is not used without its proxy', { detail }),
  })
  rules.renew()
  let catalogue: Catalogue | undefined
  function useCatalogue(used: Catalogue): Catalogue {
    used.setRules(rules.current.channels)
    return (catalogue = used)
  }
  // Before all others: the channels that they look at must be as the rules are.
  rules.follow(({ channels }) => catalogue?.setRules(channels))
  const found = (): Catalogue => readCatalogue(config, config.demo ? UNKNOWN_URL : undefined)
  return { rules, useCatalogue, catalogue: () => catalogue ?? useCatalogue(found()) }
}
