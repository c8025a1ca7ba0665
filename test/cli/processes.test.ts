// weir serve with several processes: one port, signals, restarts, and metrics of all.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { weir } from '../front/weir-process.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/gateway.ts'

let folder: string
let port: number
let answered: number
let parents: Bun.Subprocess<'ignore', 'pipe', 'pipe'>[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-processes-'))
  parents = []
  answered = 0
  port = freePort()
})
afterEach(async () => {
  for (const parent of parents) parent.kill('SIGKILL')
  await Promise.all(parents.map(({ exited }) => exited))
  rmSync(folder, { recursive: true, force: true })
})

const signalsFile = (): string => join(folder, 'signals')
const signals = (): string[] =>
  existsSync(signalsFile()) ? readFileSync(signalsFile(), 'utf8').trim().split('\n').toSorted() : []

function begin(env: Record<string, string> = {}): Bun.Subprocess<'ignore', 'pipe', 'pipe'> {
  const parent = Bun.spawn([process.execPath, join(import.meta.dir, 'processes/parent.ts')], {
    env: {
      PATH: process.env.PATH!,
      WEIR_DATA: folder,
      WEIR_DATABASE_URL: 'postgres://test/test',
      WEIR_PROCESSES: '3',
      PORT: String(port),
      SIGNALS: signalsFile(),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  parents.push(parent)
  return parent
}

/** Waits for the line that all processes listen. */
async function untilStarted({ stdout }: Bun.Subprocess<'ignore', 'pipe', 'pipe'>): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of stdout) {
    text += decoder.decode(piece)
    if (text.includes('Weir has 3 processes.')) return
  }
  throw new Error(`the parent has ended: ${text}`)
}

/** The process that answers next, as its number and its id. */
async function answer(): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${port}/`)).text()
  answered++
  return text
}

/** Calls until each of the numbers has answered. */
async function answersOf(count: number, isKnown = (_text: string): boolean => true): Promise<Map<string, number>> {
  const pids = new Map<string, number>()
  while (pids.size < count) {
    const text = await answer().catch(() => '')
    const [number, pid] = text.split(' ')
    if (pid !== undefined && isKnown(text)) pids.set(number!, Number(pid))
  }
  return pids
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('all processes answer on one port, get the signal once, and the parent ends after them', async () => {
  const parent = begin()
  await untilStarted(parent)
  const pids = await answersOf(3)
  expect([...pids.keys()].toSorted()).toEqual(['1', '2', '3'])
  parent.kill('SIGTERM')
  expect(await parent.exited).toBe(0)
  expect(signals()).toEqual(['1 SIGTERM', '2 SIGTERM', '3 SIGTERM'])
  expect([...pids.values()].filter(isAlive)).toEqual([])
})

test('the parent waits for processes that drain, and a second signal reaches them too', async () => {
  const parent = begin({ HOLD: '1' })
  await untilStarted(parent)
  parent.kill('SIGINT')
  await until(() => signals().length === 3, 'all have got the first signal')
  expect(parent.exitCode).toBeNull()
  parent.kill('SIGTERM')
  expect(await parent.exited).toBe(0)
  expect(signals()).toEqual(['1 SIGINT', '1 SIGTERM', '2 SIGINT', '2 SIGTERM', '3 SIGINT', '3 SIGTERM'])
})

test('a process that dies is started again, and the counters of all do not go back', async () => {
  const metricsPort = freePort()
  const parent = begin({ METRICS_PORT: String(metricsPort) })
  await untilStarted(parent)
  const counted = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    return Number(/^calls_total\{\} (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
  }
  /** A process that is busy for two seconds is shown with its last figures, so that the sum may be late. */
  const untilCounted = async (calls: number): Promise<void> => {
    while ((await counted()) !== calls) await Bun.sleep(5)
  }
  await untilCounted(0)
  const pids = await answersOf(3)
  await untilCounted(answered)
  const killed = pids.get('2')!
  process.kill(killed, 'SIGKILL')
  const again = await answersOf(3, text => !text.endsWith(` ${killed}`))
  expect([again.get('1'), again.get('3')]).toEqual([pids.get('1'), pids.get('3')])
  expect(again.get('2')).not.toBe(killed)
  // What the killed one has counted stays.
  await untilCounted(answered)
  expect(answered).toBeGreaterThan(5)
  parent.kill('SIGTERM')
  expect(await parent.exited).toBe(0)
  expect(await new Response(parent.stderr).text()).toContain('process 2 has ended with signal SIGKILL; it is started')
})

test('a process that cannot start ends the start of all, with its own message and a sentence', async () => {
  const parent = begin({ FAILS: '3' })
  expect(await parent.exited).toBe(1)
  const text = await new Response(parent.stderr).text()
  expect(text).toContain('weir: the database is away')
  expect(text).toContain('weir: Process 3 could not start. Its own message is above.')
  expect(signals()).toEqual(['1 SIGTERM', '2 SIGTERM'])
})

test('processes whose parent is killed end, too', async () => {
  const parent = begin()
  await untilStarted(parent)
  const pids = await answersOf(3)
  parent.kill('SIGKILL')
  await until(() => ![...pids.values()].some(isAlive), 'all have ended')
  expect(signals()).toEqual([])
})

test('a port that another program uses, and a port that is not fixed, stop the start', async () => {
  const other = Bun.serve({ hostname: '127.0.0.1', port, reusePort: true, fetch: () => new Response('other') })
  const parent = begin()
  expect(await parent.exited).toBe(1)
  expect(await new Response(parent.stderr).text()).toContain(`Cannot listen on 127.0.0.1:${port}`)
  await other.stop(true)
  const unfixed = begin({ PORT: '0' })
  expect(await unfixed.exited).toBe(1)
  expect(await new Response(unfixed.stderr).text()).toContain('Several processes need a fixed port: set PORT.')
})

test('with SQLite, the error says what to set', async () => {
  const result = await weir(folder, 'serve --processes 2')
  expect(result.code).toBe(1)
  expect(result.stderr).toContain('Several processes need a PostgreSQL database: set WEIR_DATABASE_URL')
})
