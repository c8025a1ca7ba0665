// Renders only the rows of a long list that are near the window: 100,000 rows cost as much as fifty.

import type { RefObject } from 'react'
import { useLayoutEffect, useState } from 'react'

interface RowWindow {
  readonly from: number
  readonly to: number
}

const MARGIN_ROWS = 8
/** Lists up to this length are rendered whole, so that the browser's own search finds everything. */
const WHOLE_ROWS = 120

/** The rows that a viewer sees, and some on both sides: of a list without an end. */
function windowOf(topPx: number, heightPx: number, rowPx: number): RowWindow {
  const first = Math.floor(topPx / rowPx) - MARGIN_ROWS
  return { from: Math.max(0, first), to: Math.ceil((topPx + heightPx) / rowPx) + MARGIN_ROWS }
}

/** Rows that have just arrived are in the window at once: a second look at the place would draw the table again. */
export function useRowWindow(body: RefObject<HTMLElement | null>, count: number, rowPx: number): RowWindow {
  const [seen, setSeen] = useState<RowWindow>(() => windowOf(0, innerHeight, rowPx))
  const isWhole = count <= WHOLE_ROWS
  // Before anything is painted: a list that has just become too long for the whole would show its first rows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: with another number of rows the list may be at another place
  useLayoutEffect(() => {
    if (isWhole) return
    const update = (): void => {
      const top = body.current === null ? 0 : Math.max(0, -body.current.getBoundingClientRect().top)
      const next = windowOf(top, innerHeight, rowPx)
      setSeen(old => (old.from === next.from && old.to === next.to ? old : next))
    }
    update()
    addEventListener('scroll', update, { passive: true, capture: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update, { capture: true })
      removeEventListener('resize', update)
    }
  }, [body, count, rowPx, isWhole])
  if (isWhole) return { from: 0, to: count }
  const from = Math.min(seen.from, count - 1)
  return { from, to: Math.max(from + 1, Math.min(seen.to, count)) }
}
