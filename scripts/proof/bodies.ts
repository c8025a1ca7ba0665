// What expensive request bodies cost other callers. Attackers send each of the worst bodies that are below a bound,
// again and again, while other callers make ordinary calls. Prints the median of the ordinary calls without and with
// the attack, in turns in one run, and the ratio of both. The same bytes are also sent to a server beside the gateway,
// on the same core, that only reads them: its ratio is the cost of the bytes on a machine that sends, receives and
// measures. The gateway may add a fifth to it. Exits with 1 if it adds more.
//
//   bin/weir-bun scripts/proof/bodies.ts [--seconds 8] [--rounds 3] [--only text] [--most 1.2]
//
// The attackers run in another process. They have keys without credit, each of its own account, or no key. On a busy
// machine the ratio also contains the other programs. The CPU time of the thread that serves calls does not: the last
// column is what each attacking request cost that thread.

import { readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import zlib from 'node:zlib'
import { memoryPeak } from '../../bench/system/proc.ts'
import { read, root } from '../../bench/system/workbench.ts'
import { openLoop } from './load/loops.ts'
import { chatRequest, printMachine, Testbed } from './load/testbed.ts'
import { print } from './output.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    most: { type: 'string' },
    /** For the process of the attackers: the name of the attack, the port and the keys. */
    attack: { type: 'string' },
    port: { type: 'string' },
    keys: { type: 'string' },
  },
})
/** Long enough for several pauses of the threads that read large bodies. */
const seconds = Number(values.seconds ?? '8')
const rounds = Number(values.rounds ?? '3')
const most = Number(values.most ?? '1.2')

const MIB = 1024 * 1024
const ATTACKERS = 4
/**
 * The pause of each attacker after an answer, and after a large body, which would otherwise only measure the
 * connection.
 */
const PAUSE_MS = 250
const LARGE_PAUSE_MS = 2_000
/** The pause after an incomplete body was refused. Without it the attack would be a flood of connections. */
const INCOMPLETE_PAUSE_MS = 10_000
const VICTIM_PER_SECOND = 40

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: bytes => zlib.gzipSync(bytes),
  deflate: bytes => zlib.deflateSync(bytes),
  br: bytes => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: bytes => zlib.zstdCompressSync(bytes),
}

type Headers = Readonly<Record<string, string>>

/** One request of an attacker. `isIncomplete` leaves out the last byte. */
interface AttackRequest {
  readonly path: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly isIncomplete?: boolean
}

interface Attack {
  readonly name: string
  /** Requests at the same time, each on its own connection. */
  readonly connections: number
  request(key: string): AttackRequest
}

const filled = (unit: string, bytes = 31 * MIB): Buffer =>
  Buffer.alloc(Math.floor(bytes / unit.length) * unit.length, unit)
const around = (before: string, middle: Uint8Array, after: string): Buffer =>
  Buffer.concat([Buffer.from(before), middle, Buffer.from(after)])

const MODEL = '"model":"openai/gpt-4o-mini"'
const inContent = (text: Uint8Array): Buffer => around(`{${MODEL},"messages":[{"role":"user","content":"`, text, '"}]}')
const inField = (value: Uint8Array): Buffer =>
  around(`{${MODEL},"messages":[{"role":"user","content":"hi"}],"x":`, value, '}')
const named = (count: number): Buffer =>
  Buffer.from(`[${Array.from({ length: count }, (_, at) => `{"${at.toString(36)}":0}`).join(',')}]`)

/** Compresses to a little more than a hundredth, which is the bound for a body. */
const dense = around('{"x":"', Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)).toBase64().repeat(4)), '"')
const bombs = (unit: string): Buffer => Buffer.concat([dense, filled(unit, 30 * MIB)])

const CHAT = '/v1/chat/completions'
const withKey = (key: string, more: Headers = {}): Headers => ({ authorization: `Bearer ${key}`, ...more })

const bodies: Readonly<Record<string, () => Uint8Array>> = {
  'quotes': () => inContent(filled('\\"')),
  'bare quotes': () => filled('"'),
  'digits': () => inField(filled('7')),
  'one name': () => inField(around('{"', filled('n'), '":1}')),
  'surrogates': () => inContent(filled('\\ud83d\\ude00')),
  '10,000 lists in lists': () => inField(filled('[', 10_000)),
  'a million empty messages': () => around(`{${MODEL},"messages":[`, filled('{},', 3_000_000), '{}]}'),
  '240,000 empty messages': () => around(`{${MODEL},"messages":[`, filled('{},', 720_000), '{}]}'),
  '49,000 names': () => inField(named(49_000)),
}

const dialects = [CHAT, '/v1/messages', '/v1/responses', '/v1beta/models/openai/gpt-4o-mini:generateContent']

