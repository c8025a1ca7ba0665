// weir fake-upstream: a provider that speaks every dialect on one port and commits a chosen fault, so that operators can
// rehearse failures with their own gateway. It bills nothing and stores nothing.

import { isIP } from 'node:net'
import { nearestName } from '../../src/base/text/nearest-name.ts'
import type { CommandFields } from '../../src/cli/connect.ts'
import { jsonText, tableLines } from '../../src/cli/print.ts'
import { Problem, UsageProblem } from '../../src/cli/problem.ts'
import { readProviders } from '../../src/management/prices/public-sources.ts'
import type { Dialect } from './dialect.ts'
import { dialects } from './dialects.ts'
import type { FaultId } from './fault-rows/kinds.ts'
import { faultIds, faultKinds, isFaultId } from './fault-rows/kinds.ts'
import type { Fault, FaultSettings, ScriptedFault } from './faults.ts'
import { addressFaults, buildFaults, realFaultSettings } from './faults.ts'
import type { FaultyAddress } from './places/place.ts'
import { Rehearsal } from './rehearsal.ts'
import type { ReceivedRequest } from './request.ts'
import { startFakeUpstream } from './server.ts'

type PrintLine = (line: string) => void

interface CommandOptions {
  readonly host: string
  readonly port: number
  readonly fault: FaultId | undefined
  /** One of the faults with that id; undefined: all of them in turn. */
  readonly name: string | undefined
  readonly dialect: Dialect | undefined
  readonly every: number
  readonly settings: FaultSettings
}

/** Runs until it gets a signal to stop. */
export async function fakeUpstream(input: CommandFields, print: PrintLine): Promise<void> {
  const given = input as Readonly<Record<string, string | undefined>>
  const options: CommandOptions = {
    host: readHost(given.host),
    port: readNumber('--port', given.port ?? '0', { fits: isPort, allowed: 'a whole number from 0 to 65535' }),
    ...readFault(given.fault),
    dialect: readDialect(given.dialect),
    every: readNumber('--every', given.every ?? '1', everyRange),
    settings: scaleTimes(readNumber('--scale', given.scale ?? '1', scaleRange)),
  }
  if (input.list === true) return printFaults(options, { print, json: input.json === true })
  const stopSignal = waitForSignal()
  const running = await open(options, print)
  await stopSignal
  await running.stop()
}

/** Must be called before the command prints its address, because a signal may follow at once. */
function waitForSignal(): Promise<void> {
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

interface NumberRange {
  /** What the number must be, for the error. */
  readonly allowed: string
  fits(value: number): boolean
}

const everyRange: NumberRange = { allowed: 'a whole number, at least 1', fits: n => Number.isInteger(n) && n > 0 }
const scaleRange: NumberRange = { allowed: 'a number above 0, at most 1', fits: n => n > 0 && n <= 1 }

function readNumber(option: string, text: string, { allowed, fits }: NumberRange): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!fits(value)) throw new UsageProblem(`${option} must be ${allowed}. See: weir help fake-upstream`)
  return value
}

function readDialect(name: string | undefined): Dialect | undefined {
  if (name === undefined) return undefined
  const dialect = dialects.find(dialect => dialect.name === name)
  if (dialect !== undefined) return dialect
  const names = dialects.map(({ name: known }) => known)
  const near = nearestName(name, names)
  const hint = near === undefined ? '' : `. Did you mean ${near}?`
  throw new UsageProblem(`There is no dialect ${name}. Dialects: ${names.join(', ')}${hint}`)
}

/** Reads the id of a fault, or the id and one of its names. */
function readFault(text: string | undefined): Pick<CommandOptions, 'fault' | 'name'> {
  if (text === undefined) return { fault: undefined, name: undefined }
  const [, id = '', name] = /^(\S+)(?:\s+(.+))?$/.exec(text.trim()) ?? []
  if (!isFaultId(id)) throw new UsageProblem(`There is no fault ${text}. See: weir fake-upstream --list`)
  if (name !== undefined && !listFaultNames(id).includes(name)) {
    throw new UsageProblem(`${id} has no variant ${name}. Variants: ${listFaultNames(id).join('; ')}`)
  }
  return { fault: id, name }
}

/** Scales times only: a large answer that is a hundred times smaller would be no fault. */
function scaleTimes(scale: number): FaultSettings {
  const { deadlineMs, idleMs, byteMs } = realFaultSettings
  const scaledTimes = { deadlineMs: deadlineMs * scale, idleMs: idleMs * scale, byteMs: byteMs * scale }
  return { ...realFaultSettings, ...scaledTimes }
}

