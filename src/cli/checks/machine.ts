// Checks what the machine provides: free ports, disk space, open files, and the settings that only the launcher can make.

import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { explainListenFault, gatewaySettings, metricsSettings } from '../../boot/listen-fault.ts'
import type { Config } from '../../config.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { note, problem } from './findings.ts'
import type { ProcessEnvironment } from './settings.ts'

const MEGABYTE = 1024 * 1024

/** With less free space, the database, its log and stored bodies will soon fill the disk. */
const DISK_BYTES_MIN = 256 * MEGABYTE

/** A call needs a connection to its caller and one to its upstream. */
const FILES_PER_CALL = 2
/** Database files, control socket, metrics and other connections. */
const OTHER_FILES = 256

/** bin/weir sets this value. */
const FETCHES_MIN = 20_000

export function checkMachine(config: Config, env: ProcessEnvironment, isRunning: boolean): readonly CheckFinding[] {
  return [
    ...(isRunning ? [] : checkPorts(config)),
    ...checkDisk(config),
    ...checkFiles(config.callsMax, openFilesMax()),
    ...checkLauncher(env),
  ]
}

function checkPorts({ host, port, metrics }: Config): readonly CheckFinding[] {
  if (metrics !== undefined && metrics.port === port && port !== 0) {
    return [
      problem('METRICS_PORT', 'It has the same value as PORT.', 'Set another port: metrics need a port of their own.'),
    ]
  }
  const metricsFindings = metrics === undefined ? [] : checkPort(metricsSettings, metrics)
  return [...checkPort(gatewaySettings, { host, port }), ...metricsFindings]
}

function checkPort(
  settings: typeof gatewaySettings,
  { host, port }: { host: string; port: number },
): readonly CheckFinding[] {
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return []
  } catch (fault) {
    const { setting, message, remedy } = explainListenFault({ host, port }, settings, fault)
    return [problem(setting, message, remedy)]
  }
}

/** Undefined if the system does not report it. */
function freeBytes(folder: string): number | undefined {
  let at = resolve(folder)
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at)
  try {
    const { bavail, bsize } = statfsSync(at)
    return bavail * bsize
  } catch {
    return undefined
  }
}

export function checkDisk({
  dataFolder,
  ballastBytes,
}: Pick<Config, 'dataFolder' | 'ballastBytes'>): readonly CheckFinding[] {
  const free = freeBytes(dataFolder)
  const ballast = existsSync(join(dataFolder, 'ballast')) ? 0 : ballastBytes
  if (free === undefined || free >= DISK_BYTES_MIN + ballast) return []
  const message = `Only ${Math.floor(free / MEGABYTE)} MB are free on the disk of ${resolve(dataFolder)}.`
  return [problem('WEIR_DATA', message, 'Free some space, or move the data: a full disk means that calls are refused.')]
}

/** Undefined if the system does not report a limit, or has none. */
function openFilesMax(): number | undefined {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return line === null ? undefined : Number(line[1])
  } catch {
    return undefined
  }
}

export function checkFiles(callsMax: number, filesMax: number | undefined): readonly CheckFinding[] {
  const needed = callsMax * FILES_PER_CALL + OTHER_FILES
  if (filesMax === undefined || filesMax >= needed) return []
  // With one file per call the gateway works until that many calls come at once, so this is only a note.
  const finding = filesMax < callsMax + OTHER_FILES ? problem : note
  const message = `This process may open ${filesMax} files; ${callsMax} calls at once (WEIR_CALLS_MAX) need ${needed}.`
  const remedy = `Allow more files (ulimit -n ${needed}, LimitNOFILE=${needed}), or set a lower WEIR_CALLS_MAX.`
  return [finding('open files', message, remedy)]
}

export function checkLauncher({
  BUN_CONFIG_MAX_HTTP_REQUESTS: fetches = '',
}: ProcessEnvironment): readonly CheckFinding[] {
  if (Number(fetches) >= FETCHES_MIN) return []
  const message = fetches === '' ? 'It is not set.' : `It is ${fetches}; Weir needs at least ${FETCHES_MIN}.`
  const remedy = 'Start Weir with bin/weir, which sets this variable, and do not set a lower value.'
  return [problem('BUN_CONFIG_MAX_HTTP_REQUESTS', message, remedy)]
}
