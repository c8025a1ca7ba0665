// A strict reader of both metrics formats. It throws for everything that a monitoring system might refuse or, worse,
// read in another way.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Exposed {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly samples: readonly Sample[]
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|\})/
const VALUE = /^ ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/

function readSample(line: string): Sample {
  const fail = (why: string): never => {
    throw new Error(`${why}: ${line}`)
  }
  const name = NAME.exec(line)?.[0] ?? fail('no name')
  let rest = line.slice(name.length)
  const labels: Record<string, string> = {}
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    for (let more = true; more; ) {
      const [whole, label, value, end] = LABEL.exec(rest) ?? fail('no label')
      if (Object.hasOwn(labels, label!) || label!.startsWith('__')) fail('a label twice, or reserved')
      labels[label!] = value!.replace(/\\([\\"n])/g, (_, mark) => (mark === 'n' ? '\n' : mark))
      rest = rest.slice(whole!.length)
      more = end === ','
    }
  }
  const text = VALUE.exec(rest)?.[1] ?? fail('no value')
  return { name, labels, value: Number(text.replace('Inf', 'Infinity')) }
}

export function readExposition(text: string, format: 'prometheus' | 'openmetrics' = 'prometheus'): readonly Exposed[] {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const lines = text.slice(0, -1).split('\n')
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('no # EOF')
  const families: (Exposed & { samples: Sample[] })[] = []
  for (let at = 0; at < lines.length; ) {
    const [, name, help] = /^# HELP (\S+) (.+)$/.exec(lines[at++]!) ?? []
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(lines[at++] ?? '') ?? []
    if (name === undefined || name !== typed) throw new Error(`HELP and TYPE must come together: ${lines[at - 2]}`)
    if (families.some(family => family.name === name)) throw new Error(`${name} comes twice`)
    const samples: Sample[] = []
    while (at < lines.length && !lines[at]!.startsWith('#')) samples.push(readSample(lines[at++]!))
    families.push({ name, help: help!, type: type!, samples })
  }
  for (const family of families) check(family, format)
  return families
}

function check({ name, type, samples }: Exposed, format: 'prometheus' | 'openmetrics'): void {
  const ending = format === 'openmetrics' && type === 'counter' ? '_total' : ''
  const named = type === 'histogram' ? ['_bucket', '_sum', '_count'].map(end => name + end) : [name + ending]
  const seen = new Set<string>()
  for (const sample of samples) {
    const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
    if (!named.includes(sample.name)) throw new Error(`${sample.name} is no sample of ${name}`)
    if (seen.has(key)) throw new Error(`${key} comes twice`)
    if (type !== 'gauge' && !(sample.value >= 0)) throw new Error(`${key} is ${sample.value}`)
    seen.add(key)
  }
  if (type === 'counter' && format === 'prometheus' && !name.endsWith('_total')) throw new Error(`${name} is no total`)
  if (type === 'histogram') checkHistogram(name, samples)
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const key = JSON.stringify(labels)
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  for (const [key, group] of groups) {
    const buckets = group.filter(one => one.name === `${name}_bucket`)
    const upTo = buckets.map(({ labels }) => Number(labels.le!.replace('Inf', 'Infinity')))
    const isAscending = (values: readonly number[]): boolean =>
      values.every((value, at) => at === 0 || value >= values[at - 1]!)
    const count = group.find(one => one.name === `${name}_count`)?.value
    const isComplete =
      upTo.at(-1) === Infinity && buckets.at(-1)!.value === count && group.length === buckets.length + 2
    if (
      !isAscending(upTo) ||
      new Set(upTo).size !== upTo.length ||
      !isAscending(buckets.map(({ value }) => value)) ||
      !isComplete
    ) {
      throw new Error(`${name}${key} is no histogram`)
    }
  }
}

/** The value of a series; undefined if there is none. */
export function valueOf(families: readonly Exposed[], name: string, labels: Sample['labels'] = {}): number | undefined {
  const allSamples = families.flatMap(({ samples }) => samples)
  const matches = (sample: Sample): boolean =>
    sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  const matching = allSamples.filter(matches)
  return matching.length === 0 ? undefined : matching.reduce((sum, { value }) => sum + value, 0)
}
