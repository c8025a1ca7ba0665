// The operations of the vault: store, change and delete what outlives a call. Encrypted content is opaque here.

import { bounds } from '../../base/bounds.ts'
import { fadeMeanVariance, mergeMeanVariances } from '../../base/collections/mean-variance.ts'
import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'
import { LimitDebts } from '../ledger/limit-debts.ts'
import { deleteExpiredTasks, taskOperations } from './task-rows.ts'
import { VaultTable } from './vault-table.ts'

type VaultSteps = Pick<
  OperationSteps,
  | 'keepResponse'
  | 'changeResponse'
  | 'dropResponse'
  | 'keepReasoning'
  | 'keepFile'
  | 'dropFile'
  | 'keepReferences'
  | 'createTask'
  | 'changeTask'
  | 'dropTask'
  | 'learnFactors'
  | 'noteDebts'
  | 'forgetKept'
>

export interface VaultOperationRunner {
  readonly run: VaultSteps
  /** Discards what a rolled-back transaction had changed in memory. */
  reset(): void
}

const bytesOf = (sealed: string): Buffer => Buffer.from(sealed, 'base64')

export interface VaultOptions {
  /** The most bytes that the stored responses of all accounts may take together. */
  readonly responsesBytesMax?: number | undefined
  /** Other processes write, too. Then these operations must be made anew for each transaction. */
  readonly isShared?: boolean
}

/** The usage of accounts is kept in memory, so these operations are made once for each connection that writes. */
export function vaultOperations(options: VaultOptions = {}): VaultOperationRunner {
  const rows = openRows(options)
  const debts = new LimitDebts()
  return {
    run: {
      ...responseOperations(rows.responses),
      ...reasoningAndFileOperations(rows),
      ...referenceOperations(rows.references),
      ...taskOperations,
      learnFactors,
      *noteDebts(input, { nowMs }) {
        yield* debts.save(input.debts, nowMs())
        return { done: 'noted' }
      },
      *forgetKept({ nowMs }) {
        let count = (yield* deleteExpiredTasks(nowMs)) + (yield* debts.deletePaid(nowMs))
        for (const table of rows.all) count += yield* table.deleteExpired(nowMs)
        return { done: 'forgotten', count }
      },
    },
    reset: () => rows.all.forEach(table => table.reset()),
  }
}

function openRows({ responsesBytesMax, isShared: isAllSwept = false }: VaultOptions) {
  const { storedResponsesMax, storedResponsesBytesMax, reasoningStatesMax, reasoningStatesBytesMax, storedFilesMax } =
    bounds
  const responses = new VaultTable('kept_response', {
    rowsMax: storedResponsesMax,
    bytesMax: storedResponsesBytesMax,
    allBytesMax: responsesBytesMax,
    isAllSwept,
  })
  const reasoning = new VaultTable('kept_reasoning', {
    rowsMax: reasoningStatesMax,
    bytesMax: reasoningStatesBytesMax,
    allBytesMax: bounds.reasoningStatesOfAllBytesMax,
    isAllSwept,
  })
  const files = new VaultTable('kept_file', { rowsMax: storedFilesMax, bytesMax: bounds.storedFilesBytesMax })
  const references = new VaultTable('kept_reference', { rowsMax: bounds.storedReferencesMax, bytesMax: 0 })
  return { responses, reasoning, files, references, all: [responses, reasoning, files, references] }
}

type VaultRows = ReturnType<typeof openRows>

const insertResponse = query(
  `INSERT INTO kept_response (account_id, id, key_id, status, model, channel, upstream_id, previous_id, created_ms,
     expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`,
)
const findResponse = query<{ status: string; bytes: bigint }>(
  'SELECT status, bytes FROM kept_response WHERE account_id = ?1 AND id = ?2',
)
const changeResponse = query(
  `UPDATE kept_response SET status = ?3, sealed = coalesce(?4, sealed), bytes = coalesce(?5, bytes)
   WHERE account_id = ?1 AND id = ?2`,
)

