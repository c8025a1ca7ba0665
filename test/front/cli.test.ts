// bin/weir as a process: the first start and the second, commands with and without a running gateway, and how it stops.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { pausedStream, silence } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, CHAT, expectStages, goodBody, lines, reached } from './asking.ts'
import type { Served } from './weir-process.ts'
import { cleanUp, freshFolder, serve, shell, stopServed, weir, weirSays } from './weir-process.ts'

let slowHead: Promise<string>

beforeAll(async () => {
  // Started here, because it takes long while the other tests run.
  slowHead = dripHead(await serve(freshFolder()))
})
afterAll(cleanUp)

async function dripHead(served: Served): Promise<string> {
  const { hostname, port } = new URL(served.url)
  const socket = net.connect(Number(port), hostname, () => socket.write('GET / HTTP/1.1\r\nhost: weir\r\nx-slow: '))
  socket.on('error', () => {})
  const drops = setInterval(() => socket.writable && socket.write('a'), 1_000)
  await until(() => socket.destroyed, 'the connection is closed').finally(() => clearInterval(drops))
  return 'cut off'
}

/** The gateway counts a signal as a second one only if it comes at least a second after the first. */
const SECOND_SIGNAL_MS = 1_100

const KEY = /wk-[0-9A-Za-z]{36}/
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const callDemo = (served: Served, key: string): Promise<RawAnswer> =>
  rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))
const getMe = (served: Served, token: string): Promise<RawAnswer> =>
  rawRequest(served.url, ask('GET', '/api/web/me', bearer(token)))

