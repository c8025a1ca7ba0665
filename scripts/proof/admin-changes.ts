// Changes prices, limits, keys and model names through two gateways while both serve calls. A call that is sent after a
// change was answered must not be served with the old setting. For a moment a call may be refused because of the old
// setting, because a refusal costs nothing: a gateway reads changes every second.
//
//   bin/weir-bun scripts/proof/admin-changes.ts [--changes 1000] [--seed n]

import { parseArgs } from 'node:util'
import { judgeBooks } from '../../test/crash/laws.ts'
import { buildRandom } from '../../test/crash/plan.ts'
import { countOpenHolds, sharedBooksReader } from '../../test/shared/books.ts'
import type { FleetMember } from '../../test/shared/fleet.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { startRedis } from '../../test/support/redis.ts'
import { isRecord, readJson } from '../../tools/fake-upstream/request.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { exitWith, print } from './output.ts'

const { values } = parseArgs({ options: { changes: { type: 'string' }, seed: { type: 'string' } } })
const changes = Number(values.changes ?? '1000')
const seed = Number(values.seed ?? Date.now() % 1_000_000)

/** A gateway that could not read changes for three seconds refuses calls. */
const STALE_MS_MAX = 4_000
const CALLERS = 4
const random = buildRandom(seed)

const upstream = await startFakeUpstream({ keepRequests: 0 })
/** The model in the upstream request, by the end user of the call. */
const modelOfCall = new Map<string, string>()
upstream.decideBy((at, request) => {
  const body = at === 'request' && request !== undefined ? readJson(request.body) : undefined
  if (isRecord(body)) modelOfCall.set(String(body.user), String(body.model))
  return undefined
})
const redis = await startRedis()
const fleet = await startFleet({ count: 2, upstream: upstream.url, env: { WEIR_REDIS_URL: redis.url } })
const { members } = fleet
const anyMember = (): FleetMember => members[Math.floor(random() * members.length)]!

const violations: string[] = []
let [made, served, refusedLate, longestMs, busy, otherCalls] = [0, 0, 0, 0, 0, 0]

const newKey = async (): Promise<string> =>
  (await members[0]!.insist('keys create', { tier: 'pro', qpm: '100000', credit: '1000' })).key as string

interface Call {
  readonly status: number
  readonly sentMs: number
  /** The model in the upstream request; undefined if the call did not reach the upstream. */
  readonly model: string | undefined
  /** The limit of requests that the answer names. */
  readonly limit: string | null
}

let calls = 0

/** A gateway on a busy machine may refuse a call: it is sent again. */
async function call(member: FleetMember, key: string, model: string): Promise<Call> {
  for (;;) {
    const user = `call-${calls++}`
    const body = { model, user, max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] }
    const sentMs = performance.now()
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(`${member.url}/v1/chat/completions`, init)
    await response.text()
    const { status } = response
    const upstreamModel = modelOfCall.get(user)
    modelOfCall.delete(user)
    if (status !== 503)
      return { status, sentMs, model: upstreamModel, limit: response.headers.get('x-ratelimit-limit-requests') }
    busy++
  }
}

/** Makes a change and returns the time of its answer. */
async function change(command: string, input: object): Promise<number> {
  made++
  await anyMember().insist(command, input)
  return performance.now()
}

/** Makes calls through both gateways until each gives the right answer. */
async function expectCalls(
  what: string,
  answeredMs: number,
  send: (member: FleetMember) => Promise<Call>,
  isRight: (call: Call) => boolean,
): Promise<void> {
  await Promise.all(
    members.map(async member => {
      for (;;) {
        const answered = await send(member)
        const lateMs = answered.sentMs - answeredMs
        if (isRight(answered)) return void served++
        if (answered.status === 200)
          return void violations.push(`${what}: a call ${lateMs.toFixed(0)} ms later was served`)
        refusedLate++
        longestMs = Math.max(longestMs, lateMs)
        if (lateMs > STALE_MS_MAX)
          return void violations.push(`${what}: a call ${lateMs.toFixed(0)} ms later got ${answered.status}`)
        await Bun.sleep(10)
      }
    }),
  )
}

