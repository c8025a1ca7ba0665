// Kills a gateway under load again and again on one data folder, and runs the checker after each recovery.

import { mkdirSync, mkdtempSync, rmSync, watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Subprocess } from 'bun'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { until } from '../support/gateway.ts'
import { countOpenCalls } from './books.ts'
import { Callers } from './callers.ts'
import type { Phase, Verdict } from './check.ts'
import type { Event, EventLog } from './event-log.ts'
import { openEventLog } from './event-log.ts'
import { checkFirstSchema, writeFirstSchema } from './first-schema.ts'
import { Gate } from './gate.ts'
import type { ChildOptions } from './gateway-child.ts'
import { GatewayChild, ROOT, StartFailed } from './gateway-child.ts'
import { Operator } from './operator.ts'
import type { Shares } from './plan.ts'
import { budgets, buildRandom, credits, generalShares, poorKey } from './plan.ts'
import { MODEL, startUpstream } from './upstream.ts'

export interface CrashOptions {
  readonly kills: number
  /** Goes on after these kills, until kills have hit calls in every phase. */
  readonly untilAllHit?: boolean
  readonly seed: number
  /** The working copy whose gateway is killed. */
  readonly root?: string
  readonly callers?: number
  /** How many of the kills fall into the migration of an old database. */
  readonly upgrades?: number
  /** Instead of the general load. */
  readonly load?: DirectedLoad
  onKill?(kills: number, verdict: Verdict): void
}

/** A load that is directed at one kind of bug, with kills at the instants that matter for it. */
export interface DirectedLoad {
  /** How its calls differ from those of the general load. */
  readonly shares?: Partial<Shares>
  /** The gateway is killed right after so many of these events. */
  readonly killAfter: { readonly times: number; isLike(event: Event): boolean }
  /** Each kill under load is followed by a kill of the start, as soon as it has recovered a call. */
  readonly killsRecovery?: boolean
}

export interface CrashReport {
  readonly seed: number
  readonly kills: number
  /** How many kills hit a start; how many of these hit a migration, and how many a start with calls to recover. */
  readonly starts: number
  readonly upgrades: number
  readonly recoveries: number
  readonly calls: number
  readonly checkpointed: number
  readonly hits: Readonly<Record<Phase, number>>
  readonly cut: Readonly<Record<Phase, number>>
  readonly outcomes: Readonly<Record<string, number>>
  readonly violations: readonly string[]
  readonly seconds: number
}

const CALLERS = 50
const LOAD_MS = { least: 20, most: 220 }
/** A kill under load waits for at most so many events. */
const EVENTS_OF_LOAD = 400
/** One load in so many lasts until streams have been checkpointed. */
const LONG_LOAD_EACH = 40
const LONG_LOAD_MS = { least: 2_050, most: 3_000 }
/** More than one kill in five falls into a start, and some of them into the start after that. */
const START_KILL_EACH = 3
const START_KILLS_MILLE = 250
const CHECKPOINT_SECONDS = 1
/** A start with calls to recover writes about so many times to its database. */
const WRITES_AT_START = 16
const VIOLATIONS_KEPT = 200
/** By default one kill in so many falls into a migration. */
const UPGRADE_KILLS_SHARE = 30
const MOMENT_MS_MAX = 1_000
/** A directed load without the events that it waits for ends after so long. */
const DIRECTED_LOAD_MS_MAX = 20_000

/** When a kill under load happens: at any instant (undefined), or right after an event that promises durability. */
const moments: readonly (undefined | ((event: Event) => boolean))[] = [
  undefined,
  undefined,
  event => event.kind === 'last',
  event => event.kind === 'last',
  event => event.kind === 'seen',
]