const responseOperations = (
  rows: VaultTable,
): Pick<VaultSteps, 'keepResponse' | 'changeResponse' | 'dropResponse'> => ({
  *keepResponse(input) {
    const sealed = input.sealed === null ? null : bytesOf(input.sealed)
    const bytes = sealed?.length ?? 0
    const { accountId, id, keyId, status, model, channel, upstreamId, previousId, createdMs, expiresMs } = input
    const values = [accountId, id, keyId, status, model, channel, upstreamId, previousId, createdMs, expiresMs]
    yield* rows.drop(input)
    yield* insertResponse.run(...values, bytes, sealed)
    yield* rows.addRow(accountId, bytes)
    return { done: 'kept' }
  },
  *changeResponse({ accountId, id, status, sealed }) {
    const row = yield* findResponse.get(accountId, id)
    if (row === undefined) return { done: 'unknown' }
    if (row.status !== 'queued' && row.status !== 'in_progress') return { done: 'over' }
    const bytes = sealed === null ? null : bytesOf(sealed)
    yield* changeResponse.run(accountId, id, status, bytes, bytes?.length ?? null)
    if (bytes !== null) rows.resizeRow(accountId, bytes.length - Number(row.bytes))
    return { done: 'changed' }
  },
  *dropResponse(input) {
    return { done: (yield* rows.drop(input)) ? 'dropped' : 'unknown' }
  },
})

const insertReasoning = query(
  'INSERT INTO kept_reasoning (account_id, id, expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, ?5)',
)
const insertFile = query(
  'INSERT INTO kept_file (account_id, id, channel, expires_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)',
)

const reasoningAndFileOperations = ({
  reasoning,
  files,
}: VaultRows): Pick<VaultSteps, 'keepReasoning' | 'keepFile' | 'dropFile'> => ({
  *keepReasoning(input) {
    const sealed = bytesOf(input.sealed)
    yield* reasoning.drop(input)
    yield* insertReasoning.run(input.accountId, input.id, input.expiresMs, sealed.length, sealed)
    yield* reasoning.addRow(input.accountId, sealed.length)
    return { done: 'kept' }
  },
  *keepFile(input) {
    yield* files.drop(input)
    yield* insertFile.run(input.accountId, input.id, input.channel, input.expiresMs, input.bytes)
    yield* files.addRow(input.accountId, input.bytes)
    return { done: 'kept' }
  },
  *dropFile(input) {
    return { done: (yield* files.drop(input)) ? 'dropped' : 'unknown' }
  },
})

const insertReference = query(
  'INSERT INTO kept_reference (account_id, id, channel, expires_ms) VALUES (?1, ?2, ?3, ?4)',
)

const referenceOperations = (rows: VaultTable): Pick<VaultSteps, 'keepReferences'> => ({
  *keepReferences({ accountId, ids, channel, expiresMs }) {
    for (const id of ids) {
      yield* rows.drop({ accountId, id })
      yield* insertReference.run(accountId, id, channel, expiresMs)
      yield* rows.addRow(accountId, 0)
    }
    return { done: 'kept' }
  },
})

const findFactor = query<{ n: bigint; mean: number; m2: number }>(
  'SELECT n, mean, m2 FROM count_factor WHERE model = ?1',
)
// A new model is inserted only while the table is below its limit.
const writeFactor = query(
  `INSERT INTO count_factor (model, n, mean, m2)
   SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT), CAST(?3 AS DOUBLE PRECISION), CAST(?4 AS DOUBLE PRECISION)
   WHERE (SELECT count(*) FROM count_factor) < ?5 OR EXISTS (SELECT 1 FROM count_factor WHERE model = ?1)
   ON CONFLICT (model) DO UPDATE SET n = excluded.n, mean = excluded.mean, m2 = excluded.m2`,
)

const learnFactors: VaultSteps['learnFactors'] = function* learnFactors({ factors }) {
  for (const { model, n, mean, m2 } of factors) {
    const row = yield* findFactor.get(model)
    const known = row === undefined ? undefined : { ...row, n: Number(row.n) }
    const learned = fadeMeanVariance(mergeMeanVariances(known, { n, mean, m2 }), bounds.countSamplesMax)
    yield* writeFactor.run(model, learned.n, learned.mean, learned.m2, bounds.countFactorsMax)
  }
  return { done: 'learned' }
}
