// Limits and routing alone: the cost of admitting a call, choosing its channel, and noting the result of the attempt.
// It runs in its own process, so that its CPU time is that of limits and routing. Prints one line of JSON.
//
// calls.ts <calls> <limits | routing | both>

import { heapStats } from 'bun:jsc'
import { plainNames } from '../../src/base/text/rule-names.ts'
import { noLimitLease } from '../../src/limits/leases.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import { Limits } from '../../src/limits/limits.ts'
import { Affinity } from '../../src/routing/choice/affinity.ts'
import { chooseChannel } from '../../src/routing/choice/channel-choice.ts'
import type { ChannelOption, TargetOption } from '../../src/routing/choice/target-option.ts'
import { Health } from '../../src/routing/health/health.ts'
import { RetryBudget } from '../../src/routing/retry-budget.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'

const [calls = '200000', which = 'both'] = process.argv.slice(2)

const KEYS = 10_000
const CHANNELS = 1_000
const PER_SECOND = 5_000
const CONVERSATIONS = 20_000

/** All ten limits apply to each key. Some count the key alone, some both keys of an account. */
function tenRows(): readonly LimitRow[] {
  const anyCaller = { keyId: null, accountId: null, tier: null, model: null } as const
  const [requests, tokens] = [{ resource: 'requests' }, { resource: 'tokens' }] as const
  const [minute, day] = [{ span: 'minute' }, { span: 'day' }] as const
  const rows: readonly Omit<LimitRow, 'id'>[] = [
    { ...anyCaller, ...requests, ...day, amount: 100_000, per: ['key'] },
    { ...anyCaller, ...tokens, ...minute, amount: 1_000_000, per: ['key'] },
    { ...anyCaller, ...tokens, ...day, amount: 1_000_000_000, per: ['key'] },
    { ...anyCaller, resource: 'concurrency', span: null, amount: 100, per: ['key'] },
    { ...anyCaller, ...requests, ...minute, amount: 10_000, model: 'pool/*', per: ['key'] },
    { ...anyCaller, ...tokens, ...minute, amount: 10_000_000, tier: 'pro', per: ['key'] },
    { ...anyCaller, ...requests, ...minute, amount: 20_000, per: ['account'] },
    { ...anyCaller, ...tokens, ...day, amount: 2_000_000_000, per: ['account'] },
    { ...anyCaller, ...requests, ...minute, amount: 5_000, per: ['key', 'model'] },
    { ...anyCaller, resource: 'concurrency', span: null, amount: 10_000, model: '*large*', per: ['model'] },
  ]
  return rows.map((row, at) => ({ ...row, id: at + 1 }))
}

function twoOptions(): readonly TargetOption[] {
  const channels = Array.from(
    { length: CHANNELS },
    (_, at): ChannelOption => ({
      id: `pool#${at}`,
      priority: 0,
      weight: 1 + (at % 3),
      health: new Health({ caps: { requestsPerMinute: 600_000, tokensPerMinute: 1e9 }, random: Math.random }),
    }),
  )
  const half = CHANNELS / 2
  const both = { priority: 0, weight: 1, needsTranslation: false }
  return [
    { ...both, name: 'pool/large', price: 3, channels: channels.slice(0, half) },
    { ...both, name: 'lake/large', price: 2, channels: channels.slice(half) },
  ]
}

const limits = new Limits()
limits.setRules(tenRows())
const subjects = Array.from(
  { length: KEYS },
  (_, at): LimitedCall => ({
    keyId: 1_000_000 + at,
    accountId: 2_000_000 + (at >> 1),
    tier: 'pro',
    qpm: 100_000,
    tokens: 900,
    model: 'pool/large',
    names: plainNames('large', 'pool/large', 'lake/large'),
  }),
)
const options = twoOptions()
const [affinity, retries] = [new Affinity(), new RetryBudget()]
const conversations = Array.from({ length: CONVERSATIONS }, (_, at) => `conversation ${at}`)

let nowMs = 1_000

function admitted(subject: LimitedCall) {
  const admission = limits.admit(subject, nowMs)
  if (!admission.admitted) throw new Error(`refused: ${JSON.stringify(admission.by)}`)
  return admission.lease
}

function route(name: string, { tokens, accountId }: LimitedCall): void {
  const retry = retries.begin('large', nowMs, accountId)
  const kept = affinity.get(name, nowMs)
  const [keptOn, keptModel, chance] = [kept?.channelId, kept?.model, Math.random]
  const request = { targets: options, policy: 'balanced', tried: [], accountId, tokens, nowMs } as const
  const choice = chooseChannel({ ...request, affinityChannel: keptOn, affinityModel: keptModel, random: chance })
  if (choice.kind !== 'try') throw new Error(choice.kind)
  const { channel, target } = choice
  const attempt = channel.health.begin(tokens, nowMs, { accountId, model: target.name })
  attempt.noteAnswer({ firstContentMs: 400 }, nowMs)
  affinity.set(name, { channelId: channel.id, model: target.name }, { ttlMs: undefined, nowMs })
  attempt.end({ verdict: 'answered', firstContentMs: 400 }, nowMs)
  retry.end()
}

/** Makes one call. Every ten seconds of the clock, the usage of the day is taken, as in a gateway. */
function call(at: number): void {
  nowMs += 1_000 / PER_SECOND
  const subject = { ...subjects[(at * 7_919) % KEYS]!, tokens: 800 + (at % 512) }
  const lease = which === 'routing' ? noLimitLease : admitted(subject)
  if (which !== 'limits') route(conversations[(at * 104_729) % CONVERSATIONS]!, subject)
  lease.correct(600 + (at % 512), nowMs)
  lease.release()
  if (at % (10 * PER_SECOND) === 0) limits.takeDayUsage(nowMs, nowMs)
}

const heapBytes = (): number => {
  Bun.gc(true)
  return heapStats().heapSize
}

const before = heapBytes()
if (which !== 'routing') for (const subject of subjects) admitted(subject).release()
const bytesPerKey = (heapBytes() - before) / KEYS
for (let at = 0; at < Number(calls); at++) call(at)
const since = process.cpuUsage()
for (let at = 0; at < Number(calls); at++) call(at)
const { user, system } = process.cpuUsage(since)
process.stdout.write(`${JSON.stringify({ cpuMicros: (user + system) / Number(calls), bytesPerKey })}\n`)
