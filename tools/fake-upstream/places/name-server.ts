// F3 and F4: a name that does not exist, and a name server that does not answer.

import { createSocket } from 'node:dgram'
import type { FaultyPlace, OpenPlace, PlaceOptions } from './place.ts'
import { loopback } from './place.ts'

const headBytes = 12
const isAnswer = 0x80
const nameError = 3

interface Names {
  readonly name: string
  reply(query: Buffer): Buffer | undefined
}

async function openNames({ name, reply }: Names, options: Partial<PlaceOptions>): Promise<FaultyPlace> {
  const { host, port } = { ...loopback, ...options }
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (query, sender) => {
    const said = query.length < headBytes ? undefined : reply(query)
    if (said !== undefined) socket.send(said, sender.port, sender.address)
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

/** Of a kind that no other name server knows either (RFC 6761). */
const nowhere: Names = {
  name: 'fake-upstream.invalid',
  reply(query) {
    const answer = Buffer.from(query)
    answer[2]! |= isAnswer
    answer[3] = nameError
    return answer
  },
}

const silent: Names = { name: 'fake-upstream.test', reply: () => undefined }

export const openNowhere: OpenPlace = (options = {}) => openNames(nowhere, options)
export const openSilentNames: OpenPlace = (options = {}) => openNames(silent, options)
