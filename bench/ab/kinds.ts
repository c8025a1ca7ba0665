// What can be compared: the CPU of a gateway a call, by thread, or what a program without sockets says of itself.

import { join } from 'node:path'
import { promptCalls } from '../load/calls.ts'
import { Load } from '../load/load.ts'
import { pairName, pairs } from '../load/translated-calls.ts'
import { plainPlan } from '../measures/plain.ts'
import type { Plan } from '../measures/rounds.ts'
import { streamPlan, streamShape } from '../measures/stream.ts'
import { burst } from '../measures/threads.ts'
import { kinds as streamKinds } from '../measures/translated.ts'
import { startSubject } from '../subjects/subject.ts'
import type { WeirHome } from '../subjects/weir-home.ts'
import type { Workbench } from '../system/workbench.ts'
import { SUBJECT_CORE } from '../system/workbench.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { startPlainUpstream, startStreamUpstream } from '../upstreams/upstream.ts'

export interface Measured {
  readonly cpuMicros: number
  readonly threads: ReadonlyMap<string, number>
}

/** One side, A or B. */
export interface Run {
  readonly bench: Workbench
  /** The folder with its files. */
  readonly program: string
  /** Made at the first use: only gateways need it. */
  readonly home: () => WeirHome
  readonly quick: boolean
}

/** One side of a comparison, ready for any number of measurements. */
export interface Opened {
  measure(): Promise<Measured>
  close(): Promise<void>
}

export type Kind = (run: Run) => Promise<Opened>

/** A burst lasts about half a second, so that the machine is equally busy for both sides of a pair. */
const BURSTS = 10

const ofGateway =
  (start: (bench: Workbench) => Promise<Upstream>, planOf: (quick: boolean) => Plan): Kind =>
  async ({ bench, home, quick }) => {
    const plan = planOf(quick)
    const upstream = await start(bench)
    const subject = await startSubject('weir', { bench, home: home(), upstream })
    const load = await Load.open(subject.port, plan.connections, plan.callsFor(subject.keys, subject.manner))
    await load.run(plan.warmUp, plan.secondsMax)
    return {
      measure: () => burst(subject, load, { count: Math.ceil(plan.count / BURSTS), secondsMax: plan.secondsMax }),
      close: async () => {
        load.close()
        await subject.stop()
        await upstream.stop()
      },
    }
  }

/** The last line that the program prints is its result. */
const ofProgram =
  (name: string, args: (run: Run) => readonly (string | number)[]): Kind =>
  async run => {
    const { bench, program } = run
    const command = [join(program, 'bin', 'weir-bun'), join(program, 'bench', name), ...args(run).map(String)]
    const measure = async (): Promise<Measured> => {
      const child = bench.start({ name: 'program', core: SUBJECT_CORE, command, env: {} })
      const code = await child.exited
      const output = (await Bun.file(child.log).text()).trim()
      await bench.stop(child)
      if (code !== 0) throw new Error(`${name}: ${output.slice(-1_000)}`)
      const { cpuMicros } = JSON.parse(output.split('\n').at(-1)!) as Pick<Measured, 'cpuMicros'>
      return { cpuMicros, threads: new Map() }
    }
    return { measure, close: async () => {} }
  }

const streamUpstream = (bench: Workbench): Promise<Upstream> => startStreamUpstream(bench, streamShape)

const promptPlan = (quick: boolean): Plan => ({
  connections: 1,
  warmUp: quick ? 20 : 200,
  count: quick ? 30 : 300,
  secondsMax: 60,
  callsFor: keys => promptCalls(keys.slice(0, 1), 1_000_000),
})

/** A caller of Messages and an upstream of Chat Completions: the pair that coding agents use most. */
const TRANSLATED = pairName(pairs.find(({ caller, upstream }) => caller === 'messages' && upstream === 'chat')!)
const translatedPlan = (quick: boolean): Plan => ({ ...streamPlan(quick), callsFor: streamKinds[TRANSLATED]! })

export const kinds: Readonly<Record<string, Kind>> = {
  plain: ofGateway(startPlainUpstream, plainPlan),
  stream: ofGateway(streamUpstream, streamPlan),
  translated: ofGateway(streamUpstream, translatedPlan),
  prompt: ofGateway(bench => startStreamUpstream(bench, { chunks: 2, gapMs: 1 }), promptPlan),
  ledger: ofProgram('ledger/calls.ts', ({ program, quick }) => [`${program}.db`, quick ? 5_000 : 50_000, 64, 100]),
  choice: ofProgram('choice/calls.ts', ({ quick }) => [quick ? 50_000 : 500_000, 'both']),
}
