// What requests of the management interface add to the slowest calls, while calls run at full speed.

import { join } from 'node:path'
import type { Subject } from '../subjects/subject.ts'
import { startSubject } from '../subjects/subject.ts'
import { read, root } from '../system/workbench.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure, median } from './figures.ts'
import type { Measure, Measuring } from './measure.ts'
import { plainPlan } from './plain.ts'
import type { Round } from './rounds.ts'
import { runRound } from './rounds.ts'

const ROUNDS = 5
/** The requests of a console that several people use. */
const REQUEST_EVERY_MS = 50
const READS = ['keys?limit=50', 'records?limit=50', 'statistics/summary', 'accounts?limit=50', 'audit-log', 'channels']

interface Management {
  stop(): Promise<number>
}

/** Sends one request after the other with pauses. Each tenth changes a tier. */
function manage({ port }: Subject, token: string): Management {
  let [isOver, requests] = [false, 0]
  const send = async (method: string, path: string, body?: object): Promise<void> => {
    const headers = { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' }
    const rest = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port}/api/web/${path}`, { method, headers, ...rest })
    await response.text()
    if (response.status >= 400) throw new Error(`${method} ${path}: ${response.status}`)
    requests++
  }
  const work = async (): Promise<void> => {
    for (let at = 0; !isOver; at++) {
      if (at % 10 === 9) await send('PATCH', 'tiers/free', { qpm: 20 + (at % 7) })
      else await send('GET', READS[at % READS.length]!)
      await Bun.sleep(REQUEST_EVERY_MS)
    }
  }
  const done = work()
  return {
    async stop() {
      isOver = true
      await done
      return requests
    },
  }
}

interface Pair {
  readonly alone: Round
  readonly managed: Round
  readonly requests: number
}

type PairParts = Pick<Measuring, 'home'> & Parameters<typeof runRound>[1]

async function measurePair(subject: Subject, parts: PairParts): Promise<Pair> {
  const alone = await runRound(subject, parts)
  const managing = manage(subject, read([join(root, 'bin', 'weir'), 'token'], parts.home.env))
  const managed = await runRound(subject, parts)
  return { alone, managed, requests: await managing.stop() }
}

export const measureManagement: Measure = async measuring => {
  const plan = plainPlan(measuring.quick)
  const upstream = await startPlainUpstream(measuring.bench)
  const subject = await startSubject('weir', { ...measuring, upstream })
  const pairs: Pair[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    const pair = await measurePair(subject, { home: measuring.home, upstream, plan })
    const [alone, managed] = [figure(pair.alone.totalP99), figure(pair.managed.totalP99)]
    measuring.say(`  round ${round}: p99 ${alone} ms, managed ${managed} ms`)
    pairs.push(pair)
  }
  await subject.stop()
  await upstream.stop()
  const of = (name: 'alone' | 'managed', field: keyof Round): string =>
    figure(median(pairs.map(pair => pair[name][field])))
  const added = median(pairs.map(({ alone, managed }) => (managed.totalP99 / alone.totalP99 - 1) * 100))
  const requests = median(pairs.map(pair => pair.requests))
  return {
    title: 'Management beside calls',
    about:
      `The plain call at full speed, alone and while a program sends ${figure(requests)} requests to the management interface ` +
      `in a round (lists, records, statistics; each tenth changes a tier); ${ROUNDS} rounds of both in turn, medians.`,
    table: [
      ['what', 'calls/s', 'CPU µs', 'p50 ms', 'p99 ms'],
      ...(['alone', 'managed'] as const).map(name => [
        ...[name, of(name, 'callsPerSecond'), of(name, 'cpuMicros'), of(name, 'totalP50'), of(name, 'totalP99')],
      ]),
    ],
    targets: [{ what: 'p99 of a call that management adds', most: 5, unit: ' %', measured: added }],
  }
}
