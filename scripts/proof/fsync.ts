// Traces the gateway's system calls and checks that holds and charges are on the disk in time. Between a caller's request
// and the first byte to the upstream, and between the last event of the upstream and the last event to the caller, there
// must be a write to the database's log and, after it, an fsync of that log. Exits with 1 if one is missing.
//
//   bin/weir-bun scripts/proof/fsync.ts [--calls 100] [--root <working copy>]
//
// With one call at a time, the commit in between belongs to that call. Then eight calls run at the same time, where one
// fsync may serve many.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Callers } from '../../test/crash/callers.ts'
import type { Event } from '../../test/crash/event-log.ts'
import { followEventLog, openEventLog } from '../../test/crash/event-log.ts'
import { Gate } from '../../test/crash/gate.ts'
import { ROOT, runWeir } from '../../test/crash/gateway-child.ts'
import { MODEL, startUpstream } from '../../test/crash/upstream.ts'
import { until } from '../../test/support/gateway.ts'
import { print } from './output.ts'
import type { SystemCall } from './trace.ts'
import { readTrace } from './trace.ts'

const TRACED = 'fsync,fdatasync,pwrite64,pwritev,write,writev,sendto,sendmsg,recvfrom,recvmsg,read'
const BYTES_SHOWN = 65_536
const TAG = /\\"user\\":\\"(c\d+)\\"/
const SEED = 1

const { values } = parseArgs({ options: { calls: { type: 'string' }, root: { type: 'string' } } })
const callsPerPart = Number(values.calls ?? 100)
const root = values.root ?? ROOT

/** The package of Debian is also called strace. */
function requireStrace(): void {
  if (Bun.which('strace') !== null) return
  if (process.getuid?.() === 0) Bun.spawnSync(['apt-get', 'install', '-y', 'strace'], { stdout: 'ignore' })
  if (Bun.which('strace') === null) throw new Error('strace is not installed.')
}

interface Traced {
  readonly trace: readonly SystemCall[]
  /** Calls whose callers got the complete answer. */
  readonly completed: ReadonlySet<string>
  readonly port: string
}

/** Runs calls through a traced gateway, with `atOnce` at the same time. */
async function traceCalls(atOnce: number): Promise<Traced> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-fsync-'))
  const [events, output] = [join(folder, 'events.jsonl'), join(folder, 'trace')]
  const log = openEventLog(events)
  const upstream = await startUpstream(SEED, log)
  const env = {
    PATH: process.env.PATH!,
    PORT: '0',
    WEIR_DATA: join(folder, 'data'),
    WEIR_DEMO: 'off',
    LOG_LEVEL: 'error',
    WEIR_BALLAST_MB: '0',
    WEIR_LOCAL_SERVERS: 'off',
    OPENAI_API_KEY: 'sk-fsync',
    OPENAI_BASE_URL: `${upstream.url}/v1`,
  }
  const flags = ['--tier', 'pro', '--qpm', '100000', '--credit', '100']
  const key = await runWeir(['keys', 'create', ...flags], { root, env })
  const program = ['sh', '-c', `echo $$ > ${join(folder, 'pid')}; exec ${join(root, 'bin', 'weir')} serve`]
  const strace = ['strace', '-f', '-ttt', '-T', '-yy', '-s', String(BYTES_SHOWN), '-e', `trace=${TRACED}`, '-o', output]
  const child = Bun.spawn([...strace, ...program], { env, stdout: 'pipe', stderr: 'inherit' })
  try {
    const url = await addressOf(child.stdout)
    const gate = new Gate()
    const callers = new Callers({ seed: SEED, count: atOnce, keys: [key, key, key, key], model: MODEL, log, gate })
    gate.open(url)
    await until(() => callers.sent >= callsPerPart, `${callsPerPart} calls are made`, 120_000)
    gate.shut()
    gate.close()
    await callers.gone()
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGTERM')
    await child.exited
    const trace = readTrace(readFileSync(output, 'latin1'))
    return { trace, completed: completedIn(followEventLog(events)()), port: new URL(url).port }
  } finally {
    child.kill()
    log.close()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function addressOf(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of output) {
    text += new TextDecoder().decode(chunk)
    const found = /listening on (http:\S+)/.exec(text)
    if (found !== null) return found[1]!
  }
  throw new Error(`the gateway did not start: ${text}`)
}

