// Kills a gateway again and again while tasks are created and polled. No task is charged twice, no task whose id a caller
// has received is lost, and in the end nothing is held.

import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { ask, film, writeProvider } from '../dialects/tasks-harness.ts'
import { bookFaults } from '../support/books.ts'
import { openDatabase } from '../support/database.ts'
import { fundKeys } from '../support/funds.ts'
import { until } from '../support/gateway.ts'
import { GatewayChild, ROOT } from './gateway-child.ts'
import { buildRandom } from './plan.ts'

const KILLS = 12
const SEED = 7
/** The fake upstream remembers a limited number of tasks. */
const TASKS_MAX = 150
const FILM_COST = 50_000_000n

test('tasks survive a SIGKILL of the gateway at any moment, and are charged once', async () => {
  const random = buildRandom(SEED)
  const upstream = await startFakeUpstream()
  const providers = writeProvider()
  const { folder, keys } = await fundKeys({ alice: { credit: '60', qpm: 10_000 } })
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    WEIR_DATA: folder,
    WEIR_LOCAL_SERVERS: 'off',
    WEIR_BALLAST_MB: '0',
    LOG_LEVEL: 'error',
    WEIR_PROVIDERS: providers,
    POND_KEY: 'sk-pond',
    POND_URL: `${upstream.url}/api/v3`,
  }
  const receivedIds = new Set<string>()
  /** On a busy machine the gateway refuses some calls for overload; those are sent again. */
  async function list(url: string): Promise<{ id: string; status: string }[]> {
    for (;;) {
      const { status, json } = await ask({ url }, keys.alice, 'GET', { suffix: '?page_size=500' })
      if (status === 200) return json.items as { id: string; status: string }[]
      await Bun.sleep(50)
    }
  }

  async function pollAll(url: string): Promise<void> {
    const items = await list(url)
    const open = items.filter(item => item.status === 'queued' || item.status === 'running')
    await Promise.all(open.map(({ id }) => ask({ url }, keys.alice, 'GET', { suffix: `/${id}` })))
  }

  async function work(url: string): Promise<void> {
    const one = async (): Promise<void> => {
      if (receivedIds.size > TASKS_MAX) return
      const { status, json } = await ask({ url }, keys.alice, 'POST', film())
      if (status === 200) receivedIds.add(json.id as string)
    }
    for (;;) await Promise.all([one(), one(), pollAll(url)])
  }

  for (let kill = 0; kill < KILLS; kill++) {
    const child = new GatewayChild({ root: ROOT, env })
    const url = await child.started()
    // However slow the machine is, one of three kills comes after a caller has received the id of its task, one after the
    // upstream has received a request, and one at any time.
    const countBefore = receivedIds.size
    const firstRequest = kill % 3 === 1 ? upstream.nextRequest() : undefined
    const working = work(url).catch(() => {})
    await firstRequest
    if (kill % 3 === 2)
      await until(() => receivedIds.size > Math.min(countBefore, TASKS_MAX), 'a caller has the id of its task')
    await Bun.sleep(random() * 60)
    await child.kill()
    await working
  }

  const last = new GatewayChild({ root: ROOT, env })
  const url = await last.started()
  const read = <T>(query: (db: Database) => T): T => {
    const db = openDatabase(join(folder, 'weir.db'), { readonly: true, safeIntegers: true })
    try {
      return query(db)
    } finally {
      db.close()
    }
  }
  const count = (sql: string): number => Number((read(db => db.query(sql).get()) as { n: bigint }).n)
  for (let looks = 0; looks < 4; looks++) {
    await pollAll(url)
    await Bun.sleep(1_050)
  }
  await until(() => count('SELECT count(*) AS n FROM hold') === 0, 'nothing is held')
  const items = await list(url)
  await last.stop()

  expect(items.length).toBeGreaterThanOrEqual(KILLS / 3)
  expect(items.map(item => item.status)).toEqual(items.map(() => 'succeeded'))
  const listed = new Set(items.map(item => item.id))
  expect([...receivedIds].filter(id => !listed.has(id))).toEqual([])
  const costs = read(db => db.query("SELECT cost FROM record WHERE outcome = 'task_succeeded'").values()).flat()
  expect(costs).toEqual(items.map(() => FILM_COST))
  expect(count('SELECT count(*) AS n FROM task WHERE due_ms IS NOT NULL')).toBe(0)
  expect(read(bookFaults)).toEqual([])

  await upstream.stop()
  for (const one of [folder, providers]) rmSync(one, { recursive: true, force: true })
}, 600_000)
