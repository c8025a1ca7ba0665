// Draws the CPU of a plain call and of a stream as bars, from the text of RESULTS.md, so that the chart has the figures
// of the tables. `bin/weir-bun bench/chart.ts` draws it again without a run.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
export const CHART = join(root, 'docs', 'how-it-works', 'speed.svg')

/** One subject of a table: its name, and its CPU as written in the table. */
export interface Bar {
  readonly name: string
  readonly written: string
  readonly value: number
}

/** The first two columns of the table below a heading of the report. */
export function barsOf(report: string, heading: string): readonly Bar[] {
  const section = report.split(/^## /m).find(text => text.startsWith(`${heading}\n`))
  const rows = (section ?? '').split('\n').filter(line => line.startsWith('| '))
  const bars = rows.slice(1).map(row => {
    const [, name = '', written = ''] = row.split('|').map(cell => cell.trim())
    return { name, written, value: Number(written.replaceAll(',', '')) }
  })
  if (bars.length === 0 || bars.some(bar => !(bar.value > 0))) {
    throw new Error(`The report has no table of CPU below "${heading}".`)
  }
  return bars
}

const panels = [
  { heading: 'Plain call', title: 'A plain call' },
  { heading: '100-chunk stream', title: 'A stream of 100 chunks' },
] as const

const WIDTH = 720
const NAME_WIDTH = 150
const VALUE_WIDTH = 70
const BARS_WIDTH = WIDTH - NAME_WIDTH - VALUE_WIDTH - 20
const ROW = 26
const TITLE = 44

export function drawChart(report: string): string {
  const commit = /^\| commit +\| +(\S+)/m.exec(report)?.[1]?.replace(',', '') ?? 'unknown'
  const drawn: string[] = []
  let top = 46
  for (const { heading, title } of panels) {
    const bars = barsOf(report, heading)
    drawn.push(`<text class="title" x="20" y="${top + 24}">${title}</text>`)
    drawn.push(...bars.map((bar, at) => drawBar(bar, bars, top + TITLE + at * ROW - 8)))
    top += TITLE + bars.length * ROW
  }
  const height = top + 34
  const about = 'CPU of the process a call, in microseconds; less is better'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="chart-title">
<title id="chart-title">${about}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .note { font-size: 11px; fill: #59636e }
  .sheet { fill: #ffffff }
  .bar { fill: #9aa4af }
  .weir { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .sheet { fill: #0d1117 }
    .bar { fill: #656c76 }
    .weir { fill: #4493f8 }
  }
</style>
<rect class="sheet" width="${WIDTH}" height="${height}"/>
<text x="20" y="28">${about}</text>
${drawn.join('\n')}
<text class="note" x="20" y="${height - 14}">Commit ${escaped(commit)}. Weir bills every call, durably; what the others do is in bench/RESULTS.md.</text>
</svg>
`
}

function drawBar({ name, written, value }: Bar, bars: readonly Bar[], y: number): string {
  const most = Math.max(...bars.map(bar => bar.value))
  const width = Math.max(1, Math.round((value / most) * BARS_WIDTH))
  const look = name === 'weir' ? 'weir' : 'bar'
  return [
    `<text x="20" y="${y + 14}">${escaped(name)}</text>`,
    `<rect class="${look}" x="${NAME_WIDTH}" y="${y}" width="${width}" height="18" rx="2"/>`,
    `<text x="${NAME_WIDTH + width + 8}" y="${y + 14}">${written}</text>`,
  ].join('')
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

if (import.meta.main) writeFileSync(CHART, drawChart(readFileSync(join(import.meta.dir, 'RESULTS.md'), 'utf8')))
