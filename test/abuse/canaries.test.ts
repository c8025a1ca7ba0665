// An upstream and a proxy that repeat whatever they were told: what is secret comes to light nowhere.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { scripted } from '../../tools/fake-upstream/script.ts'
import type { ProxyServer } from '../network/proxy-server.ts'
import { startProxy } from '../network/proxy-server.ts'
import type { Tenants } from './tenants.ts'
import { channelOf, startTenants } from './tenants.ts'

const RIVER = 'canary-river-key-0123456789'
const PASSWORD = 'canary-proxy-password'
const basic = Buffer.from(`joe:${PASSWORD}`).toString('base64')

let tenants: Tenants
let [honest, telltale]: ProxyServer[] = []
let key: string
const said: string[] = []

beforeAll(async () => {
  tenants = await startTenants(RIVER, { env: { METRICS_PORT: '0', WEIR_ACCESS_LOG: 'on' } })
  key = (await tenants.operate('keys create', { tier: 'pro', credit: '5', explain: 'on' })).key as string
  honest = await startProxy({ credentials: `joe:${PASSWORD}` })
  telltale = await startProxy({
    misbehave(socket, head) {
      const body = JSON.stringify({ error: { message: head, type: 'invalid_request_error', code: head } })
      socket.end(`HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    },
  })
})
afterAll(async () => {
  await tenants.stop()
  await honest!.stop()
  await telltale!.stop()
})

async function ask(headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(`${tenants.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'river/small', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  said.push(JSON.stringify([...answer.headers]), await answer.text())
  return answer.status
}

const by = (proxy: ProxyServer): Promise<unknown> =>
  tenants.operate('channels set', { channel: channelOf(RIVER), proxy: proxy.url(`joe:${PASSWORD}`) })

test('through a proxy, explained, refused and repeated', async () => {
  await by(honest!)
  expect(await ask()).toBe(200)
  expect(await ask({ 'x-weir-explain': 'dry' })).toBe(200)
  tenants.upstream.plan(scripted(({ rawHead }) => jsonAnswer(400, JSON.stringify({ error: { message: rawHead } }))))
  expect(await ask()).toBe(400)
  await by(telltale!)
  expect(await ask()).toBe(400)
  expect(telltale!.heads.join()).toContain(basic)
  for (const command of ['channels list', 'routes list', 'limits list']) {
    said.push(JSON.stringify(await tenants.operate(command, {})))
  }
  await tenants.idle()
  const metrics = /http:\S+\/metrics/.exec(tenants.logs.find(line => line.includes('"metrics"'))!)![0]
  const told = await (await fetch(metrics)).text()
  expect(told).toContain('weir_attempts_total{channel="river#')
  said.push(told, JSON.stringify(await tenants.manage('POST', '/machine/doctor')))
})

test.each([RIVER, PASSWORD, basic])('%s is in no answer, no log and no file', secret => {
  expect(said.length).toBeGreaterThan(8)
  for (const text of said) expect(text).not.toContain(secret)
  expect(tenants.logs.join()).not.toContain(secret)
  const paths = readdirSync(tenants.folder).map(name => join(tenants.folder, name))
  for (const path of paths.filter(one => statSync(one).isFile())) {
    expect([path, readFileSync(path).includes(secret)]).toEqual([path, false])
  }
})
