// Two gateways under load, while PostgreSQL and then Redis are away: stopped in the middle, so that nothing is closed and
// nothing is answered, and ended. Ends non-zero at a violation of a rule of the crash tests, and if
//   - a call reaches the upstream while PostgreSQL is away, or is refused in another way than with 503;
//   - a call fails while Redis is away, or a limit admits more than one burst for its loss and one for its return.
//
//   bin/weir-bun scripts/proof/outages.ts [--seconds 30] [--seed n] [--callers 12]

import { parseArgs } from 'node:util'
import type { FleetMember } from '../../test/shared/fleet.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { Load } from '../../test/shared/load.ts'
import { startRedis } from '../../test/support/redis.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, callers: { type: 'string' } },
})
const awayMs = Number(values.seconds ?? '30') * 1_000
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const callers = Number(values.callers ?? '12')
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const GATEWAYS = 2
/** A hold waits this long for the database. */
const HOLD_MS_MAX = 5_000
/** Calls in a minute, and in any time W: 20 + 20·W/minute. */
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

/** One call of a key with a limit, whose answers are all counted. */
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

async function endure({ name, of, begin, end }: Outage): Promise<void> {
  const wrong = (what: string): void => void violations.push(`${name}: ${what}`)
  // Calls that are sent again wait for the next look at the ledger: soon all callers may wait for it.
  load.balancer.open()
  await load.untilSent(50)
  const [fromMs, first, sentBefore] = [performance.now(), limitedCalls.length, load.sent]
  const calm = of === 'PostgreSQL' ? load.fault(name) : undefined
  await begin()
  const waited = HOLD_MS_MAX + 1_000
  await Bun.sleep(Math.min(waited, awayMs))
  const reachedBefore = reached
  await Bun.sleep(Math.max(0, awayMs - waited))
  const reachedMeanwhile = reached - reachedBefore
  const endMs = performance.now()
  await end()
  await Promise.all(members.map(member => member.untilReady()))
  calm?.()
  const spanMs = performance.now() - fromMs
  const calls = limitedCalls.slice(first)
  const admitted = calls.filter(({ status }) => status === 200).length
  const bursts = of === 'Redis' ? 3 : 1
  const bound = Math.floor(bursts * LIMIT + (LIMIT * spanMs) / 60_000) + GATEWAYS
  if (admitted > bound) wrong(`the limit admitted ${admitted} calls, at most ${bound}`)
  if (of === 'PostgreSQL') {
    if (reachedMeanwhile > 0) wrong(`${reachedMeanwhile} calls reached the upstream`)
    const others = calls.filter(({ sentMs, status }) => sentMs > fromMs + waited && sentMs < endMs && status !== 503)
    for (const { status, code } of others.filter(call => call.status !== 429)) wrong(`a call got ${status} ${code}`)
  } else {
    if (!calls.some(({ status }) => status === 429)) wrong('no call reached its limit')
    const failed = calls.filter(({ status, code }) => status !== 200 && status !== 429 && code !== 'overloaded')
    for (const { status, code } of failed) wrong(`a call got ${status} ${code}`)
  }
  isPaused = true
  const { violations: found } = await load.look()
  isPaused = false
  for (const violation of found) wrong(violation)
  const refused = calls.filter(({ status }) => status === 503).length
  say(
    `${name.padEnd(27)} ${(spanMs / 1_000).toFixed(0)} s, ${load.sent - sentBefore} calls and ${calls.length} with a limit: ` +
      `${admitted} admitted (at most ${bound}), ${refused} refused with 503; ${reachedMeanwhile} reached the upstream ` +
      `meanwhile; ${found.length} violations`,
  )
}

say(`seed ${seed}: each server is away for ${awayMs / 1_000} s, ${callers} callers`)
const limited = members.map(member => callWithLimit(member, key))
for (const outage of outages) await endure(outage)
isOver = true
await Promise.all(limited)
const findings = (await members[0]!.weir('audit')).findings as unknown[]
await load.close()
await Promise.all(members.map(member => member.child.kill()))
const logs = (await Promise.all(members.map(member => member.logged()))).join('')
const bad = logs.split('\n').filter(line => /unhandled rejection|request failed|gateway_fault/.test(line))
await fleet.close()
await redis.stop()
await upstream.stop()
for (const violation of violations.slice(0, 40)) say(`VIOLATION  ${violation}`)
for (const finding of findings) say(`FINDING  ${JSON.stringify(finding)}`)
for (const line of bad.slice(0, 20)) say(`LOG  ${line}`)
const isClean = violations.length + findings.length + bad.length === 0
say(isClean ? 'no violation' : `${violations.length} violations, ${findings.length} findings, ${bad.length} log lines`)
process.exit(isClean ? 0 : 1)
