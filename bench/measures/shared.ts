// The plain call on PostgreSQL and Redis, beside the same on SQLite: CPU of the gateway and of the servers, what a call
// waits for them, several processes, and one account that all calls share.

import { Load } from '../load/load.ts'
import type { Server } from '../subjects/servers.ts'
import { missingServers, startPostgres, startRedis } from '../subjects/servers.ts'
import type { Subject } from '../subjects/subject.ts'
import { startSubject } from '../subjects/subject.ts'
import { makeWeirHome } from '../subjects/weir-home.ts'
import { cpuSeconds } from '../system/proc.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure, median, percentile } from './figures.ts'
import type { Measure, Measuring } from './measure.ts'
import { plainPlan } from './plain.ts'

const ROUNDS = 6
const PROCESSES = [1, 2, 4] as const
const SECRETS = { WEIR_PEPPER: 'p', WEIR_JWT_SECRET: 'j', WEIR_ENCRYPTION_KEY: 'e' } as const

interface Case {
  readonly name: string
  readonly subject: Subject
  readonly keys: readonly string[]
  readonly connections: number
}

interface Sums {
  readonly gateway: number[]
  readonly postgres: number[]
  readonly redis: number[]
  readonly rate: number[]
  readonly p50: number[]
}

interface Servers {
  readonly postgres: Server
  readonly redis: Server
}

export const measureShared: Measure = async measuring => {
  const missing = missingServers()
  const title = 'Plain call on PostgreSQL and Redis'
  if (missing !== undefined) return { title, about: `Not measured: ${missing}.`, table: [], targets: [] }
  const { bench, home } = measuring
  const servers = { postgres: await startPostgres(bench), redis: await startRedis(bench) }
  const upstream = await startPlainUpstream(bench)
  const longEnough = Object.fromEntries(Object.entries(SECRETS).map(([name, letter]) => [name, letter.repeat(40)]))
  const urls = { WEIR_DATABASE_URL: servers.postgres.url, WEIR_REDIS_URL: servers.redis.url, ...longEnough }
  const shared = makeWeirHome(bench, home.program, 'shared', urls)
  const embedded = await startSubject('weir', { bench, upstream, home })
  const one = await startSubject('weir', { bench, upstream, home: shared })
  const sums = await runCases(measuring, servers, [
    { name: 'SQLite', subject: embedded, keys: embedded.keys, connections: 64 },
    { name: 'PostgreSQL and Redis', subject: one, keys: one.keys, connections: 64 },
    { name: 'PostgreSQL and Redis, one account', subject: one, keys: one.keys.slice(0, 1), connections: 64 },
    { name: 'SQLite, one call at a time', subject: embedded, keys: embedded.keys, connections: 1 },
    { name: 'PostgreSQL and Redis, one call at a time', subject: one, keys: one.keys, connections: 1 },
  ])
  await embedded.stop()
  await one.stop()
  for (const count of PROCESSES) {
    const subject = await startSubject('weir', {
      bench,
      upstream,
      home: { ...shared, env: { ...shared.env, WEIR_PROCESSES: String(count) } },
      cores: '0,1',
    })
    const name = `${count} ${count === 1 ? 'process' : 'processes'}, on both cores with the servers and the load`
    for (const [key, value] of await runCases(measuring, servers, [
      { name, subject, keys: subject.keys, connections: 64 },
    ]))
      sums.set(key, value)
    await subject.stop()
  }
  await upstream.stop()
  const ratio = median(
    sums.get('PostgreSQL and Redis')!.gateway.map((cpu, index) => cpu / sums.get('SQLite')!.gateway[index]!),
  )
  return {
    title,
    about:
      `${ROUNDS} rounds in turn; medians. The gateway has a core of its own, except with several processes; PostgreSQL, ` +
      'Redis, the upstream and the load share the other, so that the calls a second are bound by that core. Each commit ' +
      'waits for the disk. Figures of servers are CPU in µs a call.',
    table: [
      ['case', 'gateway CPU µs', 'PostgreSQL µs', 'Redis µs', 'calls/s', 'p50 ms'],
      ...[...sums].map(([name, of]) => [
        name,
        figure(median(of.gateway)),
        figure(median(of.postgres)),
        figure(median(of.redis)),
        figure(median(of.rate)),
        figure(median(of.p50)),
      ]),
    ],
    targets: [{ what: 'CPU of the gateway on PostgreSQL, against SQLite', most: 1, unit: '×', measured: ratio }],
  }
}

async function runCases(measuring: Measuring, servers: Servers, cases: readonly Case[]): Promise<Map<string, Sums>> {
  const plan = plainPlan(measuring.quick)
  const sums = new Map<string, Sums>()
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { name, subject, keys, connections } of cases) {
      const load = await Load.open(subject.port, connections, plan.callsFor(keys, subject.manner))
      const count = Math.ceil(plan.count / (connections === 1 ? 40 : 4))
      await load.run(round === 1 ? count : connections, plan.secondsMax)
      const pids = [subject.pid, servers.postgres.child.pid, servers.redis.child.pid] as const
      const before = pids.map(cpuSeconds)
      const sample = await load.run(count, plan.secondsMax)
      const [gateway, postgres, redis] = pids.map(
        (pid, index) => ((cpuSeconds(pid) - before[index]!) * 1e6) / sample.calls,
      )
      load.close()
      const of = sums.get(name) ?? { gateway: [], postgres: [], redis: [], rate: [], p50: [] }
      sums.set(name, of)
      of.gateway.push(gateway!)
      of.postgres.push(postgres!)
      of.redis.push(redis!)
      of.rate.push(sample.calls / sample.wallSeconds)
      of.p50.push(percentile(sample.totalMs, 0.5))
      measuring.say(`  round ${round}, ${name}: ${figure(gateway!)} µs of CPU`)
    }
  }
  return sums
}
