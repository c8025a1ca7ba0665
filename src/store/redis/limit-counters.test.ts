// What a process remembers of concurrent calls, for the time when Redis can be reached again.

import { expect, test } from 'bun:test'
import { LimitCounters } from './limit-counters.ts'

test('places without calls are forgotten, also while Redis is away', async () => {
  const sent: string[][] = []
  const connection = {
    isUp: false,
    run: async (_script: unknown, keys: readonly string[]) => void sent.push([...keys]),
    send: async () => undefined,
    onUp() {},
  }
  const counters = new LimitCounters({ connection: connection as never, namespace: 'n', process: '1.1' })
  counters.addPlaces(['active', 'over'])
  counters.freePlaces(['over'])
  await counters.renew()
  sent.length = 0
  connection.isUp = true
  await counters.renew()
  expect(sent).toEqual([['active']])
  await counters.close()
})
