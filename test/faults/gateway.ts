// A gateway with a provider, and so a channel, for each cell of the matrix, so that cells do not affect each other. The
// fake upstream recognises cells by the path of the request.

import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTextId } from '../../src/base/ids.ts'
import type { Nanos } from '../../src/base/money/money.ts'
import { parseUsd } from '../../src/base/money/money.ts'
import type { Runtime } from '../../src/boot/runtime.ts'
import type { PlacedFault, ScriptedFault } from '../../tools/fake-upstream/faults.ts'
import type { FaultyAddress } from '../../tools/fake-upstream/places/place.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/request.ts'
import type { Script, ScriptStart } from '../../tools/fake-upstream/script.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { CallerDialect, Json } from '../dialects/raw-callers.ts'
import { requestOf } from '../dialects/raw-callers.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialectPaths, dialects } from '../dialects/upstreams.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openRaw } from '../forwarding/caller.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Cell } from './cells.ts'
import { deadlineMs, eventBytesMax, faultName } from './cells.ts'
import { SteadyClock } from './steady-clock.ts'

export interface CellRun {
  readonly cell: Cell
  readonly answer: Caller
  /** By the clock of the gateway. */
  readonly ms: number
  /** The requests of the cell that reached the fake upstream. */
  readonly requests: readonly ReceivedRequest[]
  /** The upstream finished its script, and its socket could take another request. */
  readonly isEnded: boolean
  /** The upstream continued only after the caller had its first content. */
  readonly wasGated: boolean
}

export const keyOf = (dialect: Dialect): string => `sk-canary-${dialect}`
const keyEnvOf = (dialect: Dialect): string => `UP_${dialect.toUpperCase().replaceAll('-', '_')}_KEY`
export const providerOf = ({ number }: Cell): string => `cell-${number}`
export const modelOf = (cell: Cell): string => `${providerOf(cell)}/echo`

const model = {
  id: 'echo',
  contextTokens: 32_768,
  outputTokensMax: 4_096,
  price: { input: '1', output: '2', cacheRead: '0.5' },
}

/** For an address that fails: shorter than the deadline of an answer, as in production. */
const faultyTimes = { connectSeconds: 1, tlsSeconds: 1 }
/** Any other address is reached, however long a slow machine takes. These times are not those of the steady clock. */
const usualTimes = { connectSeconds: 60, tlsSeconds: 60 }

interface ProviderSource {
  readonly id: string
  readonly dialect: Dialect
  readonly times: object
}

function writeProvider(folder: string, { id, dialect, times }: ProviderSource): void {
  const provider = {
    id,
    name: id,
    baseUrl: 'http://127.0.0.1:9',
    sign: 'bearer',
    models: [model],
    times,
    keyEnv: keyEnvOf(dialect),
    baseUrlEnv: addressEnvOf(id),
    speaks: { [dialect]: dialectPaths[dialect].paths },
  }
  writeFileSync(join(folder, `${id}.json`), JSON.stringify(provider))
}

const addressEnvOf = (id: string): string => `${id.toUpperCase().replaceAll('-', '_')}_URL`

/** The provider of a dialect without faults. */
const healthyProviderOf = (dialect: Dialect): string => `well-${dialect}`

export class FaultGateway {
  readonly harness: Harness
  readonly #clock: SteadyClock
  readonly #key: string
  readonly #withSecond: boolean
  readonly #cells: ReadonlyMap<number, Cell>
  readonly #places: readonly FaultyAddress[]
  readonly #folder: string
  readonly #requests = new Map<number, ReceivedRequest[]>()
  readonly #ended = new Set<number>()
  readonly #gated = new Set<number>()
  #latest: Cell | undefined
  readonly #shown = new Map<number, PromiseWithResolvers<void>>()

