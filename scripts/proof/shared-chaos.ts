// Three gateways on one PostgreSQL under load, while processes are killed and stopped, the database is killed, and
// connections are cut, silent or slow. Ends non-zero at the first violation of a rule of the crash tests.
//
//   bin/weir-bun scripts/proof/shared-chaos.ts [--faults 60] [--seed n] [--bug name] [--callers 12] [--only text]
//
// `--bug` plants a bug into a copy of the gateway, which must be found: no-fencing, early-recovery. `--only` uses the faults
// whose names contain the text, such as `long`, after which the others take a process for dead.

import { parseArgs } from 'node:util'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { Edit } from '../../test/crash/bugs.ts'
import { buildRandom } from '../../test/crash/plan.ts'
import { plantedCopy } from '../../test/crash/planted.ts'
import type { FleetMember } from '../../test/shared/fleet.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { Load } from '../../test/shared/load.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'

const { values } = parseArgs({
  options: {
    faults: { type: 'string' },
    seed: { type: 'string' },
    bug: { type: 'string' },
    callers: { type: 'string' },
    only: { type: 'string' },
  },
})
const faults = Number(values.faults ?? '60')
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const callers = Number(values.callers ?? '12')
const GATEWAYS = 3
/** So many faults, some of them at the same time, are between two looks at the ledger. */
const FAULTS_PER_LOOK = 6
/** Longer than a lease, so that the others take the process for dead. */
const LONG_MS = 20_000

const NOT_FENCED = {
  file: 'src/store/postgres/migrations/0017-console.sql',
  find: '  PERFORM 1 FROM process WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0 FOR KEY SHARE;\n',
  replace: '  PERFORM 1;\n',
}

