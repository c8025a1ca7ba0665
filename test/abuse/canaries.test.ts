// An upstream and a proxy repeat the request that they got. Secrets in it appear in no answer, log or file.

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
let [honest, echoing]: ProxyServer[] = []
let key: string
const outputs: string[] = []

beforeAll(async () => {
  tenants = await startTenants(RIVER, { env: { METRICS_PORT: '0', WEIR_ACCESS_LOG: 'on' } })
  key = (await tenants.operate('keys create', { tier: 'pro', credit: '5', explain: 'on' })).key as string
  honest = await startProxy({ credentials: `joe:${PASSWORD}` })
  echoing = await startProxy({
    misbehave(socket, head) {
      const body = JSON.stringify({ error: { message: head, type: 'invalid_request_error', code: head } })
      socket.end(`HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    },
  })
})
afterAll(async () => {
  await tenants.stop()
  await honest!.stop()
  await echoing!.stop()
})

async function ask(headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(`${tenants.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'river/small', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  outputs.push(JSON.stringify([...answer.headers]), await answer.text())
  return answer.status
}

const useProxy = (proxy: ProxyServer): Promise<unknown> =>
  tenants.operate('channels set', { channel: channelOf(RIVER), proxy: proxy.url(`joe:${PASSWORD}`) })

test('calls go through a proxy, are explained, refused, and echoed by upstream and proxy', async () => {
  await useProxy(honest!)
  expect(await ask()).toBe(200)
  expect(await ask({ 'x-weir-explain': 'dry' })).toBe(200)
  tenants.upstream.plan(scripted(({ rawHead }) => jsonAnswer(400, JSON.stringify({ error: { message: rawHead } }))))
  expect(await ask()).toBe(400)
  await useProxy(echoing!)
  expect(await ask()).toBe(400)
  expect(echoing!.heads.join()).toContain(basic)
  for (const command of ['channels list', 'routes list', 'limits list']) {
    outputs.push(JSON.stringify(await tenants.operate(command, {})))
  }
  await tenants.idle()
  const metricsUrl = /http:\S+\/metrics/.exec(tenants.logs.find(line => line.includes('"metrics"'))!)![0]
  const metricsText = await (await fetch(metricsUrl)).text()
  expect(metricsText).toContain('weir_attempts_total{channel="river#')
  outputs.push(metricsText, JSON.stringify(await tenants.manage('POST', '/machine/doctor')))
})

test.each([RIVER, PASSWORD, basic])('%s is in no answer, no log and no file', secret => {
  expect(outputs.length).toBeGreaterThan(8)
  for (const text of outputs) expect(text).not.toContain(secret)
  expect(tenants.logs.join()).not.toContain(secret)
  const paths = readdirSync(tenants.folder).map(name => join(tenants.folder, name))
  for (const path of paths.filter(one => statSync(one).isFile())) {
    expect([path, readFileSync(path).includes(secret)]).toEqual([path, false])
  }
})
