// weir doctor: examines a gateway, whether it runs or not, and reports what is wrong and what to do. It changes nothing.

import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { readConfig } from '../../config.ts'
import { askControl } from '../../http/server/control-socket.ts'
import type { GatewayState } from '../../management/metrics/gateway-state.ts'
import { lastBackupMs } from '../../store/engine/backup.ts'
import { hasData, socketIn } from '../../store/engine/folder.ts'
import type { BookFacts } from '../../store/ledger/inspect-books.ts'
import { lookAtBooks } from '../../store/ledger/inspect-books.ts'
import { jsonText } from '../print.ts'
import { checkAddresses } from './addresses.ts'
import { checkFolderMode } from './data-folder.ts'
import type { Seen } from './doctor-rows.ts'
import { diagnose } from './doctor-rows.ts'
import { checkDisk } from './machine.ts'
import type { Wanted } from './problem.ts'
import { isBad, troubleLines } from './problem.ts'
import { checkProviders } from './providers.ts'

const ANSWER_MS_MAX = 3_000

export async function doctor({ json }: Wanted, say: (line: string) => void): Promise<void> {
  const seen = await examine(readConfig(process.env), Date.now())
  const troubles = diagnose(seen)
  const hasNoProblem = !isBad(troubles)
  if (json) say(jsonText({ well: hasNoProblem, troubles, ...summary(seen) }))
  else {
    for (const line of troubleLines(troubles)) say(line)
    if (hasNoProblem) say('No problems found.')
  }
  if (!hasNoProblem) process.exitCode = 1
}

const summary = ({ state, books, folder }: Seen) => ({
  folder,
  running: typeof state === 'object' ? { ...state, channels: state.channels.length } : (state ?? null),
  books: books ?? null,
})

export async function examine(config: Config, dateMs: number): Promise<Seen> {
  const folder = resolve(config.dataFolder)
  const exists = hasData(folder)
  const state = exists ? await askState(socketIn(folder)) : undefined
  const running = typeof state === 'object' ? state : undefined
  const log = join(folder, 'weir.db-wal')
  return {
    dateMs,
    folder,
    hasData: exists,
    state,
    readyStatus: running && (await statusAt(`${running.url}/health/ready`)),
    books: exists ? readBooks(join(folder, 'weir.db'), dateMs) : undefined,
    lastBackupMs: lastBackupMs(folder),
    logBytes: existsSync(log) ? statSync(log).size : 0,
    metricsAnswer: typeof running?.metricsUrl === 'string' && (await statusAt(running.metricsUrl)) === 200,
    addressTroubles: await checkAddresses(config, checkProviders(config, new Set()).catalogue),
    folderTroubles: exists ? [...checkFolderMode(folder), ...checkDisk(config)] : [],
  }
}

async function askState(socket: string): Promise<Seen['state']> {
  const reply = askControl(socket, 'doctor', {}).catch(() => 'silent')
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

function readBooks(path: string, dateMs: number): BookFacts | string {
  try {
    return lookAtBooks(path, dateMs)
  } catch (fault) {
    return (fault as Error).message
  }
}
