// Adds up the metrics of several processes, as their texts in the Prometheus format. Counters and histograms are added; a
// process that has ended keeps its part, so that no counter goes back. A gauge of each process has its number as a label.

interface MetricFamily {
  /** The lines with the help and the type. */
  readonly head: string
  readonly isGauge: boolean
  /** By name and labels, such as `weir_requests_total{model="m"}`. */
  readonly samples: Map<string, number>
}

type Families = Map<string, MetricFamily>

export class MetricsSum {
  readonly #current = new Map<number, Families>()
  readonly #ended: Families = new Map()

  /** Takes the newest text of a process. */
  note(process: number, text: string): void {
    this.#current.set(process, readFamilies(text))
  }

  /** The process has ended. Another one may get its number. */
  end(process: number): void {
    add(this.#ended, this.#current.get(process) ?? new Map())
    this.#current.delete(process)
  }

  write(): string {
    const sum: Families = new Map()
    add(sum, this.#ended)
    for (const [process, families] of [...this.#current].toSorted(([a], [b]) => a - b)) add(sum, families, process)
    return Array.from(sum.values(), ({ head, samples }) => head + linesOf(samples)).join('')
  }
}

/** Gauges of processes that have ended are not added. */
function add(sum: Families, families: Families, process?: number): void {
  for (const [name, { head, isGauge, samples }] of families) {
    const family = sum.get(name) ?? { head, isGauge, samples: new Map() }
    sum.set(name, family)
    for (const [series, value] of samples) {
      if (!isGauge) family.samples.set(series, (family.samples.get(series) ?? 0) + value)
      else if (process !== undefined) family.samples.set(withProcess(series, process), value)
    }
  }
}

/** The name of a family is the third word of its lines with `# HELP` and `# TYPE`; its samples follow. */
function readFamilies(text: string): Families {
  const families: Families = new Map()
  for (const part of text.split(/^(?=# HELP )/m)) {
    const lines = part.split('\n').filter(line => line !== '')
    const heads = lines.filter(line => line.startsWith('#'))
    const [, name, type] = /^# TYPE (\S+) (\S+)$/m.exec(part) ?? []
    if (name === undefined) continue
    const samples = lines.filter(line => !line.startsWith('#')).map(readSample)
    families.set(name, { head: `${heads.join('\n')}\n`, isGauge: type === 'gauge', samples: new Map(samples) })
  }
  return families
}

/** A label may contain spaces, but the value does not. */
function readSample(line: string): [series: string, value: number] {
  const at = line.lastIndexOf(' ')
  return [line.slice(0, at), Number(line.slice(at + 1).replace('Inf', 'Infinity'))]
}

function withProcess(series: string, process: number): string {
  const at = series.indexOf('{')
  const [name, labels] = at < 0 ? [series, ''] : [series.slice(0, at), series.slice(at + 1, -1)]
  return `${name}{process="${process}"${labels === '' ? '' : `,${labels}`}}`
}

const linesOf = (samples: ReadonlyMap<string, number>): string =>
  Array.from(samples, ([series, value]) => `${series} ${String(value).replace('Infinity', 'Inf')}\n`).join('')