const once = <T>(make: () => T): (() => T) => {
  let value: T | undefined
  return () => (value ??= make())
}

function attacks(): readonly Attack[] {
  const large = Object.entries(bodies).map(([name, make]): Attack => {
    const body = once(make)
    return { name, connections: 1, request: key => ({ path: CHAT, headers: withKey(key), body: body() }) }
  })
  const packed = Object.entries(encoders).flatMap(([name, encode]): readonly Attack[] => {
    const headers = { 'content-encoding': name }
    const [far, near, small] = [
      once(() => encode(filled('\\"', 32 * MIB))),
      once(() => encode(bombs('\\"'))),
      once(() => encode(filled('[', 500_000))),
    ]
    const one = { connections: 1 }
    return [
      { ...one, name: `${name}: a bomb`, request: key => chatAttack(withKey(key, headers), far()) },
      { ...one, name: `${name}: near the bound`, request: key => chatAttack(withKey(key, headers), near()) },
      { name: `${name}: signing in`, connections: 8, request: () => ({ path: SIGN_IN, headers, body: small() }) },
    ]
  })
  const others = dialects.slice(1).map((path): Attack => {
    const body = once(() => inContent(filled('\\"', 16 * MIB)))
    const request = (key: string): AttackRequest => ({ path, headers: withKey(key), body: body() })
    return { name: `quotes to ${path}`, connections: 1, request }
  })
  return [...large, ...packed, ...others, ...slow]
}

const SIGN_IN = '/api/auth/setup'
const chatAttack = (headers: Headers, body: Uint8Array): AttackRequest => ({ path: CHAT, headers, body })

const slow: readonly Attack[] = [
  {
    name: 'depth, signing in',
    connections: 8,
    request: () => ({ path: SIGN_IN, headers: {}, body: filled('[', 16 * 1024) }),
  },
  {
    name: '2,000 incomplete bodies, signing in',
    connections: 500,
    request: () => ({ path: SIGN_IN, headers: {}, body: filled(' ', 16 * 1024), isIncomplete: true }),
  },
  {
    name: '2,000 incomplete bodies, of callers',
    connections: 500,
    request: key => ({ path: CHAT, headers: withKey(key), body: filled(' ', 64 * 1024), isIncomplete: true }),
  },
]

function bytesOf({ path, headers, body, isIncomplete }: AttackRequest): Buffer {
  const all = { 'host': 'weir', 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  const head = [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head), isIncomplete ? body.subarray(0, -1) : body])
}

/** Sends requests until it is stopped, and counts the answers by status. */
class Attacker {
  readonly answers: Record<string, number> = {}
  #isOver = false
  readonly #sockets = new Set<net.Socket>()

  async run(port: number, bytes: Buffer, isIncomplete: boolean): Promise<void> {
    while (!this.#isOver) {
      const status = await this.#send(port, bytes, isIncomplete)
      this.answers[status] = (this.answers[status] ?? 0) + 1
      await this.#pause(isIncomplete ? INCOMPLETE_PAUSE_MS : bytes.length > MIB ? LARGE_PAUSE_MS : PAUSE_MS)
    }
  }

  async #pause(ms: number): Promise<void> {
    const endMs = performance.now() + ms
    while (!this.#isOver && performance.now() < endMs) await Bun.sleep(Math.min(ms, 100))
  }

  stop(): void {
    this.#isOver = true
    for (const socket of this.#sockets) socket.destroy()
  }

  #send(port: number, bytes: Buffer, isIncomplete: boolean): Promise<string> {
    return new Promise(resolve => {
      const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes))
      this.#sockets.add(socket)
      const end = (status: string): void => {
        this.#sockets.delete(socket)
        socket.destroy()
        resolve(status)
      }
      socket.on('data', data => end(data.toString('latin1', 9, 12)))
      socket.on('error', () => end('error'))
      socket.on('close', () => end(isIncomplete ? 'incomplete' : 'closed'))
    })
  }
}

const median = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!

/** Sends requests until standard input ends, then prints the counted answers. */
async function runAttackers(name: string, port: number, keys: readonly string[]): Promise<void> {
  const attack = attacks().find(one => one.name === name)!
  const attacker = new Attacker()
  const bytes = keys
    .map(key => attack.request(key))
    .map(one => ({ bytes: bytesOf(one), isIncomplete: !!one.isIncomplete }))
  process.stdout.write('ready\n')
  const sent = bytes.flatMap(({ bytes: all, isIncomplete }) =>
    Array.from({ length: attack.connections }, () => attacker.run(port, all, isIncomplete)),
  )
  for await (const _ of process.stdin);
  attacker.stop()
  await Promise.all(sent)
  process.stdout.write(JSON.stringify(attacker.answers))
}

