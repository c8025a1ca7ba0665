// Charts over time. uPlot draws them on a canvas and is loaded with the first chart; the same figures are there as a table.

import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import type uPlot from 'uplot'
import { usePreferences, useTheme } from '../preferences.ts'
import { chartWords } from '../words/en/chart.ts'
import { useWords } from '../words/words.ts'
import { clock, day, shortNumber, time, zoneLabel } from './format.ts'
import { stacked } from './stacked.ts'

export interface Line {
  readonly name: string
  /** One value for each time; null is a gap. */
  readonly values: readonly (number | null)[]
  /** 1 to 6: a colour of the series; `muted` for "others"; `bad` for errors. */
  readonly tone?: 1 | 2 | 3 | 4 | 5 | 6 | 'muted' | 'bad'
}

interface OpenStep {
  (fromMs: number, beforeMs: number): void
  /** The parameters of the page of records, for a link. */
  searchOf(fromMs: number, beforeMs: number): Readonly<Record<string, string>>
}

interface ChartProps {
  /** What the chart shows, as a sentence: "Calls per hour, last 24 hours". */
  readonly label: string
  /** Milliseconds since 1970: where each step begins. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly format?: (value: number) => string
  /** Draws the lines on top of each other. */
  readonly isStacked?: boolean
  readonly height?: number
  /** The zone of the shown times, if it is not that of the viewer. */
  readonly zone?: string | undefined
  /** A click on a step opens the records of that step. In the table it is a link. */
  readonly onStep?: OpenStep
}

const colorOf = (tone: NonNullable<Line['tone']>): string => {
  const name = tone === 'muted' ? '--muted' : tone === 'bad' ? '--bad' : `--series-${tone}`
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

const toneOf = (line: Line, index: number): NonNullable<Line['tone']> => line.tone ?? (((index % 6) + 1) as 1)

const DAY = 86_400_000

function axisTime(atMs: number, stepMs: number, zone: string | undefined): string {
  return stepMs >= DAY ? day(atMs, zone).slice(5) : clock(atMs, { seconds: false })
}

const stepOf = (times: readonly number[]): number => (times.length > 1 ? times[1]! - times[0]! : 3_600_000)
const endOf = (times: readonly number[], at: number): number => times[at + 1] ?? times[at]! + stepOf(times)

/** Whether a step has not ended yet: its figures are low, because more will come. */
const isOpen = (times: readonly number[], at: number): boolean => endOf(times, at) > Date.now()

/** Shades the line to the steps that have not ended: it would look like a drop. */
function shadeOpen(plot: uPlot, times: readonly number[], color: string): void {
  const first = times.findIndex((_, at) => isOpen(times, at))
  if (first < 1) return
  const { left, top, width, height } = plot.bbox
  const from = plot.valToPos(times[first - 1]! / 1_000, 'x', true)
  plot.ctx.fillStyle = color
  plot.ctx.fillRect(from, top, left + width - from, height)
}

function build(chart: typeof uPlot, host: HTMLElement, props: ChartProps): uPlot {
  const { times, lines, format = shortNumber, isStacked = false, height = 180, zone, onStep } = props
  const style = getComputedStyle(document.documentElement)
  const [muted, line, sunken] = ['--muted', '--line', '--sunken'].map(name => style.getPropertyValue(name).trim()) as [
    string,
    string,
    string,
  ]
  const stepMs = stepOf(times)
  const data = isStacked ? stacked(lines.map(({ values }) => values)) : lines.map(({ values }) => [...values])
  const font = '12px "Inter Variable", system-ui, sans-serif'
  const series = lines.map((one, index): uPlot.Series => {
    const color = colorOf(toneOf(one, index))
    const isAlone = (values: readonly (number | null | undefined)[], at: number) =>
      values[at - 1] == null && values[at + 1] == null
    return {
      label: one.name,
      stroke: color,
      width: 1.5,
      ...(isStacked && { fill: `${color}40` }),
      // A single value between two gaps has no line, so that it is shown as a point.
      points: {
        show: true,
        size: 5,
        filter: (plot, seriesIndex) => {
          const values = plot.data[seriesIndex] as (number | null | undefined)[]
          return values.flatMap((value, at) => (value != null && isAlone(values, at) ? [at] : []))
        },
      },
    }
  })
  const plot = new chart(
    {
      width: Math.max(80, host.clientWidth),
      height,
      legend: { show: false },
      ...(zone !== undefined && { tzDate: seconds => chart.tzDate(new Date(seconds * 1_000), zone) }),
      hooks: { drawClear: [drawn => shadeOpen(drawn, times, sunken)] },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      // At the right there is room for half of the last time below the axis.
      padding: [8, 22, 0, 0],
      scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), high <= 0 ? 1 : high * 1.05] } },
      series: [{}, ...(isStacked ? [...series].reverse() : series)],
      // Each line fills the area down to the line below it, and the lowest one down to zero.
      ...(isStacked && {
        bands: lines.slice(1).map((_, index) => ({ series: [index + 1, index + 2] as [number, number] })),
      }),
      axes: [
        {
          stroke: muted,
          font,
          size: 28,
          space: 64,
          ...(stepMs >= DAY && { incrs: [1, 2, 7, 14, 30, 90].map(days => (days * DAY) / 1_000) }),
          grid: { show: false },
          ticks: { stroke: line, size: 4 },
          values: (_, values) => values.map(seconds => axisTime(seconds * 1_000, stepMs, zone)),
        },
        {
          stroke: muted,
          font,
          size: (_, values) => Math.max(36, ...(values ?? []).map(text => 14 + text.length * 7)),
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          values: (_, values) => values.map(format),
        },
      ],
    },
    [times.map(ms => ms / 1_000), ...(isStacked ? [...data].reverse() : data)] as uPlot.AlignedData,
    host,
  )
  plot.over.addEventListener('click', () => {
    const at = plot.cursor.idx
    if (at != null && times[at] !== undefined) onStep?.(times[at], endOf(times, at))
  })
  return plot
}

