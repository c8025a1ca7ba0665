// The table of every list: fixed head, sorting by the server, chosen columns, rows that open, more pages on scrolling. On a
// phone each row is two lines.

import type { LinkProps } from '@tanstack/react-router'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { memo, useEffect, useId, useMemo, useRef, useState } from 'react'
import type { List } from '../api/reads.ts'
import { usePreferences } from '../preferences.ts'
import { tableWords } from '../words/en/table.ts'
import { useWords } from '../words/words.ts'
import { useWidths, WidthButtons, WidthHandle, widthStyle } from './column-width.tsx'
import { Icon } from './icons.tsx'
import { useIsNarrow } from './narrow.ts'
import { useRowWindow } from './row-window.ts'
import { useSearchState } from './search.ts'
import { Failure, Loading } from './states.tsx'
import { readStoredList } from './stored.ts'

export interface Column<Row> {
  readonly id: string
  readonly title: string
  readonly cell: (row: Row) => ReactNode
  /** The name by which the API sorts this column. */
  readonly sort?: string
  readonly align?: 'right'
  /** The column is not shown until the viewer chooses it. */
  readonly isOptional?: boolean
  /** Where a phone shows it; default: nowhere. */
  readonly phone?: 'main' | 'side' | 'note'
  /** Cuts long text. A cell that is not plain text must have the whole in a title, or on the page of the row. */
  readonly maxWidth?: number
}

type RowLink = Pick<LinkProps, 'to' | 'params' | 'search'>

interface TableProps<Row> {
  /** Names the table in the browser's storage. */
  readonly name: string
  readonly label: string
  /** A page whose list may be very long keeps them, and `open`, from one drawing to the next: its rows are not drawn again. */
  readonly columns: readonly Column<Row>[]
  readonly rowKey: (row: Row) => string
  /** The name of a row, for the box that selects it. */
  readonly rowName?: (row: Row) => string
  readonly list: List<Row>
  /** Where a row leads to. The first column is the link. */
  readonly open?: (row: Row) => RowLink
  readonly actions?: (row: Row) => ReactNode
  /** Shown if there is nothing at all. */
  readonly empty: ReactNode
  /** The parameters that filter the list: with one of them, an empty list says that nothing matches. */
  readonly filters?: readonly string[]
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (selected: ReadonlySet<string>) => void
  readonly current?: string | undefined
}

function useColumns<Row>(name: string, columns: readonly Column<Row>[]) {
  const key = `weir-columns-${name}`
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => {
    const standard = columns.filter(column => column.isOptional).map(column => column.id)
    return new Set(readStoredList(key, value => typeof value === 'string') ?? standard)
  })
  const toggle = (id: string): void => {
    const next = new Set(hidden)
    if (!next.delete(id)) next.add(id)
    localStorage.setItem(key, JSON.stringify([...next]))
    setHidden(next)
  }
  const shown = useMemo(
    () => columns.filter((column, index) => index === 0 || !hidden.has(column.id)),
    [columns, hidden],
  )
  return { shown, hidden, toggle }
}

export function DataTable<Row>(props: TableProps<Row>) {
  const { list, filters = [], empty } = props
  const t = useWords(tableWords)
  const [search] = useSearchState()
  const isNarrow = useIsNarrow()
  const { query } = list
  if (query.isPending) return <Loading />
  // A list that was read stays, also an empty one, while it cannot be read again.
  if (query.error !== null && query.data === undefined)
    return <Failure error={query.error} retry={() => void query.refetch()} />
  if (list.rows.length === 0 && !list.hasMore) {
    const isFiltered = filters.some(name => search[name] !== undefined)
    return isFiltered ? <p className="py-8 text-muted">{t('nothingMatches')}</p> : empty
  }
  return (
    <>
      {list.rows.length > 0 && (isNarrow ? <PhoneRows {...props} /> : <WideTable {...props} />)}
      <MoreRows list={list} />
    </>
  )
}

