// A DNS server on a real UDP socket that changes its answers: each name has a list of answers, the last of which stays.

import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { ResolveName } from '../../src/http/address/name-lookup.ts'
import { ipv6Groups } from '../../src/http/address/public-address.ts'

export interface DnsServer {
  /** Its address and port. */
  readonly address: string
  /** Addresses of both families, answer by answer; none for a name that does not exist. */
  readonly answers: Map<string, string[][]>
  /** Names in the order of the queries. */
  readonly queries: readonly string[]
  /** Resolves a name by a real query. */
  readonly resolve: ResolveName
  stop(): Promise<void>
}

const HEAD_BYTES = 12
const NAME_ERROR = 3
const AAAA = 28

export async function startDnsServer(): Promise<DnsServer> {
  const answers = new Map<string, string[][]>()
  const queries: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, sender) => {
    const { name, end } = readName(query)
    queries.push(name)
    const row = answers.get(name) ?? [[]]
    const addresses = row.length > 1 ? row.shift()! : row[0]!
    socket.send(answerTo(query, end, addresses), sender.port, sender.address)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', () => resolve()))
  const resolver = new Resolver({ timeout: 60_000, tries: 1 })
  const address = `127.0.0.1:${socket.address().port}`
  resolver.setServers([address])
  return {
    address,
    answers,
    queries,
    resolve: name => resolver.resolve4(name),
    async stop() {
      resolver.cancel()
      await new Promise<void>(resolve => socket.close(() => resolve()))
    },
  }
}

function readName(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = HEAD_BYTES
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 }
}

/** With a TTL of zero, so that nobody may cache the answer. */
function answerTo(query: Buffer, end: number, addresses: readonly string[]): Buffer {
  const type = query[end - 3]!
  const ofType = addresses.filter(address => isIP(address) === (type === AAAA ? 6 : 4))
  const head = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, ofType.length, 0, 0, 0, 0])
  if (addresses.length === 0) head[3]! |= NAME_ERROR
  const records = ofType.map(address => {
    const bytes = Buffer.from(isIP(address) === 4 ? address.split('.').map(Number) : ipv6Bytes(address))
    return Buffer.concat([Buffer.from([0xc0, HEAD_BYTES, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes])
  })
  return Buffer.concat([head, query.subarray(HEAD_BYTES, end), ...records])
}

const ipv6Bytes = (address: string): readonly number[] =>
  ipv6Groups(address)!.flatMap(group => [group >> 8, group & 0xff])
