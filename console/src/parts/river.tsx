// Calls under way as water: one line for each channel, wider with more calls. A channel that takes no calls is a closed gate.

import { useEffect, useState } from 'react'
import type { LiveView } from '../api/live.ts'
import { liveWords } from '../words/en/live.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { comma } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { duration } from './format.ts'
import { State } from './values.tsx'

/** States of a channel that is full for the moment. It is not blocked: its calls go on. */
const full: ReadonlySet<string> = new Set(['busy', 'concurrency_capped', 'requests_capped', 'tokens_capped'])
const isOpen = (state = 'available'): boolean => state === 'available' || full.has(state)

/** Counts down once a second, while something is closed. */
function useNow(isNeeded: boolean): number {
  const [nowMs, setNowMs] = useState(() => Date.now())
  useEffect(() => {
    if (!isNeeded) return
    const timer = setInterval(() => setNowMs(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [isNeeded])
  return nowMs
}

export function River({
  underWay,
  health,
}: Pick<LiveView, 'health'> & { readonly underWay: Readonly<Record<string, number>> }) {
  const t = useWords(liveWords)
  const reasons = useWords(reasonsWords)
  const wordOf = (state: string): string => reasons.find(state) ?? state
  const limited = [...health].filter(([, { state }]) => state !== 'available')
  const names = [...new Set([...Object.keys(underWay), ...limited.map(([name]) => name)])].sort()
  const nowMs = useNow(limited.some(([, { state }]) => !isOpen(state)))
  if (names.length === 0) return <p className="text-muted">{t('nothing')}</p>
  return (
    <ul className="flex flex-col">
      {names.map(name => {
        const calls = underWay[name] ?? 0
        const gate = health.get(name)
        const isShut = !isOpen(gate?.state)
        return (
          <li
            key={name}
            className="grid h-9 grid-cols-[minmax(0,9rem)_minmax(0,1fr)_minmax(0,11rem)] items-center gap-3"
          >
            <span className="truncate" title={name}>
              {name}
            </span>
            <svg aria-hidden="true" className="h-6 w-full" preserveAspectRatio="none" viewBox="0 0 400 24">
              <path d="M0 12h400" className="stroke-line" strokeWidth={1} fill="none" />
              {calls > 0 && !isShut && (
                <path
                  d="M0 12 C 60 4, 120 20, 200 12 S 340 4, 400 12"
                  fill="none"
                  className="river stroke-series-1"
                  strokeLinecap="round"
                  strokeWidth={Math.min(14, 2 + Math.log2(1 + calls) * 2.2)}
                />
              )}
              {isShut && <path d="M200 2v20" className="stroke-bad" strokeWidth={4} fill="none" />}
            </svg>
            <span className="min-w-0 truncate text-right">
              {isShut ? (
                <State tone="bad">
                  <span title={reasons.find(`${gate!.state}_note`)}>
                    {t('blocked', { state: wordOf(gate!.state) })}
                    {gate!.availableAtMs > nowMs &&
                      `${comma()}${t('recoversIn', { time: duration(gate!.availableAtMs - nowMs) })}`}
                  </span>
                </State>
              ) : (
                <>
                  {gate !== undefined && full.has(gate.state) && (
                    <span className="mr-2 text-warn" title={reasons.find(`${gate.state}_note`)}>
                      {wordOf(gate.state)}
                    </span>
                  )}{' '}
                  <span className="tabular-nums">{t('active', { n: calls })}</span>
                </>
              )}
            </span>
          </li>
        )
      })}
    </ul>
  )
}
