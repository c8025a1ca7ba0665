// The widths that a viewer gives to the columns of a table. A column without one is as wide as the browser makes it.

import type { KeyboardEvent, PointerEvent } from 'react'
import { useEffect, useRef, useState } from 'react'
import { tableWords } from '../words/en/table.ts'
import { useWords } from '../words/words.ts'
import { readStoredList } from './stored.ts'

const MIN_PX = 48
const MAX_PX = 1_200
/** For each press of an arrow key. */
const STEP_PX = 16
/** For each click on a button. */
const CLICK_PX = 48

const limited = (px: number): number => Math.round(Math.min(MAX_PX, Math.max(MIN_PX, px)))

interface Widths {
  /** By the id of the column. The browser decides for all others. */
  readonly chosen: ReadonlyMap<string, number>
  set(column: string, px: number | undefined): void
}

const isWidth = (value: unknown): value is readonly [column: string, px: number] =>
  Array.isArray(value) && typeof value[0] === 'string' && value[1] === limited(value[1])

/** Remembered in this browser, for the table with this name. */
export function useWidths(table: string): Widths {
  const key = `weir-widths-${table}`
  const [widths, setWidths] = useState<ReadonlyMap<string, number>>(() => new Map(readStoredList(key, isWidth)))
  return {
    chosen: widths,
    set(column, px) {
      const next = new Map(widths)
      if (px === undefined) next.delete(column)
      else next.set(column, limited(px))
      localStorage.setItem(key, JSON.stringify([...next]))
      setWidths(next)
    },
  }
}

/** For the head of a column; its cells follow it if they have no width of their own. */
export const widthStyle = (px: number | undefined) =>
  px === undefined ? undefined : { width: px, minWidth: px, maxWidth: px }

interface WidthHandleProps {
  /** The title of the column. */
  readonly title: string
  readonly set: (px: number | undefined) => void
}

/** At the right edge of the head of a column: pulled, or moved with the arrow keys. */
export function WidthHandle({ title, set }: WidthHandleProps) {
  const t = useWords(tableWords)
  const handle = useRef<HTMLDivElement>(null)
  /** Where the pointer was, and how wide the column, when a pull began. */
  const pull = useRef<{ readonly x: number; readonly width: number; px?: number }>(undefined)
  // The width of most columns is known to the browser only, and may change with each row: React would draw the table again.
  useEffect(() => {
    const observer = new ResizeObserver(() =>
      handle.current?.setAttribute('aria-valuenow', String(limited(widthOf(handle.current)))),
    )
    observer.observe(headOf(handle.current!))
    return () => observer.disconnect()
  }, [])
  const move = ({ clientX, currentTarget }: PointerEvent<HTMLElement>): void => {
    const { current } = pull
    if (current === undefined || (current.px === undefined && clientX === current.x)) return
    const px = limited(current.width + clientX - current.x)
    // The cells learn that the column has a width, once; then only the head changes until the pointer is released.
    if (current.px === undefined) set(px)
    else Object.assign(headOf(currentTarget).style, pixels(px))
    current.px = px
  }
  const end = (): void => {
    const { current } = pull
    pull.current = undefined
    if (current?.px !== undefined) set(current.px)
  }
  const press = (event: KeyboardEvent<HTMLElement>): void => {
    const step = event.key === 'ArrowRight' ? STEP_PX : event.key === 'ArrowLeft' ? -STEP_PX : 0
    if (step === 0 && event.key !== 'Enter') return
    // The table would scroll.
    event.preventDefault()
    set(step === 0 ? undefined : widthOf(event.currentTarget) + step)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: <hr> cannot be moved
    <div
      ref={handle}
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={t('width', { column: title })}
      // Until it is measured; React does not write it again.
      aria-valuenow={MIN_PX}
      aria-valuemin={MIN_PX}
      aria-valuemax={MAX_PX}
      title={t('widthHint')}
      className="width-handle"
      onPointerDown={event => {
        if (event.button !== 0) return
        event.currentTarget.setPointerCapture(event.pointerId)
        pull.current = { x: event.clientX, width: widthOf(event.currentTarget) }
      }}
      onPointerMove={move}
      onPointerUp={end}
      onPointerCancel={end}
      onDoubleClick={() => set(undefined)}
      onKeyDown={press}
    />
  )
}

interface WidthButtonsProps {
  readonly column: string
  readonly title: string
  readonly set: (column: string, px: number) => void
}

/** For viewers who can click but not drag. They stand in the table of the column. */
export function WidthButtons({ column, title, set }: WidthButtonsProps) {
  const t = useWords(tableWords)
  const steps = [
    { label: t('narrower', { column: title }), sign: '\u2212', px: -CLICK_PX },
    { label: t('wider', { column: title }), sign: '+', px: CLICK_PX },
  ]
  return steps.map(({ label, sign, px }) => (
    <button
      key={sign}
      type="button"
      className="size-6 rounded-sm text-muted hover:bg-line"
      aria-label={label}
      title={label}
      onClick={({ currentTarget }) => {
        const heads = currentTarget.closest('tr')!.querySelectorAll<HTMLElement>('[data-column]')
        const head = [...heads].find(one => one.dataset.column === column)!
        set(column, head.getBoundingClientRect().width + px)
      }}
    >
      {sign}
    </button>
  ))
}

const headOf = (handle: HTMLElement): HTMLElement => handle.closest('th')!
const widthOf = (handle: HTMLElement): number => headOf(handle).getBoundingClientRect().width
const pixels = (px: number) => ({ width: `${px}px`, minWidth: `${px}px`, maxWidth: `${px}px` })