interface RunningAttack {
  stop(): Promise<Record<string, number>>
}

/** Resolves when the attackers are about to send. */
async function startAttack(name: string, port: number, keys: readonly string[]): Promise<RunningAttack> {
  const command = [join(root, 'bin', 'weir-bun'), import.meta.path, '--attack', name, '--port', String(port)]
  const child = Bun.spawn([...command, '--keys', keys.join(',')], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const reader = child.stdout.getReader()
  await reader.read()
  return {
    async stop() {
      await child.stdin.end()
      let text = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        text += Buffer.from(value).toString()
      }
      return JSON.parse(text) as Record<string, number>
    },
  }
}

/** CPU milliseconds of the first thread of a process, which serves calls. */
const servingMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

interface Measurement {
  readonly ms: number
  readonly unserved: number
  /** CPU time of the thread that serves calls. */
  readonly cpuMs: number
}

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, one) => sum + one, 0)

async function measureAttacks(testbed: Testbed): Promise<boolean> {
  const create = [join(root, 'bin', 'weir'), 'keys', 'create', '--tier', 'pro', '--credit', '0', '--qpm', '6000']
  const attackers = Array.from({ length: ATTACKERS }, () => read(create, testbed.home.env))
  const { port, child } = await testbed.serve()
  const readerPort = await testbed.startBodyReader()
  const calls = testbed.keys.map(key => chatRequest(key, 'plain 0'))
  const stream = { perSecond: VICTIM_PER_SECOND, request: (at: number): Buffer => calls[at % calls.length]! }
  const measure = async (): Promise<Measurement> => {
    const sinceMs = servingMs(child.pid)
    const [tally] = await openLoop({ port, seconds, warmSeconds: 0, streams: [stream], connectionsMax: 200 })
    const { '200': served = 0, ...others } = tally!.count
    const ms = served === 0 ? Number.POSITIVE_INFINITY : tally!.ms(200, 0.5)
    return { ms, unserved: total(others), cpuMs: servingMs(child.pid) - sinceMs }
  }
  await measure()
  const titles = 'alone ms   reader ms  attack ms   reader  ratio  adds  unserved  each, ms'
  print(`${'median of ordinary calls'.padEnd(45)} ${titles}  answers to the attackers`)
  let isMet = true
  for (const { name } of attacks().filter(one => one.name.includes(values.only ?? ''))) {
    const alone: Measurement[] = []
    const readOnly: Measurement[] = []
    const attacked: Measurement[] = []
    const answers: Record<string, number> = {}
    for (let round = 0; round < rounds; round++) {
      alone.push(await measure())
      const sending = await startAttack(name, readerPort, attackers)
      readOnly.push(await measure())
      await sending.stop()
      await Bun.sleep(500)
      const attack = await startAttack(name, port, attackers)
      attacked.push(await measure())
      const got = Object.entries(await attack.stop())
      for (const [status, count] of got) answers[status] = (answers[status] ?? 0) + count
      await Bun.sleep(500)
    }
    const [aloneMs, readOnlyMs, attackedMs] = [alone, readOnly, attacked].map(list => median(list.map(({ ms }) => ms)))
    const ratios = [readOnlyMs! / aloneMs!, attackedMs! / aloneMs!]
    // If the bytes alone cost nothing, the gateway may add a fifth of the time of calls without an attack.
    const adds = attackedMs! / Math.max(aloneMs!, readOnlyMs!)
    const unserved = attacked.reduce((sum, one) => sum + one.unserved, 0)
    const cpuMs = (list: readonly Measurement[]): number => list.reduce((sum, one) => sum + one.cpuMs, 0)
    const eachMs = (cpuMs(attacked) - cpuMs(alone)) / Math.max(1, total(answers))
    const isWithin = adds <= most && unserved === 0
    isMet &&= isWithin
    const figures = [aloneMs!, readOnlyMs!, attackedMs!, ...ratios, adds].map(figure => figure.toFixed(2))
    const columns = [...figures, String(unserved), eachMs.toFixed(2)]
    const widths = [8, 11, 10, 8, 6, 5, 9, 9]
    const got = Object.entries(answers)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', ')
    const row = columns.map((column, at) => column.padStart(widths[at]!)).join(' ')
    print(`${name.padEnd(45)} ${row}  ${got}${isWithin ? '' : '  NO'}`)
  }
  print(`memory at most ${memoryPeak(child.pid).toFixed(0)} MB`)
  return isMet
}

if (values.attack !== undefined) {
  await runAttackers(values.attack, Number(values.port), values.keys!.split(','))
  process.exit(0)
}
printMachine()
const testbed = await Testbed.open()
let isMet = false
try {
  isMet = await measureAttacks(testbed)
} finally {
  testbed.close()
}
process.exit(isMet ? 0 : 1)
