// Tests addresses that fail before any HTTP is sent, with a client of plain sockets.

import { describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { addressFaults } from '../faults.ts'
import type { FaultyAddress } from './place.ts'

/** No bound on speed: a busy machine may be very slow. */
const HUNG_MS = 100_000

async function withFaultyAddress<T>(name: string, check: (address: FaultyAddress) => Promise<T>): Promise<T> {
  const address = await addressFaults.find(fault => fault.name === name)!.open()
  try {
    return await check(address)
  } finally {
    await address.stop()
  }
}

const portOf = ({ origin }: FaultyAddress): number => Number(new URL(origin).port)

/** The result of connecting: `connected`, the code of the error, or `no answer` after the time. */
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

/** The error of a TLS client that trusts the authority of the address. */
function tlsResult({ origin, authority }: FaultyAddress): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const port = Number(new URL(origin).port)
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority }, () => resolve('trusted'))
  socket.on('error', (fault: { code?: string; message: string }) => resolve(fault.code ?? fault.message))
  return promise.finally(() => socket.destroy())
}

describe('a faulty address', () => {
  test('refuses connections, and others cannot listen on its port', async () => {
    await withFaultyAddress('a port that nobody listens on', async address => {
      expect(await reach(portOf(address), HUNG_MS)).toBe('ECONNREFUSED')
      const taken = addressFaults.find(({ id }) => id === 'F6')!.open({ port: portOf(address) })
      await expect(taken).rejects.toThrow()
    })
  })

  test('with a full accept queue does not answer', async () => {
    await withFaultyAddress('a full accept queue', async address => {
      expect(await reach(portOf(address), 300)).toBe('no answer')
    })
  })

  test('accepts the connection and sends nothing', async () => {
    await withFaultyAddress('a handshake that does not come', async address => {
      expect(await reach(portOf(address), HUNG_MS)).toBe('connected')
      expect(address.origin).toStartWith('https://')
    })
  })
})

describe('a faulty host name', () => {
  const lookUp = async (nameServer: string, name: string, timeout: number): Promise<string> => {
    const resolver = new Resolver({ timeout, tries: 1 })
    resolver.setServers([nameServer])
    return await resolver.resolve4(name).then(String, (fault: { code: string }) => fault.code)
  }

  test('does not exist, or its name server does not answer', async () => {
    await withFaultyAddress('a name that does not exist', async ({ nameServer, origin }) => {
      expect(await lookUp(nameServer!, new URL(origin).hostname, HUNG_MS)).toMatch(/ENOTFOUND$/)
    })
    await withFaultyAddress('a name server that is silent', async ({ nameServer, origin }) => {
      expect(await lookUp(nameServer!, new URL(origin).hostname, 100)).toMatch(/TIMEOUT$/)
    })
  })
})

describe('a faulty certificate', () => {
  test('has exactly one defect', async () => {
    const names = ['an expired certificate', "another host's certificate", 'a certificate that vouches for itself']
    const results = await Promise.all(names.map(name => withFaultyAddress(name, tlsResult)))
    expect(results).toEqual(['CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID', 'DEPTH_ZERO_SELF_SIGNED_CERT'])
  })

  test('is issued by an authority that may issue certificates', async () => {
    await withFaultyAddress('an expired certificate', async ({ authority }) => {
      expect(new X509Certificate(authority!).ca).toBe(true)
    })
  })

  test('is not sent by an address without TLS', async () => {
    expect(await withFaultyAddress('no TLS at all', tlsResult)).not.toBe('trusted')
  })
})