function WideTable<Row>({
  name,
  label,
  columns,
  rowKey,
  rowName = rowKey,
  list,
  open,
  actions,
  selected,
  onSelect,
  current,
}: TableProps<Row>) {
  const { density } = usePreferences()
  const body = useRef<HTMLTableSectionElement>(null)
  const { shown, hidden, toggle } = useColumns(name, columns)
  const widths = useWidths(name)
  const { rows } = list
  const rowPx = density === 'dense' ? 33 : 41
  const { from, to } = useRowWindow(body, rows.length, rowPx)
  const navigate = useNavigate()
  const extra = (onSelect === undefined ? 0 : 1) + 1
  return (
    <div className="min-w-0 overflow-x-auto">
      <table aria-label={label} aria-rowcount={list.hasMore ? -1 : rows.length + 1} className="w-full">
        <thead>
          <tr className="h-8 border-line border-b text-left text-muted text-xs" aria-rowindex={1}>
            {onSelect !== undefined && (
              <th scope="col" className="w-8 min-w-8">
                <SelectAllBox ids={rows.map(rowKey)} selected={selected} onSelect={onSelect} />
              </th>
            )}
            {shown.map(column => (
              <Head
                key={column.id}
                column={column}
                width={widths.chosen.get(column.id)}
                setWidth={px => widths.set(column.id, px)}
              />
            ))}
            {/* If all others have a width, this column takes the rest of the line. */}
            <th
              scope="col"
              className={`text-right ${shown.every(({ id }) => widths.chosen.has(id)) ? '' : 'w-8 min-w-8'}`}
            >
              <ColumnMenu columns={columns} hidden={hidden} toggle={toggle} setWidth={widths.set} />
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          {from > 0 && <Spacer height={from * rowPx} span={shown.length + extra} />}
          {rows.slice(from, to).map((row, index) => {
            const id = rowKey(row)
            return (
              <tr
                key={id}
                aria-rowindex={from + index + 2}
                data-row={id}
                aria-current={current === id ? 'true' : undefined}
                className={`h-[calc(var(--row)+1px)] border-line border-b hover:bg-sunken ${current === id || selected?.has(id) ? 'bg-accent-soft' : ''} ${open === undefined ? '' : 'cursor-pointer'}`}
                onClick={event => {
                  if (
                    open === undefined ||
                    (event.target as HTMLElement).closest('a,button,input,label,[popover]') !== null
                  )
                    return
                  if (getSelection()?.toString() !== '') return
                  void navigate(open(row) as never)
                }}
              >
                {onSelect !== undefined && (
                  <td>
                    <SelectBox id={id} name={rowName(row)} selected={selected} onSelect={onSelect} />
                  </td>
                )}
                <Cells row={row} columns={shown} widths={widths.chosen} open={open} actions={actions} />
              </tr>
            )
          })}
          {to < rows.length && <Spacer height={(rows.length - to) * rowPx} span={shown.length + extra} />}
        </tbody>
      </table>
    </div>
  )
}

interface CellsProps<Row> {
  readonly row: Row
  readonly columns: readonly Column<Row>[]
  readonly widths: ReadonlyMap<string, number>
  readonly open: ((row: Row) => RowLink) | undefined
  readonly actions: ((row: Row) => ReactNode) | undefined
}

function CellsOf<Row>({ row, columns, widths, open, actions }: CellsProps<Row>) {
  return (
    <>
      {columns.map((column, place) => {
        const cell = column.cell(row)
        const isAutomatic = !widths.has(column.id)
        return (
          <td
            key={column.id}
            className={`pr-4 ${isAutomatic ? 'max-w-72' : 'max-w-0'} ${column.align === 'right' ? 'text-right tabular-nums' : ''}`}
          >
            <div
              className="truncate"
              style={isAutomatic && column.maxWidth !== undefined ? { maxWidth: column.maxWidth } : undefined}
              title={typeof cell === 'string' ? cell : undefined}
            >
              {place === 0 && open !== undefined ? (
                <Link {...(open(row) as LinkProps)} className="font-medium hover:text-accent hover:underline">
                  {cell}
                </Link>
              ) : (
                cell
              )}
            </div>
          </td>
        )
      })}
      <td className="text-right">{actions?.(row)}</td>
    </>
  )
}

/** Drawn again only for another row or other columns: not for each page of the list and each step of a scroll. */
const Cells = memo(CellsOf) as typeof CellsOf

interface BoxProps {
  readonly selected: ReadonlySet<string> | undefined
  readonly onSelect: (selected: ReadonlySet<string>) => void
  /** For fingers. */
  readonly isLarge?: boolean
}

const boxClass = (isLarge: boolean): string =>
  `accent-accent align-middle ${isLarge ? 'm-1 size-6 shrink-0' : 'size-4'}`

interface SelectAllBoxProps extends BoxProps {
  readonly ids: readonly string[]
  /** For a label beside it. */
  readonly id?: string
}

function SelectAllBox({ ids, id, selected, onSelect, isLarge = false }: SelectAllBoxProps) {
  const t = useWords(tableWords)
  const isAllSelected = ids.length > 0 && ids.every(id => selected?.has(id))
  return (
    <input
      type="checkbox"
      className={boxClass(isLarge)}
      id={id}
      aria-label={t('selectAll')}
      checked={isAllSelected}
      onChange={() => onSelect(new Set(isAllSelected ? [] : ids))}
    />
  )
}

