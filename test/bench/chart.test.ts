// The chart of docs/how-it-works/speed.md shows the figures of bench/RESULTS.md.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { barsOf, CHART, drawChart } from '../../bench/chart.ts'

const results = readFileSync(join(import.meta.dir, '../../bench/RESULTS.md'), 'utf8')
const chart = readFileSync(CHART, 'utf8')

test('the chart is drawn from the results that are beside it', () => {
  expect(chart).toBe(drawChart(results))
})

interface DrawnBar {
  readonly name: string
  readonly width: number
  readonly written: string
}

const drawnBars = (svg: string): readonly DrawnBar[] =>
  Array.from(
    svg.matchAll(/<text [^>]*>([^<]*)<\/text><rect [^>]* width="(\d+)"[^>]*\/><text [^>]*>([^<]*)<\/text>/g),
    ([, name, width, written]) => ({ name: name!, width: Number(width), written: written! }),
  )

test('it has a bar for each subject of both tables, as long as its figure, with the figure beside it', () => {
  const tables = [barsOf(results, 'Plain call'), barsOf(results, '100-chunk stream')]
  const drawn = drawnBars(chart)
  expect(drawn.map(({ name, written }) => `${name} ${written}`)).toEqual(
    tables.flat().map(({ name, written }) => `${name} ${written}`),
  )
  let at = 0
  for (const bars of tables) {
    const widest = Math.max(...bars.map(bar => bar.value))
    const full = Math.max(...drawn.slice(at, at + bars.length).map(bar => bar.width))
    for (const bar of bars) expect(drawn[at++]!.width).toBeCloseTo((bar.value / widest) * full, -0.5)
  }
})

/** Tags that are closed in order, attributes in quotes, and no bare & or <. */
function problemsOf(svg: string): readonly string[] {
  const open: string[] = []
  const problems: string[] = []
  const rest = svg.replace(
    /<(\/?)([a-z]+)((?: [a-zA-Z-]+(?::[a-z]+)?="[^"<]*")*)(\/?)>/g,
    (_, end, name, _attributes, empty) => {
      if (end === '/' && open.pop() !== name) problems.push(`</${name}> closes nothing`)
      if (end === '' && empty === '') open.push(name)
      return ''
    },
  )
  if (open.length > 0) problems.push(`not closed: ${open.join(', ')}`)
  if (/<|&(?!amp;|lt;)/.test(rest)) problems.push('a bare < or &')
  return problems
}

test('it is well formed, has a title, and colours for dark pages', () => {
  expect(problemsOf(chart)).toEqual([])
  expect(problemsOf('<svg><g></svg>')).not.toEqual([])
  expect(problemsOf('<svg>a & b</svg>')).not.toEqual([])
  expect(chart).toContain('<title ')
  expect(chart).toContain('prefers-color-scheme: dark')
})

const table = (rows: string): string => `| subject | CPU µs | all |\n|---|---:|---:|\n${rows}`
const report = (plain: string): string =>
  `# Results\n\n| commit | abc1234, with changes |\n\n## Plain call\n\nabout\n\n${table(plain)}\n\n## 100-chunk stream\n\n` +
  `${table('| nginx | 1,000 | 1 |\n| weir | 2,000 | 2 |')}\n`

test('peers are drawn as well, a very long bar leaves a short one to be seen, and names are escaped', () => {
  const svg = drawChart(report('| nginx | 18.5 | 1 |\n| weir | 180 | 2 |\n| a<b & c | 150,210 | 3 |'))
  expect(problemsOf(svg)).toEqual([])
  expect(svg).toContain('Commit abc1234.')
  expect(drawnBars(svg).slice(0, 3)).toEqual([
    { name: 'nginx', width: 1, written: '18.5' },
    { name: 'weir', width: 1, written: '180' },
    { name: 'a&lt;b &amp; c', width: expect.any(Number), written: '150,210' },
  ])
})

test('a report without the tables is an error, not an empty chart', () => {
  expect(() => drawChart('# Results\n')).toThrow('no table of CPU below "Plain call"')
  expect(() => drawChart(report('| nginx | none | 1 |'))).toThrow('no table of CPU below "Plain call"')
})
