// What the machine gives a gateway: its ports, room on the disk, open files, and the settings that only the launcher
// can make.

import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import type { Trouble } from './problem.ts'
import { note, problem } from './problem.ts'
import type { Environment } from './settings.ts'

const MEGABYTE = 1024 * 1024

/** Below this the database, its log and kept bodies have little time left. */
const DISK_BYTES_MIN = 256 * MEGABYTE

/** A call has a connection to its caller and one to its upstream; the rest is for files and for all others. */
const FILES_PER_CALL = 2
const FILES_BESIDE = 256

/** As the launcher sets it. */
const FETCHES_MIN = 20_000

export function checkMachine(config: Config, env: Environment, isRunning: boolean): readonly Trouble[] {
  return [
    ...(isRunning ? [] : checkPorts(config)),
    ...checkDisk(config),
    ...checkFiles(config.callsMax, openFilesMax()),
    ...checkLauncher(env),
  ]
}

function checkPorts({ host, port, metrics }: Config): readonly Trouble[] {
  const told = metrics === undefined ? [] : [checkPort('METRICS_PORT', metrics)]
  if (metrics !== undefined && metrics.port === port && port !== 0) {
    return [problem('METRICS_PORT', 'It is the same as PORT.', 'Choose another: metrics have a port of their own.')]
  }
  return [checkPort('PORT', { host, port }), ...told].flatMap(trouble => trouble ?? [])
}

function checkPort(about: string, { host, port }: { host: string; port: number }): Trouble | undefined {
  if (port === 0) return undefined
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return undefined
  } catch (fault) {
    const says = `Nothing can listen on ${host}:${port}: ${(fault as Error).message}`
    return problem(about, says, `Stop what listens there (ss -ltnp 'sport = :${port}'), or set another ${about}.`)
  }
}

/** Undefined where it cannot be told. */
export function freeBytes(folder: string): number | undefined {
  let at = resolve(folder)
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at)
  try {
    const { bavail, bsize } = statfsSync(at)
    return bavail * bsize
  } catch {
    return undefined
  }
}

type Kept = Pick<Config, 'dataFolder' | 'ballastBytes'>

export function checkDisk({ dataFolder, ballastBytes }: Kept): readonly Trouble[] {
  const free = freeBytes(dataFolder)
  const ballast = existsSync(join(dataFolder, 'ballast')) ? 0 : ballastBytes
  if (free === undefined || free >= DISK_BYTES_MIN + ballast) return []
  const says = `${Math.floor(free / MEGABYTE)} MB are free on the disk of ${resolve(dataFolder)}.`
  return [problem('WEIR_DATA', says, 'Make room, or move the data: when the disk is full, new calls are refused.')]
}

/** Undefined where the system does not tell, or sets no bound. */
function openFilesMax(): number | undefined {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return line === null ? undefined : Number(line[1])
  } catch {
    return undefined
  }
}

export function checkFiles(callsMax: number, filesMax: number | undefined): readonly Trouble[] {
  const needed = callsMax * FILES_PER_CALL + FILES_BESIDE
  if (filesMax === undefined || filesMax >= needed) return []
  // With one for each call it runs, until that many come at once.
  const weigh = filesMax < callsMax + FILES_BESIDE ? problem : note
  const says = `This process may open ${filesMax} files; ${callsMax} calls at once (WEIR_CALLS_MAX) need ${needed}.`
  return [weigh('open files', says, `Allow more (ulimit -n ${needed}, LimitNOFILE=${needed}), or fewer calls.`)]
}

export function checkLauncher({ BUN_CONFIG_MAX_HTTP_REQUESTS: fetches = '' }: Environment): readonly Trouble[] {
  if (Number(fetches) >= FETCHES_MIN) return []
  const says = fetches === '' ? 'It is not set.' : `It is ${fetches}; at least ${FETCHES_MIN} is needed.`
  return [problem('BUN_CONFIG_MAX_HTTP_REQUESTS', says, 'Start with bin/weir, which sets it, and do not set it lower.')]
}