describe('a data folder, from its first start on:', () => {
  const folder = freshFolder()
  let served: Served
  let firstKey: string
  let setupToken: string
  let revoked: string

  test('the first start prints the address, a set-up token, a key and a command to try', async () => {
    served = await serve(folder)
    firstKey = KEY.exec(served.said())![0]
    setupToken = /Set-up token[^\n]*\s([A-Za-z0-9_-]{22})\n/.exec(served.said())![1]!
    expect(served.said()).toContain(`curl -i ${served.url}${CHAT} \\\n`)
    expect(served.url).toStartWith('http://127.0.0.1:')
  })

  test('the printed command works unchanged, and its answer has all five headers', async () => {
    const line = /^ *(curl -i [^]*?\}')$/m.exec(served.said())![1]!
    const { code, stdout } = await shell(line, folder)
    expect(code).toBe(0)
    const answer = Buffer.from(stdout, 'utf8').toString('latin1').replaceAll('\r\n', '\n')
    expect(answer).toStartWith('HTTP/1.1 200 OK\n')
    const stages = [lines.authPass('standard'), lines.limitPass(), lines.routePass('demo', 'echo'), lines.adapterDone()]
    for (const shape of [...stages, lines.breakdown()]) expect(answer).toMatch(new RegExp(`^${shape}$`, 'm'))
    expect(answer).toContain('"content":"Hello, river"')
  })

  test('the printed key has no balance to run out, until a budget is set', async () => {
    expect(await weirSays(folder, `balance ${firstKey}`)).toMatch(/available +no limit/)
    await weirSays(folder, `budgets set ${firstKey} day 0.000000001`)
    expect((await callDemo(served, firstKey)).status).toBe(402)
    await weirSays(folder, `budgets set ${firstKey} day none`)
    expect((await callDemo(served, firstKey)).status).toBe(200)
  })

  test('no other user of the machine may read its secrets or connect to its control socket', () => {
    expect(modeOf(folder)).toBe('700')
    const files = ['weir.sock', 'pepper', 'jwt-secret']
    expect(files.map(file => [file, modeOf(join(folder, file))])).toEqual(files.map(file => [file, '600']))
  })

  test('a second gateway on the folder is refused with a message, and the first is not disturbed', async () => {
    const { code, stdout, stderr } = await weir(folder, 'serve')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^weir: Another Weir is using the data folder .*\.\n$/)
    expect((await callDemo(served, firstKey)).status).toBe(200)
    expect(await weirSays(folder, `keys show ${firstKey}`)).toContain('active')
  })

  test('while the gateway runs, a new key works at once, with its tier, credit and limit', async () => {
    const key = await weirSays(folder, 'keys create --tier pro --credit 2.5 --qpm 2 --name mine')
    expect(key).toMatch(/^wk-[0-9A-Za-z]{36}$/)
    expect(await weirSays(folder, `keys show ${key}`)).toMatch(/name +mine\n[^]*tier +pro\n[^]*state +active\n/)
    const account = /name +mine\nbalance +2\.50\nheld +0\.00\navailable +2\.50$/
    expect(await weirSays(folder, `balance ${key}`)).toMatch(account)
    const first = await callDemo(served, key)
    expect(first.status).toBe(200)
    expect(first.header('x-ratelimit-limit-requests')).toBe('2')
    await callDemo(served, key)
    expect((await callDemo(served, key)).status).toBe(429)
    const left = /balance +(\S+)/.exec(await weirSays(folder, `balance ${key}`))![1]
    expect(Number(left)).toBeLessThan(2.5)
    expect(Number(left)).toBeGreaterThan(2.4)
  })

  test('while the gateway runs, a revoked key is refused at once', async () => {
    revoked = await weirSays(folder, 'keys create --tier free --credit 1')
    expect((await callDemo(served, revoked)).status).toBe(200)
    expect(await weirSays(folder, `keys revoke ${revoked}`)).toContain('revoked')
    expect((await callDemo(served, revoked)).status).toBe(401)
    expect(await weirSays(folder, `keys show ${revoked}`)).toMatch(/state +revoked/)
  })

  test('while the gateway runs, a management token and a new set-up token are printed', async () => {
    expect((await getMe(served, await weirSays(folder, 'token'))).status).toBe(200)
    const fresh = await weirSays(folder, 'setup --token')
    expect(fresh).toMatch(/^[A-Za-z0-9_-]{22}$/)
    expect(fresh).not.toBe(setupToken)
  })

  test('SIGTERM stops the gateway cleanly, and its log holds no secret', async () => {
    expect(await stopServed(served)).toBe(0)
    expect(served.logged()).toContain('"stopped"')
    expect(served.logged()).not.toMatch(KEY)
    expect(served.logged()).not.toContain(setupToken)
  })

  test('the second start prints no key but another set-up token, and all data is still there', async () => {
    const offline = await weirSays(folder, 'keys create --tier pro --credit 1')
    const gone = await weirSays(folder, 'keys create --tier pro --credit 1')
    expect(await weirSays(folder, `keys revoke ${gone}`)).toContain('revoked')
    expect(await weirSays(folder, `balance ${firstKey}`)).toMatch(/balance +-0\.0000\d+/)
    const [token, fresh] = [await weirSays(folder, 'token'), await weirSays(folder, 'setup --token')]
    expect(fresh).toMatch(/^[A-Za-z0-9_-]{22}$/)

    served = await serve(folder)
    expect(served.said()).not.toMatch(KEY)
    const another = /Set-up token[^\n]*\s([A-Za-z0-9_-]{22})\n/.exec(served.said())![1]!
    expect([setupToken, fresh]).not.toContain(another)
    expect(served.logged()).not.toMatch(/wk-|token/i)
    expect((await callDemo(served, firstKey)).status).toBe(200)
    expect((await callDemo(served, offline)).status).toBe(200)
    for (const key of [gone, revoked]) expect((await callDemo(served, key)).status).toBe(401)
    expect((await getMe(served, token)).status).toBe(200)
    served.kill('SIGINT')
    expect(await served.exited).toBe(0)
  })
})

