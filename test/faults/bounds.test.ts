// Properties of faults that no verdict covers: redirects are not followed, wrong lengths do not defeat a bound, and a
// provider that fails now and then is tried again each time.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { buildFaults, buildFlappingScripts } from '../../tools/fake-upstream/faults.ts'
import { chatWire } from '../../tools/fake-upstream/openai-chat/wire.ts'
import { chunk, end, head, scripted } from '../../tools/fake-upstream/script.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { openCall, startHasty } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'

const MIB = 1024 * 1024

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key()
})
afterAll(() => harness.stop())

test('a redirect is not followed', async () => {
  const inside = await startFakeUpstream()
  try {
    const redirects = buildFaults(chatWire, { redirectTo: `${inside.url}/latest/meta-data/` }).filter(
      ({ id }) => id === 'F21',
    )
    for (const { script } of redirects) {
      harness.upstream.planModel('gpt-4o-mini', script)
      expect((await openCall(harness, key, {}).whole()).status).toBe(502)
    }
    expect(inside.requests).toEqual([])
    expect(inside.openSockets).toBe(0)
  } finally {
    await inside.stop()
  }
})

test.each([200, 400, 500])(
  'a wrong Content-Length beside chunks does not defeat the bound of a body (%i)',
  async status => {
    const total = 160 * MIB
    const framing = { 'content-length': '7', 'transfer-encoding': 'chunked' }
    harness.upstream.planModel(
      'gpt-4o-mini',
      scripted(function* flood() {
        yield head(status, { 'content-type': 'application/json', ...framing })
        const piece = new Uint8Array(64 * 1024).fill(0x20)
        for (let sent = 0; sent < total; sent += piece.length) yield chunk(piece)
        yield end
      }),
    )
    const received = harness.upstream.nextRequest()
    const caller = await openCall(harness, key, {}).whole()
    expect(caller.status).toBe(status === 400 ? 400 : 502)
    const request = await received
    await until(
      () => request.closedAtMs !== undefined || request.bytesWritten >= total,
      'the socket is closed or the body is read whole',
    )
    expect(request.bytesWritten).toBeLessThan(total * 0.75)
  },
)

test('a provider that fails now and then is tried again, and its callers do not notice', async () => {
  const own = await startHasty({ world: { pause: () => Promise.resolve() }, env: { WEIR_ATTEMPTS: '3' } })
  try {
    const ownKey = await own.key()
    own.upstream.plan(...buildFlappingScripts())
    for (let calls = 0; calls < 2; calls++) expect((await openCall(own, ownKey, {}).whole()).status).toBe(200)
    await own.idle()
    expect(own.records()).toMatchObject([
      { attempts: 2, outcome: 'completed' },
      { attempts: 3, outcome: 'completed' },
    ])
  } finally {
    await own.stop()
  }
})