/** Each lane makes one kind of change and checks its effect. Odd rounds enable the key, even rounds disable it. */
const lanes: Readonly<Record<string, () => Promise<(round: number) => Promise<void>>>> = {
  async price() {
    const [key, model] = [await newKey(), 'openai/gpt-4.1']
    const spent = async (): Promise<number> =>
      1_000 - Number((await anyMember().insist('balance', { account: key })).balance)
    return async round => {
      const usd = (1 + (round % 50)) / 1_000
      const price = JSON.stringify({ perRequest: String(usd), input: '0.001', output: '0.001' })
      const before = await spent()
      const answeredMs = await change('prices set', { model, price })
      await expectCalls(
        `price ${usd}`,
        answeredMs,
        member => call(member, key, model),
        ({ status }) => status === 200,
      )
      const cost = (await spent()) - before
      if (Math.abs(cost - members.length * usd) > 0.0001)
        violations.push(`price ${usd}: ${members.length} calls cost ${cost.toFixed(6)}`)
    }
  },
  async limit() {
    const [key, model] = [await newKey(), 'openai/gpt-4o']
    return async round => {
      // The header names the limit with the fewest calls left. The other limit of the key is far higher.
      const wanted = String(5_000 + (round % 50))
      const answeredMs = await change('limits set', { resource: 'requests', amount: `${wanted}/day`, key })
      const isRight = ({ status, limit }: Call): boolean => status === 200 && limit === wanted
      await expectCalls(`limit ${wanted}`, answeredMs, member => call(member, key, model), isRight)
    }
  },
  async key() {
    const [key, model] = [await newKey(), 'openai/gpt-4o']
    return async round => {
      const isOn = round % 2 === 1
      const answeredMs = await change('keys set', { key, ...(isOn ? { enable: true } : { disable: true }) })
      const what = `key ${isOn ? 'enabled' : 'disabled'}`
      await expectCalls(
        what,
        answeredMs,
        member => call(member, key, model),
        ({ status }) => (status === 200) === isOn,
      )
    }
  },
  async route() {
    const key = await newKey()
    const models = ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1-mini']
    return async round => {
      const wanted = models[round % models.length]!
      const answeredMs = await change('routes set', { name: 'river', members: [`openai/${wanted}`] })
      const isRight = ({ status, model }: Call): boolean => status === 200 && model === wanted
      await expectCalls(`route to ${wanted}`, answeredMs, member => call(member, key, 'river'), isRight)
    }
  },
}

let isOver = false
const busyKey = await newKey()

async function callOtherKey(member: FleetMember): Promise<void> {
  for (; !isOver; await Bun.sleep(20)) {
    const { status } = await call(member, busyKey, 'openai/gpt-4o-mini')
    otherCalls++
    if (status !== 200) violations.push(`a call of a key without changes got ${status}`)
  }
}

print(`seed ${seed}: ${changes} changes through ${members.length} gateways`)
const calling = Array.from({ length: CALLERS }, (_, at) => callOtherKey(members[at % members.length]!))
const started = await Promise.all(Object.entries(lanes).map(async ([name, begin]) => ({ name, run: await begin() })))
const sinceMs = performance.now()
made = 0
await Promise.all(
  started.map(async ({ name, run }) => {
    for (let round = 0; round < changes / started.length && violations.length === 0; round++) {
      await run(round)
      if (round % 50 === 49) print(`${((performance.now() - sinceMs) / 1_000).toFixed(0)} s: ${name} ${round + 1}`)
    }
  }),
)
isOver = true
await Promise.all(calling)
const pool = fleet.postgres.openAgain(fleet.database)
for (let tries = 400; (await countOpenHolds(pool)) > 0 && tries > 0; tries--) await Bun.sleep(50)
violations.push(...judgeBooks(await sharedBooksReader(pool)({ call: 0, seq: 0 })))
const findings = (await members[0]!.weir('audit')).findings as unknown[]
await fleet.close()
await redis.stop()
await upstream.stop()
print(`${made} changes, ${served} calls right after them, ${otherCalls} other calls; ${busy} refused on a busy machine`)
print(
  `${refusedLate} calls were refused because of the old setting, at most ${longestMs.toFixed(0)} ms after the answer`,
)
exitWith({ violations, findings })
