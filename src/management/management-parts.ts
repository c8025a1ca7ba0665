// The parts that the management interface uses.

import type { Log } from '../base/log.ts'
import type { Seal } from '../base/secrets/seal.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { Auditor } from '../billing/auditor.ts'
import type { AttemptSharing } from '../identity/attempt-limits.ts'
import type { PasswordHasher } from '../identity/password-hasher.ts'
import type { BackupReport } from '../store/engine/backup.ts'
import type { PriceVersion, Reader } from '../store/engine/reader.ts'
import type { BodyStorage, Processes, QueryRunner, StatisticsStore, StoreWriter } from '../store/engine/store-engine.ts'
import type { AuditReport } from '../store/ledger-audit/findings.ts'
import type { RecordDeleter } from '../store/records/record-deleter.ts'
import type { LiveRules } from '../store/rules/live-rules.ts'
import type { Rotation } from '../store/secrets/rotation.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { LiveGateway } from './live-gateway.ts'
import type { GatewayState } from './metrics/gateway-state.ts'
import type { PriceTrials } from './prices/trials.ts'
import type { FileOwnership } from './services/file-ownership.ts'
import type { SiteSettings } from './services/site-settings.ts'
import type { WriteQueue } from './services/write-queue.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

/** Ends the running calls of a key when the key becomes invalid. */
export interface KeyLifetime {
  /** The key was revoked or disabled. */
  end(keyId: number): void
  expires(keyId: number, expiresMs: number | null): void
  /** The text of the key was replaced; the old text works until this time. */
  textReplaced(keyId: number, untilMs: number): void
}

/** What the management interface asks of the database as a whole. */
export interface StorageFacts extends Pick<Processes, 'slot' | 'list'> {
  readonly kind: 'sqlite' | 'postgres'
  /** The data folder. */
  readonly folder: string
  /** Undefined: the data was never backed up, or another program does it, as on PostgreSQL. */
  lastBackupMs(): number | undefined
  /** The size of the log that is not merged into the database yet; 0 on PostgreSQL. */
  logBytes(): number
}

export interface ManagementParts {
  readonly writer: Pick<StoreWriter, 'run'>
  readonly reader: Pick<Reader, 'accounts' | 'findKeyById' | 'findKeyOfAny' | 'people' | 'setting'>
  readonly queryWorker: Pick<QueryRunner, 'query'>
  readonly recordDeleter: Pick<RecordDeleter, 'sweep'>
  readonly bodies: Pick<BodyStorage, 'read'>
  readonly seal: Pick<Seal, 'seal' | 'open'>
  readonly priceTrials: Pick<PriceTrials, 'backtest' | 'check'>
  /** Writes events for webhooks. */
  readonly webhooks: Webhooks
  readonly pepper: SecretRing
  readonly jwtSecret: SecretRing
  readonly passwords: Pick<PasswordHasher, 'hash' | 'matches'>
  mintId(): number
  dateMs(): number
  /** Called after a change to a key or its account has been written. */
  onKeyChanged(): void
  /** Called after onKeyChanged, when no new call can begin with the key. */
  readonly keyLifetime: KeyLifetime
  /** Called for each price that has been written. */
  onPriceAdded(row: PriceVersion): void
  /** Audits the whole ledger. When it resolves, the accounts with findings are frozen and the events are written. */
  audit(): Promise<AuditReport>
  backUp(folder: string): Promise<BackupReport>
  /** Changes to the rules call `reload`. */
  readonly rules: Pick<LiveRules, 'current' | 'problem' | 'reload' | 'sealProxy' | 'sealCredential'>
  readonly rotation: Pick<Rotation, 'rotate' | 'status' | 'finish'>
  catalogue(): Catalogue
  readonly storage: StorageFacts
  /** The state of the gateway; undefined if no gateway runs. */
  state(): Promise<GatewayState> | undefined
  /** Returns the text of a provider file. */
  readProviderFile(file: string): string
  /** What only a running gateway can do; undefined if no gateway runs. */
  liveGateway(): LiveGateway | undefined
  /** Runs changes to the rules one after the other. */
  readonly writeQueue: WriteQueue
  readonly site: Pick<SiteSettings, 'current' | 'renew'>
  /** What the configuration file of the gateway describes. */
  readonly ownership: FileOwnership
  readonly log: Log
  readonly secureCookies: boolean
  /** The version of Weir. */
  readonly version: string
  /** The build of the console; null: it was not built. */
  readonly consoleBuild: string | null
  nowMs(): number
  readonly attemptSharing: AttemptSharing
  readonly statisticsAggregator: Pick<StatisticsStore, 'ready' | 'progress'>
  readonly auditor: Pick<Auditor, 'state' | 'findings'>
}
