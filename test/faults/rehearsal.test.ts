// weir fake-upstream as an operator uses it: a separate process, a gateway with the settings that it prints, and callers
// that see what docs/reference/failures.md says.

import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { faultIds } from '../../tools/fake-upstream/fault-rows/kinds.ts'
import { requestOf } from '../dialects/raw-callers.ts'
import type { Caller } from '../forwarding/caller.ts'
import { eventsOf, openRaw } from '../forwarding/caller.ts'
import { cleanUp, freshFolder, weir, weirSays } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'

const WEIR = join(import.meta.dir, '..', '..', 'bin', 'weir')

interface FakeUpstreamProcess {
  readonly env: Readonly<Record<string, string>>
  output(): string
  end(signal: 'SIGTERM' | 'SIGINT'): Promise<number>
}

const running = new Set<FakeUpstreamProcess>()

afterAll(async () => {
  for (const one of running) await one.end('SIGTERM')
  await cleanUp()
})

/** Starts weir fake-upstream and waits until it has printed the settings for a gateway. */
async function startFakeUpstreamProcess(...args: readonly string[]): Promise<FakeUpstreamProcess> {
  const child = Bun.spawn([WEIR, 'fake-upstream', ...args], { env: { PATH: process.env.PATH }, stdout: 'pipe' })
  let output = ''
  const gathered = (async () => {
    for await (const chunk of child.stdout) output += Buffer.from(chunk).toString()
  })()
  await until(
    () => / OPENAI_BASE_URL=.*\n/.test(output) || child.exitCode !== null,
    'the fake upstream has printed its address',
  )
  const lines = [...output.matchAll(/^ {2}(\w+_BASE_URL)=(\S+) (\w+_API_KEY)=(\S+)$/gm)]
  const upstreamProcess: FakeUpstreamProcess = {
    env: Object.fromEntries(
      lines.flatMap(([, url, address, key, value]) => [
        [url, address],
        [key, value],
      ]),
    ),
    output: () => output,
    async end(signal) {
      running.delete(upstreamProcess)
      child.kill(signal)
      await gathered
      return await child.exited
    },
  }
  running.add(upstreamProcess)
  return upstreamProcess
}

interface Scenario {
  readonly harness: Harness
  ask(caller: 'openai-chat' | 'anthropic-messages', model: string, stream: boolean): Caller
  /** The upstream has been silent for longer than it may be. */
  passTime(): void
}

async function withGateway(upstream: FakeUpstreamProcess, check: (scenario: Scenario) => Promise<void>): Promise<void> {
  let skewMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
  const world = { clock, pause: () => Promise.resolve() }
  const env = { ...upstream.env, WEIR_DRAIN_SECONDS: '0', WEIR_ATTEMPTS: '3' }
  const harness = await startHarness({ env, world })
  const key = await harness.key()
  try {
    await check({
      harness,
      ask: (caller, model, stream) => openRaw(harness.url, requestOf(caller, key, { model, stream })),
      passTime: () => void (skewMs += bounds.betweenChunksMsMax),
    })
  } finally {
    await harness.stop()
  }
}

describe('weir fake-upstream rehearses', () => {
  test('a pause in the middle of each stream', async () => {
    const upstream = await startFakeUpstreamProcess('--fault', 'F14', '--scale', '0.5')
    expect(Object.keys(upstream.env).sort()).toEqual([
      ...['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'ARK_API_KEY', 'ARK_BASE_URL'],
      ...['GEMINI_API_KEY', 'GEMINI_BASE_URL', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    ])
    await withGateway(upstream, async ({ harness, ask, passTime }) => {
      const cut = async (caller: Caller): Promise<Caller> => {
        await caller.until(({ text }) => text.includes('Hel'), 'the first chunk has arrived')
        passTime()
        return await caller.whole()
      }
      const streamed = await cut(ask('openai-chat', 'openai/gpt-4o-mini', true))
      expect(eventsOf(streamed.body).at(-2)).toContain('upstream_too_slow')
      const foreign = await cut(ask('anthropic-messages', 'google/gemini-2.5-flash', true))
      expect(foreign.text).toContain('event: error')
      // The fault concerns streams only.
      expect((await ask('openai-chat', 'openai/gpt-4o-mini', false).whole()).status).toBe(200)
      await harness.idle()
      expect(harness.records()).toMatchObject([
        { outcome: 'over_bound', error: 'upstream_too_slow' },
        { outcome: 'over_bound', error: 'upstream_too_slow' },
        { outcome: 'completed' },
      ])
    })
    expect(await upstream.end('SIGTERM')).toBe(0) // then all of its output has been read
    const output = upstream.output()
    expect(output).toContain('It commits F14 pause between chunks.')
    expect(output).toContain('POST /v1/chat/completions: F14 a pause between two chunks, beyond idle\n')
    expect(output).toContain('POST /v1/chat/completions: answered\n')
  })

  test('a rate limit on every second call', async () => {
    const upstream = await startFakeUpstreamProcess('--fault', 'F34 429 with seconds', '--every', '2')
    await withGateway(upstream, async ({ harness, ask }) => {
      for (let calls = 0; calls < 3; calls++) {
        expect((await ask('openai-chat', 'openai/gpt-4o-mini', calls > 1).whole()).status).toBe(200)
      }
      await harness.idle()
      expect(harness.records()).toMatchObject([{ attempts: 1 }, { attempts: 2 }, { attempts: 2 }])
    })
    expect(await upstream.end('SIGINT')).toBe(0)
  })

  test('a provider that cannot be reached', async () => {
    const upstream = await startFakeUpstreamProcess('--fault', 'F1')
    await withGateway(upstream, async ({ ask }) => {
      expect((await ask('openai-chat', 'openai/gpt-4o-mini', true).whole()).status).toBe(502)
    })
  })
})

describe('the command weir fake-upstream', () => {
  const folder = freshFolder()

  test('lists every fault, and what it does', async () => {
    const lines = (await weirSays(folder, 'fake-upstream --list')).split('\n')
    expect([...new Set(lines.slice(1).map(line => line.split(' ')[0]))]).toEqual([...faultIds])
    expect(lines.find(line => line.startsWith('F14'))).toContain('It stops in the middle of a stream')
    const some = await weirSays(folder, 'fake-upstream --list --fault F32 --dialect gemini')
    expect(some).not.toContain('nothing but the terminal event')
  })

  test.each([
    ['--fault F37', 'There is no fault F37. See: weir fake-upstream --list'],
    ['--fault F1 --every 2', 'F1 affects a whole address, and so every call to it: leave out --every'],
    ['--dialect french', 'There is no dialect french'],
    ['--scale 0', '--scale must be a number above 0, at most 1.'],
    ['--port 65536', '--port must be a whole number from 0 to 65535.'],
    ['--every 1.5', '--every must be a whole number, at least 1.'],
    ['--host somewhere', '--host must be an address'],
    ['--loud', '--loud'],
  ])('refuses %s', async (args, output) => {
    const { code, stderr } = await weir(folder, `fake-upstream ${args}`)
    expect([code, stderr]).toEqual([2, expect.stringContaining(output)])
  })

  test('reports a port that is in use in one sentence', async () => {
    const first = await startFakeUpstreamProcess()
    const port = new URL(first.env.OPENAI_BASE_URL!).port
    const { code, stderr } = await weir(folder, `fake-upstream --port ${port}`)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^weir: Cannot listen on 127\.0\.0\.1:\d+: .*\n$/)])
  })
})
