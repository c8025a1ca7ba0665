// Run by dns-lookups.test.ts as a process of its own, whose only name server never answers. Writes a line of JSON: the
// statuses of one account's compressed requests, before and while the lookups of another account wait.

import { gzipSync } from 'node:zlib'
import { openWebhookClient } from '../../src/http/client/webhook-client.ts'
import { modelOf, startDialects } from '../dialects/upstreams.ts'
import { mediaCall } from './media-calls.ts'

const queries: Buffer[] = []
await Bun.udpSocket({
  hostname: '127.0.0.1',
  port: 53,
  socket: { data: (_socket, query) => void queries.push(Buffer.from(query)) },
})
const harness = await startDialects()
const [attacker, other] = [await harness.key(), await harness.key()]
const url = `${harness.url}/v1/chat/completions`
const headersOf = (key: string) => ({ 'authorization': `Bearer ${key}`, 'content-type': 'application/json' })
const hello = gzipSync(JSON.stringify({ model: modelOf('openai-chat'), messages: [{ role: 'user', content: 'hi' }] }))

async function sendCompressed(): Promise<number> {
  const headers = { ...headersOf(other), 'content-encoding': 'gzip' }
  return (await fetch(url, { method: 'POST', headers, body: hello })).status
}

const before = await sendCompressed()
for (let call = 0; call < 8; call++) {
  const body = mediaCall(Array.from({ length: 4 }, (_, file) => `http://s${call}-${file}.slow.test/a.png`))
  void fetch(url, { method: 'POST', headers: headersOf(attacker), body })
}
// A webhook names a host as well.
const webhooks = openWebhookClient()
for (let call = 0; call < 8; call++) {
  void webhooks.post({ url: `https://w${call}.slow.test/`, headers: {}, body: '' }).catch(() => {})
}
while (queries.length === 0) await Bun.sleep(10)
const during = await sendCompressed()
process.stdout.write(`${JSON.stringify({ before, during })}\n`, () => process.exit(0))
