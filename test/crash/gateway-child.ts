// The gateway as operators run it, in a child process that can be killed at any instant.

import { join } from 'node:path'
import type { Subprocess } from 'bun'

export const ROOT = join(import.meta.dir, '..', '..')

/** A start that takes longer hangs. It is no bound on speed: a busy machine may be very slow. */
const START_MS_MAX = 100_000
const LISTENING = /^Weir is listening on (http:\/\/\S+)\n/m

export interface ChildOptions {
  /** The working copy whose gateway runs: this one, or a copy with a planted bug. */
  readonly root: string
  readonly env: Readonly<Record<string, string>>
}

const running = new Set<GatewayChild>()

/** Kills the child processes when this program ends, also by a fault or a signal. */
let handlesExit = false
function killChildrenOnExit(): void {
  if (handlesExit) return
  handlesExit = true
  process.once('exit', () => {
    for (const child of running) child.strike()
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

export class GatewayChild {
  readonly #process: Subprocess<'ignore', 'pipe', 'pipe'>
  /** The URL on which the gateway listens; undefined if it ended before. */
  readonly listening: Promise<string | undefined>
  readonly #logged: Promise<string>

  constructor({ root, env }: ChildOptions) {
    this.#process = Bun.spawn([join(root, 'bin', 'weir'), 'serve'], {
      env: { PATH: process.env.PATH, WEIR_DRAIN_DELAY_SECONDS: '0', ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    killChildrenOnExit()
    running.add(this)
    void this.#process.exited.then(() => running.delete(this))
    this.listening = readAddress(this.#process.stdout)
    this.#logged = new Response(this.#process.stderr).text()
  }

  /** Sends SIGKILL, as the kernel does when memory is short, and does not wait. */
  strike(): void {
    this.#process.kill('SIGKILL')
  }

  /** SIGSTOP and SIGCONT: a process that does not run for a while. */
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    this.#process.kill(name)
  }

  get ended(): Promise<number> {
    return this.#process.exited
  }

  async kill(): Promise<void> {
    this.strike()
    await this.#process.exited
  }

  /** Waits until the gateway listens; throws with the end of its log if it does not. */
  async started(): Promise<string> {
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), START_MS_MAX)
    const url = await this.listening
    clearTimeout(timer)
    if (url !== undefined) return url
    await this.kill()
    throw new StartFailed((await this.#logged).slice(-2_000))
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    await this.#process.exited
  }

  get logged(): Promise<string> {
    return this.#logged
  }
}

/** Thrown when a gateway cannot start after a crash. */
export class StartFailed extends Error {}

async function readAddress(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder()
  let output = ''
  for await (const chunk of stdout) {
    output += decoder.decode(chunk, { stream: true })
    const found = LISTENING.exec(output)
    if (found !== null) return found[1]
  }
  return undefined
}

/** Runs one command to its end, and returns what it printed. */
export async function runWeir(args: readonly string[], { root, env }: ChildOptions): Promise<string> {
  const child = Bun.spawn([join(root, 'bin', 'weir'), ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, output, errors] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  if (code !== 0) throw new Error(`weir ${args.join(' ')} ended with ${code}: ${errors}`)
  return output.trim()
}
