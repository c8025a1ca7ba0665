// The memory of Weir at rest, with a few keys and with a million, and the cost of a call with a million keys.

import { bounds } from '../../src/base/bounds.ts'
import type { Setting, Subject } from '../subjects/subject.ts'
import { startSubject } from '../subjects/subject.ts'
import { addKeys } from '../subjects/weir-home.ts'
import { memoryNow } from '../system/proc.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'
import { plainPlan } from './plain.ts'
import { runRound } from './rounds.ts'

const REST_MS = 3_000

export const measureIdle: Measure = async measuring => {
  const keyCounts = measuring.quick ? { size: 100_000, callable: 2_000 } : { size: 1_000_000, callable: 20_000 }
  const size = keyCounts.size.toLocaleString('en-US')
  const setting: Setting = { ...measuring, upstream: await startPlainUpstream(measuring.bench) }
  const plan = plainPlan(measuring.quick)
  const table = [['keys', 'calling', 'RSS MB at rest', 'CPU µs a plain call', 'RSS MB after']]

  /** Measures the memory at rest, then calls with these keys. */
  async function measureKeys(keys: string, callers: readonly (readonly string[])[]): Promise<number> {
    const subject = await startSubject('weir', setting)
    await Bun.sleep(REST_MS)
    const rest = memoryNow(subject.pid)
    for (const [index, calling] of callers.entries()) {
      const round = await runRound({ ...subject, keys: calling } satisfies Subject, { ...setting, plan })
      const figures = [index === 0 ? figure(rest) : '', figure(round.cpuMicros), figure(round.memory)]
      table.push([keys, String(calling.length), ...figures])
      measuring.say(`  ${keys} keys, ${calling.length} calling: ${figure(round.cpuMicros)} µs of CPU`)
    }
    await subject.stop()
    return rest
  }

  const few = await measureKeys(String(measuring.home.keys.length), [measuring.home.keys])
  measuring.say(`  writing ${size} keys …`)
  const texts = addKeys(measuring.home, keyCounts)
  const many = await measureKeys(size, [measuring.home.keys, texts])
  await setting.upstream.stop()
  return {
    title: `Weir at rest, and among ${size} keys`,
    about:
      `Memory ${REST_MS / 1_000} s after the start and before any call; then one round of plain calls as above. ` +
      `Keys call in turn; Weir keeps ${bounds.keysCachedMax.toLocaleString('en-US')} of them in memory.`,
    table,
    targets: [
      { what: 'memory at rest', most: 60, unit: ' MB', measured: few },
      { what: `memory at rest, ${size} keys`, most: 60, unit: ' MB', measured: many },
    ],
  }
}
