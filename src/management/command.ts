// What a command of the operator is, and what all of them are made with. Inputs come as JSON from a socket that only
// the operator can open, and are checked all the same; answers are plain fields and tables.

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

/** What becomes of the calls under way of a key. */
export interface KeyEnding {
  /** It was revoked or disabled. */
  end(keyId: number): void
  expires(keyId: number, expiresMs: number | null): void
  /** Its text was renewed; the old one works until then. */
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
  /** Who is told what happens. */
  readonly webhooks: Webhooks
  readonly pepper: SecretRing
  readonly jwtSecret: SecretRing
  readonly passwords: Pick<PasswordDesk, 'hash' | 'matches'>
  mintId(): number
  dateMs(): number
  /** Told after a key or its account has changed, durably. */
  onKeyChanged(): void
  /** Told after onKeyChanged: nobody can begin a call with it any more. */
  readonly keyEnds: KeyEnding
  /** Told of each price that has been written, durably. */
  onPriceAdded(row: PriceVersion): void
  /** Looks at everything; what does not agree has been acted upon when it resolves. */
  audit(): Promise<AuditReport>
  backUp(folder: string): Promise<BackupReport>
  /** Renewed after each change to them. */
  readonly rules: Pick<RuleBook, 'current' | 'problem' | 'renew' | 'sealProxy' | 'sealCredential'>
  readonly rotation: Pick<Rotation, 'rotate' | 'status' | 'finish'>
  catalogue(): Catalogue
  /** How the gateway says it is; undefined while none runs. */
  state(): GatewayState | undefined
  /** The text of a provider's file. */
  readProviderFile(file: string): string
  /** Undefined while no gateway runs. */
  running(): Running | undefined
  /** For changes to rules, one after the other. */
  readonly inTurn: Turn
}

export type Input = Readonly<Record<string, unknown>>
export type Answer = Record<string, unknown>
export type Command = (input: Input) => Promise<Answer>
export type Commands = Readonly<Record<string, Command>>

/** Who posted, in the books. */
export const author = 'cli'
export const by: By = { actor: author }