/** Bugs in the parts that only several processes use. */
const bugs: Readonly<Record<string, readonly Edit[]>> = {
  // A process that the others took for dead does not notice it. Its lease has run out for good, so it is never ready again.
  'no-fencing': [
    NOT_FENCED,
    {
      file: 'src/store/postgres/membership.ts',
      find: '    if (granted === null) {\n      this.#isFenced = true\n      return false\n    }\n',
      replace: '    if (granted === null) return true\n',
    },
  ],
  // The calls of dead processes are ended although their processes may live.
  'early-recovery': [
    {
      file: 'src/store/postgres/recovery.ts',
      find: 'epoch < p.epoch',
      replace: 'epoch <= p.epoch',
    },
  ],
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const random = buildRandom(seed)
const below = (bound: number): number => Math.floor(random() * bound)
const terminate = postgresQuery(
  `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
     AND pid <> pg_backend_pid() AND random() < 0.5`,
)

/** `seq` is not in the order of commits: a payment may have been committed behind the last one that was read. */
const findPayment = postgresQuery<{ seq: bigint }>('SELECT seq FROM transfer WHERE reference = $1')

const planted = values.bug === undefined ? undefined : plantedCopy(bugs[values.bug]!)
const upstream = await startFakeUpstream({ keepRequests: 0 })
const fleet = await startFleet({
  count: GATEWAYS,
  upstream: upstream.url,
  env: { WEIR_DRAIN_SECONDS: '10' },
  ...(planted !== undefined && { root: planted.root }),
})
const load = await Load.start({ fleet, upstream, seed, callers, sure: false })
const pool = fleet.postgres.openAgain(fleet.database)
const counts: Record<string, number> = {}

/** Faults of one gateway. Each returns when the gateway could serve again. */
const ofGateway: Readonly<Record<string, (member: FleetMember) => Promise<void>>> = {
  async 'kill -9'(member) {
    await member.child.kill()
    await Bun.sleep(below(3_000))
    await member.startAgain()
  },
  'kill -9, long': member =>
    alone(async () => {
      await member.child.kill()
      await Bun.sleep(LONG_MS)
      await member.startAgain()
    }),
  async 'SIGTERM'(member) {
    member.child.signal('SIGTERM')
    await member.child.ended
    await member.startAgain()
  },
  'SIGSTOP': member => stopped(member, 1_000 + below(4_000)),
  'SIGSTOP, long': member => alone(() => stopped(member, LONG_MS)),
  async 'cut'(member) {
    member.proxy.cut()
  },
  'silent': member => proxied(member, 'silent', 2_000 + below(6_000)),
  'silent, long': member => alone(() => proxied(member, 'silent', LONG_MS)),
  'refusing': member => proxied(member, 'refusing', 1_000 + below(4_000)),
  'slow': member => proxied(member, 'slow', 1_000 + below(4_000)),
}

/** Faults of the database. */
const ofDatabase: Readonly<Record<string, () => Promise<void>>> = {
  async 'kill -9 of PostgreSQL'() {
    await fleet.postgres.crash('SIGKILL')
    await Bun.sleep(below(3_000))
    await fleet.postgres.startAgain()
  },
  async 'PostgreSQL stops at once'() {
    await fleet.postgres.crash('SIGQUIT')
    await Bun.sleep(below(6_000))
    await fleet.postgres.startAgain()
  },
  async 'terminated backends'() {
    await pool.transact(terminate.get()).catch(() => {})
  },
}

const gatewayFaults = Object.keys(ofGateway).filter(name => name.includes(values.only ?? ''))
const databaseFaults = Object.keys(ofDatabase).filter(name => name.includes(values.only ?? ''))

let longFault: Promise<void> = Promise.resolve()

/**
 * Long faults come one after the other. Only a gateway whose own lease has not run out may fence another one, so nobody
 * would be fenced if all of them were away together.
 */
function alone(act: () => Promise<void>): Promise<void> {
  const mine = longFault.then(act)
  longFault = mine.catch(() => {})
  return mine
}

async function stopped(member: FleetMember, ms: number): Promise<void> {
  member.child.signal('SIGSTOP')
  await Bun.sleep(ms)
  member.child.signal('SIGCONT')
}

async function proxied(member: FleetMember, mode: 'silent' | 'refusing' | 'slow', ms: number): Promise<void> {
  member.proxy.set(mode)
  await Bun.sleep(ms)
  member.proxy.set('open')
}

/** A gateway that does not serve again after a fault is a violation, too. */
async function run(name: string, act: () => Promise<void>): Promise<void> {
  counts[name] = (counts[name] ?? 0) + 1
  const calm = load.fault(name)
  try {
    await act()
    await Promise.all(fleet.members.filter(member => !busy.has(member)).map(member => member.untilReady()))
  } catch (fault) {
    stuck.push(`after "${name}": ${fault}`)
  }
  calm()
}

const busy = new Set<FleetMember>()
const stuck: string[] = []
let left = faults

/** Faults of the gateways and of the database run side by side, each with pauses between them. */
async function lane(member: FleetMember | undefined, until: number): Promise<void> {
  while (left > until && stuck.length === 0) {
    if (member === undefined && databaseFaults.length === 0) return
    left--
    await Bun.sleep(300 + below(2_500))
    if (member === undefined) {
      const name = databaseFaults[below(databaseFaults.length)]!
      await run(name, ofDatabase[name]!)
    } else {
      const name = gatewayFaults[below(gatewayFaults.length)]!
      busy.add(member)
      await run(name, async () => {
        await ofGateway[name]!(member)
        busy.delete(member)
        await member.untilReady()
      })
    }
  }
}

say(
  `seed ${seed}, ${faults} faults, ${callers} callers${values.bug === undefined ? '' : `, with the bug ${values.bug}`}`,
)
const sinceMs = performance.now()
let violations: readonly string[] = []
let looked: Awaited<ReturnType<Load['look']>> | undefined
while (left > 0 && violations.length === 0) {
  load.balancer.open()
  const until = Math.max(0, left - FAULTS_PER_LOOK)
  await Promise.all([undefined, ...fleet.members].map(member => lane(member, until)))
  try {
    looked = await load.look()
  } catch (fault) {
    stuck.push(`after the faults: ${fault}`)
  }
  violations = [...(looked?.violations ?? []), ...stuck]
  const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(0)
  say(`${seconds} s: ${faults - left} faults, ${looked?.calls} calls, ${violations.length} violations`)
}
for (const violation of violations.slice(0, 40)) {
  const reference = /G3: (payment \d+) was acknowledged/.exec(violation)?.[1]
  const found = reference === undefined ? undefined : await pool.transact(findPayment.all(reference))
  say(
    `VIOLATION  ${violation}${found === undefined ? '' : `; its rows now: ${found.map(({ seq }) => seq).join() || 'none'}`}`,
  )
}
const audited = await fleet.members[0]!.weir('audit').catch(fault => ({ findings: [`no audit: ${fault}`] }))
const audit = audited.findings as unknown[]
for (const finding of audit) say(`FINDING  ${JSON.stringify(finding)}`)
for (const [name, count] of Object.entries(counts)) say(`${name.padEnd(28)} ${count}`)
say(`outcomes    ${JSON.stringify(looked?.outcomes)}`)
say(`calls hit by faults ${JSON.stringify(looked?.cut)}, charged at a checkpoint: ${looked?.checkpointed}`)
await load.close()
await Promise.all(fleet.members.map(member => member.child.kill()))
const logs = (await Promise.all(fleet.members.map(member => member.logged()))).join('')
const bad = logs.split('\n').filter(line => /unhandled rejection|request failed|gateway_fault/.test(line))
for (const line of bad.slice(0, 20)) say(`LOG  ${line}`)
await fleet.close()
await upstream.stop()
planted?.remove()
const isClean = violations.length === 0 && audit.length === 0 && bad.length === 0
say(
  isClean
    ? 'no violation'
    : `${violations.length} violations, ${audit.length} findings, ${bad.length} faults in the log`,
)
process.exit(isClean ? 0 : 1)
