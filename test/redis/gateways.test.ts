// Two gateways on one PostgreSQL and one Redis behave as one: limits, sign-in attempts and affinity.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { dirname } from 'node:path'
import { keysSince } from '../routing/two-upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, startHarness, until } from '../support/gateway.ts'
import { setUpOwner, signIn } from '../support/people.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'
import { beginPatience, COMMAND_MS } from './patience.ts'

tellMissingPostgres()
tellMissingRedis()

describe.if(hasPostgres && hasRedis)('two gateways', () => {
  let postgres: TestPostgres
  let redis: TestRedis
  let gateways: [Harness, Harness]
  let endPatience = (): void => {}

  beforeAll(async () => {
    endPatience = beginPatience(COMMAND_MS)
    postgres = await startPostgres()
    redis = await startRedis()
    await postgres.open()
    const env = {
      WEIR_DATABASE_URL: `postgres://weir@localhost/${postgres.lastDatabase}?host=${dirname(postgres.socket)}`,
      WEIR_REDIS_URL: redis.url,
      WEIR_PEPPER: 'a'.repeat(64),
      WEIR_JWT_SECRET: 'b'.repeat(64),
      WEIR_ENCRYPTION_KEY: 'c'.repeat(64),
      WEIR_DRAIN_SECONDS: '0',
    }
    const first = await startHarness({ upstreamKeys: 'a,b,c', env })
    gateways = [first, await startHarness({ upstreamKeys: 'a,b,c', env })]
    const isUp = ({ logs }: Harness): boolean => logs.some(line => line.includes('Redis can be reached'))
    await until(() => gateways.every(isUp), 'both gateways use Redis')
  })
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.stop()
    await redis?.stop()
    await postgres?.stop()
    endPatience()
  })

  const model = 'openai/gpt-4o-mini'

  test('continue a conversation with the same credential', async () => {
    const key = await gateways[0].key({ qpm: 100_000 })
    for (let topic = 0; topic < 12; topic++) {
      const used = new Set<string | undefined>()
      const messages = [{ role: 'user', content: `topic ${topic}` }]
      for (let turn = 0; turn < 4; turn++) {
        const gateway = gateways[turn % 2]!
        const before = gateway.upstream.requests.length
        expect((await chat(gateway, key, { model, messages })).status).toBe(200)
        for (const credential of keysSince(gateway.upstream, before)) used.add(credential)
        messages.push({ role: 'assistant', content: `answer ${turn}` }, { role: 'user', content: `turn ${turn}` })
      }
      expect(used.size).toBe(1)
    }
  })

  test('count wrong passwords together', async () => {
    await setUpOwner(gateways[0])
    const statuses: number[] = []
    for (let at = 0; at < 16; at++) {
      const gateway = gateways[at < 8 ? 0 : 1] // more than the share of one
      const { status } = await signIn(gateway, { email: 'nobody@example.com', password: 'wrong password' })
      statuses.push(status)
    }
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(6).fill(429)])
  })
})
