// Places that are at fault before anything is said: each as a client of plain sockets sees it.

import { describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { addressFaults } from '../faults.ts'
import type { FaultyAddress } from './place.ts'

async function withPlace<T>(name: string, look: (place: FaultyAddress) => Promise<T>): Promise<T> {
  const place = await addressFaults.find(fault => fault.name === name)!.open()
  try {
    return await look(place)
  } finally {
    await place.stop()
  }
}

const portOf = ({ origin }: FaultyAddress): number => Number(new URL(origin).port)

/** What comes of connecting: `connected`, the error's code, or nothing within the time. */
function reach(port: number, withinMs: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(port, '127.0.0.1', () => resolve('connected'))
  socket.on('error', (fault: { code?: string }) => resolve(fault.code ?? 'broken'))
  const timer = setTimeout(() => resolve('no answer'), withinMs)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

/** Why a client that trusts the place's authority refuses it. */
function shake({ origin, authority }: FaultyAddress): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const port = Number(new URL(origin).port)
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority }, () => resolve('trusted'))
  socket.on('error', (fault: { code?: string; message: string }) => resolve(fault.code ?? fault.message))
  return promise.finally(() => socket.destroy())
}

describe('an address', () => {
  test('refuses, and keeps its port from others', async () => {
    await withPlace('a port that nobody listens on', async place => {
      expect(await reach(portOf(place), 5_000)).toBe('ECONNREFUSED')
      const taken = addressFaults.find(({ id }) => id === 'F6')!.open({ port: portOf(place) })
      await expect(taken).rejects.toThrow()
    })
  })

  test('does not answer', async () => {
    await withPlace('a full accept queue', async place => {
      expect(await reach(portOf(place), 300)).toBe('no answer')
    })
  })

  test('takes the connection and says nothing', async () => {
    await withPlace('a handshake that does not come', async place => {
      expect(await reach(portOf(place), 5_000)).toBe('connected')
      expect(place.origin).toStartWith('https://')
    })
  })
})

describe('a name', () => {
  const lookUp = async (nameServer: string, name: string): Promise<string> => {
    const resolver = new Resolver({ timeout: 100, tries: 1 })
    resolver.setServers([nameServer])
    return await resolver.resolve4(name).then(String, (fault: { code: string }) => fault.code)
  }

  test('does not exist, or nobody says', async () => {
    await withPlace('a name that does not exist', async ({ nameServer, origin }) => {
      expect(await lookUp(nameServer!, new URL(origin).hostname)).toMatch(/ENOTFOUND$/)
    })
    await withPlace('a name server that is silent', async ({ nameServer, origin }) => {
      expect(await lookUp(nameServer!, new URL(origin).hostname)).toMatch(/TIMEOUT$/)
    })
  })
})

describe('a certificate', () => {
  test('has what is wrong with it, and nothing else', async () => {
    const seen = ['an expired certificate', "another host's certificate", 'a certificate that vouches for itself']
    const told = await Promise.all(seen.map(name => withPlace(name, shake)))
    expect(told).toEqual(['CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID', 'DEPTH_ZERO_SELF_SIGNED_CERT'])
  })

  test('is of an authority that vouches for hosts', async () => {
    await withPlace('an expired certificate', async ({ authority }) => {
      expect(new X509Certificate(authority!).ca).toBe(true)
    })
  })

  test('is not shown where TLS is not spoken', async () => {
    expect(await withPlace('no TLS at all', shake)).not.toBe('trusted')
  })
})