/** The faults with this id in all dialects, each once. */
function listFaults(id: FaultId): readonly Fault[] {
  const all = [...addressFaults, ...dialects.flatMap(dialect => buildFaults(dialect))].filter(fault => fault.id === id)
  return all.filter(({ name }, at) => all.findIndex(other => other.name === name) === at)
}

const listFaultNames = (id: FaultId): readonly string[] => listFaults(id).map(({ name }) => name)

const CALLS_BY_FORM: Readonly<Record<Fault['asks'], string>> = { plain: 'whole', stream: 'streamed', either: 'all' }

interface FaultOutput {
  readonly print: PrintLine
  readonly json: boolean
}

function printFaults({ fault: options, dialect }: CommandOptions, { print, json }: FaultOutput): void {
  const rows = faultIds
    .filter(id => options === undefined || id === options)
    .flatMap(id => listFaults(id))
    .filter(fault => dialect === undefined || fault.by === 'place' || canCommit(dialect, fault))
  const shown = rows.map(({ id, name, asks, does }) => ({ fault: id, name, calls: CALLS_BY_FORM[asks], does }))
  if (json) print(jsonText({ data: shown }))
  else for (const line of tableLines(shown)) print(line)
}

const canCommit = (dialect: Dialect, { id, name }: Fault): boolean =>
  buildFaults(dialect).some(fault => fault.id === id && fault.name === name)

type RunningUpstream = Pick<FaultyAddress, 'origin' | 'nameServer' | 'stop'>

async function open(options: CommandOptions, print: PrintLine): Promise<RunningUpstream> {
  const addressFault = addressFaults.find(({ id, name }) => id === options.fault && (options.name ?? name) === name)
  if (addressFault !== undefined && options.every !== 1) {
    throw new UsageProblem(`${addressFault.id} affects a whole address, and so every call to it: leave out --every`)
  }
  try {
    const running = await (addressFault === undefined ? serve(options, print) : addressFault.open(options))
    const faultTitle = addressFault === undefined ? describeFault(options) : `${addressFault.id} ${addressFault.name}`
    printInstructions(running, faultTitle, print)
    return running
  } catch (fault) {
    throw new Problem(`Cannot listen on ${options.host}:${options.port}: ${(fault as Error).message}`)
  }
}

const describeFault = ({ fault, name, every }: CommandOptions): string | undefined =>
  fault && `${fault} ${name ?? faultKinds[fault].title}${every === 1 ? '' : `, once in ${every} calls`}`

async function serve(options: CommandOptions, print: PrintLine): Promise<RunningUpstream> {
  const upstream = await startFakeUpstream({ host: options.host, port: options.port, keepRequests: 0 })
  const { fault: id, name } = options
  if (id !== undefined) {
    const tables = new Map(dialects.map(dialect => [dialect.name, buildFaults(dialect, options.settings)]))
    const rehearsal = new Rehearsal({
      dialect: options.dialect,
      every: options.every,
      names: name === undefined ? listFaultNames(id) : [name],
      faultIn: (dialect, wantedName) =>
        tables.get(dialect.name)?.find(fault => fault.id === id && fault.name === wantedName),
      onCall: (request, fault) => print(describeCall(request, fault)),
    })
    upstream.decideBy((at, request) => rehearsal.decide(at, request))
  }
  return { origin: upstream.url, stop: () => upstream.stop() }
}

function describeCall(request: ReceivedRequest | undefined, fault: ScriptedFault | undefined): string {
  const what = request === undefined ? 'a connection' : `${request.method} ${request.path.replace(/\?.*$/, '')}`
  return `${what}: ${fault === undefined ? 'answered' : `${fault.id} ${fault.name}`}`
}

/** The prefixes of the environment variables that vendors' own tools read. */
const VENDOR_PREFIXES = ['OPENAI', 'ANTHROPIC', 'GEMINI', 'ARK']

function printInstructions({ origin, nameServer }: RunningUpstream, fault: string | undefined, print: PrintLine): void {
  const vendorEnvNames = VENDOR_PREFIXES.map(vendor => `${vendor}_BASE_URL`)
  const providers = readProviders([]).filter(({ baseUrlEnv }) => vendorEnvNames.includes(baseUrlEnv))
  print(`The fake upstream is at ${origin}`)
  print(fault === undefined ? 'It commits no fault.' : `It commits ${fault}.`)
  if (nameServer !== undefined) {
    print(`The gateway's machine must use the name server ${nameServer}. Resolvers use port 53: see --host and --port.`)
  }
  print('\nStart the gateway with one of these settings. The key may be any text:\n')
  for (const { baseUrl, baseUrlEnv, keyEnv } of providers) {
    print(`  ${baseUrlEnv}=${origin}${new URL(baseUrl).pathname} ${keyEnv}=fake`)
  }
  print('')
}
