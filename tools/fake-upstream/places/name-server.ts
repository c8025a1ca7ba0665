// F3 and F4: a name that does not exist, and a name server that does not answer.

import { createSocket } from 'node:dgram'
import type { AddressOptions, FaultyAddress, OpenAddress } from './place.ts'
import { loopback } from './place.ts'

const headBytes = 12
const isAnswer = 0x80
const nameError = 3

interface FakeNames {
  readonly name: string
  reply(query: Buffer): Buffer | undefined
}

async function startNameServer({ name, reply }: FakeNames, options: Partial<AddressOptions>): Promise<FaultyAddress> {
  const { host, port } = { ...loopback, ...options }
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (query, sender) => {
    const answer = query.length < headBytes ? undefined : reply(query)
    if (answer !== undefined) socket.send(answer, sender.port, sender.address)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, host, () => resolve())
  })
  return {
    origin: `http://${name}`,
    nameServer: `${host.includes(':') ? `[${host}]` : host}:${socket.address().port}`,
    openSockets: 0,
    stop: () => new Promise<void>(resolve => socket.close(() => resolve())),
  }
}

/** A name under `.invalid` (RFC 6761) does not exist at any other name server either. */
const UNKNOWN_NAME: FakeNames = {
  name: 'fake-upstream.invalid',
  reply(query) {
    const answer = Buffer.from(query)
    answer[2]! |= isAnswer
    answer[3] = nameError
    return answer
  },
}

const SILENT: FakeNames = { name: 'fake-upstream.test', reply: () => undefined }

export const openUnknownName: OpenAddress = (options = {}) => startNameServer(UNKNOWN_NAME, options)
export const openSilentNameServer: OpenAddress = (options = {}) => startNameServer(SILENT, options)
