// The operations of the vault: store, change and delete what outlives a call. Encrypted content is opaque here.

import type { Database } from 'bun:sqlite'
import { bounds } from '../../base/bounds.ts'
import { fadeMeanVariance, mergeMeanVariances } from '../../base/collections/mean-variance.ts'
import type { OperationHandlers } from '../engine/operations.ts'
import { LimitDebts } from '../ledger/limit-debts.ts'
import { TaskRows } from './task-rows.ts'
import { VaultTable } from './vault-table.ts'

type VaultHandlers = Pick<
  OperationHandlers,
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
  readonly run: VaultHandlers
  /** Discards what a rolled-back transaction had changed in memory. */
  reset(): void
}

const bytesOf = (sealed: string | null): Buffer | null => (sealed === null ? null : Buffer.from(sealed, 'base64'))
const dropResult = (existed: boolean): { done: 'dropped' | 'unknown' } => ({ done: existed ? 'dropped' : 'unknown' })

export function vaultOperations(db: Database, responsesBytesMax?: number): VaultOperationRunner {
  const rows = openRows(db, responsesBytesMax)
  const tasks = new TaskRows(db)
  const debts = new LimitDebts(db)
  return {
    run: {
      ...responseOperations(db, rows.responses),
      ...reasoningAndFileOperations(db, rows),
      keepReferences: keepReferences(db, rows.references),
      createTask: input => tasks.create(input),
      changeTask: ({ sealed, ...change }) => tasks.change(change, bytesOf(sealed)),
      dropTask: input => tasks.drop(input),
      learnFactors: buildLearnFactors(db),
      noteDebts(input) {
        debts.save(input.debts)
        return { done: 'noted' }
      },
      forgetKept({ nowMs }) {
        const counts = rows.all.map(table => table.deleteExpired(nowMs))
        const others = tasks.deleteExpired(nowMs) + debts.deletePaid(nowMs)
        return { done: 'forgotten', count: counts.reduce((sum, count) => sum + count, others) }
      },
    },
    reset: () => rows.all.forEach(table => table.reset()),
  }
}

function openRows(db: Database, responsesBytesMax: number | undefined) {
  const { storedResponsesMax, storedResponsesBytesMax, reasoningStatesMax, reasoningStatesBytesMax, storedFilesMax } =
    bounds
  const responses = new VaultTable(db, 'kept_response', {
    rowsMax: storedResponsesMax,
    bytesMax: storedResponsesBytesMax,
    allBytesMax: responsesBytesMax,
  })
  const reasoning = new VaultTable(db, 'kept_reasoning', {
    rowsMax: reasoningStatesMax,
    bytesMax: reasoningStatesBytesMax,
    allBytesMax: bounds.reasoningStatesOfAllBytesMax,
  })
  const files = new VaultTable(db, 'kept_file', { rowsMax: storedFilesMax, bytesMax: bounds.storedFilesBytesMax })
  const references = new VaultTable(db, 'kept_reference', { rowsMax: bounds.storedReferencesMax, bytesMax: 0 })
  return { responses, reasoning, files, references, all: [responses, reasoning, files, references] }
}

type VaultRows = ReturnType<typeof openRows>

function responseOperations(
  db: Database,
  rows: VaultTable,
): Pick<VaultHandlers, 'keepResponse' | 'changeResponse' | 'dropResponse'> {
  const insert = db.query(
    `INSERT INTO kept_response (account_id, id, key_id, status, model, channel, upstream_id, previous_id, created_ms,
       expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`,
  )
  const find = db.query('SELECT status, bytes FROM kept_response WHERE account_id = ?1 AND id = ?2')
  const change = db.query(
    `UPDATE kept_response SET status = ?3, sealed = coalesce(?4, sealed), bytes = coalesce(length(?4), bytes)
     WHERE account_id = ?1 AND id = ?2`,
  )
  return {
    keepResponse(input) {
      const sealed = bytesOf(input.sealed)
      const bytes = sealed?.length ?? 0
      const { accountId, id, keyId, status, model, channel, upstreamId, previousId, createdMs, expiresMs } = input
      rows.drop(input)
      insert.run(
        accountId,
        id,
        keyId,
        status,
        model,
        channel,
        upstreamId,
        previousId,
        createdMs,
        expiresMs,
        bytes,
        sealed,
      )
      rows.addRow(accountId, bytes)
      return { done: 'kept' }
    },
    changeResponse({ accountId, id, status, sealed }) {
      const row = find.get(accountId, id) as { status: string; bytes: bigint } | null
      if (row === null) return { done: 'unknown' }
      if (row.status !== 'queued' && row.status !== 'in_progress') return { done: 'over' }
      const bytes = bytesOf(sealed)
      change.run(accountId, id, status, bytes)
      if (bytes !== null) rows.resizeRow(accountId, bytes.length - Number(row.bytes))
      return { done: 'changed' }
    },
    dropResponse: input => dropResult(rows.drop(input)),
  }
}

function reasoningAndFileOperations(
  db: Database,
  rows: VaultRows,
): Pick<VaultHandlers, 'keepReasoning' | 'keepFile' | 'dropFile'> {
  const insertReasoning = db.query(
    'INSERT INTO kept_reasoning (account_id, id, expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, ?5)',
  )
  const insertFile = db.query(
    'INSERT INTO kept_file (account_id, id, channel, expires_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)',
  )
  return {
    keepReasoning(input) {
      const sealed = bytesOf(input.sealed)!
      rows.reasoning.drop(input)
      insertReasoning.run(input.accountId, input.id, input.expiresMs, sealed.length, sealed)
      rows.reasoning.addRow(input.accountId, sealed.length)
      return { done: 'kept' }
    },
    keepFile(input) {
      rows.files.drop(input)
      insertFile.run(input.accountId, input.id, input.channel, input.expiresMs, input.bytes)
      rows.files.addRow(input.accountId, input.bytes)
      return { done: 'kept' }
    },
    dropFile: input => dropResult(rows.files.drop(input)),
  }
}

function keepReferences(db: Database, rows: VaultTable): VaultHandlers['keepReferences'] {
  const insert = db.query('INSERT INTO kept_reference (account_id, id, channel, expires_ms) VALUES (?1, ?2, ?3, ?4)')
  return ({ accountId, ids, channel, expiresMs }) => {
    for (const id of ids) {
      rows.drop({ accountId, id })
      insert.run(accountId, id, channel, expiresMs)
      rows.addRow(accountId, 0)
    }
    return { done: 'kept' }
  }
}

function buildLearnFactors(db: Database): VaultHandlers['learnFactors'] {
  const find = db.query('SELECT n, mean, m2 FROM count_factor WHERE model = ?1')
  // A new model is inserted only while the table is below its limit.
  const write = db.query(
    `INSERT INTO count_factor (model, n, mean, m2) SELECT ?1, ?2, ?3, ?4
     WHERE (SELECT count(*) FROM count_factor) < ?5 OR EXISTS (SELECT 1 FROM count_factor WHERE model = ?1)
     ON CONFLICT (model) DO UPDATE SET n = excluded.n, mean = excluded.mean, m2 = excluded.m2`,
  )
  return function learnFactors({ factors }) {
    for (const { model, n, mean, m2 } of factors) {
      const row = find.get(model) as { n: bigint; mean: number; m2: number } | null
      const known = row === null ? undefined : { ...row, n: Number(row.n) }
      const learned = fadeMeanVariance(mergeMeanVariances(known, { n, mean, m2 }), bounds.countSamplesMax)
      write.run(model, learned.n, learned.mean, learned.m2, bounds.countFactorsMax)
    }
    return { done: 'learned' }
  }
}
