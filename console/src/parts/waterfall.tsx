// Where the time of a call went: one bar for each stage, and one for each attempt.

import { waterfallWords } from '../words/en/waterfall.ts'
import { useWords } from '../words/words.ts'
import { duration } from './format.ts'

export interface Span {
  readonly id: string
  readonly name: string
  /** Undefined: unknown, so that the span is only listed. */
  readonly atMs: number | undefined
  readonly ms: number
  readonly tone: 'gateway' | 'wait' | 'upstream' | 'failed'
  /** When the first content arrived, since the arrival of the request. */
  readonly firstAtMs?: number | undefined
  readonly note?: string | undefined
  readonly isNested?: boolean
}

const tones: Readonly<Record<Span['tone'], string>> = {
  gateway: 'bg-series-1',
  wait: 'bg-series-3',
  upstream: 'bg-series-2',
  failed: 'bg-bad',
}

/** A nice distance of the lines behind the bars: about five of them. */
function tickStep(totalMs: number): number {
  const rough = totalMs / 5
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-3)))
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough) ?? rough
}

export function Waterfall({ spans, totalMs }: { readonly spans: readonly Span[]; readonly totalMs: number }) {
  const t = useWords(waterfallWords)
  const total = Math.max(totalMs, 0.1, ...spans.map(({ atMs = 0, ms }) => atMs + ms))
  const step = tickStep(total)
  const ticks = Array.from({ length: Math.floor(total / step) + 1 }, (_, index) => index * step)
  const percentOf = (ms: number): string => `${(ms / total) * 100}%`
  return (
    <div className="relative">
      <div aria-hidden="true" className="absolute inset-y-0 right-16 left-28 md:right-20 md:left-50">
        {ticks.map(tick => (
          <span key={tick} className="absolute inset-y-0 border-line border-l" style={{ left: percentOf(tick) }}>
            <span className="absolute -top-0 left-1 whitespace-nowrap text-[10px] text-muted leading-3 max-md:hidden">
              {duration(tick)}
            </span>
          </span>
        ))}
      </div>
      <ol aria-label={t('label')} className="relative flex flex-col pt-4">
        {spans.map(span => (
          <li
            key={span.id}
            className="grid h-7 grid-cols-[112px_minmax(0,1fr)_64px] items-center md:grid-cols-[200px_minmax(0,1fr)_80px]"
          >
            <span className={`truncate pr-3 ${span.isNested ? 'pl-3 text-muted' : ''}`} title={span.note ?? span.name}>
              {span.name}
            </span>
            <span className="relative h-3.5">
              {span.atMs !== undefined && (
                <span
                  className={`absolute inset-y-0 min-w-[2px] rounded-[2px] ${tones[span.tone]}`}
                  style={{ left: percentOf(span.atMs), width: percentOf(span.ms) }}
                >
                  {span.firstAtMs !== undefined && span.ms > 0 && (
                    <span
                      aria-hidden="true"
                      className="absolute inset-y-0 right-0 rounded-r-[2px] bg-surface opacity-45"
                      style={{ left: `${Math.min(100, Math.max(0, ((span.firstAtMs - span.atMs) / span.ms) * 100))}%` }}
                    />
                  )}
                </span>
              )}
              {span.firstAtMs !== undefined && (
                <span
                  className="absolute -inset-y-1 w-px bg-text"
                  style={{ left: percentOf(span.firstAtMs) }}
                  title={t('first', { time: duration(span.firstAtMs) })}
                />
              )}
            </span>
            <span className="text-right tabular-nums">
              {duration(span.ms)}
              {span.firstAtMs !== undefined && (
                <span className="sr-only"> {t('first', { time: duration(span.firstAtMs) })}</span>
              )}
            </span>
          </li>
        ))}
      </ol>
    </div>
  )
}
