// A gateway with a provider of video tasks. A test may move the date.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'

export const path = '/api/v3/contents/generations/tasks'

const films = { input: '0', output: '10', cases: [{ class: 'flex', output: '5' }] }

/** Video models priced by tokens (ten dollars a million), by seconds (two cents), and one without a price. */
const provider = {
  id: 'pond',
  name: 'Pond',
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: 'POND_KEY',
  baseUrlEnv: 'POND_URL',
  speaks: { 'ark-tasks': '/contents/generations/tasks' },
  sign: 'bearer',
  can: { capsThought: false }, // a film has no reasoning that could cost more
  models: [
    { id: 'film', price: films },
    { id: 'seconds', price: { input: '0', output: '0', perSecond: '0.02' } },
    { id: 'priceless' },
  ],
}

/** Creates a folder with the provider file. The caller removes it. */
export function writeProvider(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-pond-'))
  writeFileSync(join(folder, 'pond.json'), JSON.stringify(provider))
  return folder
}

export interface TaskHarness extends Harness {
  /** Moves the date forward. */
  advance(ms: number): void
  /** Waits until every task that was due is polled, and the time of its next poll is stored. */
  noneDue(): Promise<void>
}

/** The date of all gateways of a file stands still, unless a test moves it: on a busy machine a moment may last seconds. */
const startMs = Date.now()

/** The gateway does not poll tasks by itself, unless a test sets `tasksEveryMs`. */
export async function startTasks(options: HarnessOptions & { aheadMs?: number } = {}): Promise<TaskHarness> {
  const folder = writeProvider()
  let aheadMs = options.aheadMs ?? 0
  const clock = { nowMs: systemClock.nowMs, dateMs: () => startMs + aheadMs }
  const harness = await startHarness({
    ...options,
    world: { clock, tasksEveryMs: 1e6, random: () => 0.5, ...options.world },
    env: { WEIR_PROVIDERS: folder, POND_KEY: 'sk-pond', WEIR_DRAIN_SECONDS: '1', ...options.env },
    upstreamEnv: url => ({ POND_URL: `${url}/api/v3`, ...options.upstreamEnv?.(url) }),
  })
  const isAnyDue = (): boolean => {
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    try {
      return db.query('SELECT 1 FROM task WHERE due_ms <= ?1').get(clock.dateMs()) !== null
    } finally {
      db.close()
    }
  }
  return {
    ...harness,
    advance: ms => void (aheadMs += ms),
    noneDue: () => until(() => !isAnyDue(), 'no task is due'),
    async stop() {
      await harness.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface TaskAnswer {
  readonly status: number
  readonly headers: Headers
  readonly json: Readonly<Record<string, unknown>>
}

type Target = Pick<Harness, 'url'>

export async function ask(harness: Target, key: string, method: string, more: AskOptions = {}): Promise<TaskAnswer> {
  const { suffix = '', body, headers = {} } = more
  const response = await fetch(`${harness.url}${path}${suffix}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const json = (text === '' ? {} : JSON.parse(text)) as TaskAnswer['json']
  return { status: response.status, headers: response.headers, json }
}

interface AskOptions {
  readonly suffix?: string
  readonly body?: object
  readonly headers?: Record<string, string>
}

export const film = (text = 'a river', more: object = {}): { body: object } => ({
  body: { model: 'pond/film', content: [{ type: 'text', text }], resolution: '720p', duration: 5, ...more },
})

/** Creates a task and returns its id; throws if it is refused. */
export async function createTask(harness: Target, key: string, options: AskOptions = film()): Promise<string> {
  const { status, json } = await ask(harness, key, 'POST', options)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(json)}`)
  return json.id as string
}
