// The command line as an operator runs it: processes of their own, on a data folder of their own, with nothing of this
// process's environment but the path.

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { HUNG_MS, until } from '../support/gateway.ts'
import { databaseVariable } from '../support/harness-databases.ts'

const ROOT = join(import.meta.dir, '..', '..')
const WEIR = join(ROOT, 'bin', 'weir')

type Environment = Readonly<Record<string, string>>

const start = (args: readonly string[], folder: string, env: Environment, typed?: string, program = WEIR) =>
  Bun.spawn([program, ...args], {
    ...(typed !== undefined && { stdin: new Blob([typed]) }),
    env: {
      PATH: process.env.PATH,
      WEIR_DATA: folder,
      WEIR_LOCAL_SERVERS: 'off',
      PORT: '0',
      WEIR_DRAIN_DELAY_SECONDS: '0',
      ...databaseVariable(folder),
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs one command to its end. `STDIN` is not an environment variable: it is piped to the command. */
export async function weir(folder: string, command: string, given: Environment = {}): Promise<Ran> {
  const { STDIN, ...env } = given
  const child = start(command.split(' '), folder, env, STDIN)
  // A start that should have been refused must not outlive its test.
  const timer = setTimeout(() => child.kill('SIGKILL'), HUNG_MS)
  void child.exited.then(() => clearTimeout(timer))
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

/** The output of a command that must succeed. */
export async function weirSays(folder: string, command: string, env: Environment = {}): Promise<string> {
  const { code, stdout, stderr } = await weir(folder, command, env)
  if (code !== 0 || stderr !== '') throw new Error(`weir ${command} ended with ${code}: ${stderr}`)
  return stdout.trim()
}

export interface Served {
  readonly url: string
  readonly pid: number
  readonly exited: Promise<number>
  said(): string
  logged(): string
  kill(signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT'): void
}

/** The file that Bun runs for a gateway. */
export function programOf({ pid }: Served): string {
  const args = Bun.spawnSync(['ps', '-o', 'args=', '-p', String(pid)]).stdout.toString()
  return resolve(args.trim().split(' ')[1]!)
}

const running = new Set<Served>()

/** Starts `weir serve` and waits until it has printed its address. */
export const serve = (folder: string, env: Environment = {}, program = WEIR): Promise<Served> =>
  listening(start(['serve'], folder, env, undefined, program))

/** Starts the gateway with `npm start` in a process group of its own, as a supervisor does. Signals go to the group. */
export async function serveByNpm(folder: string, env: Environment = {}): Promise<Served> {
  const child = Bun.spawn(['npm', 'start'], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: folder, WEIR_DATA: folder, WEIR_LOCAL_SERVERS: 'off', PORT: '0', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  })
  return { ...(await listening(child)), kill: signal => void process.kill(-child.pid, signal) }
}

type Child = Pick<ReturnType<typeof start>, 'stdout' | 'stderr' | 'exited' | 'pid' | 'kill'>

async function listening(child: Child): Promise<Served> {
  let [said, logged, code] = ['', '', -1]
  const collect = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) add(decoder.decode(chunk, { stream: true }))
  }
  const outputs = Promise.all([
    collect(child.stdout, text => (said += text)),
    collect(child.stderr, text => (logged += text)),
  ])
  const exited = child.exited.then(async ended => {
    await outputs
    code = ended
    return ended
  })
  const address = /^Weir is listening on (http:\/\/\S+)\n/m
  await until(() => (address.test(said) && /\n\n?$/.test(said)) || code >= 0, 'the gateway listens')
  if (code >= 0) throw new Error(`weir serve ended with ${code}: ${logged}`)
  const served: Served = {
    url: address.exec(said)![1]!,
    pid: child.pid,
    exited,
    said: () => said,
    logged: () => logged,
    kill: signal => child.kill(signal),
  }
  running.add(served)
  void exited.then(() => running.delete(served))
  return served
}

/** Starts `weir serve` and stops it when its database appears, long before it could print its address. */
export async function stopStarting(folder: string): Promise<Ran> {
  const child = start(['serve'], folder, {})
  await until(() => existsSync(join(folder, 'weir.db')), 'the start has begun')
  child.kill('SIGTERM')
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

/** Stops the gateway and waits until it has ended. */
export async function stopServed(served: Served): Promise<number> {
  served.kill('SIGTERM')
  return await served.exited
}

const folders: string[] = []

export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-cli-'))
  folders.push(folder)
  return folder
}

/** Ends processes that a failed test has left running, and deletes the folders. */
export async function cleanUp(): Promise<void> {
  for (const served of running) {
    served.kill('SIGKILL')
    await served.exited
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

/** Runs a shell command with `curl` on its path, if need be a replacement that knows what the printed command uses. */
export async function shell(line: string, folder: string): Promise<Ran> {
  const curlFolder = join(folder, 'bin')
  const script = `#!/bin/sh\nexec "${join(ROOT, 'bin', 'weir-bun')}" "${join(import.meta.dir, 'curl.ts')}" "$@"\n`
  await Bun.write(join(curlFolder, 'curl'), script, { mode: 0o755 })
  const child = Bun.spawn(['sh', '-c', line], {
    env: { PATH: `${process.env.PATH}:${curlFolder}` },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}