interface SelectBoxProps extends BoxProps {
  readonly id: string
  readonly name: string
}

function SelectBox({ id, name, selected, onSelect, isLarge = false }: SelectBoxProps) {
  const t = useWords(tableWords)
  return (
    <input
      type="checkbox"
      className={boxClass(isLarge)}
      aria-label={t('select', { name })}
      checked={selected?.has(id) ?? false}
      onChange={() => {
        const next = new Set(selected)
        if (!next.delete(id)) next.add(id)
        onSelect(next)
      }}
    />
  )
}

const Spacer = ({ height, span }: { readonly height: number; readonly span: number }) => (
  <tr>
    <td colSpan={span} style={{ height, padding: 0 }} />
  </tr>
)

interface HeadProps<Row> {
  readonly column: Column<Row>
  readonly width: number | undefined
  readonly setWidth: (px: number | undefined) => void
}

function Head<Row>({ column: { id, title, sort, align }, width, setWidth }: HeadProps<Row>) {
  const [search, change] = useSearchState()
  const isUp = sort !== undefined && search.sort === sort
  const isDown = sort !== undefined && search.sort === `-${sort}`
  const next = isDown ? sort : isUp ? undefined : `-${sort}`
  return (
    <th
      scope="col"
      data-column={id}
      // Only the title: the handle has a name of its own.
      aria-label={title}
      aria-sort={sort === undefined ? undefined : isUp ? 'ascending' : isDown ? 'descending' : 'none'}
      className={`sticky top-0 z-10 bg-bg pr-4 font-medium whitespace-nowrap ${align === 'right' ? 'text-right' : ''}`}
      style={widthStyle(width)}
      title={width === undefined ? undefined : title}
    >
      {sort === undefined ? (
        <div className="truncate">{title}</div>
      ) : (
        <button
          type="button"
          className="inline-flex h-8 max-w-full items-center gap-1 font-medium hover:text-text"
          onClick={() => change({ sort: next })}
        >
          <span className="truncate">{title}</span>
          <span aria-hidden="true" className={isUp || isDown ? 'text-accent' : 'opacity-40'}>
            {isUp ? '↑' : '↓'}
          </span>
        </button>
      )}
      <WidthHandle title={title} set={setWidth} />
    </th>
  )
}

interface ColumnMenuProps<Row> {
  readonly columns: readonly Column<Row>[]
  readonly hidden: ReadonlySet<string>
  toggle(id: string): void
  setWidth(id: string, px: number): void
}

function ColumnMenu<Row>({ columns, hidden, toggle, setWidth }: ColumnMenuProps<Row>) {
  const t = useWords(tableWords)
  const popover = useRef<HTMLFieldSetElement>(null)
  const [id] = useState(() => `columns-${Math.random().toString(36).slice(2)}`)
  return (
    <>
      <button
        type="button"
        popoverTarget={id}
        className="inline-grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken"
        aria-label={t('columns')}
        title={t('columns')}
      >
        <Icon name="table" size={14} />
      </button>
      <fieldset
        ref={popover}
        id={id}
        popover="auto"
        className="opens floating max-h-[70dvh] overflow-y-auto p-2 text-left text-sm text-text"
        onToggle={event => {
          const button = (event.currentTarget.previousElementSibling as HTMLElement).getBoundingClientRect()
          event.currentTarget.style.top = `${button.bottom + 4}px`
          event.currentTarget.style.left = `${Math.max(8, button.right - event.currentTarget.offsetWidth)}px`
        }}
      >
        <legend className="sr-only">{t('columns')}</legend>
        {columns.map(({ id: name, title }, place) => (
          <div key={name} className="flex h-8 items-center gap-2 rounded-sm px-2 font-normal hover:bg-sunken">
            {place === 0 ? (
              <span className="flex-1 pl-6">{title}</span>
            ) : (
              <label className="flex h-8 flex-1 items-center gap-2">
                <input
                  type="checkbox"
                  className="size-4 accent-accent"
                  checked={!hidden.has(name)}
                  onChange={() => toggle(name)}
                />
                {title}
              </label>
            )}
            {(place === 0 || !hidden.has(name)) && <WidthButtons column={name} title={title} set={setWidth} />}
          </div>
        ))}
      </fieldset>
    </>
  )
}

/** The height of most rows of a phone. With others, only the bar at the side of the page is less exact. */
const PHONE_ROW_PX = 53

