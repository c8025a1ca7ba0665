// Settings whose effect only shows when the whole gateway runs with them.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silence } from '../../tools/fake-upstream/answers.ts'
import { model, openCall, startHasty } from '../forwarding/caller.ts'
import { chat, hello } from '../support/gateway.ts'
import { post } from '../support/raw.ts'

/** The address that the log has for a refused call with a forwarded address. */
async function loggedAddress(env: Record<string, string>): Promise<unknown> {
  const harness = await startHasty({ env })
  try {
    const body = { model: 'nobody/x', messages: hello }
    const answer = await chat(harness, await harness.key(), body, { 'x-forwarded-for': '203.0.113.7' })
    expect(answer.status).toBe(404)
    const lines = harness.logs.map(line => JSON.parse(line) as { event: string; address?: string })
    return lines.find(line => line.event === 'call refused')?.address
  } finally {
    await harness.stop()
  }
}

test('a forwarded address counts only from a proxy that the operator named', async () => {
  expect(await loggedAddress({})).toBe('127.0.0.1')
  expect(await loggedAddress({ WEIR_TRUSTED_PROXIES: '10.0.0.0/8' })).toBe('127.0.0.1')
  expect(await loggedAddress({ WEIR_TRUSTED_PROXIES: '127.0.0.1' })).toBe('203.0.113.7')
})

test('WEIR_SILENCE_SECONDS sets when the head of a silent stream is sent', async () => {
  const harness = await startHasty({ env: { WEIR_SILENCE_SECONDS: '0' } })
  try {
    harness.upstream.plan(silence())
    const caller = openCall(harness, await harness.key(), { stream: true })
    await caller.until(({ head }) => head !== '', 'the head has arrived')
    expect([caller.status, caller.header('X-Pipeline-Adapter')]).toEqual([200, undefined])
    caller.leave()
    await harness.idle()
  } finally {
    await harness.stop()
  }
})

test('weir runs through a symbolic link, as npm installs it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-link-'))
  try {
    symlinkSync(join(import.meta.dir, '..', '..', 'bin', 'weir'), join(folder, 'weir'))
    symlinkSync('weir', join(folder, 'again'))
    const { exitCode, stdout } = Bun.spawnSync([join(folder, 'again'), 'help'])
    expect([exitCode, stdout.toString().split('\n')[0]]).toEqual([0, 'Usage: weir <command>'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Sends a call on a connection of its own; resolves with the status when the gateway closes the connection. */
function untilClosed(url: string, key: string, body: object): Promise<string> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const bytes = post('/v1/chat/completions', headers, JSON.stringify({ model, messages: hello, ...body }))
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    let received = ''
    socket.on('data', data => (received += data.toString('latin1')))
    socket.on('error', reject)
    socket.on('close', () => resolve(received.slice(9, 12)))
  })
}

test('a connection that is silent after its answer is closed, whatever the answer was', async () => {
  const harness = await startHasty({ world: { answeredSeconds: 1 } })
  try {
    const key = await harness.key()
    const bodies = [{}, { stream: true }, { messages: [] }]
    const statuses = await Promise.all(bodies.map(body => untilClosed(harness.url, key, body)))
    expect(statuses).toEqual(['200', '200', '400'])
  } finally {
    await harness.stop()
  }
})

/**
 * Sends the bytes, and then a byte from time to time; resolves with the status when the gateway closes the connection.
 */
function untilClosedDripping(url: string, bytes: string): Promise<string> {
  return new Promise(resolve => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    const drops = setInterval(() => socket.writable && socket.write('x'), 100)
    let received = ''
    socket.on('data', data => (received += data.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearInterval(drops)
      resolve(received.slice(9, 12))
    })
  })
}

test('a body that is refused unread cannot keep its connection open, however long it goes on', async () => {
  const harness = await startHasty({ world: { idleSeconds: 1, answeredSeconds: 1 } })
  try {
    const head = (path: string, more: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n\r\n`
    const key = `Authorization: Bearer ${await harness.key()}\r\n`
    const [chats, length] = ['/v1/chat/completions', 'Content-Length: 900000']
    const statuses = await Promise.all([
      untilClosedDripping(harness.url, head(chats, length)),
      untilClosedDripping(harness.url, head(chats, 'Transfer-Encoding: chunked')),
      untilClosedDripping(harness.url, head(chats, `${key}Content-Type: text/plain\r\n${length}`)),
      untilClosedDripping(harness.url, head(chats, `${key}Content-Type: application/json\r\nContent-Length: 99000000`)),
      untilClosedDripping(harness.url, head('/nowhere', length)),
      // A complete request, after which the head of the next one does not end.
      untilClosedDripping(harness.url, `${head(chats, 'Content-Length: 2')}{}POST / HTTP/1.1\r\nX: `),
    ])
    expect(statuses).toEqual(['401', '401', '415', '413', '404', '401'])
  } finally {
    await harness.stop()
  }
})
