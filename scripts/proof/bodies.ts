// What request bodies that were made to cost much cost everybody else: each of the worst that fit under a bound, sent
// again and again, while other callers make ordinary calls. Prints their median without and with it, in one run and in
// turns, and the ratio of the two. The same bytes are also sent to a server beside the gateway, on the same core, that
// only reads them: that ratio is what bytes cost on a machine that sends, receives and measures all by itself. The
// gateway may add a fifth to it. Ends non-zero where it adds more.
//
//   bin/weir-bun scripts/proof/bodies.ts [--seconds 8] [--rounds 3] [--only text] [--most 1.2]
//
// Whoever attacks has keys without credit, each of an account of its own, or no key at all, and is another process.
// On a machine that does other things the ratio is theirs as well; what each bad request took of the thread that serves
// calls is told by the system's own account of that thread, which is not.

import { readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import zlib from 'node:zlib'
import { memoryPeak } from '../../bench/system/proc.ts'
import { read, root } from '../../bench/system/workbench.ts'
import { callOf, House, say, sayMachine } from './load/house.ts'
import { openLoop } from './load/loops.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    only: { type: 'string' },
    most: { type: 'string' },
    /** In the process that attacks: the name of the attack, and how it is done. */
    attack: { type: 'string' },
    port: { type: 'string' },
    keys: { type: 'string' },
  },
})
/** Long enough for the rests of the threads that read large bodies. */
const seconds = Number(values.seconds ?? '8')
const rounds = Number(values.rounds ?? '3')
const most = Number(values.most ?? '1.2')

const MIB = 1024 * 1024
const ATTACKERS = 4
/** Of each attacker, after an answer; and after a large body, which else would be a matter of the line only. */
const PAUSE_MS = 250
const LARGE_PAUSE_MS = 2_000
/** One that was to stand still and was refused does not come again at once: that would be a flood of connections. */
const UNENDED_PAUSE_MS = 10_000
const VICTIM_PER_SECOND = 40

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: bytes => zlib.gzipSync(bytes),
  deflate: bytes => zlib.deflateSync(bytes),
  br: bytes => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: bytes => zlib.zstdCompressSync(bytes),
}

type Headers = Readonly<Record<string, string>>

/** One request, as it is sent; `unended` leaves its last byte out. */
interface Bad {
  readonly path: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly unended?: boolean
}

