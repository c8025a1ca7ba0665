// weir doctor: examines a gateway, whether it runs or not, and reports what is wrong and what to do. It changes nothing.

import { resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { readConfig } from '../../config.ts'
import { sendControlRequest } from '../../http/server/control-socket.ts'
import type { GatewayState } from '../../management/metrics/gateway-state.ts'
import { readLastBackupMs } from '../../store/engine/backup.ts'
import { controlSocketOf, databaseOf, hasData, logBytesOf } from '../../store/engine/folder.ts'
import type { LedgerFacts } from '../../store/ledger/ledger-inspection.ts'
import { inspectLedger } from '../../store/ledger/ledger-inspection.ts'
import { jsonText } from '../print.ts'
import { checkAddresses } from './addresses.ts'
import { checkFolderMode } from './data-folder.ts'
import type { DoctorFacts } from './doctor-checks.ts'
import { diagnose } from './doctor-checks.ts'
import type { OutputOptions } from './findings.ts'
import { findingFields, findingLines, hasProblem } from './findings.ts'
import { checkDisk } from './machine.ts'
import { checkProviders } from './providers.ts'

const ANSWER_MS_MAX = 3_000

export async function doctor({ json }: OutputOptions, say: (line: string) => void): Promise<void> {
  const seen = await collectFacts(readConfig(process.env), Date.now())
  const troubles = diagnose(seen)
  const hasNoProblem = !hasProblem(troubles)
  if (json) say(jsonText({ well: hasNoProblem, troubles: findingFields(troubles), ...summary(seen) }))
  else {
    for (const line of findingLines(troubles)) say(line)
    if (hasNoProblem) say('No problems found.')
  }
  if (!hasNoProblem) process.exitCode = 1
}

const summary = ({ state, books, folder }: DoctorFacts) => ({
  folder,
  running: typeof state === 'object' ? { ...state, channels: state.channels.length } : (state ?? null),
  books: books ?? null,
})

export async function collectFacts(config: Config, dateMs: number): Promise<DoctorFacts> {
  const folder = resolve(config.dataFolder)
  const exists = hasData(folder)
  const state = exists ? await askState(controlSocketOf(folder)) : undefined
  const running = typeof state === 'object' ? state : undefined
  return {
    dateMs,
    folder,
    hasData: exists,
    state,
    readyStatus: running && (await statusAt(`${running.url}/health/ready`)),
    books: exists ? readBooks(databaseOf(folder), dateMs) : undefined,
    lastBackupMs: readLastBackupMs(folder),
    logBytes: logBytesOf(folder),
    isMetricsReachable: typeof running?.metricsUrl === 'string' && (await statusAt(running.metricsUrl)) === 200,
    addressFindings: await checkAddresses(config, checkProviders(config, new Set()).catalogue),
    folderFindings: exists ? [...checkFolderMode(folder), ...checkDisk(config)] : [],
  }
}

async function askState(socket: string): Promise<DoctorFacts['state']> {
  const reply = sendControlRequest(socket, { method: 'POST', path: '/machine/doctor' })
    .then(response => response?.json() as Promise<unknown> | undefined)
    .catch(() => 'silent')
  const timeout = new Promise<'silent'>(resolve => setTimeout(() => resolve('silent'), ANSWER_MS_MAX).unref())
  const answer = await Promise.race([reply, timeout])
  if (answer === undefined || answer === 'silent') return answer
  const { state = null } = answer as { readonly state?: GatewayState | null }
  return state ?? 'silent'
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

function readBooks(path: string, dateMs: number): LedgerFacts | string {
  try {
    return inspectLedger(path, dateMs)
  } catch (fault) {
    return (fault as Error).message
  }
}
