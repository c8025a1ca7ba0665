// Values in tables and sentences: money, times, ids, states. Each shows its exact form on hover.

import type { ReactNode } from 'react'
import { usePreferences } from '../preferences.ts'
import { valuesWords } from '../words/en/values.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { CopyButton } from './copy.tsx'
import { ago, columnMoney, exactMoney, shortMoney, time } from './format.ts'

/** An amount in a column: six decimals, the last four muted. */
export function Money({ usd }: { readonly usd: string }) {
  const { main, rest } = columnMoney(usd)
  return (
    <span className="whitespace-nowrap tabular-nums" title={exactMoney(usd)}>
      {main}
      {rest !== '' && <span className="text-muted">{rest}</span>}
    </span>
  )
}

/** An amount in a sentence or a tile. */
export function ShortMoney({ usd }: { readonly usd: string }) {
  return (
    <span className="whitespace-nowrap tabular-nums" title={exactMoney(usd)}>
      {shortMoney(usd)}
    </span>
  )
}

interface TimeProps {
  readonly at: string | null
  /** Shows how long ago instead of the time. */
  readonly isAge?: boolean
}

export function Time({ at, isAge = false }: TimeProps) {
  usePreferences()
  if (at === null) return <span className="text-muted">–</span>
  const utc = `${at.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC`
  return (
    <time
      dateTime={at}
      title={isAge ? `${time(at)} · ${utc}` : `${utc} · ${ago(at)}`}
      className="whitespace-nowrap tabular-nums"
    >
      {isAge ? ago(at) : time(at)}
    </time>
  )
}

/** An id in monospace, with a button to copy it. */
export function Id({ id }: { readonly id: string }) {
  return (
    <span className="inline-flex max-w-full items-center gap-1 font-mono text-xs">
      <span className="truncate">{id}</span>
      <CopyButton text={id} />
    </span>
  )
}

export const None = () => <span className="text-muted">–</span>

export type Tone = 'ok' | 'warn' | 'bad' | 'muted' | 'accent'

const signs: Readonly<Record<Tone, string>> = { ok: '●', warn: '▲', bad: '■', muted: '○', accent: '◆' }
const tones: Readonly<Record<Tone, string>> = {
  ok: 'text-ok',
  warn: 'text-warn',
  bad: 'text-bad',
  muted: 'text-muted',
  accent: 'text-accent',
}

/** A state: a sign, a colour and always a word. Where a column is too narrow for the word, it ends with an ellipsis. */
export function State({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return (
    <span
      className={`inline-flex max-w-full items-baseline gap-1.5 ${tones[tone]}`}
      title={typeof children === 'string' ? children : undefined}
    >
      <span aria-hidden="true" className="relative bottom-[0.12em] text-[0.7em] leading-none">
        {signs[tone]}
      </span>
      <span className="min-w-0 overflow-hidden text-ellipsis">{children}</span>
    </span>
  )
}

export function Tag({ children }: { readonly children: ReactNode }) {
  return (
    <span className="inline-block max-w-full truncate rounded-sm border border-line bg-sunken px-1.5 text-xs leading-[18px]">
      {children}
    </span>
  )
}

export function Tags({ of }: { readonly of: readonly string[] }) {
  if (of.length === 0) return <None />
  return (
    <span className="flex flex-wrap gap-1">
      {of.map(tag => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  )
}

/** Tags in a row of a list, which has one line: the first ones, and how many more there are. */
export function TagsLine({ of, max = 2 }: { readonly of: readonly string[]; readonly max?: number }) {
  if (of.length === 0) return <None />
  return (
    <span className="flex gap-1 overflow-hidden" title={listed(of)}>
      {of.slice(0, max).map(tag => (
        <Tag key={tag}>{tag}</Tag>
      ))}
      {/* The number shrinks last: it says that there is more. */}
      {of.length > max && <span className="min-w-0 shrink-[0.01] truncate text-muted">+{of.length - max}</span>}
    </span>
  )
}

export function YesNo({ value }: { readonly value: boolean }) {
  const t = useWords(valuesWords)
  return value ? <span>{t('yes')}</span> : <span className="text-muted">{t('no')}</span>
}

export interface Fact {
  readonly name: string
  readonly value: ReactNode
}

/** Names and values in two columns. */
export function Facts({ of }: { readonly of: readonly (Fact | false | undefined)[] }) {
  return (
    <dl className="grid grid-cols-[minmax(0,max-content)_minmax(0,1fr)] gap-x-6 gap-y-1.5">
      {of.map(
        fact =>
          fact && (
            <div key={fact.name} className="contents">
              <dt className="text-muted">{fact.name}</dt>
              <dd className="min-w-0 break-words">{fact.value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

/** How many columns fit, by how many figures there are: none is alone in the last line, except on a phone. */
const figureColumns: Readonly<Record<number, string>> = {
  3: '@lg:grid-cols-3',
  5: '@lg:grid-cols-3 @4xl:grid-cols-5',
  6: '@lg:grid-cols-3',
}

interface Figure {
  readonly name: string
  readonly value: ReactNode
  readonly note?: ReactNode
  /** A word, such as a state: it is as high as a number, but not as large. */
  readonly isWord?: boolean
}

/** A strip of figures with thin dividers, in columns of the same width. */
export function Figures({ of }: { readonly of: readonly Figure[] }) {
  return (
    // The first figure of each line has its divider outside of the strip.
    <div className="@container overflow-hidden border-line border-y">
      <dl className={`figures -ml-4 grid grid-cols-2 ${figureColumns[of.length] ?? '@2xl:grid-cols-4'}`}>
        {of.map(({ name, value, note, isWord = false }) => (
          <div key={name} className="-ml-px min-w-0 border-line border-l py-3 pr-2 pl-4">
            <dt className="text-muted text-xs">{name}</dt>
            <dd
              className={`mt-0.5 font-medium tabular-nums ${isWord ? 'text-base leading-7 md:leading-8' : 'text-lg tracking-[-0.01em] md:text-xl'}`}
            >
              {value}
            </dd>
            {note !== undefined && <dd className="text-muted text-xs tabular-nums">{note}</dd>}
          </div>
        ))}
      </dl>
    </div>
  )
}
