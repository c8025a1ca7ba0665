// One caller sends calls that make a channel fail, refuse or wait. Other callers of that channel are served as before.

import { afterEach, expect, spyOn, test } from 'bun:test'
import { WaitQueues } from '../../src/limits/wait-queue.ts'
import { answer, fail } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { HarnessOptions } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Tenants } from './tenants.ts'
import { channelOf, credentialOf, poisoned, startTenants } from './tenants.ts'

let tenants: Tenants
let [attacker, victim] = ['', '']
afterEach(() => tenants.stop())

async function start(riverKeys: string, world: HarnessOptions['world'] = {}): Promise<void> {
  tenants = await startTenants(riverKeys, { world })
  ;[attacker, victim] = [await tenants.key({ qpm: 100_000 }), await tenants.key({ qpm: 100_000 })]
}

/** A call may wait five seconds for a channel. The clock stands still, so that none waits too long on a busy machine. */
const still = { clock: { nowMs: () => 1_000, dateMs: Date.now } }

const success = answer('fine')
const healthOf = async (key: string): Promise<unknown> => {
  const { data: channels } = (await tenants.operate('channels list', {})) as {
    data: { id: string; health: { state: string } | null }[]
  }
  return channels.find(({ id }) => id === channelOf(key))?.health?.state ?? 'unused'
}

/** Continues four conversations for some rounds; returns how often a turn used another channel than the turn before. */
async function moves(rounds: number, between: (round: number) => Promise<unknown>): Promise<number> {
  const homes = new Map<number, string | undefined>()
  let moved = 0
  for (let round = 0; round < rounds; round++) {
    for (let topic = 0; topic < 4; topic++) {
      const before = tenants.upstream.requests.length
      expect((await tenants.ask(victim, `topic ${topic}`)).status).toBe(200)
      const used = credentialOf(tenants.upstream.requests[before]!)
      if (homes.has(topic) && homes.get(topic) !== used) moved++
      homes.set(topic, used)
    }
    await between(round)
  }
  return moved
}

test.each<[string, Script]>([
  ['fail', fail(500)],
  ['be cut off', scripted(() => [{ kind: 'reset' }])],
  ['be refused as if the key were bad', fail(401)],
  ['be forbidden', fail(403)],
])('calls that one account makes %s open no circuit breaker for others', async (_, script) => {
  await start('a,b', still)
  tenants.upstream.planModel('small', poisoned('poison', script, success))
  // A channel that has answered nobody else may be blamed. So each answers the victim first; chance picks the channel.
  const used = (): Set<unknown> => new Set(tenants.upstream.requests.map(credentialOf))
  for (let at = 0; used().size < 2; at++) expect((await tenants.ask(victim, `first ${at}`)).status).toBe(200)
  const poison = (round: number): Promise<unknown> =>
    Promise.all(Array.from({ length: 12 }, (_, at) => tenants.ask(attacker, `poison ${round} ${at}`)))
  expect(await moves(8, poison)).toBe(0)
  expect(tenants.logs.filter(line => line.includes('refuses the credential'))).toEqual([])
})

test('a credential that is refused for several accounts is marked as bad', async () => {
  await start('a')
  await moves(2, async () => {})
  tenants.upstream.planModel('small', fail(401))
  await tenants.ask(attacker, 'one')
  await tenants.ask(victim, 'two')
  expect(await healthOf('a')).toBe('credential_bad')
})

test('a 429 for one model does not delay calls for another model of the channel', async () => {
  await start('a')
  tenants.upstream.planModel('large', fail(429, { retryAfter: '2' }))
  expect((await tenants.ask(attacker, 'much', { model: 'river/large' })).status).toBe(503)
  const before = tenants.pauses.length
  expect((await tenants.ask(victim, 'little')).status).toBe(200)
  expect(tenants.pauses.length).toBe(before)
})

test('a 429 for a call that is larger than the limit of the upstream does not change the health of the channel', async () => {
  await start('a')
  const message = 'Request too large for small in organization org-1 on tokens per min (TPM): Limit 30000'
  const large = fail(429, { error: { code: 'rate_limit_exceeded', message } })
  tenants.upstream.planModel('small', poisoned('huge', large, success))
  const refused = await tenants.ask(attacker, 'huge')
  expect(refused.status).toBe(503)
  expect(await refused.text()).not.toContain('org-1')
  expect((await tenants.ask(victim, 'little')).status).toBe(200)
  expect([await healthOf('a'), tenants.pauses]).toEqual(['available', []])
})

test('the concurrency limit of a channel applies to calls that arrive at the same instant', async () => {
  await start('a', still)
  await tenants.operate('channels set', { channel: channelOf('a'), concurrency: '3' })
  const opened = Promise.withResolvers<void>()
  let [underWay, most] = [0, 0]
  tenants.upstream.planModel(
    'small',
    scripted(function* (request) {
      most = Math.max(most, ++underWay)
      yield gate(opened.promise)
      underWay--
      yield* success.steps(request)
    }),
  )
  const calls = Array.from({ length: 20 }, (_, at) => tenants.ask(attacker, `call ${at}`))
  await until(() => underWay === 3, 'three are under way')
  opened.resolve()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(calls.map(() => 200))
  expect(most).toBe(3)
})

test('a call that waits for one model gets its turn, however many calls wait for other models', async () => {
  await start('a', still)
  const waits = spyOn(WaitQueues.prototype, 'wait')
  await tenants.operate('channels set', { channel: channelOf('a'), concurrency: '1' })
  const opened: (() => void)[] = []
  const order: string[] = []
  const held = scripted(function* (request) {
    order.push(JSON.parse(request.body.toString()).model)
    yield gate(new Promise<void>(resolve => opened.push(resolve)))
    yield* success.steps(request)
  })
  for (const model of ['small', 'large', 'm0', 'm1', 'm2']) tenants.upstream.planModel(model, held)
  const models = ['river/large', 'river/m0', 'river/m1', 'river/m2']
  const flood = Array.from({ length: 40 }, (_, at) => tenants.ask(attacker, `${at}`, { model: models[at % 4] }))
  await until(() => opened.length === 1, 'one is under way')
  await until(() => waits.mock.calls.length === 39, 'all others wait')
  const waited = tenants.ask(victim, 'only one')
  await until(() => waits.mock.calls.length === 40, 'the call has joined its queue')
  waits.mockRestore()
  for (let turn = 0; turn < 41; turn++) {
    await until(() => opened.length > turn, 'the next is under way')
    opened[turn]!()
  }
  expect([(await waited).status, ...(await Promise.all(flood)).map(({ status }) => status)]).not.toContain(503)
  expect(order.indexOf('small')).toBeLessThan(4)
})
