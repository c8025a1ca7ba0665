// One request to stop that reaches the gateway more than once: a supervisor signals the whole process group, and npm
// forwards the signal that it gets. Running streams must still finish.

import { afterAll, afterEach, expect, test } from 'bun:test'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { until } from '../support/gateway.ts'
import { bearer, CHAT, goodBody } from './asking.ts'
import type { Served } from './weir-process.ts'
import { cleanUp, freshFolder, serve, serveByNpm } from './weir-process.ts'

const STREAMS = 20
const END = 'data: [DONE]\n\n'

let upstream: FakeUpstream

afterEach(() => upstream.stop())
afterAll(cleanUp)

interface Streams {
  readonly served: Served
  /** The whole texts, when the streams have ended. */
  readonly texts: readonly Promise<string>[]
  /** Lets the upstream write the rest of each answer. */
  finish(): void
}

/** Starts a gateway by `start`, and streams, each of which has sent its first content. */
async function startStreams(start: typeof serveByNpm): Promise<Streams> {
  upstream = await startFakeUpstream()
  const served = await start(freshFolder(), {
    OPENAI_API_KEY: 'sk-upstream',
    OPENAI_BASE_URL: `${upstream.url}/v1`,
    WEIR_DRAIN_DELAY_SECONDS: '0',
  })
  const key = /wk-[0-9A-Za-z]{36}/.exec(served.said())![0]
  const rest = Promise.withResolvers<void>()
  for (let at = 0; at < STREAMS; at++) upstream.plan(pausedStream(['Hello, ', 'river'], rest.promise))
  const call = (): Promise<Response> =>
    fetch(served.url + CHAT, {
      method: 'POST',
      headers: { ...bearer(key), 'content-type': 'application/json' },
      body: goodBody({ stream: true, max_tokens: 100 }),
    })
  const answers = await Promise.all(Array.from({ length: STREAMS }, () => untilServed(call)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: STREAMS }, () => 200))
  return { served, texts: answers.map(answer => answer.text()), finish: () => rest.resolve() }
}

/** On a busy machine the gateway refuses some calls for overload; those are sent again. */
async function untilServed(call: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const answer = await call()
    if (answer.status !== 503) return answer
    await answer.body?.cancel()
    await Bun.sleep(100)
  }
}

const draining = ({ served }: Streams): Promise<void> =>
  until(() => served.logged().includes('"draining"'), 'the gateway drains')

async function expectWhole({ served, texts, finish }: Streams): Promise<void> {
  finish()
  for (const text of await Promise.all(texts)) {
    expect(text).toContain('river')
    expect(text).not.toContain('"error"')
    expect(text).toEndWith(END)
  }
  expect(await served.exited).toBe(0)
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} to the process group of npm start cuts no stream`, async () => {
    const streams = await startStreams(serveByNpm)
    streams.served.kill(signal)
    await draining(streams)
    // The signal that npm forwards is on its way. A stream that it cut would be over before the next one begins.
    await Bun.sleep(500)
    await expectWhole(streams)
  })
}

test('signals that come at the same time are one request to stop', async () => {
  const streams = await startStreams(serve)
  const { pid } = streams.served
  // A stopped process gets all of the signals at the moment when it continues.
  for (const signal of ['SIGSTOP', 'SIGTERM', 'SIGINT', 'SIGCONT'] as const) process.kill(pid, signal)
  await draining(streams)
  await expectWhole(streams)
})

test('a signal two seconds after the first ends the streams with an error of their dialect', async () => {
  const streams = await startStreams(serveByNpm)
  streams.served.kill('SIGTERM')
  await draining(streams)
  await Bun.sleep(2_000)
  streams.served.kill('SIGTERM')
  for (const text of await Promise.all(streams.texts)) {
    expect(text).toContain('"code":"draining"')
    expect(text).toEndWith(END)
  }
  await streams.served.exited
})
