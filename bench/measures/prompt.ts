// What the gateway adds to the time of a call with a prompt of a megabyte, compared with a direct call to the upstream.

import { promptCalls } from '../load/calls.ts'
import { Load } from '../load/load.ts'
import { startSubject, subjectNames } from '../subjects/subject.ts'
import { startStreamUpstream } from '../upstreams/upstream.ts'
import { figure, median, percentile, rangeOf } from './figures.ts'
import type { Measure } from './measure.ts'
import { ROUNDS } from './rounds.ts'

const PROMPT_BYTES = 1_000_000
const DIRECT = 'the upstream itself'

interface Series {
  readonly name: string
  readonly load: Load
  readonly p50: number[]
  readonly p99: number[]
}

export const measurePrompt: Measure = async measuring => {
  const { quick, bench, say } = measuring
  const plan = { warmUp: quick ? 20 : 200, count: quick ? 15 : 75, secondsMax: 60 }
  const upstream = await startStreamUpstream(bench, { chunks: 2, gapMs: 1 })
  const subjects = []
  for (const name of subjectNames) subjects.push(await startSubject(name, { ...measuring, upstream }))
  const openSeries = async (name: string, port: number, keys: readonly string[]): Promise<Series> => ({
    name,
    load: await Load.open(port, 1, promptCalls(keys.slice(0, 1), PROMPT_BYTES)),
    p50: [],
    p99: [],
  })
  const all = [await openSeries(DIRECT, upstream.port, ['bench'])]
  for (const { name, port, keys } of subjects) all.push(await openSeries(name, port, keys))
  for (const { load } of all) await load.run(plan.warmUp, plan.secondsMax)
  for (let round = 1; round <= ROUNDS; round++) {
    for (const { name, load, p50, p99 } of all) {
      const { totalMs } = await load.run(plan.count, plan.secondsMax)
      p50.push(percentile(totalMs, 0.5))
      p99.push(percentile(totalMs, 0.99))
      say(`  round ${round}, ${name}: ${figure(p50.at(-1)!)} ms`)
    }
  }
  for (const { load } of all) load.close()
  for (const subject of subjects) await subject.stop()
  await upstream.stop()
  const [bare] = all as [Series]
  const added = ({ p50 }: Series): number => median(p50.map((ms, round) => ms - bare.p50[round]!))
  const [nginx, weir] = ['nginx', 'weir'].map(name => all.find(one => one.name === name)!) as [Series, Series]
  const againstNginx = median(weir.p50.map((ms, round) => ms - nginx.p50[round]!))
  const rows = all.map(one => [
    one.name,
    figure(median(one.p50)),
    rangeOf(one.p50),
    one === bare ? '' : figure(added(one)),
    figure(median(one.p99)),
  ])
  return {
    title: 'A prompt of a megabyte',
    about:
      `${plan.count} plain calls one after the other over one connection, after ${plan.warmUp} to warm up, ` +
      `${ROUNDS} rounds in turn; medians. The prompt is a talk of some two hundred turns, and the dialect is the ` +
      'same on both sides. The upstream reads all of it before it answers.',
    table: [['asked', 'p50 ms', 'all rounds, from – to', 'added ms', 'p99 ms'], ...rows],
    targets: [{ what: 'added to a prompt of 1 MB, beside nginx', most: 3, unit: ' ms', measured: againstNginx }],
  }
}
