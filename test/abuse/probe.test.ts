import { afterEach, describe, expect, test } from 'bun:test'
import { answer, fail } from '../../src/fake-upstream/answers.ts'
import { gate, scripted } from '../../src/fake-upstream/script.ts'
import { until } from '../support/gateway.ts'
import { channelOf, credentialOf, poisoned, startTenants, type Tenants } from './tenants.ts'

let tenants: Tenants
afterEach(() => tenants.stop())

test('cross model 429', async () => {
  tenants = await startTenants('a')
  const [one, other] = [await tenants.key({ qpm: 10_000 }), await tenants.key({ qpm: 10_000 })]
  tenants.upstream.planModel('large', fail(429, { retryAfter: '4' }))
  await tenants.ask(one, 'x', { model: 'river/large' })
  const n = tenants.pauses.length
  const got = await tenants.ask(other, 'y')
  console.log('cross model', got.status, tenants.pauses.slice(n))
})

test('starved line', async () => {
  tenants = await startTenants('a')
  const [one, other] = [await tenants.key({ qpm: 10_000 }), await tenants.key({ qpm: 10_000 })]
  await tenants.operate('channels-set', { channel: channelOf('a'), concurrency: '1' })
  const gates: (() => void)[] = []
  tenants.upstream.planModel('large', scripted(function* (request) { const g = Promise.withResolvers<void>(); gates.push(g.resolve); yield gate(g.promise); yield* answer('x').steps(request) }))
  const floods = Array.from({ length: 30 }, (_, at) => tenants.ask(one, `f${at}`, { model: 'river/large' }))
  await until(() => gates.length === 1, 'first')
  await Bun.sleep(100)
  let victimDone = false
  const victim = tenants.ask(other, 'victim').then(r => { victimDone = true; return r })
  await Bun.sleep(50)
  let served = 0
  while (!victimDone && served < 28) { gates[served++]!(); await until(() => gates.length > served || victimDone, 'next').catch(() => {}); await Bun.sleep(2) }
  console.log('victim after', served, victimDone)
  gates.forEach(g => g()); 
  const timer = setInterval(() => gates.forEach(g => g()), 5)
  await Promise.all(floods); clearInterval(timer); await victim
})

test('alias limits', async () => {
  tenants = await startTenants('a')
  const key = await tenants.key({ qpm: 10_000 })
  await tenants.operate('limits-set', { resource: 'requests', amount: '3/minute', model: 'river/small', per: 'account' })
  await tenants.operate('routes-set', { name: 'smart', members: ['river/small'] })
  await tenants.operate('routes-set', { name: 'x-*', members: ['river/small'] })
  const got: number[] = []
  for (let i = 0; i < 6; i++) got.push((await tenants.ask(key, `q${i}`, { model: 'smart' })).status)
  for (let i = 0; i < 6; i++) got.push((await tenants.ask(key, `q${i}`, { model: `x-${i}` })).status)
  for (let i = 0; i < 6; i++) got.push((await tenants.ask(key, `q${i}`)).status)
  console.log('alias', got.join())
})

test('per model alias', async () => {
  tenants = await startTenants('a')
  const key = await tenants.key({ qpm: 10_000 })
  await tenants.operate('limits-set', { resource: 'requests', amount: '3/minute', per: 'account,model' })
  await tenants.operate('routes-set', { name: 'x-*', members: ['river/small'] })
  const got: number[] = []
  for (let i = 0; i < 12; i++) got.push((await tenants.ask(key, `q${i}`, { model: `x-${i}` })).status)
  console.log('per model', got.join())
})

test('poison', async () => {
  tenants = await startTenants('a,b')
  const [one, other] = [await tenants.key({ qpm: 10_000 }), await tenants.key({ qpm: 10_000 })]
  tenants.upstream.planModel('small', poisoned('poison', fail(500), answer('fine')))
  const homes = new Map<number, string>()
  let moved = 0
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 6; i++) await tenants.ask(one, `poison ${round} ${i}`)
    for (let c = 0; c < 4; c++) {
      const before = tenants.upstream.requests.length
      await tenants.ask(other, `conversation ${c}`)
      const used = credentialOf(tenants.upstream.requests[before]!)!
      if (homes.has(c) && homes.get(c) !== used) moved++
      homes.set(c, used)
    }
  }
  console.log('moved', moved, (await tenants.operate('channels-list', {})).channels)
})

test('count rights', async () => {
  tenants = await startTenants('a')
  const key = await tenants.key({ qpm: 10_000 })
  await tenants.operate('keys-set', { key, require: 'eu' })
  const counts = (model: string) => fetch(`${tenants.url}/v1/messages/count_tokens`, { method: 'POST', headers: { 'x-api-key': key, 'content-type': 'application/json' }, body: JSON.stringify({ model, messages: [{ role: 'user', content: 'secret' }] }) })
  console.log('call', (await tenants.ask(key, 'secret')).status, 'count', (await counts('river/small')).status, tenants.upstream.requests.length)
  await tenants.operate('keys-set', { key, require: '', deny: 'river/*' })
  console.log('call', (await tenants.ask(key, 'secret')).status, 'count', (await counts('river/small')).status, tenants.upstream.requests.length)
  await tenants.operate('keys-set', { key, deny: '' })
  await tenants.operate('routes-set', { name: 'smart', members: ['river/small'] })
  console.log('alias', (await counts('smart')).status)
})

test('slow streams', async () => {
  tenants = await startTenants('a')
  const [one, other] = [await tenants.key({ qpm: 10_000 }), await tenants.key({ qpm: 10_000 })]
  await tenants.operate('channels-set', { channel: channelOf('a'), concurrency: '4' })
  const opens = Promise.withResolvers<void>()
  tenants.upstream.planModel('large', scripted(function* (request) { yield gate(opens.promise); yield* answer('x').steps(request) }))
  const slow = Array.from({ length: 6 }, (_, at) => tenants.ask(one, `s${at}`, { model: 'river/large' }))
  await until(() => tenants.upstream.requests.length === 4, 'four').catch(() => {})
  console.log('under way', tenants.upstream.requests.length)
  const since = performance.now()
  const got = await tenants.ask(other, 'y')
  console.log('victim', got.status, performance.now() - since)
  opens.resolve(); await Promise.all(slow)
})

test('abort loop', async () => {
  tenants = await startTenants('a', { world: {} })
  const key = await tenants.key({ qpm: 10_000 })
  await tenants.operate('limits-set', { resource: 'tokens', amount: '10000/minute', per: 'account' })
  tenants.upstream.planModel('small', scripted(function* () {}))
  let reached = 0
  for (let i = 0; i < 20; i++) {
    const stop = new AbortController()
    const before = tenants.upstream.requests.length
    const call = fetch(`${tenants.url}/v1/chat/completions`, { method: 'POST', signal: stop.signal, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify({ model: 'river/small', messages: [{ role: 'user', content: 'word '.repeat(2_000) }] }) }).then(r => r.status, () => 0)
    await until(() => tenants.upstream.requests.length > before, 'sent', 300).catch(() => {})
    if (tenants.upstream.requests.length > before) reached++
    stop.abort()
    await call
    await tenants.idle()
  }
  console.log('abort: reached', reached, 'of 20 (4 or 5 fit)')
})
