// Checks the PostgreSQL database and the Redis that several gateways share, as a start would use them, without changing
// anything in them. Also reads which processes use the database.

import { Seal } from '../../base/secrets/seal.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Config } from '../../config.ts'
import type { SharedFacts } from '../../management/doctor/doctor-checks.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { StoreError } from '../../store/engine/database.ts'
import { FolderError } from '../../store/engine/folder.ts'
import { refuseUnmovedData } from '../../store/engine/moved-folder.ts'
import type { LedgerInspection } from '../../store/ledger/inspect-tables.ts'
import { inspectTables } from '../../store/ledger/inspect-tables.ts'
import { inspectPostgres } from '../../store/postgres/connect.ts'
import { readMembers } from '../../store/postgres/member-list.ts'
import type { PostgresAddress } from '../../store/postgres/pools.ts'
import { addressOfUrl, PostgresPool } from '../../store/postgres/pools.ts'
import { openPostgresReader } from '../../store/postgres/reader.ts'
import { findSecretProblems } from '../../store/postgres/shared-secrets.ts'
import { checkRedis, RedisUnusable } from '../../store/redis/check.ts'
import type { SecretKind } from '../../store/secrets/secret-kinds.ts'
import { SecretScan } from '../../store/secrets/secret-scan.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import { note, problem } from './findings.ts'
import { checkStoredRules } from './stored-rules.ts'

const DATABASE = 'WEIR_DATABASE_URL'
const REDIS = 'WEIR_REDIS_URL'
const READ_MS_MAX = 10_000

/** The secrets that exist and can be read. */
export type SecretRings = Readonly<Record<SecretKind, SecretRing | undefined>>

export interface PostgresCheckInput {
  readonly databaseUrl: Secret
  readonly folder: string
  readonly rings: SecretRings
  readonly catalogue: Catalogue
}

export async function checkPostgres({
  databaseUrl,
  folder,
  rings,
  catalogue,
}: PostgresCheckInput): Promise<readonly CheckFinding[]> {
  const address = addressOfUrl(databaseUrl)
  const { findings, isCurrent, isEmpty } = await checkSchema(address, folder)
  const isSecretMissing = Object.values(rings).includes(undefined)
  if (isEmpty && isSecretMissing) {
    const message = 'The first start creates secrets in files of its data folder, and all gateways need the same.'
    return [...findings, note('secrets', message, 'Set WEIR_PEPPER, WEIR_JWT_SECRET and WEIR_ENCRYPTION_KEY for all.')]
  }
  if (!isCurrent) return findings
  return await withPool(address, async pool => {
    const reader = openPostgresReader(pool)
    const texts = await findSecretProblems({ reader, scan: new SecretScan(address), folder }, rings)
    const { encryption } = rings
    return [
      ...findings,
      ...texts.map(text => problem('secrets', text, '')),
      ...(encryption === undefined ? [] : await checkStoredRules(reader.rules, new Seal(encryption), catalogue)),
    ]
  })
}

interface SchemaCheck {
  readonly findings: readonly CheckFinding[]
  readonly isEmpty: boolean
  /** The tables have the schema of this version, so they can be read. */
  readonly isCurrent: boolean
}

async function checkSchema(address: PostgresAddress, folder: string): Promise<SchemaCheck> {
  try {
    refuseUnmovedData(folder)
    const { state, missing } = await inspectPostgres(address)
    if (state === undefined) return { findings: [], isEmpty: true, isCurrent: false }
    if (missing.length === 0) return { findings: [], isEmpty: false, isCurrent: true }
    const names = missing.map(({ name }) => name).join(', ')
    const finding = note(DATABASE, `The next start upgrades the tables (${names}).`, 'To do it before: weir migrate')
    return { findings: [finding], isEmpty: false, isCurrent: false }
  } catch (fault) {
    if (!(fault instanceof StoreError || fault instanceof FolderError)) throw fault
    return { findings: [problem(DATABASE, fault.message, '')], isEmpty: false, isCurrent: false }
  }
}

/** A Redis that is away stops no gateway: until it comes, each has its share of every limit. */
export async function checkRedisServer({ redisUrl }: Pick<Config, 'redisUrl'>): Promise<readonly CheckFinding[]> {
  if (redisUrl === undefined) return []
  try {
    const warning = await checkRedis(redisUrl)
    if (warning === undefined) return []
    return [note(REDIS, `${warning} Until Redis can be used, each gateway has its share of every limit.`, '')]
  } catch (fault) {
    if (!(fault instanceof RedisUnusable)) throw fault
    return [problem(REDIS, fault.message, '')]
  }
}

export interface ReadFacts extends SharedFacts {
  /** Undefined if the tables cannot be read. */
  readonly books: LedgerInspection | undefined
}

/** For `weir doctor`. */
export async function readSharedFacts(
  { databaseUrl, redisUrl }: Pick<Config, 'databaseUrl' | 'redisUrl'>,
  folder: string,
): Promise<ReadFacts | undefined> {
  if (databaseUrl === undefined) return undefined
  const address = addressOfUrl(databaseUrl)
  const { findings: ofSchema, isEmpty, isCurrent } = await checkSchema(address, folder)
  const findings = [...ofSchema, ...(await checkRedisServer({ redisUrl }))]
  if (!isCurrent) return { findings, isEmpty, books: undefined, members: [], aheadMs: 0 }
  return await withPool(address, async pool => {
    const books = await pool.read(inspectTables(Date.now()))
    const sentMs = Date.now()
    const { nowMs, members } = await pool.readPoint(readMembers())
    return { findings, isEmpty, books, members, aheadMs: (sentMs + Date.now()) / 2 - nowMs }
  })
}

async function withPool<T>(address: PostgresAddress, use: (pool: PostgresPool) => Promise<T>): Promise<T> {
  const pool = new PostgresPool({ address, connections: 1, deadlineMs: READ_MS_MAX })
  try {
    return await use(pool)
  } finally {
    await pool.close()
  }
}
