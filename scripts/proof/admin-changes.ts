// Changes of prices, limits, keys and model names through two gateways while calls go on through both. A call that is sent
// after a change was answered must not be served by what was valid before. A call that is refused by it is allowed for a
// moment, because it costs nothing: a gateway asks for changes every second.
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

const { values } = parseArgs({ options: { changes: { type: 'string' }, seed: { type: 'string' } } })
const changes = Number(values.changes ?? '1000')
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** A gateway that could not ask for changes for three seconds takes no calls. */
const STALE_MS_MAX = 4_000
const CALLERS = 4
const random = buildRandom(seed)

const upstream = await startFakeUpstream({ keepRequests: 0 })
/** The model that the upstream was asked for, by the end user of the call. */
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
let [made, served, refusedLate, longestMs, busy, besides] = [0, 0, 0, 0, 0, 0]

const newKey = async (): Promise<string> =>
  (await members[0]!.insist('keys create', { tier: 'pro', qpm: '100000', credit: '1000' })).key as string

interface Call {
  readonly status: number
  readonly sentMs: number
  /** What the upstream was asked for; undefined if the call did not reach it. */
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
    const asked = modelOfCall.get(user)
    modelOfCall.delete(user)
    if (status !== 503)
      return { status, sentMs, model: asked, limit: response.headers.get('x-ratelimit-limit-requests') }
    busy++
  }
}

/** Returns when the change was answered. */
async function change(command: string, input: object): Promise<number> {
  made++
  await anyMember().insist(command, input)
  return performance.now()
}

/** Calls through both gateways, each until its answer is as it should be. */
async function expectCalls(
  what: string,
  answeredMs: number,
  send: (member: FleetMember) => Promise<Call>,
  isRight: (call: Call) => boolean,
): Promise<void> {
  await Promise.all(
    members.map(async member => {
      for (;;) {
        const found = await send(member)
        const lateMs = found.sentMs - answeredMs
        if (isRight(found)) return void served++
        if (found.status === 200)
          return void violations.push(`${what}: a call ${lateMs.toFixed(0)} ms later was served`)
        refusedLate++
        longestMs = Math.max(longestMs, lateMs)
        if (lateMs > STALE_MS_MAX)
          return void violations.push(`${what}: a call ${lateMs.toFixed(0)} ms later got ${found.status}`)
        await Bun.sleep(10)
      }
    }),
  )
}

/** Each makes one change and looks whether it counts. `round` is even or odd: what is switched on is switched off next. */
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
      // The answer names the limit that has least left. That of the key is far higher.
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

async function callBesides(member: FleetMember): Promise<void> {
  for (; !isOver; await Bun.sleep(20)) {
    const { status } = await call(member, busyKey, 'openai/gpt-4o-mini')
    besides++
    if (status !== 200) violations.push(`a call that no change concerns got ${status}`)
  }
}

say(`seed ${seed}: ${changes} changes through ${members.length} gateways`)
const calling = Array.from({ length: CALLERS }, (_, at) => callBesides(members[at % members.length]!))
const started = await Promise.all(Object.entries(lanes).map(async ([name, begin]) => ({ name, run: await begin() })))
const sinceMs = performance.now()
made = 0
await Promise.all(
  started.map(async ({ name, run }) => {
    for (let round = 0; round < changes / started.length && violations.length === 0; round++) {
      await run(round)
      if (round % 50 === 49) say(`${((performance.now() - sinceMs) / 1_000).toFixed(0)} s: ${name} ${round + 1}`)
    }
  }),
)
isOver = true
await Promise.all(calling)
const pool = fleet.postgres.openAgain(fleet.database)
for (let left = 400; (await countOpenHolds(pool)) > 0 && left > 0; left--) await Bun.sleep(50)
violations.push(...judgeBooks(await sharedBooksReader(pool)({ call: 0, seq: 0 })))
const findings = (await members[0]!.weir('audit')).findings as unknown[]
await fleet.close()
await redis.stop()
await upstream.stop()
say(`${made} changes, ${served} calls right after them, ${besides} calls besides; ${busy} refused on a busy machine`)
say(`${refusedLate} calls were refused by what was valid before, at most ${longestMs.toFixed(0)} ms after the answer`)
for (const violation of violations.slice(0, 40)) say(`VIOLATION  ${violation}`)
for (const finding of findings) say(`FINDING  ${JSON.stringify(finding)}`)
const isClean = violations.length + findings.length === 0
say(isClean ? 'no violation' : `${violations.length} violations, ${findings.length} findings`)
process.exit(isClean ? 0 : 1)
