// Counters, gauges and histograms in the text formats that monitoring systems scrape. Counting is adding to a number;
// gauges are read, and everything is written, only when somebody asks. Labels hold our own words, never those of a
// caller, and no name has more series than its bound: what comes later is counted as `other`.

import { assert } from './assert.ts'
import { bounds } from './bounds.ts'

/** One series that only grows. Whoever counts often keeps it. */
export class Cell {
  value = 0

  add(count = 1): void {
    this.value += count
  }
}

/** How many values there were up to each of some bounds, and what they come to together. */
export class Histogram {
  readonly #upTo: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  /** The bounds in rising order; what is beyond the last counts, too. */
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
    const before = labels === '' ? '{' : `${labels.slice(0, -1)},`
    const buckets = Array.from(this.#counts, (more, at) => {
      count += more
      return `${name}_bucket${before}le="${numberText(this.#upTo[at] ?? Number.POSITIVE_INFINITY)}"} ${count}\n`
    })
    return [...buckets, `${name}_sum${labels} ${numberText(this.#sum)}\n`, `${name}_count${labels} ${count}\n`]
  }
}

/** Undefined leaves the sample out. */
export type Read = () => number | undefined

export interface LabelledRead {
  readonly labels: readonly string[]
  /** A row for each series: the values of its labels in their order, and what it is. */
  read(): Iterable<readonly [values: readonly string[], value: number]>
}

/** Of a name with labels: the series of these values. Made when it is first asked for. */
export type SeriesOf<Kept> = (...values: readonly string[]) => Kept

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

  counter(name: string, help: string): Cell {
    const cell = new Cell()
    this.#add({ name, help, type: 'counter', lines: () => [sample(name, '', cell.value)] })
    return cell
  }

  counters(name: string, help: string, labels: readonly string[]): SeriesOf<Cell> {
    const series = new Series(labels, () => new Cell())
    const lines = () => series.lines((cell, text) => [sample(name, text, cell.value)])
    this.#add({ name, help, type: 'counter', lines })
    return series.of
  }

  histogram(name: string, help: string, upTo: readonly number[]): Histogram {
    const histogram = new Histogram(upTo)
    this.#add({ name, help, type: 'histogram', lines: () => histogram.lines(name, '') })
    return histogram
  }

  histograms(name: string, help: string, { labels, upTo }: HistogramPlan): SeriesOf<Histogram> {
    const series = new Series(labels, () => new Histogram(upTo))
    this.#add({ name, help, type: 'histogram', lines: () => series.lines((kept, text) => kept.lines(name, text)) })
    return series.of
  }

  /** What is counted elsewhere and only grows. */
  counted(name: string, help: string, read: Read | LabelledRead): void {
    this.#add({ name, help, type: 'counter', lines: () => readLines(name, read) })
  }

  gauge(name: string, help: string, read: Read | LabelledRead): void {
    this.#add({ name, help, type: 'gauge', lines: () => readLines(name, read) })
  }

  write(format: MetricsFormat = 'prometheus'): string {
    const families = Array.from(this.#families.values(), family => writeFamily(family, format))
    return families.join('') + (format === 'openmetrics' ? '# EOF\n' : '')
  }

  #add(family: Family): void {
    assert(!this.#families.has(family.name), `${family.name} is one metric`)
    assert((family.type === 'counter') === family.name.endsWith('_total'), `${family.name} is named for what it is`)
    this.#families.set(family.name, family)
  }
}

interface HistogramPlan {
  readonly labels: readonly string[]
  readonly upTo: readonly number[]
}

class Series<Kept> {
  readonly #labels: readonly string[]
  readonly #make: () => Kept
  readonly #kept = new Map<string, { readonly text: string; readonly kept: Kept }>()

  constructor(labels: readonly string[], make: () => Kept) {
    this.#labels = labels
    this.#make = make
  }

  readonly of = (...values: readonly string[]): Kept => {
    const known = this.#kept.get(values.join('\n'))
    if (known !== undefined) return known.kept
    if (this.#kept.size < bounds.metricSeriesMax) return this.#open(values)
    const others = this.#labels.map(() => OTHER)
    return this.#kept.get(others.join('\n'))?.kept ?? this.#open(others)
  }

  lines(write: (kept: Kept, labels: string) => readonly string[]): readonly string[] {
    return Array.from(this.#kept.values(), ({ text, kept }) => write(kept, text)).flat()
  }

  #open(values: readonly string[]): Kept {
    const kept = this.#make()
    this.#kept.set(values.join('\n'), { text: labelText(this.#labels, values), kept })
    return kept
  }
}

/** What cannot be read at the moment must not hide the rest. */
function readLines(name: string, read: Read | LabelledRead): readonly string[] {
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

/** One format names a counter by what its samples are called, the other leaves out how they end. */
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
  `{${labels.map((label, at) => `${label}="${escaped(values[at] ?? '')}"`).join(',')}}`

const escaped = (value: string): string => value.replace(/[\\"\n]/g, mark => (mark === '\n' ? '\\n' : `\\${mark}`))