const completedIn = (events: readonly Event[]): ReadonlySet<string> =>
  new Set(events.flatMap(event => (event.kind === 'ended' && event.how === 'whole' ? [event.tag] : [])))

/** The times of one call, on the clock of the trace. */
interface Instants {
  received?: number
  forwarded?: number
  answered?: number
  delivered?: number
}

const isSend = ({ name }: SystemCall): boolean => name === 'sendto' || name === 'sendmsg' || name.startsWith('write')
const isReceive = ({ name }: SystemCall): boolean => name === 'recvfrom' || name === 'recvmsg' || name === 'read'

/** A connection carries one call at a time: its bytes belong to the call whose tag was seen last on it. */
function instantsOf({ trace, port }: Traced): Map<string, Instants> {
  const calls = new Map<string, Instants>()
  const callOn = new Map<string, string>()
  for (const call of trace) {
    if (!call.target.startsWith('TCP:')) continue
    const named = TAG.exec(call.data)?.[1]
    if (named !== undefined) {
      callOn.set(call.target, named)
      if (!calls.has(named)) calls.set(named, {})
    }
    const instants = calls.get(callOn.get(call.target) ?? '')
    if (instants === undefined) continue
    const isCaller = call.target.includes(`:${port}->`)
    if (isCaller && isReceive(call) && named !== undefined) instants.received = call.endS
    else if (isCaller && isSend(call) && isLast(call)) instants.delivered ??= call.startS
    else if (!isCaller && isSend(call) && named !== undefined) instants.forwarded ??= call.startS
    else if (!isCaller && isReceive(call) && isLast(call)) instants.answered = call.endS
  }
  return calls
}

/** The terminal event of a stream, or the part of a plain answer that has its usage. */
const isLast = ({ data }: SystemCall): boolean => data.includes('data: [DONE]') || data.includes('\\"message\\":{')

const isSync = ({ name }: SystemCall): boolean => name === 'fsync' || name === 'fdatasync'

/** Whether something was written to the log and synced after `fromS`, all of it before `toS`. */
function isSynced(trace: readonly SystemCall[], fromS: number, toS: number): boolean {
  const between = trace.filter(
    ({ target, ok, startS, endS }) => ok && target.endsWith('weir.db-wal') && startS >= fromS && endS <= toS,
  )
  const written = between.find(({ name }) => name.startsWith('pwrite'))
  return written !== undefined && between.some(call => isSync(call) && call.startS >= written.endS)
}

function checkCalls(traced: Traced): { checked: number; violations: string[] } {
  const violations: string[] = []
  let checked = 0
  for (const [tag, { received, forwarded, answered, delivered }] of instantsOf(traced)) {
    if (!traced.completed.has(tag)) continue
    if (received === undefined || forwarded === undefined || answered === undefined || delivered === undefined) {
      violations.push(`${tag} was answered completely, but the trace does not show all of it`)
      continue
    }
    checked++
    const { trace } = traced
    if (!isSynced(trace, received, forwarded)) violations.push(`${tag} went upstream before its hold was synced`)
    if (!isSynced(trace, answered, delivered)) violations.push(`${tag} was delivered before its charge was synced`)
  }
  return { checked, violations }
}

requireStrace()
let failed = 0
for (const atOnce of [1, 8]) {
  const traced = await traceCalls(atOnce)
  const { checked, violations } = checkCalls(traced)
  const syncs = traced.trace.filter(call => isSync(call) && call.target.endsWith('weir.db-wal')).length
  print(`${atOnce} at a time: ${checked} delivered answers, ${syncs} syncs of the log, ${violations.length} violations`)
  for (const violation of violations.slice(0, 20)) print(`VIOLATION  ${violation}`)
  failed += violations.length + (checked === 0 ? 1 : 0)
}
process.exit(failed === 0 ? 0 : 1)