interface Attack {
  readonly name: string
  /** How many are sent at once, each on a connection of its own; with pauses unless they do not end. */
  readonly connections: number
  request(key: string): Bad
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

/** Compresses to a little more than a hundredth, which is as far as a body may. */
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

const made = <T>(make: () => T): (() => T) => {
  let value: T | undefined
  return () => (value ??= make())
}

function attacks(): readonly Attack[] {
  const large = Object.entries(bodies).map(([name, make]): Attack => {
    const body = made(make)
    return { name, connections: 1, request: key => ({ path: CHAT, headers: withKey(key), body: body() }) }
  })
  const packed = Object.entries(encoders).flatMap(([name, encode]): readonly Attack[] => {
    const headers = { 'content-encoding': name }
    const [far, near, small] = [
      made(() => encode(filled('\\"', 32 * MIB))),
      made(() => encode(bombs('\\"'))),
      made(() => encode(filled('[', 500_000))),
    ]
    const one = { connections: 1 }
    return [
      { ...one, name: `${name}: a bomb`, request: key => bad(withKey(key, headers), far()) },
      { ...one, name: `${name}: near the bound`, request: key => bad(withKey(key, headers), near()) },
      { name: `${name}: signing in`, connections: 8, request: () => ({ path: SIGN_IN, headers, body: small() }) },
    ]
  })
  const others = dialects.slice(1).map((path): Attack => {
    const body = made(() => inContent(filled('\\"', 16 * MIB)))
    const request = (key: string): Bad => ({ path, headers: withKey(key), body: body() })
    return { name: `quotes to ${path}`, connections: 1, request }
  })
  return [...large, ...packed, ...others, ...slow]
}

const SIGN_IN = '/api/auth/setup'
const bad = (headers: Headers, body: Uint8Array): Bad => ({ path: CHAT, headers, body })

const slow: readonly Attack[] = [
  {
    name: 'depth, signing in',
    connections: 8,
    request: () => ({ path: SIGN_IN, headers: {}, body: filled('[', 16 * 1024) }),
  },
  {
    name: '2,000 bodies that do not end, signing in',
    connections: 500,
    request: () => ({ path: SIGN_IN, headers: {}, body: filled(' ', 16 * 1024), unended: true }),
  },
  {
    name: '2,000 bodies that do not end, of callers',
    connections: 500,
    request: key => ({ path: CHAT, headers: withKey(key), body: filled(' ', 64 * 1024), unended: true }),
  },
]

function bytesOf({ path, headers, body, unended }: Bad): Buffer {
  const all = { 'host': 'weir', 'content-type': 'application/json', 'content-length': String(body.length), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  const head = [`POST ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head), unended ? body.subarray(0, -1) : body])
}

/** Sends until it is stopped; counts what was answered. */
class Attacker {
  readonly answered: Record<string, number> = {}
  #isOver = false
  readonly #sockets = new Set<net.Socket>()

  async run(port: number, bytes: Buffer, isUnended: boolean): Promise<void> {
    while (!this.#isOver) {
      const status = await this.#send(port, bytes, isUnended)
      this.answered[status] = (this.answered[status] ?? 0) + 1
      await this.#pause(isUnended ? UNENDED_PAUSE_MS : bytes.length > MIB ? LARGE_PAUSE_MS : PAUSE_MS)
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

  #send(port: number, bytes: Buffer, isUnended: boolean): Promise<string> {
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
      socket.on('close', () => end(isUnended ? 'unended' : 'closed'))
    })
  }
}

const median = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!

/** Sends until its input ends, and tells what it was answered. */
async function attackNow(name: string, port: number, keys: readonly string[]): Promise<void> {
  const attack = attacks().find(one => one.name === name)!
  const attacker = new Attacker()
  const bytes = keys.map(key => attack.request(key)).map(one => ({ bytes: bytesOf(one), isUnended: !!one.unended }))
  process.stdout.write('ready\n')
  const sent = bytes.flatMap(({ bytes: all, isUnended }) =>
    Array.from({ length: attack.connections }, () => attacker.run(port, all, isUnended)),
  )
  for await (const _ of process.stdin);
  attacker.stop()
  await Promise.all(sent)
  process.stdout.write(JSON.stringify(attacker.answered))
}

interface Begun {
  stop(): Promise<Record<string, number>>
}

/** Resolves when it is about to send. */
async function beginAttack(name: string, port: number, keys: readonly string[]): Promise<Begun> {
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

/** Milliseconds that the first thread of a process has had a processor: the one that serves calls. */
const servingMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6

interface Seen {
  readonly ms: number
  readonly unserved: number
  /** Of the thread that serves calls. */
  readonly cpuMs: number
}

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, one) => sum + one, 0)

async function prove(house: House): Promise<boolean> {
  const create = [join(root, 'bin', 'weir'), 'keys', 'create', '--tier', 'pro', '--credit', '0', '--qpm', '6000']
  const attackers = Array.from({ length: ATTACKERS }, () => read(create, house.home.env))
  const { port, child } = await house.serve()
  const drainPort = await house.drain()
  const calls = house.keys.map(key => callOf(key, 'plain 0'))
  const stream = { perSecond: VICTIM_PER_SECOND, request: (at: number): Buffer => calls[at % calls.length]! }
  const listen = async (): Promise<Seen> => {
    const sinceMs = servingMs(child.pid)
    const [tally] = await openLoop({ port, seconds, warmSeconds: 0, streams: [stream], linesMax: 200 })
    const { '200': served = 0, ...others } = tally!.count
    const ms = served === 0 ? Number.POSITIVE_INFINITY : tally!.ms(200, 0.5)
    return { ms, unserved: total(others), cpuMs: servingMs(child.pid) - sinceMs }
  }
  await listen()
  const titles = 'alone ms  drained ms  beside ms  drained  ratio  adds  unserved  each, ms'
  say(`${'median of the others'.padEnd(45)} ${titles}  what the attackers got`)
  let isMet = true
  for (const { name } of attacks().filter(one => one.name.includes(values.only ?? ''))) {
    const alone: Seen[] = []
    const drained: Seen[] = []
    const beside: Seen[] = []
    const answered: Record<string, number> = {}
    for (let round = 0; round < rounds; round++) {
      alone.push(await listen())
      const sending = await beginAttack(name, drainPort, attackers)
      drained.push(await listen())
      await sending.stop()
      await Bun.sleep(500)
      const attack = await beginAttack(name, port, attackers)
      beside.push(await listen())
      const got = Object.entries(await attack.stop())
      for (const [status, count] of got) answered[status] = (answered[status] ?? 0) + count
      await Bun.sleep(500)
    }
    const [aloneMs, drainedMs, besideMs] = [alone, drained, beside].map(list => median(list.map(({ ms }) => ms)))
    const ratios = [drainedMs! / aloneMs!, besideMs! / aloneMs!]
    // Bytes that cost nobody anything leave a fifth of what calls take alone.
    const adds = besideMs! / Math.max(aloneMs!, drainedMs!)
    const unserved = beside.reduce((sum, one) => sum + one.unserved, 0)
    const cpuMs = (list: readonly Seen[]): number => list.reduce((sum, one) => sum + one.cpuMs, 0)
    const eachMs = (cpuMs(beside) - cpuMs(alone)) / Math.max(1, total(answered))
    const isWell = adds <= most && unserved === 0
    isMet &&= isWell
    const figures = [aloneMs!, drainedMs!, besideMs!, ...ratios, adds].map(figure => figure.toFixed(2))
    const columns = [...figures, String(unserved), eachMs.toFixed(2)]
    const widths = [8, 11, 10, 8, 6, 5, 9, 9]
    const got = Object.entries(answered)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', ')
    const row = columns.map((column, at) => column.padStart(widths[at]!)).join(' ')
    say(`${name.padEnd(45)} ${row}  ${got}${isWell ? '' : '  NO'}`)
  }
  say(`memory at most ${memoryPeak(child.pid).toFixed(0)} MB`)
  return isMet
}

if (values.attack !== undefined) {
  await attackNow(values.attack, Number(values.port), values.keys!.split(','))
  process.exit(0)
}
sayMachine()
const house = await House.open()
let isMet = false
try {
  isMet = await prove(house)
} finally {
  house.close()
}
process.exit(isMet ? 0 : 1)
