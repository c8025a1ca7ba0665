// The gateway as operators run it, in a process of its own that can be killed at any instant.

import { join } from 'node:path'
import type { Subprocess } from 'bun'

export const ROOT = join(import.meta.dir, '..', '..')

const START_MS_MAX = 15_000
const LISTENING = /^Weir is listening on (http:\/\/\S+)\n/m

export interface ChildOptions {
  /** The working copy whose gateway runs: ours, or one with a bug planted in it. */
  readonly root: string
  readonly env: Readonly<Record<string, string>>
}

const running = new Set<GatewayChild>()

/** When the program itself is stopped in the middle, what it started must not outlive it. */
let takesChildrenAlong = false
function takeChildrenAlong(): void {
  if (takesChildrenAlong) return
  takesChildrenAlong = true
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      for (const child of running) child.strike()
      process.exit(1)
    })
  }
}

export class GatewayChild {
  readonly #process: Subprocess<'ignore', 'pipe', 'pipe'>
  /** Where it listens; undefined when it ended before. */
  readonly listening: Promise<string | undefined>
  readonly #logged: Promise<string>

  constructor({ root, env }: ChildOptions) {
    this.#process = Bun.spawn([join(root, 'bin', 'weir'), 'serve'], {
      env: { PATH: process.env.PATH, WEIR_DRAIN_DELAY_SECONDS: '0', ...env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    takeChildrenAlong()
    running.add(this)
    void this.#process.exited.then(() => running.delete(this))
    this.listening = readAddress(this.#process.stdout)
    this.#logged = new Response(this.#process.stderr).text()
  }

  /** At once, as the kernel does it when memory is short. */
  strike(): void {
    this.#process.kill('SIGKILL')
  }

  get ended(): Promise<number> {
    return this.#process.exited
  }

  async kill(): Promise<void> {
    this.strike()
    await this.#process.exited
  }

  /** Waits until it listens; says why it does not. */
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

/** A gateway that a crash has left unable to start. */
export class StartFailed extends Error {}

async function readAddress(output: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder()
  let said = ''
  for await (const chunk of output) {
    said += decoder.decode(chunk, { stream: true })
    const found = LISTENING.exec(said)
    if (found !== null) return found[1]
  }
  return undefined
}

/** Runs one command of the operator to its end, and gives what it printed. */
export async function runWeir(args: readonly string[], { root, env }: ChildOptions): Promise<string> {
  const child = Bun.spawn([join(root, 'bin', 'weir'), ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, said, complaint] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  if (code !== 0) throw new Error(`weir ${args.join(' ')} ended with ${code}: ${complaint}`)
  return said.trim()
}
