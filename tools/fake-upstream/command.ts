// weir fake-upstream: a provider that speaks every dialect on one port and commits the fault it is told to, so that bad
// days can be rehearsed with a gateway of one's own. Whatever is sent to it, it bills nobody and keeps nothing.

import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { Problem, UsageProblem } from '../../src/cli/connect.ts'
import { tableLines } from '../../src/cli/print.ts'
import { readProviders } from '../../src/management/prices/public-sources.ts'
import type { Dialect } from './dialect.ts'
import { dialects } from './dialects.ts'
import type { FaultId } from './fault-rows/kinds.ts'
import { faultIds, isFaultId, kinds } from './fault-rows/kinds.ts'
import type { Fault, FaultSettings, ScriptedFault } from './faults.ts'
import { buildFaults, placedFaults, realFaultSettings } from './faults.ts'
import type { FaultyPlace } from './places/place.ts'
import { Rehearsal } from './rehearsal.ts'
import type { ReceivedRequest } from './request.ts'
import { startFakeUpstream } from './server.ts'

type Say = (line: string) => void

export const usage =
  'fake-upstream [--fault F14] [--every n] [--dialect name] [--scale 0.01] [--port n] [--host address] [--list]'

interface Wanted {
  readonly host: string
  readonly port: number
  readonly fault: FaultId | undefined
  /** One of those with that id; else all of them in turn. */
  readonly name: string | undefined
  readonly dialect: Dialect | undefined
  readonly every: number
  readonly settings: FaultSettings
}

/** Runs until it is asked to stop. */
export async function fakeUpstream(args: readonly string[], say: Say): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      host: { type: 'string' },
      port: { type: 'string' },
      fault: { type: 'string' },
      dialect: { type: 'string' },
      every: { type: 'string' },
      scale: { type: 'string' },
      list: { type: 'boolean' },
    },
  })
  const wanted: Wanted = {
    host: readHost(values.host),
    port: readNumber('--port', values.port ?? '0', isPort),
    ...readFault(values.fault),
    dialect: readDialect(values.dialect),
    every: readNumber('--every', values.every ?? '1', every => Number.isInteger(every) && every > 0),
    settings: scaled(readNumber('--scale', values.scale ?? '1', scale => scale > 0 && scale <= 1)),
  }
  if (values.list) return list(wanted, say)
  const asked = untilAsked()
  const running = await open(wanted, say)
  await asked
  await running.stop()
}

/** Whoever reads that it listens may ask it to stop the moment after. */
function untilAsked(): Promise<void> {
  return new Promise<void>(resolve => {
    process.on('SIGTERM', () => resolve())
    process.on('SIGINT', () => resolve())
  })
}

function readHost(host = '127.0.0.1'): string {
  if (isIP(host) === 0) throw new UsageProblem('--host must be an address of this machine, such as 0.0.0.0')
  return host
}

const isPort = (port: number): boolean => Number.isInteger(port) && port >= 0 && port <= 65_535

function readNumber(option: string, text: string, fits: (value: number) => boolean): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!fits(value)) throw new UsageProblem(`${option} cannot be ${text}. Usage: weir ${usage}`)
  return value
}

function readDialect(name: string | undefined): Dialect | undefined {
  if (name === undefined) return undefined
  const dialect = dialects.find(one => one.name === name)
  if (dialect !== undefined) return dialect
  throw new UsageProblem(`There is no dialect ${name}: say ${dialects.map(one => one.name).join(', ')}`)
}

/** An id, or an id and one of its names. */
function readFault(text: string | undefined): Pick<Wanted, 'fault' | 'name'> {
  if (text === undefined) return { fault: undefined, name: undefined }
  const [, id = '', name] = /^(\S+)(?:\s+(.+))?$/.exec(text.trim()) ?? []
  if (!isFaultId(id)) throw new UsageProblem(`There is no fault ${text}. See: weir fake-upstream --list`)
  if (name !== undefined && !namesOf(id).includes(name)) {
    throw new UsageProblem(`${id} has no ${name}, but: ${namesOf(id).join('; ')}`)
  }
  return { fault: id, name }
}

/** Sizes stay as they are: a large answer that is a hundred times smaller is no fault. */
function scaled(scale: number): FaultSettings {
  const { deadlineMs, idleMs, byteMs } = realFaultSettings
  const times = { deadlineMs: deadlineMs * scale, idleMs: idleMs * scale, byteMs: byteMs * scale }
  return { ...realFaultSettings, ...times }
}

