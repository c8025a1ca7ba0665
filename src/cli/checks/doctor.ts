// weir doctor: looks at a gateway, whether it runs or not, and says what is wrong and what to do. It only looks.

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
  const isWell = !isBad(troubles)
  if (json) say(jsonText({ well: isWell, troubles, ...summary(seen) }))
  else {
    for (const line of troubleLines(troubles)) say(line)
    if (isWell) say('Weir is well.')
  }
  if (!isWell) process.exitCode = 1
}

const summary = ({ state, books, folder }: Seen) => ({
  folder,
  running: typeof state === 'object' ? { ...state, channels: state.channels.length } : (state ?? null),
  books: books ?? null,
})

export async function examine(config: Config, dateMs: number): Promise<Seen> {
  const folder = resolve(config.dataFolder)
  const isThere = hasData(folder)
  const state = isThere ? await askState(socketIn(folder)) : undefined
  const running = typeof state === 'object' ? state : undefined
  const log = join(folder, 'weir.db-wal')
  return {
    ...{ dateMs, folder, hasData: isThere, state },
    readyStatus: running && (await statusAt(`${running.url}/health/ready`)),
    books: isThere ? readBooks(join(folder, 'weir.db'), dateMs) : undefined,
    lastBackupMs: lastBackupMs(folder),
    logBytes: existsSync(log) ? statSync(log).size : 0,
    metricsAnswer: typeof running?.metricsUrl === 'string' && (await statusAt(running.metricsUrl)) === 200,
    addressTroubles: await checkAddresses(config, checkProviders(config, new Set()).catalogue),
    folderTroubles: isThere ? [...checkFolderMode(folder), ...checkDisk(config)] : [],
  }
}

async function askState(socket: string): Promise<Seen['state']> {
  const asked = askControl(socket, 'doctor', {}).catch(() => 'silent')
  const late = new Promise<'silent'>(resolve => setTimeout(() => resolve('silent'), ANSWER_MS_MAX).unref())
  const answer = await Promise.race([asked, late])
  if (answer === undefined || answer === 'silent') return answer
  const { state = null } = answer as { readonly state?: GatewayState | null }
  return state ?? 'silent'
}

/** Undefined where nothing came in time. */
async function statusAt(url: string): Promise<number | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) })
    await answer.body?.cancel()
    return answer.status
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
