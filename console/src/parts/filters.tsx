// Filters above a list. They are parameters of the address.

import type { ReactNode } from 'react'
import { createContext, useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { isRefused } from '../api/errors.ts'
import { filtersWords } from '../words/en/filters.ts'
import { useWords } from '../words/words.ts'
import { fieldTime, timeOfField, zoneLabel } from './format.ts'
import { Icon } from './icons.tsx'
import { ranges, useSearchState } from './search.ts'
import { useErrorText } from './states.tsx'

interface FilterBarProps {
  readonly children: ReactNode
  /** The names of the parameters that "Clear" removes. */
  readonly names: readonly string[]
  /** At the right: export, columns. */
  readonly actions?: ReactNode
  /** Why the list cannot be read. A refused value, such as one that is not yet written whole, is told at its filter. */
  readonly error: unknown
}

interface Refused {
  /** The name of the filter. */
  readonly name: string | undefined
  readonly text: string
}
const RefusedFilter = createContext<Refused | undefined>(undefined)

export function FilterBar({ children, names, actions, error }: FilterBarProps) {
  const t = useWords(filtersWords)
  const [search, change] = useSearchState()
  const [isWanted, setOpen] = useState(false)
  const textOf = useErrorText()
  const refused = isRefused(error) ? { name: error.details.param?.split('.')[0], text: textOf(error) } : undefined
  // A refused filter may be one that is not shown.
  const bar = useRef<HTMLElement>(null)
  const [isTold, setTold] = useState(false)
  useLayoutEffect(() => setTold(bar.current?.querySelector('[data-refused]') != null))
  const isOpen = isWanted || (refused !== undefined && isTold)
  const used = names.filter(name => search[name] !== undefined).length
  return (
    <search ref={bar} className="mb-3 flex flex-wrap items-end gap-2">
      <button type="button" className="button md:hidden" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="filter" />
        {used === 0 ? t('filters') : t('filtersUsed', { n: used })}
      </button>
      <div
        className={`${isOpen ? 'flex' : 'hidden'} w-full flex-col gap-2 md:flex md:w-auto md:flex-row md:flex-wrap md:items-end`}
      >
        <RefusedFilter value={refused}>{children}</RefusedFilter>
      </div>
      {used > 0 && (
        <button
          type="button"
          className="button button-quiet"
          onClick={() => change(Object.fromEntries(names.map(name => [name, undefined])))}
        >
          {t('clear')}
        </button>
      )}
      {actions !== undefined && <div className="ml-auto flex items-center gap-2">{actions}</div>}
      {refused !== undefined && !isTold && (
        <p role="status" className="w-full text-bad">
          {refused.text}
        </p>
      )}
    </search>
  )
}

interface FilterProps {
  readonly name: string
  readonly label: string
}

/** Waits for 250 ms after the last key, and for the end of a composition of Chinese characters. */
export function TextFilter({
  name,
  label,
  width = 160,
  mono = false,
}: FilterProps & { readonly width?: number; readonly mono?: boolean }) {
  const [search, change] = useSearchState()
  const id = useId()
  const given = search[name] ?? ''
  const [text, setText] = useState(given)
  const [known, setKnown] = useState(given)
  if (given !== known) {
    setKnown(given)
    setText(given)
  }
  const [isComposing, setComposing] = useState(false)
  const invalid = useInvalid(name, id)
  useEffect(() => {
    if (text === given || isComposing) return
    const timer = setTimeout(() => change({ [name]: text.trim() === '' ? undefined : text.trim() }), 250)
    return () => clearTimeout(timer)
  }, [text, given, isComposing, change, name])
  return (
    <Labelled id={id} name={name} label={label}>
      <input
        id={id}
        {...invalid}
        type="search"
        autoComplete="off"
        spellCheck={false}
        data-filter={name}
        className={`control max-md:w-full ${mono ? 'font-mono text-xs' : ''}`}
        style={{ width: innerWidth < 768 ? undefined : width }}
        value={text}
        onChange={event => setText(event.target.value)}
        onCompositionStart={() => setComposing(true)}
        onCompositionEnd={() => setComposing(false)}
      />
    </Labelled>
  )
}

interface SelectFilterProps extends FilterProps {
  readonly choices: readonly { readonly value: string; readonly label: string }[]
  /** The text of the choice that does not filter. */
  readonly all?: string
}

export function SelectFilter({ name, label, choices, all }: SelectFilterProps) {
  const t = useWords(filtersWords)
  const [search, change] = useSearchState()
  const id = useId()
  const invalid = useInvalid(name, id)
  return (
    <Labelled id={id} name={name} label={label}>
      <select
        id={id}
        {...invalid}
        className="control"
        value={search[name] ?? ''}
        onChange={event => change({ [name]: event.target.value === '' ? undefined : event.target.value })}
      >
        <option value="">{all ?? t('all')}</option>
        {choices.map(({ value, label: text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  )
}

/** A range up to now, or two times. */
export function RangeFilter({
  standard = '24h',
  names = Object.keys(ranges),
}: {
  readonly standard?: string
  readonly names?: readonly string[]
}) {
  const t = useWords(filtersWords)
  const [search, change] = useSearchState()
  const id = useId()
  const isOwn = search.from !== undefined
  const choose = (value: string): void => {
    if (value !== 'own')
      return change({ range: value === standard ? undefined : value, from: undefined, before: undefined })
    const now = Math.floor(Date.now() / 60_000) * 60_000
    change({ range: undefined, from: new Date(now - ranges['24h']).toISOString(), before: new Date(now).toISOString() })
  }
  return (
    <div className="flex flex-wrap items-end gap-2">
      <Labelled id={id} name="range" label={t('range', { zone: zoneLabel() })}>
        <select
          id={id}
          className="control"
          value={isOwn ? 'own' : (search.range ?? standard)}
          onChange={event => choose(event.target.value)}
        >
          {names.map(name => (
            <option key={name} value={name}>
              {t.find(`range_${name}`) ?? name}
            </option>
          ))}
          <option value="own">{t('ownRange')}</option>
        </select>
      </Labelled>
      {isOwn && (
        <>
          <TimeFilter name="from" label={t('from')} />
          <TimeFilter name="before" label={t('before')} />
        </>
      )}
    </div>
  )
}

function TimeFilter({ name, label }: FilterProps) {
  const [search, change] = useSearchState()
  const id = useId()
  const invalid = useInvalid(name, id)
  return (
    <Labelled id={id} name={name} label={label}>
      <input
        id={id}
        {...invalid}
        type="datetime-local"
        className="control tabular-nums"
        value={fieldTime(search[name])}
        onChange={event => change({ [name]: timeOfField(event.target.value) })}
      />
    </Labelled>
  )
}

interface LabelledProps {
  /** The id of the control. */
  readonly id: string
  readonly name: string
  readonly label: string
  readonly children: ReactNode
}

const refusalId = (id: string): string => `${id}-refused`

/** The attributes of a control whose value is refused. */
function useInvalid(name: string, id: string): object {
  return useContext(RefusedFilter)?.name === name ? { 'aria-invalid': true, 'aria-describedby': refusalId(id) } : {}
}

/** Why its value is refused stands above a control, so that all controls of the bar stay on one line. */
function Labelled({ id, name, label, children }: LabelledProps) {
  const refused = useContext(RefusedFilter)
  return (
    <div className="flex flex-col gap-0.5">
      <label htmlFor={id} className="text-muted text-xs">
        {label}
      </label>
      {refused?.name === name && (
        <p id={refusalId(id)} data-refused role="status" className="max-w-64 break-words text-bad text-xs">
          {refused.text}
        </p>
      )}
      {children}
    </div>
  )
}
