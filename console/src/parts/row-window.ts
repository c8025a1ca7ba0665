// Renders only the rows of a long list that are near the window: 100,000 rows cost as much as fifty.

import type { RefObject } from 'react'
import { useEffect, useState } from 'react'

interface RowWindow {
  readonly from: number
  readonly to: number
}

const MARGIN_ROWS = 12
/** Lists up to this length are rendered whole, so that the browser's own search finds everything. */
const WHOLE_ROWS = 120

/** The rows that a viewer sees, and some on both sides. */
function windowOf(topPx: number, heightPx: number, rowPx: number, count: number): RowWindow {
  if (count <= WHOLE_ROWS) return { from: 0, to: count }
  const first = Math.floor(topPx / rowPx) - MARGIN_ROWS
  const last = Math.ceil((topPx + heightPx) / rowPx) + MARGIN_ROWS
  const from = Math.max(0, Math.min(count - 1, first))
  return { from, to: Math.max(from + 1, Math.min(count, last)) }
}

export function useRowWindow(body: RefObject<HTMLElement | null>, count: number, rowPx: number): RowWindow {
  const [shown, setShown] = useState<RowWindow>(() => windowOf(0, innerHeight, rowPx, count))
  useEffect(() => {
    const update = (): void => {
      const top = body.current === null ? 0 : Math.max(0, -body.current.getBoundingClientRect().top)
      const next = windowOf(top, innerHeight, rowPx, count)
      setShown(old => (old.from === next.from && old.to === next.to ? old : next))
    }
    update()
    addEventListener('scroll', update, { passive: true, capture: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update, { capture: true })
      removeEventListener('resize', update)
    }
  }, [body, count, rowPx])
  return { from: Math.min(shown.from, Math.max(0, count - 1)), to: Math.min(Math.max(shown.to, 0), count) }
}
