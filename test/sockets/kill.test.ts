// A gateway that dies in the middle of responses over a WebSocket: at the next start every hold is released, nothing is
// charged that was not delivered, and the ledger is whole.

import { afterAll, expect, test } from 'bun:test'
import { pausedStream } from '../../tools/fake-upstream/answers.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { cleanUp, freshFolder, serve, stopServed, weirSays } from '../front/weir-process.ts'
import { connect, textOf } from './client.ts'

afterAll(cleanUp)

test('two responses that a kill ends are recovered at the next start', async () => {
  const upstream = await startFakeUpstream()
  const folder = freshFolder()
  const env = { OPENAI_API_KEY: 'sk-upstream', OPENAI_BASE_URL: `${upstream.url}/v1` }
  const figures = async (): Promise<readonly [balance: number, held: number]> => {
    const shown = JSON.parse(await weirSays(folder, `balance ${key} --json`)) as { balance: string; held: string }
    return [Number(shown.balance), Number(shown.held)]
  }

  const first = await serve(folder, env)
  const made = JSON.parse(await weirSays(folder, 'keys create --credit 1 --json')) as { key: string }
  const { key } = made
  const client = await connect(first, key)
  const never = new Promise<void>(() => {})
  upstream.plan(pausedStream(['four', 'more'], never), pausedStream(['four', 'more'], never))
  for (const id of ['a', 'b']) client.create({ input: 'hello', stream_id: id })
  await client.until(() => textOf(client.events) === 'fourfour', 'both have begun')
  expect((await figures())[1]).toBeGreaterThan(0)
  first.kill('SIGKILL')
  await first.exited
  expect(await client.closed()).toBeUndefined()

  const second = await serve(folder, env)
  const [balance, held] = await figures()
  expect(held).toBe(0)
  expect(balance).toBeWithin(0.999, 1.000_001)
  const next = await connect(second, key)
  expect(textOf(await next.ask({ input: 'again' }))).toBe('again')
  next.leave()
  await weirSays(folder, 'audit') // throws where balances, holds, charges and records do not agree
  expect(await stopServed(second)).toBe(0)
  await upstream.stop()
})
