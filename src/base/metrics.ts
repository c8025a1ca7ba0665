// Counters, gauges and histograms in the text formats that monitoring systems scrape. Counting adds to a number; gauges
// are read, and text is written, only when a scrape arrives. Label values are never text of a caller. The number of
// series of a metric is bounded: later label values are counted as `other`.

import { assert } from './assert.ts'
import { bounds } from './bounds.ts'

/** One series that only grows. Code that counts often keeps the object. */
export class MetricCounter {
  value = 0

  add(count = 1): void {
    this.value += count
  }
}

/** Counts values in buckets by their upper bounds, and sums them. */
export class MetricHistogram {
  readonly #upTo: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  /** `upTo`: the upper bounds in rising order. Values above the last one are counted in a bucket of their own. */
  constructor(upTo: readonly number[]) {
    this.#upTo = upTo
    this.#counts = new Float64Array(upTo.length + 1)
  }

  observe(value: number): void {
    const upTo = this.#upTo
    let at = 0
    while (at < upTo.length && value > upTo[at]!) at++
    this.#counts[at]!++
    this.#sum += value
  }

  lines(name: string, labels: string): readonly string[] {
    let count = 0
    const openLabels = labels === '' ? '{' : `${labels.slice(0, -1)},`
    const buckets = Array.from(this.#counts, (inBucket, at) => {
      count += inBucket
      return `${name}_bucket${openLabels}le="${numberText(this.#upTo[at] ?? Number.POSITIVE_INFINITY)}"} ${count}\n`
    })
    return [...buckets, `${name}_sum${labels} ${numberText(this.#sum)}\n`, `${name}_count${labels} ${count}\n`]
  }
}

/** Reads the value of a metric. Undefined leaves the sample out. */
export type ReadMetric = () => number | undefined

export interface LabelledMetric {
  readonly labels: readonly string[]
  /** One entry for each series: its label values in the order of `labels`, and its value. */
  read(): Iterable<readonly [values: readonly string[], value: number]>
}

/** Returns the series with these label values, and creates it on first use. */
export type SeriesOf<Metric> = (...values: readonly string[]) => Metric

export type MetricsFormat = 'prometheus' | 'openmetrics'

type MetricType = 'counter' | 'gauge' | 'histogram'

interface Family {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  lines(): readonly string[]
}

const OTHER = 'other'

export class Metrics {
  readonly #families = new Map<string, Family>()

  counter(name: string, help: string): MetricCounter {
    const cell = new MetricCounter()
    this.#add({ name, help, type: 'counter', lines: () => [sample(name, '', cell.value)] })
    return cell
  }

  counters(name: string, help: string, labels: readonly string[]): SeriesOf<MetricCounter> {
    const series = new Series(labels, () => new MetricCounter())
    const lines = () => series.lines((cell, text) => [sample(name, text, cell.value)])
    this.#add({ name, help, type: 'counter', lines })
    return series.of
  }

  histogram(name: string, help: string, upTo: readonly number[]): MetricHistogram {
    const histogram = new MetricHistogram(upTo)
    this.#add({ name, help, type: 'histogram', lines: () => histogram.lines(name, '') })
    return histogram
  }

  histograms(
    name: string,
    help: string,
    { labels, upTo }: { readonly labels: readonly string[]; readonly upTo: readonly number[] },
  ): SeriesOf<MetricHistogram> {
    const series = new Series(labels, () => new MetricHistogram(upTo))
    const lines = () => series.lines((histogram, text) => histogram.lines(name, text))
    this.#add({ name, help, type: 'histogram', lines })
    return series.of
  }

  /** A counter whose value is counted elsewhere. */
  observableCounter(name: string, help: string, read: ReadMetric | LabelledMetric): void {
    this.#add({ name, help, type: 'counter', lines: () => readLines(name, read) })
  }

  gauge(name: string, help: string, read: ReadMetric | LabelledMetric): void {
    this.#add({ name, help, type: 'gauge', lines: () => readLines(name, read) })
  }

  write(format: MetricsFormat = 'prometheus'): string {
    const families = Array.from(this.#families.values(), family => writeFamily(family, format))
    return families.join('') + (format === 'openmetrics' ? '# EOF\n' : '')
  }

  #add(family: Family): void {
    assert(!this.#families.has(family.name), `${family.name} is registered once`)
    assert(
      (family.type === 'counter') === family.name.endsWith('_total'),
      `${family.name}: counters, and only counters, end in _total`,
    )
    this.#families.set(family.name, family)
  }
}

class Series<Metric> {
  readonly #labels: readonly string[]
  readonly #create: () => Metric
  readonly #series = new Map<string, { readonly text: string; readonly metric: Metric }>()

  constructor(labels: readonly string[], create: () => Metric) {
    this.#labels = labels
    this.#create = create
  }

  readonly of = (...values: readonly string[]): Metric => {
    const existing = this.#series.get(values.join('\n'))
    if (existing !== undefined) return existing.metric
    if (this.#series.size < bounds.metricSeriesMax) return this.#add(values)
    const others = this.#labels.map(() => OTHER)
    return this.#series.get(others.join('\n'))?.metric ?? this.#add(others)
  }

  lines(write: (metric: Metric, labels: string) => readonly string[]): readonly string[] {
    return Array.from(this.#series.values(), ({ text, metric }) => write(metric, text)).flat()
  }

  #add(values: readonly string[]): Metric {
    const metric = this.#create()
    this.#series.set(values.join('\n'), { text: labelText(this.#labels, values), metric })
    return metric
  }
}

/** A metric that cannot be read at the moment must not hide the others. */
function readLines(name: string, read: ReadMetric | LabelledMetric): readonly string[] {
  try {
    if (typeof read !== 'function') {
      const rows = [...read.read()].slice(0, bounds.metricSeriesMax)
      return rows.map(([values, value]) => sample(name, labelText(read.labels, values), value))
    }
    const value = read()
    return value === undefined ? [] : [sample(name, '', value)]
  } catch {
    return []
  }
}

/** The Prometheus format names a counter like its samples; OpenMetrics names it without `_total`. */
function writeFamily({ name, help, type, lines }: Family, format: MetricsFormat): string {
  const family = format === 'openmetrics' && type === 'counter' ? name.slice(0, -'_total'.length) : name
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n${lines().join('')}`
}

const sample = (name: string, labels: string, value: number): string => `${name}${labels} ${numberText(value)}\n`

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

const labelText = (labels: readonly string[], values: readonly string[]): string =>
  `{${labels.map((label, at) => `${label}="${escapeLabel(values[at] ?? '')}"`).join(',')}}`

const escapeLabel = (value: string): string => value.replace(/[\\"\n]/g, mark => (mark === '\n' ? '\\n' : `\\${mark}`))