/** Ends at the first violation, or after all kills. */
export async function runCrashes(options: CrashOptions): Promise<CrashReport> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-crash-'))
  const run = new Run(options, folder)
  try {
    await run.prepare()
    await run.killUpgrades()
    await run.killOften()
    return run.report()
  } finally {
    await run.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

class Run {
  readonly #options: CrashOptions
  readonly #folder: string
  readonly #random: () => number
  readonly #shares: Shares
  readonly #log: EventLog
  readonly #gate = new Gate()
  readonly #sinceMs = performance.now()
  #database = ''
  #upstream!: FakeUpstream
  #callers!: Callers
  #child!: ChildOptions
  #booking: Promise<void> | undefined
  #checker!: CheckerProcess
  #gateway: GatewayChild | undefined
  #startMs = 150
  #loads = 0
  #kills = 0
  #starts = 0
  #upgrades = 0
  #recoveries = 0
  #verdict: Verdict | undefined
  #violations: readonly string[] = []

  constructor(options: CrashOptions, folder: string) {
    this.#options = options
    this.#folder = folder
    this.#random = buildRandom(options.seed)
    this.#shares = { ...generalShares, ...options.load?.shares }
    this.#log = openEventLog(join(folder, 'events.jsonl'))
  }

  async prepare(): Promise<void> {
    const { seed, root = ROOT } = this.#options
    this.#upstream = await startUpstream(seed, this.#log, this.#shares)
    const data = join(this.#folder, 'data')
    this.#database = join(data, 'weir.db')
    this.#child = {
      root,
      env: {
        PORT: '0',
        WEIR_DATA: data,
        WEIR_LOCAL_SERVERS: 'off',
        WEIR_DEMO: 'off',
        LOG_LEVEL: 'error',
        WEIR_CHECKPOINT_SECONDS: String(CHECKPOINT_SECONDS),
        WEIR_BALLAST_MB: '0',
        OPENAI_API_KEY: 'sk-crash',
        OPENAI_BASE_URL: `${this.#upstream.url}/v1`,
      },
    }
  }

  async #hireCallers(): Promise<void> {
    const { seed, callers: count = CALLERS } = this.#options
    const operator = new Operator(join(dirname(this.#database), 'weir.sock'))
    const keys: string[] = []
    for (const credit of credits) keys.push(await operator.createKey(credit))
    for (const [key, amount] of Object.entries(budgets)) await operator.setBudget(keys[Number(key)]!, amount)
    const [log, gate, shares] = [this.#log, this.#gate, this.#shares]
    this.#callers = new Callers({ seed, count, keys, model: MODEL, log, gate, shares })
    this.#booking = operator.bookPayments(gate, keys[poorKey]!, log)
    this.#checker = new CheckerProcess(this.#database, join(this.#folder, 'events.jsonl'))
  }

  /** Kills the migration of a database of the first schema, each time of a new one. The last database stays in use. */
  async killUpgrades(): Promise<void> {
    const { kills, root = ROOT } = this.#options
    const data = dirname(this.#database)
    const { upgrades = Math.ceil(kills / UPGRADE_KILLS_SHARE) } = this.#options
    while (this.#upgrades < upgrades && this.#violations.length === 0) {
      rmSync(data, { recursive: true, force: true })
      mkdirSync(data)
      writeFirstSchema(this.#database, root)
      await this.#killAtStart()
      this.#upgrades++
      if (!(await this.#start())) return
      await this.#gateway!.kill()
      this.#violations = checkFirstSchema(this.#database)
    }
  }

  async killOften(): Promise<void> {
    if (this.#violations.length > 0) return
    if (!(await this.#start())) return
    await this.#hireCallers()
    const { kills, load } = this.#options
    while ((this.#kills < kills || this.#lacksHits) && this.#violations.length === 0) {
      await this.#killUnderLoad()
      if (load === undefined) await this.#killSomeStarts()
      else if (load.killsRecovery) await this.#killRecovery()
      await this.#startAndLook()
    }
  }

  get #lacksHits(): boolean {
    const hits = Object.values(this.#verdict?.kills ?? {})
    return this.#options.untilAllHit === true && hits.some(count => count === 0)
  }

  async #killSomeStarts(): Promise<void> {
    let isStartKilled = this.#loads % START_KILL_EACH === 0
    while (isStartKilled && this.#kills < this.#options.kills) {
      await this.#killAtStart()
      isStartKilled = this.#random() * 1_000 < START_KILLS_MILLE
    }
  }

  async #killUnderLoad(): Promise<void> {
    const gateway = this.#gateway!
    const url = await gateway.started()
    let isStruck = false
    // Synchronous, so that no caller sees the kill before it is in the log.
    const strike = (): void => {
      if (isStruck) return
      isStruck = true
      gateway.strike()
      this.#log.write({ kind: 'killed', when: 'load', ms: Date.now() })
      this.#gate.shut()
    }
    if (this.#options.load === undefined) await this.#generalLoad(url, strike)
    else await this.#directedLoad(url, this.#options.load, strike)
    strike()
    await gateway.ended
    this.#kills++
    await until(() => this.#callers.underWay === 0, 'every caller has seen the end of its call')
  }

  async #generalLoad(url: string, strike: () => void): Promise<void> {
    const isLong = ++this.#loads % LONG_LOAD_EACH === Math.floor(LONG_LOAD_EACH / 4)
    const { least, most } = isLong ? LONG_LOAD_MS : LOAD_MS
    const isMoment = moments[Math.floor(this.#random() * moments.length)]
    this.#gate.open(url)
    const eventCount = this.#log.count + this.#random() * EVENTS_OF_LOAD
    await Bun.sleep(least + this.#random() * (most - least))
    // A slow machine needs more time for the same number of events.
    await until(() => this.#log.count >= eventCount, 'the callers have sent calls')
    if (isMoment !== undefined) await this.#log.next(isMoment, MOMENT_MS_MAX, strike)
  }

  async #directedLoad(url: string, { killAfter }: DirectedLoad, strike: () => void): Promise<void> {
    let left = killAfter.times
    const isLast = (event: Event): boolean => killAfter.isLike(event) && --left === 0
    const happened = this.#log.next(isLast, DIRECTED_LOAD_MS_MAX, strike)
    this.#gate.open(url)
    await happened
  }

  /** Kills a start at any instant, or after some writes of the gateway to its database. */
  async #killAtStart(): Promise<void> {
    const open = countOpenCalls(this.#database)
    const gateway = new GatewayChild(this.#child)
    if (this.#random() < 0.3) await Bun.sleep(this.#startMs * (0.3 + 0.8 * this.#random()))
    else {
      await writesAtStart(this.#database, gateway.listening, Math.ceil(this.#random() * WRITES_AT_START))
    }
    await this.#killStarted(gateway, open)
  }

  /** Kills a start as soon as another process can see that a call is recovered. */
  async #killRecovery(): Promise<void> {
    const open = countOpenCalls(this.#database)
    const gateway = new GatewayChild(this.#child)
    let isListening = false
    void gateway.listening.then(() => (isListening = true))
    while (!isListening && countOpenCalls(this.#database) === open) await Bun.sleep(1)
    await this.#killStarted(gateway, open)
  }

  async #killStarted(gateway: GatewayChild, open: number): Promise<void> {
    await gateway.kill()
    this.#log.write({ kind: 'killed', when: 'start', ms: Date.now() })
    this.#kills++
    this.#starts++
    if (open > 0) this.#recoveries++
  }

  /** Returns false if the gateway cannot start after a crash. */
  async #start(): Promise<boolean> {
    const startMs = performance.now()
    this.#gateway = new GatewayChild(this.#child)
    try {
      await this.#gateway.started()
    } catch (fault) {
      if (!(fault instanceof StartFailed)) throw fault
      this.#violations = [`the gateway does not start again: ${fault.message}`]
      return false
    }
    this.#startMs = this.#startMs * 0.8 + (performance.now() - startMs) * 0.2
    return true
  }

  async #startAndLook(): Promise<void> {
    if (!(await this.#start())) return
    this.#verdict = await this.#checker.look()
    this.#violations = this.#verdict.violations.slice(0, VIOLATIONS_KEPT)
    this.#options.onKill?.(this.#kills, this.#verdict)
  }

  report(): CrashReport {
    const none = { reserve: 0, dispatch: 0, relay: 0, settle: 0, terminal: 0 }
    return {
      seed: this.#options.seed,
      kills: this.#kills,
      starts: this.#starts,
      upgrades: this.#upgrades,
      recoveries: this.#recoveries,
      calls: this.#verdict?.calls ?? 0,
      checkpointed: this.#verdict?.checkpointed ?? 0,
      hits: this.#verdict?.kills ?? none,
      cut: this.#verdict?.cut ?? none,
      outcomes: this.#verdict?.outcomes ?? {},
      violations: this.#violations,
      seconds: (performance.now() - this.#sinceMs) / 1_000,
    }
  }

  async close(): Promise<void> {
    await this.#gateway?.kill()
    this.#gate.close()
    await this.#callers?.gone()
    await this.#booking
    this.#checker?.close()
    await this.#upstream?.stop()
    this.#log.close()
  }
}

/** Waits until the files of the database have changed so many times, or the gateway listens, whichever is first. */
async function writesAtStart(database: string, listening: Promise<unknown>, writes: number): Promise<void> {
  const written = Promise.withResolvers<void>()
  let left = writes
  const watcher = watch(dirname(database), (_, file) => {
    if (file?.startsWith(basename(database)) && --left <= 0) written.resolve()
  })
  await Promise.race([written.promise, listening])
  watcher.close()
}

/** Starts the process of the checker and sends it commands. */
class CheckerProcess {
  readonly #process: Subprocess<'pipe', 'pipe', 'inherit'>
  readonly #lines: AsyncIterator<string>

  constructor(database: string, log: string) {
    const program = [process.execPath, join(import.meta.dir, 'checker.ts')]
    const args = [...program, database, log, String(CHECKPOINT_SECONDS * 1_000)]
    this.#process = Bun.spawn(args, { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
    this.#lines = linesOf(this.#process.stdout)
  }

  async look(): Promise<Verdict> {
    this.#process.stdin.write('look\n')
    this.#process.stdin.flush()
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the checker has ended')
    return JSON.parse(value) as Verdict
  }

  close(): void {
    this.#process.kill()
  }
}

async function* linesOf(output: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of output) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}
