// The temporary folder and the processes of one run. All processes end with the run, also if it fails.

import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { connect } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { tree } from './proc.ts'

export const root = join(import.meta.dir, '..', '..')

/** The subject has one core for itself; the load generator and the upstream share the other. */
export const SUBJECT_CORE = 0
export const LOAD_CORE = 1

const TMPFS = 0x01021994
const STOP_MS_MAX = 5_000
const LISTEN_MS_MAX = 120_000

export interface Command {
  readonly name: string
  /** One core, or several in the notation of taskset. */
  readonly core: number | string
  readonly command: readonly string[]
  /** In addition to PATH and HOME. A subject sees no other variables of this process. */
  readonly env: Readonly<Record<string, string>>
}

export interface Child {
  readonly name: string
  readonly pid: number
  readonly log: string
  readonly exited: Promise<number>
  readonly hasExited: boolean
}

export const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** Runs a benchmark on a workbench and ends the process. `name` is for errors. */
export async function runOnWorkbench(name: string, run: (bench: Workbench) => Promise<void>): Promise<never> {
  if (process.platform !== 'linux' || availableParallelism() < 2) {
    say('The benchmark needs Linux and two cores.')
    process.exit(1)
  }
  const bench = new Workbench()
  process.on('exit', () => bench.close())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))
  try {
    read(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
    await run(bench)
  } catch (fault) {
    say(`${name}: ${fault instanceof Error ? fault.message : String(fault)}\n${bench.lastOutput()}`)
    process.exit(1)
  }
  process.exit(0)
}

export class Workbench {
  readonly folder = mkdtempSync(join(realDisk(), 'weir-bench-'))
  readonly #children = new Set<Child>()
  #count = 0

  start({ name, core, command, env }: Command): Child {
    const log = join(this.folder, `${name}-${++this.#count}.log`)
    const out = openSync(log, 'a')
    const process = Bun.spawn(['taskset', '-c', String(core), ...command], {
      cwd: this.folder,
      env: plainEnvironment(env),
      stdin: 'ignore',
      stdout: out,
      stderr: out,
    })
    closeSync(out)
    const { pid, exited } = process
    const child: Child = {
      name,
      pid,
      log,
      exited,
      get hasExited() {
        return process.exitCode !== null || process.signalCode !== null
      },
    }
    this.#children.add(child)
    return child
  }

  /** Ends a process with SIGTERM, and with SIGKILL if it does not end in time. */
  async stop(child: Child): Promise<void> {
    const pids = tree(child.pid)
    if (!child.hasExited) process.kill(child.pid, 'SIGTERM')
    const ended = await Promise.race([child.exited.then(() => true), Bun.sleep(STOP_MS_MAX)])
    if (ended !== true) {
      pids.forEach(kill)
      await child.exited
    }
    this.#children.delete(child)
  }

  /** Kills all processes and does not wait, so that it can also run while this process exits. */
  close(): void {
    for (const child of this.#children) if (!child.hasExited) tree(child.pid).forEach(kill)
    this.#children.clear()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** The last output of the processes that still run, for error messages. */
  lastOutput(): string {
    return [...this.#children].map(child => `${child.name}: ${tail(child.log)}`).join('\n')
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

const tail = (file: string): string => readFileSync(file, 'utf8').slice(-1_000).trim() || '(no output)'

function plainEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: process.env.HOME ?? '/', ...env }
}

/** The ledger must be on a real disk: in memory it would cost less. */
function realDisk(): string {
  const folder = [tmpdir(), '/var/tmp', root].find(candidate => {
    try {
      return statfsSync(candidate).type !== TMPFS
    } catch {
      return false
    }
  })
  if (folder === undefined) throw new Error('Every folder for temporary files is in memory; set TMPDIR to a real disk.')
  return folder
}

/** Runs a command and returns its output. */
export function read(command: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const [file, ...args] = command
  const options = { encoding: 'utf8', cwd: root, env: plainEnvironment(env), timeout: 30_000 } as const
  const { status, stdout, stderr, error } = spawnSync(file!, args, options)
  if (error !== undefined || status !== 0) throw new Error(`${command.join(' ')}: ${error?.message ?? stderr}`)
  return (stdout.trim() || stderr).trim()
}

/** Waits for the port to take a connection, and opens exactly one that succeeds. */
export const untilListening = (port: number, child: Child): Promise<void> =>
  until(() => canConnect(port), child, LISTEN_MS_MAX)

/** Polls a condition while the process runs. */
export async function until(isReady: () => Promise<boolean>, child: Child, msMax: number): Promise<void> {
  const untilMs = performance.now() + msMax
  while (!(await isReady())) {
    if (child.hasExited) throw new Error(`${child.name} has ended: ${tail(child.log)}`)
    if (performance.now() > untilMs) throw new Error(`${child.name} does not listen: ${tail(child.log)}`)
    await Bun.sleep(5)
  }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
