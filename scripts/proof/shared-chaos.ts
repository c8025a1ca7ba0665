// Three gateways on one PostgreSQL under load, while processes are killed and suspended, the database is killed, and
// connections are cut, silent or slow. Exits with 1 at the first violation of a rule of the crash tests.
//
//   bin/weir-bun scripts/proof/shared-chaos.ts [--faults 60] [--seed n] [--bug name] [--callers 12] [--only text]
//
// `--bug` plants a bug into a copy of the gateway, which must be found: no-fencing, early-recovery. `--only` uses the
// faults whose names contain the text; after the faults named `long`, other gateways regard the process as dead.

import { parseArgs } from 'node:util'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { Edit } from '../../test/crash/bugs.ts'
import { buildRandom } from '../../test/crash/plan.ts'
import { plantedCopy } from '../../test/crash/planted.ts'
import type { FleetMember } from '../../test/shared/fleet.ts'
import { startFleet } from '../../test/shared/fleet.ts'
import { Load } from '../../test/shared/load.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { exitWith, faultLinesOf, print } from './output.ts'

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
/** The number of faults between two checks of the ledger. Some of them run at the same time. */
const FAULTS_PER_CHECK = 6
/** Longer than a lease, so that the other gateways regard the process as dead. */
const LONG_MS = 20_000

const NOT_FENCED = {
  file: 'src/store/postgres/migrations/0017-console.sql',
  find: '  PERFORM 1 FROM process WHERE slot = my_slot AND epoch = my_epoch AND is_dead = 0 FOR KEY SHARE;\n',
  replace: '  PERFORM 1;\n',
}

/** Bugs in code that only several processes use. */
const bugs: Readonly<Record<string, readonly Edit[]>> = {
  // A process does not notice that the others regard it as dead. Its lease has ended, so it never becomes ready again.
  'no-fencing': [
    NOT_FENCED,
    {
      file: 'src/store/postgres/membership.ts',
      find: '    if (granted === null) {\n      this.#isFenced = true\n      return false\n    }\n',
      replace: '    if (granted === null) return true\n',
    },
  ],
  // Calls are recovered although their process may still run.
  'early-recovery': [
    {
      file: 'src/store/postgres/recovery.ts',
      find: 'epoch < p.epoch',
      replace: 'epoch <= p.epoch',
    },
  ],
}

const random = buildRandom(seed)
const below = (bound: number): number => Math.floor(random() * bound)
const terminate = postgresQuery(
  `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
     AND pid <> pg_backend_pid() AND random() < 0.5`,
)

/** `seq` is not in the order of commits: a payment with a lower `seq` may be committed after the last one that was read. */
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

/** Faults of one gateway. Each returns when the gateway can serve again. */
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
 * Long faults run one after the other. Only a gateway with a valid lease may fence another one, so no gateway would be
 * fenced if all had a long fault at the same time.
 */
function alone(act: () => Promise<void>): Promise<void> {
  const own = longFault.then(act)
  longFault = own.catch(() => {})
  return own
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

/** It is also a violation if a gateway does not serve again after a fault. */
async function run(name: string, act: () => Promise<void>): Promise<void> {
  counts[name] = (counts[name] ?? 0) + 1
  const endFault = load.fault(name)
  try {
    await act()
    await Promise.all(fleet.members.filter(member => !busy.has(member)).map(member => member.untilReady()))
  } catch (fault) {
    stuck.push(`after "${name}": ${fault}`)
  }
  endFault()
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

print(
  `seed ${seed}, ${faults} faults, ${callers} callers${values.bug === undefined ? '' : `, with the bug ${values.bug}`}`,
)
const sinceMs = performance.now()
let violations: readonly string[] = []
let lastLook: Awaited<ReturnType<Load['look']>> | undefined
while (left > 0 && violations.length === 0) {
  load.balancer.open()
  const until = Math.max(0, left - FAULTS_PER_CHECK)
  await Promise.all([undefined, ...fleet.members].map(member => lane(member, until)))
  try {
    lastLook = await load.look()
  } catch (fault) {
    stuck.push(`after the faults: ${fault}`)
  }
  violations = [...(lastLook?.violations ?? []), ...stuck]
  const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(0)
  print(`${seconds} s: ${faults - left} faults, ${lastLook?.calls} calls, ${violations.length} violations`)
}

/** A violation about a payment, with the rows that the payment has now. */
async function withRows(violation: string): Promise<string> {
  const reference = /G3: (payment \d+) was acknowledged/.exec(violation)?.[1]
  if (reference === undefined) return violation
  const rows = await pool.transact(findPayment.all(reference))
  return `${violation}; its rows now: ${rows.map(({ seq }) => seq).join() || 'none'}`
}

const explained = await Promise.all(violations.map(withRows))
const audited = await fleet.members[0]!.weir('audit').catch(fault => ({ findings: [`no audit: ${fault}`] }))
for (const [name, count] of Object.entries(counts)) print(`${name.padEnd(28)} ${count}`)
print(`outcomes    ${JSON.stringify(lastLook?.outcomes)}`)
print(`calls hit by faults ${JSON.stringify(lastLook?.cut)}, charged at a checkpoint: ${lastLook?.checkpointed}`)
await load.close()
const faultLines = await faultLinesOf(fleet)
await fleet.close()
await upstream.stop()
planted?.remove()
exitWith({ violations: explained, findings: audited.findings as unknown[], faultLines })
