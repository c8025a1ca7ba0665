// weir doctor: examines a gateway, whether it runs or not, and reports what is wrong and what to do. It changes nothing.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { readConfig } from '../../config.ts'
import type { DoctorFacts } from '../../management/doctor/doctor-checks.ts'
import { diagnose } from '../../management/doctor/doctor-checks.ts'
import { readLastBackupMs } from '../../store/engine/backup.ts'
import { databaseOf, hasData, logBytesOf } from '../../store/engine/folder.ts'
import type { LedgerFacts } from '../../store/ledger/ledger-inspection.ts'
import { inspectLedger } from '../../store/ledger/ledger-inspection.ts'
import { askState } from '../gateway-state.ts'
import { jsonText } from '../print.ts'
import { checkAddresses } from './addresses.ts'
import { checkFolderMode } from './data-folder.ts'
import type { OutputOptions } from './findings.ts'
import { findingFields, findingLines, hasProblem } from './findings.ts'
import { checkDisk } from './machine.ts'
import { checkProviders } from './providers.ts'
import type { ReadFacts } from './shared.ts'
import { readSharedFacts } from './shared.ts'

const ANSWER_MS_MAX = 3_000

export async function doctor({ json }: OutputOptions, say: (line: string) => void): Promise<void> {
  const seen = await collectFacts(readConfig(process.env), Date.now())
  const { members = [] } = seen.shared ?? {}
  const troubles = diagnose(seen)
  const hasNoProblem = !hasProblem(troubles)
  if (json) say(jsonText({ well: hasNoProblem, troubles: findingFields(troubles), ...summary(seen) }))
  else {
    for (const line of findingLines(troubles)) say(line)
    for (const { slot, address, version, leaseAgeMs } of members)
      say(`Gateway ${slot}: ${address}, version ${version}, lease renewed ${Math.round(leaseAgeMs / 1_000)} s ago.`)
    if (hasNoProblem) say('No problems found.')
  }
  if (!hasNoProblem) process.exitCode = 1
}

const summary = ({ state, books, folder, shared }: DoctorFacts) => ({
  folder,
  ...(shared !== undefined && { gateways: shared.members, clockAheadMs: Math.round(shared.aheadMs) }),
  running: typeof state === 'object' ? { ...state, channels: state.channels.length } : (state ?? null),
  books: books ?? null,
})

export async function collectFacts(config: Config, dateMs: number): Promise<DoctorFacts> {
  const folder = resolve(config.dataFolder)
  const shared = await readSharedFacts(config, folder)
  const exists = shared === undefined ? hasData(folder) : existsSync(folder) && !shared.isEmpty
  const state = exists ? await askState(folder) : undefined
  const running = typeof state === 'object' ? state : undefined
  return {
    dateMs,
    folder,
    hasData: exists,
    state,
    readyStatus: running && (await statusAt(`${running.url}/health/ready`)),
    books: exists && shared === undefined ? readBooks(databaseOf(folder), dateMs) : sharedBooks(shared),
    shared,
    lastBackupMs: readLastBackupMs(folder),
    logBytes: logBytesOf(folder),
    isMetricsReachable: typeof running?.metricsUrl === 'string' && (await statusAt(running.metricsUrl)) === 200,
    addressFindings: await checkAddresses(config, checkProviders(config, new Set()).catalogue),
    folderFindings: exists ? [...checkFolderMode(folder), ...checkDisk(config)] : [],
  }
}

/** Undefined if there was no response in time. */
async function statusAt(url: string): Promise<number | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    await response.body?.cancel()
    return response.status
  } catch {
    return undefined
  }
}

/** Versions differ while a new one is deployed: the tables can be read if they have all that this version knows. */
const sharedBooks = (shared: ReadFacts | undefined): LedgerFacts | undefined =>
  shared?.books && { schema: 0, schemaKnown: 0, details: shared.books }

function readBooks(path: string, dateMs: number): LedgerFacts | string {
  try {
    return inspectLedger(path, dateMs)
  } catch (fault) {
    return (fault as Error).message
  }
}