describe('a stop in the middle of a call', () => {
  let upstream: FakeUpstream
  const serveWithUpstream = async (folder: string, env: Record<string, string> = {}): Promise<Served> => {
    upstream = await startFakeUpstream()
    return await serve(folder, { OPENAI_API_KEY: 'sk-upstream', OPENAI_BASE_URL: `${upstream.url}/v1`, ...env })
  }
  const stream = (served: Served, key: string): Promise<Response> =>
    fetch(served.url + CHAT, {
      method: 'POST',
      headers: { ...bearer(key), 'content-type': 'application/json' },
      body: goodBody({ stream: true }),
    })
  const figures = async (folder: string, key: string): Promise<readonly string[]> =>
    /balance +(\S+)\nheld +(\S+)/.exec(await weirSays(folder, `balance ${key}`))!.slice(1)

  test('by kill -9 keeps key and balance, and the next start releases the hold', async () => {
    const folder = freshFolder()
    let served = await serveWithUpstream(folder)
    const key = KEY.exec(served.said())![0]
    expect((await callDemo(served, key)).status).toBe(200)
    const [balance, heldBefore] = await figures(folder, key)
    expect(heldBefore).toBe('0.00')
    upstream.plan(silence())
    const received = upstream.nextRequest()
    const cut = rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody())).catch(() => 'cut')
    await received
    const [during, held] = await figures(folder, key)
    expect([during, Number(held) > 0]).toEqual([balance!, true])
    served.kill('SIGKILL')
    await served.exited
    expect(await cut).toBe('cut')

    served = await serve(folder, { OPENAI_API_KEY: 'sk-upstream', OPENAI_BASE_URL: `${upstream.url}/v1` })
    expect(served.said()).not.toMatch(KEY)
    expect(await figures(folder, key)).toEqual([balance!, '0.00'])
    const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody()))
    expect(answer.status).toBe(200)
    expectStages(answer, [lines.authPass('standard'), ...reached.answered.slice(1)])
    expect(await stopServed(served)).toBe(0)
    await upstream.stop()
  })

  test('by SIGTERM refuses new calls, and lets a running stream finish', async () => {
    const folder = freshFolder()
    // Long enough to see that the gateway is not ready, also for a slow machine.
    const served = await serveWithUpstream(folder, { WEIR_DRAIN_DELAY_SECONDS: '6' })
    const key = KEY.exec(served.said())![0]
    const proceed = Promise.withResolvers<void>()
    upstream.plan(pausedStream(['Hello, ', 'river'], proceed.promise))
    const answer = await stream(served, key)
    const reader = answer.body!.getReader()
    const decoder = new TextDecoder()
    let text = decoder.decode((await reader.read()).value)
    expect(text).toContain('Hello, ')
    served.kill('SIGTERM')
    await until(() => served.logged().includes('"draining"'), 'it drains')
    expect((await rawRequest(served.url, ask('GET', '/health/ready'))).status).toBe(503)
    let isTaken = true
    while (isTaken) {
      isTaken = await rawRequest(served.url, ask('GET', '/health/live')).then(
        () => true,
        () => false,
      )
      await Bun.sleep(20)
    }
    proceed.resolve()
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += decoder.decode(read.value)
    expect(text).toContain('river')
    expect(text).toEndWith('data: [DONE]\n\n')
    expect(await served.exited).toBe(0)
    const [balance, held] = await figures(folder, key)
    expect([Number(balance) < 10, held]).toEqual([true, '0.00'])
    await upstream.stop()
  })

  test('by a second SIGTERM ends the stream with an error of its dialect, settled', async () => {
    const folder = freshFolder()
    const served = await serveWithUpstream(folder)
    const key = KEY.exec(served.said())![0]
    upstream.plan(pausedStream(['Hello, ', 'river'], new Promise(() => {})))
    const text = (await stream(served, key)).text()
    served.kill('SIGTERM')
    await until(() => served.logged().includes('"draining"'), 'it drains')
    await Bun.sleep(SECOND_SIGNAL_MS)
    served.kill('SIGTERM')
    expect(await text).toMatch(/data: \{"error":\{.*\}\}?.*\n\ndata: \[DONE\]\n\n$/)
    expect(await served.exited).toBe(0)
    expect((await figures(folder, key))[1]).toBe('0.00')
    await upstream.stop()
  })
})

describe('a request head that does not end', () => {
  test('is cut off, even if it arrives byte by byte', async () => {
    expect(await slowHead).toBe('cut off')
  })
})
