// A gateway that is killed between an event and its delivery: the next start delivers it, and nothing else.

import { afterAll, expect, test } from 'bun:test'
import { cleanUp, freshFolder, serve, weirSays } from '../front/weir-process.ts'
import { until } from '../support/gateway.ts'
import { askAs } from '../support/management.ts'
import { isSignedWith, startReceiver } from './receiver.ts'

afterAll(cleanUp)

test('a crash loses no delivery of a webhook', async () => {
  const folder = freshFolder()
  const env = { WEIR_PRIVATE_HOSTS: '127.0.0.1', WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }
  const receiver = startReceiver()
  receiver.answer = () => new Promise<Response>(() => {}) // accepts the request, and never answers
  const first = await serve(folder, env)
  const key = await weirSays(folder, 'keys create --tier pro --credit 10')
  const account = /acc_\w{11}/.exec(await weirSays(folder, `balance ${key}`))![0]
  const ask = askAs(first, await weirSays(folder, 'token'))
  const created = await ask('POST', `web/accounts/${account}/webhooks`, {
    url: receiver.url,
    events: ['balance.low', 'balance.empty'],
  })
  await ask('PUT', `web/accounts/${account}/balance-alert`, { threshold: '5' })
  await ask('POST', `web/accounts/${account}/adjustments`, { amount: '-9.999', reference: 'all but nothing' })
  await until(() => receiver.received.length > 0, 'the delivery is being made')
  first.kill('SIGKILL')
  await first.exited
  const before = receiver.received.splice(0)
  receiver.answer = () => new Response()
  const second = await serve(folder, env)
  await until(() => receiver.received.length >= 2, 'the event is delivered after all')
  expect(receiver.received.map(({ event }) => event.type)).toEqual(['balance.low', 'balance.empty'])
  expect(receiver.received[0]!.body).toBe(before[0]!.body)
  for (const delivery of receiver.received)
    expect(await isSignedWith(created.body.secret as string, delivery)).toBeTrue()
  second.kill('SIGTERM')
  await second.exited
  receiver.stop()
})
