// Two gateways under load while PostgreSQL, and then Redis, is unavailable: first suspended with SIGSTOP, so that it closes
// no connection and answers nothing, then ended. Exits with 1 at a violation of a rule of the crash tests, and if
//   - a call reaches the upstream while PostgreSQL is unavailable, or is refused with another status than 503;
//   - a call fails while Redis is unavailable, or a limit admits more than one extra burst when it becomes unavailable and
//     one when it returns.
//
//   bin/weir-bun scripts/proof/outages.ts [--seconds 30] [--seed n] [--callers 12]

import { parseArgs } from 'node:util'
import type { FleetMember } from '../../test/shared/fleet.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { Load } from '../../test/shared/load.ts'
import { startRedis } from '../../test/support/redis.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { exitWith, faultLinesOf, print } from './output.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, callers: { type: 'string' } },
})
const outageMs = Number(values.seconds ?? '30') * 1_000
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const callers = Number(values.callers ?? '12')

const GATEWAYS = 2
/** The time that a hold waits for the database. */
const HOLD_MS_MAX = 5_000
/** Calls in a minute. In any time W, the limit admits 20 + 20·W/minute. */
const LIMIT = 20
const LIMITED_MODEL = 'openai/gpt-4o'

const upstream = await startFakeUpstream({ keepRequests: 0 })
let reached = 0
upstream.decideBy(at => {
  if (at === 'request') reached++
  return undefined
})
const redis = await startRedis()
const fleet = await startFleet({ count: GATEWAYS, upstream: upstream.url, env: { WEIR_REDIS_URL: redis.url } })
const load = await Load.start({ fleet, upstream, seed, callers, sure: false })
const { members, postgres } = fleet

/** One call of the key with a limit. All of its answers are counted. */
interface LimitedCall {
  readonly sentMs: number
  readonly status: number
  readonly code: string
}

const limitedCalls: LimitedCall[] = []
let [isOver, isPaused] = [false, false]

async function callWithLimit(member: FleetMember, key: string): Promise<void> {
  const body = { model: LIMITED_MODEL, max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] }
  for (; !isOver; await Bun.sleep(100)) {
    if (isPaused) continue
    const sentMs = performance.now()
    const { status, text } = await member.ask('POST', '/v1/chat/completions', body, { authorization: `Bearer ${key}` })
    limitedCalls.push({ sentMs, status, code: status === 200 ? '' : (/"code":"(\w+)"/.exec(text)?.[1] ?? text) })
  }
}

const key = (await members[0]!.insist('keys create', { tier: 'pro', qpm: '100000', credit: '100' })).key as string
await members[0]!.insist('limits set', { resource: 'requests', amount: `${LIMIT}/minute`, key })

interface Outage {
  readonly name: string
  readonly of: 'PostgreSQL' | 'Redis'
  begin(): Promise<void> | void
  end(): Promise<void> | void
}

const outages: readonly Outage[] = [
  {
    name: 'PostgreSQL does not answer',
    of: 'PostgreSQL',
    begin: () => postgres.signal('SIGSTOP'),
    end: () => postgres.signal('SIGCONT'),
  },
  {
    name: 'PostgreSQL has ended',
    of: 'PostgreSQL',
    begin: () => postgres.crash('SIGQUIT'),
    end: () => postgres.startAgain(),
  },
  {
    name: 'Redis does not answer',
    of: 'Redis',
    begin: () => redis.signal('SIGSTOP'),
    end: () => redis.signal('SIGCONT'),
  },
  { name: 'Redis has ended', of: 'Redis', begin: () => redis.kill(), end: () => redis.start() },
]

const violations: string[] = []

async function runOutage({ name, of, begin, end }: Outage): Promise<void> {
  const violated = (what: string): void => void violations.push(`${name}: ${what}`)
  // A caller whose call must be sent again waits for the next check of the ledger; soon all callers may wait for it.
  load.balancer.open()
  await load.untilSent(50)
  const [fromMs, first, sentBefore] = [performance.now(), limitedCalls.length, load.sent]
  const endFault = of === 'PostgreSQL' ? load.fault(name) : undefined
  await begin()
  const settledMs = HOLD_MS_MAX + 1_000
  await Bun.sleep(Math.min(settledMs, outageMs))
  const reachedBefore = reached
  await Bun.sleep(Math.max(0, outageMs - settledMs))
  const reachedDuring = reached - reachedBefore
  const endMs = performance.now()
  await end()
  await Promise.all(members.map(member => member.untilReady()))
  endFault?.()
  const spanMs = performance.now() - fromMs
  const calls = limitedCalls.slice(first)
  const admitted = calls.filter(({ status }) => status === 200).length
  const bursts = of === 'Redis' ? 3 : 1
  const bound = Math.floor(bursts * LIMIT + (LIMIT * spanMs) / 60_000) + GATEWAYS
  if (admitted > bound) violated(`the limit admitted ${admitted} calls, at most ${bound}`)
  if (of === 'PostgreSQL') {
    if (reachedDuring > 0) violated(`${reachedDuring} calls reached the upstream`)
    const others = calls.filter(({ sentMs, status }) => sentMs > fromMs + settledMs && sentMs < endMs && status !== 503)
    for (const { status, code } of others.filter(call => call.status !== 429)) violated(`a call got ${status} ${code}`)
  } else {
    if (!calls.some(({ status }) => status === 429)) violated('no call reached its limit')
    const failed = calls.filter(({ status, code }) => status !== 200 && status !== 429 && code !== 'overloaded')
    for (const { status, code } of failed) violated(`a call got ${status} ${code}`)
  }
  isPaused = true
  const { violations: found } = await load.look()
  isPaused = false
  for (const violation of found) violated(violation)
  const refused = calls.filter(({ status }) => status === 503).length
  print(
    `${name.padEnd(27)} ${(spanMs / 1_000).toFixed(0)} s, ${load.sent - sentBefore} calls and ${calls.length} with a limit: ` +
      `${admitted} admitted (at most ${bound}), ${refused} refused with 503; ${reachedDuring} reached the upstream ` +
      `during the outage; ${found.length} violations`,
  )
}

print(`seed ${seed}: each server is unavailable for ${outageMs / 1_000} s, ${callers} callers`)
const limited = members.map(member => callWithLimit(member, key))
for (const outage of outages) await runOutage(outage)
isOver = true
await Promise.all(limited)
const findings = (await members[0]!.weir('audit')).findings as unknown[]
await load.close()
const faultLines = await faultLinesOf(fleet)
await fleet.close()
await redis.stop()
await upstream.stop()
exitWith({ violations, findings, faultLines })
