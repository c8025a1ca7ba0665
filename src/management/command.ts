// The type of an operator command, and the parts that all commands use. Inputs come as JSON from a socket that only
// the operator can open; they are checked nevertheless. Answers are plain fields and tables.

import type { Seal } from '../base/secrets/seal.ts'
import type { SecretRing } from '../base/secrets/secret-ring.ts'
import type { PasswordDesk } from '../identity/password-hashing.ts'
import type { By } from '../store/audit-log/audited.ts'
import type { BackupReport } from '../store/engine/backup.ts'
import type { PriceVersion, Reader } from '../store/engine/reader.ts'
import type { Writer } from '../store/engine/writer.ts'
import type { BooksReader } from '../store/ledger/books-reader.ts'
import type { AuditReport } from '../store/ledger-audit/findings.ts'
import type { Desk } from '../store/queries/query-worker.ts'
import type { Bodies } from '../store/records/bodies.ts'
import type { RecordDeleting } from '../store/records/delete-records.ts'
import type { RuleBook } from '../store/rules/rules-book.ts'
import type { Rotation } from '../store/secrets/rotation.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Running } from './live-gateway.ts'
import type { GatewayState } from './metrics/gateway-state.ts'
import type { PriceTrials } from './prices/trials.ts'
import type { Turn } from './services/write-queue.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

/** Ends the running calls of a key when the key becomes invalid. */
export interface KeyEnding {
  /** The key was revoked or disabled. */
  end(keyId: number): void
  expires(keyId: number, expiresMs: number | null): void
  /** The text of the key was replaced; the old text works until this time. */
  renewed(keyId: number, untilMs: number): void
}

export interface OperatorParts {
  readonly writer: Pick<Writer, 'run'>
  readonly reader: Pick<Reader, 'balance' | 'findKeyOfAny' | 'people' | 'setting'>
  readonly books: BooksReader
  readonly desk: Pick<Desk, 'ask'>
  readonly deleting: Pick<RecordDeleting, 'sweep'>
  readonly bodies: Pick<Bodies, 'read'>
  readonly seal: Pick<Seal, 'close'>
  readonly priceTrials: Pick<PriceTrials, 'backtest' | 'check'>
  /** Writes events for webhooks. */
  readonly webhooks: Webhooks
  readonly pepper: SecretRing
  readonly jwtSecret: SecretRing
  readonly passwords: Pick<PasswordDesk, 'hash' | 'matches'>
  mintId(): number
  dateMs(): number
  /** Called after a change to a key or its account has been written. */
  onKeyChanged(): void
  /** Called after onKeyChanged, when no new call can begin with the key. */
  readonly keyEnds: KeyEnding
  /** Called for each price that has been written. */
  onPriceAdded(row: PriceVersion): void
  /** Audits the whole ledger. When it resolves, the accounts with findings are frozen and the events are written. */
  audit(): Promise<AuditReport>
  backUp(folder: string): Promise<BackupReport>
  /** Commands call `renew` after each change to the rules. */
  readonly rules: Pick<RuleBook, 'current' | 'problem' | 'renew' | 'sealProxy' | 'sealCredential'>
  readonly rotation: Pick<Rotation, 'rotate' | 'status' | 'finish'>
  catalogue(): Catalogue
  /** The state of the gateway; undefined if no gateway runs. */
  state(): GatewayState | undefined
  /** Returns the text of a provider file. */
  readProviderFile(file: string): string
  /** Undefined if no gateway runs. */
  running(): Running | undefined
  /** Runs changes to the rules one after the other. */
  readonly inTurn: Turn
}

export type Input = Readonly<Record<string, unknown>>
export type Answer = Record<string, unknown>
export type Command = (input: Input) => Promise<Answer>
export type Commands = Readonly<Record<string, Command>>

/** The author of the operator's postings in the ledger. */
export const author = 'cli'
export const by: By = { actor: author }