  private constructor(harness: Harness, parts: Parts & { readonly key: string }) {
    this.harness = harness
    this.#clock = parts.clock
    this.#key = parts.key
    this.#withSecond = parts.withSecond
    this.#cells = new Map(parts.cells.map(cell => [cell.number, cell]))
    this.#places = [...parts.addresses.values()]
    this.#folder = parts.folder
    harness.upstream.decideBy((at, request) => this.#decide(at, request))
  }

  static async start(cells: readonly Cell[], { withSecond = false }: StartOptions = {}): Promise<FaultGateway> {
    const folder = mkdtempSync(join(tmpdir(), 'weir-faults-'))
    const addresses = await openFaultyAddresses(cells)
    for (const cell of cells) {
      const times = cell.fault.by === 'place' ? faultyTimes : usualTimes
      writeProvider(folder, { id: providerOf(cell), dialect: cell.upstream, times })
    }
    for (const dialect of dialects)
      writeProvider(folder, { id: healthyProviderOf(dialect), dialect, times: usualTimes })
    const clock = new SteadyClock()
    const attemptTimes = { firstContentMs: deadlineMs, betweenChunksMs: deadlineMs }
    const harness = await startHarness({
      world: {
        clock,
        attemptTimes,
        eventBytesMax,
        pause: ms => Bun.sleep(ms * PAUSE_SCALE),
        upstreams: upstreamNetwork(addresses),
      },
      env: {
        WEIR_PROVIDERS: folder,
        WEIR_DRAIN_SECONDS: '0',
        WEIR_ATTEMPTS: '3',
        ...Object.fromEntries(dialects.map(dialect => [keyEnvOf(dialect), keyOf(dialect)])),
      },
      upstreamEnv: url =>
        Object.fromEntries([
          ...cells.map(cell => [addressEnvOf(providerOf(cell)), addressOf(cell, url, addresses)] as const),
          ...dialects.map(
            one => [addressEnvOf(healthyProviderOf(one)), `${url}/well${dialectPaths[one].base}`] as const,
          ),
        ]),
    })
    for (const cell of withSecond ? cells : []) {
      const second = healthyProviderOf(dialects[cell.number % dialects.length]!)
      await harness.weir('routes set', {
        name: groupOf(cell),
        members: [modelOf(cell), 'then', `${second}/echo`],
      })
    }
    const key = await harness.key({ qpm: 100_000, credit: CREDIT_USD })
    return new FaultGateway(harness, { cells, addresses, folder, clock, key, withSecond })
  }

  async run(cell: Cell): Promise<CellRun> {
    this.#latest = cell
    const contentArrived = Promise.withResolvers<void>()
    this.#shown.set(cell.number, contentArrived)
    const startMs = this.#clock.nowMs()
    const answer = this.ask(cell)
    await answer
      .until(({ body }) => body.length > 0, 'the caller has received something')
      .finally(() => contentArrived.resolve())
    await answer.whole()
    return {
      cell,
      answer: answer,
      ms: this.#clock.nowMs() - startMs,
      requests: this.#requests.get(cell.number) ?? [],
      isEnded: this.#ended.has(cell.number),
      wasGated: this.#gated.has(cell.number),
    }
  }

  ask(cell: Cell): Caller {
    const request = { model: this.#withSecond ? groupOf(cell) : modelOf(cell), stream: cell.stream, text: HEALTHY_TEXT }
    return openRaw(this.harness.url, requestOf(cell.caller, this.#key, request))
  }

  /** Sends a call to an upstream without faults. */
  askHealthy(caller: CallerDialect, stream: boolean): Caller {
    this.#latest = undefined // the last cell may be one whose fault begins at a socket, which names no cell
    const request = { model: 'openai/gpt-4o-mini', stream, text: HEALTHY_TEXT }
    return openRaw(this.harness.url, requestOf(caller, this.#key, request))
  }

  /** All records by the id of their call, with parsed attempts. */
  records(): ReadonlyMap<number, Json> {
    const db = openDatabase(join(this.harness.folder, 'weir.db'), { readonly: true })
    try {
      const rows = db.query('SELECT * FROM record ORDER BY call_id').all() as Json[]
      const parseAttempts = ({ attempts }: Json): unknown => JSON.parse((attempts as string | null) ?? '[]')
      return new Map(rows.map(row => [row.call_id as number, { ...row, attempts: parseAttempts(row) }]))
    } finally {
      db.close()
    }
  }

  /** The rest of the credit, by the balance of the account and by the records of its calls. */
  async left(): Promise<{ readonly byAccount: Nanos; readonly byRecords: bigint }> {
    const { balance } = await this.harness.balance(this.#key)
    const records = [...this.records().values()]
    // The first record belongs to this key; other calls may have used other keys.
    const ownRecords = records.filter(({ account_id: account }) => account === records[0]?.account_id)
    const costs = ownRecords.reduce((sum, { cost }) => sum + BigInt(cost as number), 0n)
    return { byAccount: parseUsd(balance)!, byRecords: parseUsd(CREDIT_USD)! - costs }
  }

  get openSockets(): number {
    return this.#places.reduce((sum, address) => sum + address.openSockets, this.harness.upstream.openSockets)
  }

  async stop(): Promise<void> {
    await this.harness.stop()
    this.#clock.stop()
    for (const address of this.#places) await address.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #decide(at: ScriptStart, request: ReceivedRequest | undefined): Script | undefined {
    const number = Number(/^\/cell-(\d+)\//.exec(request?.path ?? '')?.[1])
    // A socket without a request has no path, so a cell whose fault begins there runs alone.
    const cell = at === 'accept' ? this.#latest : this.#cells.get(number)
    if (cell?.fault.by !== 'script') return undefined
    const { starts } = cell.fault.script
    const isNow = starts === at || (starts === 'accept' && at === 'head') // on a reused socket
    return isNow ? this.#traced(cell, cell.fault) : undefined
  }

  #traced({ number, gated }: Cell, { script }: ScriptedFault): Script {
    const steps = (request: ReceivedRequest) => this.#steps(number, { request, script, gated })
    return { ...scripted(steps), starts: script.starts }
  }

  *#steps(number: number, { request, script, gated }: TracedScript): ReturnType<Script['steps']> & Generator {
    this.#requests.set(number, [...(this.#requests.get(number) ?? []), request])
    for (const step of script.steps(request)) {
      if (step.kind === 'end') this.#ended.add(number)
      yield step.kind === 'wait' ? gate(this.#clock.sleep(step.ms)) : step
      if (gated && step.kind === 'chunk' && FIRST_CONTENT.test(Buffer.from(step.bytes).toString('latin1', 0, 4_096))) {
        this.#gated.add(number)
        yield gate(this.#shown.get(number)!.promise)
      }
    }
  }
}

interface TracedScript {
  readonly request: ReceivedRequest
  readonly script: Script
  readonly gated: boolean
}

export interface StartOptions {
  /** Calls go to a route of the faulty provider and a healthy one behind it. */
  readonly withSecond?: boolean
}

const groupOf = ({ number }: Cell): string => `group-${number}`

interface Parts {
  readonly withSecond: boolean
  readonly cells: readonly Cell[]
  readonly addresses: ReadonlyMap<string, FaultyAddress>
  readonly folder: string
  readonly clock: SteadyClock
}

/** Shortens the pauses between two attempts on the same channel. */
const PAUSE_SCALE = 0.02
/** The question, which a healthy upstream echoes as its answer. */
export const HEALTHY_TEXT = 'Say something'
const CREDIT_USD = '1000000'
/** Longer than the gateway waits for a name. */
const NAME_SERVER_MS = 60_000

/** The beginning of the answers in fault scripts. */
const FIRST_CONTENT = /Hel/

async function openFaultyAddresses(cells: readonly Cell[]): Promise<ReadonlyMap<string, FaultyAddress>> {
  const placed = cells.flatMap(({ fault }) => (fault.by === 'place' ? [[faultName(fault), fault] as const] : []))
  const addresses = new Map<string, FaultyAddress>()
  for (const [name, fault] of new Map<string, PlacedFault>(placed)) addresses.set(name, await fault.open())
  return addresses
}

const addressOf = (cell: Cell, url: string, addresses: Parts['addresses']): string =>
  `${addresses.get(faultName(cell.fault))?.origin ?? url}/cell-${cell.number}${dialectPaths[cell.upstream].base}`

/** Resolves names at the name server of a faulty address and trusts its authority, so that only the fault itself fails. */
function upstreamNetwork(addresses: Parts['addresses']): Pick<Runtime, 'upstreams'>['upstreams'] & object {
  const all = [...addresses.values()]
  const ca = all.find(({ authority }) => authority !== undefined)?.authority
  const servers = new Map(all.map(({ origin, nameServer }) => [new URL(origin).hostname, nameServer]))
  const resolve = async (name: string): Promise<readonly string[]> => {
    const resolver = new Resolver({ timeout: NAME_SERVER_MS, tries: 1 })
    resolver.setServers([servers.get(name)!])
    return await resolver.resolve4(name)
  }
  return { resolve, ...(ca !== undefined && { ca }) }
}

export const recordOf = ({ answer }: CellRun, records: ReadonlyMap<number, Json>): Json | undefined =>
  records.get(parseTextId('req', answer.header('x-request-id') ?? '') ?? -1)