function PhoneRows<Row>({
  label,
  columns,
  rowKey,
  rowName = rowKey,
  list,
  open,
  actions,
  selected,
  onSelect,
  current,
}: TableProps<Row>) {
  const t = useWords(tableWords)
  const boxId = useId()
  const body = useRef<HTMLUListElement>(null)
  const { rows } = list
  const { from, to } = useRowWindow(body, rows.length, PHONE_ROW_PX)
  const isPart = to - from < rows.length
  const rowsList = (
    <ul ref={body} aria-label={label} className="border-line border-t">
      {from > 0 && <li aria-hidden="true" style={{ height: from * PHONE_ROW_PX }} />}
      {rows.slice(from, to).map((row, index) => {
        const id = rowKey(row)
        return (
          <li
            key={id}
            data-row={id}
            aria-current={current === id ? 'true' : undefined}
            {...(isPart && { 'aria-posinset': from + index + 1, 'aria-setsize': list.hasMore ? -1 : rows.length })}
            className={`flex items-center gap-1 border-line border-b ${current === id || selected?.has(id) ? 'bg-accent-soft' : ''}`}
          >
            {onSelect !== undefined && (
              <SelectBox id={id} name={rowName(row)} selected={selected} onSelect={onSelect} isLarge />
            )}
            <PhoneCells row={row} columns={columns} open={open} />
            {/* Also where a row has none, so that the ends of all rows are below each other. */}
            {actions !== undefined && <span className="min-w-7 shrink-0">{actions(row)}</span>}
          </li>
        )
      })}
      {to < rows.length && <li aria-hidden="true" style={{ height: (rows.length - to) * PHONE_ROW_PX }} />}
    </ul>
  )
  if (onSelect === undefined) return rowsList
  return (
    <>
      <div className="flex items-center gap-1">
        <SelectAllBox ids={rows.map(rowKey)} id={boxId} selected={selected} onSelect={onSelect} isLarge />
        <label htmlFor={boxId} className="text-muted">
          {t('selectAll')}
        </label>
      </div>
      {rowsList}
    </>
  )
}

type PhoneCellsProps<Row> = Pick<CellsProps<Row>, 'row' | 'columns' | 'open'>

function PhoneCellsOf<Row>({ row, columns, open }: PhoneCellsProps<Row>) {
  const at = (place: Column<Row>['phone']): readonly Column<Row>[] => columns.filter(({ phone }) => phone === place)
  // What leads nowhere is shown whole here.
  const long = open === undefined ? 'min-w-0 break-words' : 'truncate'
  const text = (
    <>
      <span className="flex items-baseline justify-between gap-3">
        <span className="flex min-w-0 flex-1 items-baseline gap-2 overflow-hidden font-medium">
          {at('main').map(column => (
            <span key={column.id} className={long}>
              {column.cell(row)}
            </span>
          ))}
        </span>
        <span className="flex max-w-1/2 shrink-0 gap-2 tabular-nums">
          {at('side').map(column => (
            <span key={column.id} className={long}>
              {column.cell(row)}
            </span>
          ))}
        </span>
      </span>
      {/* The first note of each line has its dot outside. */}
      <span className="block overflow-x-clip text-muted text-xs">
        <span className="-ml-4 flex flex-wrap">
          {at('note').map(column => (
            <span key={column.id} className={`after-dot max-w-full ${long}`}>
              {/* A number alone does not say what it is. */}
              {column.align === 'right' && `${column.title} `}
              {column.cell(row)}
            </span>
          ))}
        </span>
      </span>
    </>
  )
  if (open === undefined) return <div className="min-w-0 flex-1 py-2">{text}</div>
  return (
    <Link {...(open(row) as LinkProps)} className="block min-w-0 flex-1 py-2">
      {text}
    </Link>
  )
}

/** As `Cells`. */
const PhoneCells = memo(PhoneCellsOf) as typeof PhoneCellsOf

/** Reads the next page when its end comes near. */
function MoreRows<Row>({ list }: { readonly list: List<Row> }) {
  const t = useWords(tableWords)
  const ref = useRef<HTMLDivElement>(null)
  const { hasMore, isEndedEarly, more, query } = list
  useEffect(() => {
    const element = ref.current
    // A search that finds nothing would go on through all rows by itself.
    if (element === null || !hasMore || isEndedEarly) return
    const observer = new IntersectionObserver(entries => entries.some(entry => entry.isIntersecting) && more(), {
      rootMargin: '400px',
    })
    observer.observe(element)
    return () => observer.disconnect()
  })
  if (!hasMore) return null
  return (
    <div ref={ref} data-more className="flex flex-col items-start gap-2 py-3">
      {isEndedEarly && <p className="text-muted">{t('endedEarly')}</p>}
      <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={more}>
        {t('more')}
      </button>
    </div>
  )
}
