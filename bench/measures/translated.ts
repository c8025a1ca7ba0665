// The streamed call between two dialects, beside a stream that is not translated.

import { streamCalls } from '../load/calls.ts'
import { pairName, pairs, translatedCalls } from '../load/translated-calls.ts'
import { startSubject } from '../subjects/subject.ts'
import { startStreamUpstream } from '../upstreams/upstream.ts'
import { figure, median, rangeOf } from './figures.ts'
import type { Measure } from './measure.ts'
import type { Plan, Round } from './rounds.ts'
import { medianOf, planOfRound, ROUNDS, runRound } from './rounds.ts'
import { streamPlan, streamShape } from './stream.ts'

const NATIVE = 'native chat'

type CallsFor = Plan['callsFor']

export const kinds: Readonly<Record<string, CallsFor>> = {
  [NATIVE]: keys => streamCalls(keys, streamShape.chunks),
  ...Object.fromEntries(
    pairs.map(pair => [pairName(pair), (keys => translatedCalls(pair, keys, streamShape.chunks)) as CallsFor]),
  ),
}

export const measureTranslated: Measure = async measuring => {
  const plan = streamPlan(measuring.quick)
  const upstream = await startStreamUpstream(measuring.bench, streamShape)
  const subject = await startSubject('weir', { ...measuring, upstream })
  const rounds: Record<string, Round[]> = {}
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [kind, callsFor] of Object.entries(kinds)) {
      const result = await runRound(subject, { upstream, plan: planOfRound({ ...plan, callsFor }, round) })
      ;(rounds[kind] ??= []).push(result)
      measuring.say(`  round ${round}, ${kind}: ${figure(result.cpuMicros)} µs of CPU`)
    }
  }
  await subject.stop()
  await upstream.stop()
  const ratioOf = (kind: string): number =>
    median(rounds[kind]!.map(({ cpuMicros }, index) => cpuMicros / rounds[NATIVE]![index]!.cpuMicros))
  const rows = Object.entries(rounds).map(([kind, of]) => [
    kind,
    figure(medianOf(of, 'cpuMicros')),
    rangeOf(of.map(round => round.cpuMicros)),
    kind === NATIVE ? '' : `${figure(ratioOf(kind))}×`,
    figure(medianOf(of, 'firstP50')),
    figure(medianOf(of, 'totalP50')),
  ])
  return {
    title: `${streamShape.chunks}-chunk stream, translated`,
    about:
      `Weir alone, ${planOfRound(plan, 1).count} streams of each kind as above, ${plan.connections} at once, after ${plan.warmUp} to warm ` +
      `up; ${ROUNDS} rounds in turn, medians. “chat from messages” is a caller of Chat Completions whose model is ` +
      'served in Anthropic Messages. All that was said is compared, and that the stream has its end.',
    table: [['kind', 'CPU µs', 'all rounds, from – to', 'to native', 'first chunk p50 ms', 'whole p50 ms'], ...rows],
    targets: pairs.map(pairName).map(kind => ({
      what: `translated stream, ${kind}, against native`,
      most: 1.2,
      unit: '×',
      measured: ratioOf(kind),
    })),
  }
}