export function Chart(props: ChartProps) {
  const { label, times, lines, format = shortNumber, height = 180, zone } = props
  const t = useWords(chartWords)
  const preferences = usePreferences()
  const theme = useTheme()
  const host = useRef<HTMLDivElement>(null)
  const [isTable, setTable] = useState(false)
  const [at, setAt] = useState<number | null>(null)
  const id = useId()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are read from the document, which follows the theme
  useEffect(() => {
    let plot: uPlot | undefined
    let isGone = false
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) plot?.setSize({ width: Math.max(80, Math.floor(entry.contentRect.width)), height })
    })
    const show = ({ default: chart }: { readonly default: typeof uPlot }): void => {
      if (isGone || host.current === null) return
      plot = build(chart, host.current, props)
      plot.over.addEventListener('mousemove', () => setAt(plot?.cursor.idx ?? null))
      plot.over.addEventListener('mouseleave', () => setAt(null))
      observer.observe(host.current)
    }
    // What draws it may be out of reach. The figures are there.
    void import('uplot').then(show, () => setTable(true))
    return () => {
      isGone = true
      observer.disconnect()
      plot?.destroy()
    }
  }, [props, height, isTable, preferences, theme])
  return (
    <figure className="min-w-0 overflow-hidden">
      <figcaption className="flex flex-wrap items-center gap-x-4 gap-y-1 text-xs">
        {lines.length > 1 &&
          lines.map((line, index) => (
            <span key={line.name} className="inline-flex min-w-0 items-center gap-1.5">
              <span
                aria-hidden="true"
                className="h-0.5 w-3 shrink-0"
                style={{ background: `var(${toneVariable(toneOf(line, index))})` }}
              />
              <span className="max-w-48 truncate" title={line.name}>
                {line.name}
              </span>
              {at !== null && (
                <span className="text-muted tabular-nums">
                  {line.values[at] == null ? '–' : format(line.values[at])}
                </span>
              )}
            </span>
          ))}
        {at !== null && times[at] !== undefined && (
          <span className="text-muted tabular-nums">
            {time(times[at], { seconds: false, zone })}
            {isOpen(times, at) && ` (${t('soFar')})`}
            {lines.length === 1 && ` · ${lines[0]!.values[at] == null ? '–' : format(lines[0]!.values[at]!)}`}
          </span>
        )}
        <span className="ml-auto flex items-center gap-2 text-muted">
          {t('zone', { zone: zoneLabel(undefined, zone) })}
          <button
            type="button"
            className="link min-h-6"
            aria-expanded={isTable}
            aria-controls={id}
            onClick={() => setTable(!isTable)}
          >
            {isTable ? t('asChart') : t('asTable')}
          </button>
        </span>
      </figcaption>
      <div id={id} className="min-w-0">
        {isTable ? (
          <FigureTable {...props} />
        ) : (
          <div ref={host} role="img" aria-label={label} style={{ height }} className="min-w-0 overflow-hidden" />
        )}
      </div>
    </figure>
  )
}

const toneVariable = (tone: NonNullable<Line['tone']>): string =>
  tone === 'muted' ? '--muted' : tone === 'bad' ? '--bad' : `--series-${tone}`

function FigureTable({ label, times, lines, format = shortNumber, zone, onStep }: ChartProps) {
  const t = useWords(chartWords)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard
    <section tabIndex={0} aria-label={label} className="max-h-72 overflow-auto">
      <table className="w-full">
        <caption className="sr-only">{label}</caption>
        <thead>
          <tr className="border-line border-b text-left text-muted text-xs">
            <th scope="col" className="pr-4 font-medium">
              {t('time')}
            </th>
            {lines.map(line => (
              <th key={line.name} scope="col" className="pr-4 text-right font-medium">
                {line.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((atMs, index) => (
            <tr key={atMs} className="border-line border-b">
              <td className="pr-4 tabular-nums">
                {onStep === undefined ? (
                  time(atMs, { seconds: false, zone })
                ) : (
                  <Link
                    to="/records"
                    search={onStep.searchOf(atMs, endOf(times, index)) as never}
                    title={t('openRecords')}
                    className="link"
                  >
                    {time(atMs, { seconds: false, zone })}
                  </Link>
                )}
                {isOpen(times, index) && <span className="text-muted"> ({t('soFar')})</span>}
              </td>
              {lines.map(line => (
                <td key={line.name} className="pr-4 text-right tabular-nums">
                  {line.values[index] == null ? '–' : format(line.values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** For `onStep`: opens the records of the step. */
export function useOpenRecords(filter: Readonly<Record<string, string>> = {}): OpenStep {
  const navigate = useNavigate()
  const searchOf: OpenStep['searchOf'] = (fromMs, beforeMs) => ({
    ...filter,
    from: new Date(fromMs).toISOString(),
    before: new Date(beforeMs).toISOString(),
  })
  const open = (fromMs: number, beforeMs: number): void =>
    void navigate({ to: '/records', search: searchOf(fromMs, beforeMs) as never })
  return Object.assign(open, { searchOf })
}