/** In all dialects, each once. */
function faultsOf(id: FaultId): readonly Fault[] {
  const all = [...placedFaults, ...dialects.flatMap(dialect => buildFaults(dialect))].filter(fault => fault.id === id)
  return all.filter(({ name }, at) => all.findIndex(other => other.name === name) === at)
}

const namesOf = (id: FaultId): readonly string[] => faultsOf(id).map(({ name }) => name)

const calls: Readonly<Record<Fault['asks'], string>> = { plain: 'whole', stream: 'streamed', either: 'all' }

function list({ fault: wanted, dialect }: Wanted, say: Say): void {
  const rows = faultIds
    .filter(id => wanted === undefined || id === wanted)
    .flatMap(id => faultsOf(id))
    .filter(fault => dialect === undefined || fault.by === 'place' || isIn(dialect, fault))
  const shown = rows.map(({ id, name, asks, does }) => ({ fault: id, name, calls: calls[asks], does }))
  for (const line of tableLines(shown)) say(line)
}

const isIn = (dialect: Dialect, { id, name }: Fault): boolean =>
  buildFaults(dialect).some(fault => fault.id === id && fault.name === name)

type Running = Pick<FaultyPlace, 'origin' | 'nameServer' | 'stop'>

async function open(wanted: Wanted, say: Say): Promise<Running> {
  const placed = placedFaults.find(({ id, name }) => id === wanted.fault && (wanted.name ?? name) === name)
  if (placed !== undefined && wanted.every !== 1) {
    throw new UsageProblem(`${placed.id} befalls a whole address, so every call to it: leave --every out`)
  }
  try {
    const running = await (placed === undefined ? serve(wanted, say) : placed.open(wanted))
    const commits = placed === undefined ? titleOf(wanted) : `${placed.id} ${placed.name}`
    greet(running, commits, say)
    return running
  } catch (fault) {
    throw new Problem(`Cannot listen on ${wanted.host}:${wanted.port}: ${(fault as Error).message}`)
  }
}

const titleOf = ({ fault, name, every }: Wanted): string | undefined =>
  fault && `${fault} ${name ?? kinds[fault].title}${every === 1 ? '' : `, once in ${every} calls`}`

async function serve(wanted: Wanted, say: Say): Promise<Running> {
  const upstream = await startFakeUpstream({ host: wanted.host, port: wanted.port, keepRequests: 0 })
  const { fault: id, name } = wanted
  if (id !== undefined) {
    const tables = new Map(dialects.map(dialect => [dialect.name, buildFaults(dialect, wanted.settings)]))
    const rehearsal = new Rehearsal({
      dialect: wanted.dialect, every: wanted.every,
      names: name === undefined ? namesOf(id) : [name],
      faultIn: (dialect, wantedName) =>
        tables.get(dialect.name)?.find(fault => fault.id === id && fault.name === wantedName),
      onCall: (request, fault) => say(callLine(request, fault)),
    })
    upstream.decideBy((at, request) => rehearsal.decide(at, request))
  }
  return { origin: upstream.url, stop: () => upstream.stop() }
}

function callLine(request: ReceivedRequest | undefined, fault: ScriptedFault | undefined): string {
  const what = request === undefined ? 'a connection' : `${request.method} ${request.path.replace(/\?.*$/, '')}`
  return `${what}: ${fault === undefined ? 'answered' : `${fault.id} ${fault.name}`}`
}

/** The variables that vendors' own tools read, whatever the providers are called here. */
const VENDORS = ['OPENAI', 'ANTHROPIC', 'GEMINI', 'ARK']

function greet({ origin, nameServer }: Running, fault: string | undefined, say: Say): void {
  const named = VENDORS.map(vendor => `${vendor}_BASE_URL`)
  const moved = readProviders([]).filter(({ baseUrlEnv }) => named.includes(baseUrlEnv))
  say(`The fake upstream is at ${origin}`)
  say(fault === undefined ? 'It answers well.' : `It commits ${fault}.`)
  if (nameServer !== undefined) {
    say(`The gateway's machine must ask ${nameServer} for names, which resolvers do at port 53: see --host and --port.`)
  }
  say('\nStart the gateway with one of these, and a key that may be anything:\n')
  for (const { baseUrl, baseUrlEnv, keyEnv } of moved) {
    say(`  ${baseUrlEnv}=${origin}${new URL(baseUrl).pathname} ${keyEnv}=fake`)
  }
  say('')
}
