// Counters and gauges in the text format that monitoring systems scrape. Counting is adding to a number; gauges are
// read, and everything is written, only when somebody asks. Labels hold our own words, never those of a caller.

export interface Counter {
  add(count?: number): void
}

interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  /** Name and labels, and the value. */
  samples(): readonly (readonly [name: string, value: number])[]
}

/** Undefined leaves the sample out. */
export type Read = () => number | undefined

export interface CountedBy {
  readonly label: string
  read(): readonly (readonly [value: string, sum: number])[]
}

export class Metrics {
  readonly #families: Family[] = []

  counter(name: string, help: string): Counter {
    let sum = 0
    this.#families.push({ name, help, type: 'counter', samples: () => [[name, sum]] })
    return { add: (count = 1) => void (sum += count) }
  }

  /** One counter for each value of a label, made when it is first counted. */
  counters(name: string, help: string, label: string): (value: string) => void {
    const sums = new Map<string, number>()
    const samples = () => [...sums].map(([value, sum]) => [labelled(name, label, value), sum] as const)
    this.#families.push({ name, help, type: 'counter', samples })
    return value => void sums.set(value, (sums.get(value) ?? 0) + 1)
  }

  /** What is counted elsewhere and only grows. */
  counted(name: string, help: string, read: Read): void {
    this.#families.push({ name, help, type: 'counter', samples: () => sampleOf(name, read) })
  }

  /** The same, one for each value of a label. */
  countedBy(name: string, help: string, { label, read }: CountedBy): void {
    const samples = () => read().map(([value, sum]) => [labelled(name, label, value), sum] as const)
    this.#families.push({ name, help, type: 'counter', samples })
  }

  gauge(name: string, help: string, read: Read): void {
    this.#families.push({ name, help, type: 'gauge', samples: () => sampleOf(name, read) })
  }

  write(): string {
    return this.#families.map(writeFamily).join('')
  }
}

/** What cannot be read at the moment must not hide the rest. */
function sampleOf(name: string, read: Read): readonly (readonly [string, number])[] {
  try {
    const value = read()
    return value === undefined ? [] : [[name, value]]
  } catch {
    return []
  }
}

function writeFamily({ name, help, type, samples }: Family): string {
  const lines = samples().map(([sample, value]) => `${sample} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

const labelled = (name: string, label: string, value: string): string => `${name}{${label}="${escaped(value)}"}`

const escaped = (value: string): string => value.replace(/[\\"\n]/g, mark => (mark === '\n' ? '\\n' : `\\${mark}`))
