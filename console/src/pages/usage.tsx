// Usage: figures, a chart that can be split, rankings, errors, end users.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Figures as FiguresOfTime, SeriesPoint } from '../api/types.ts'
import type { Line } from '../parts/chart.tsx'
import { Chart, useOpenRecords } from '../parts/chart.tsx'
import { chartDays } from '../parts/chart-days.ts'
import { RangeFilter, SelectFilter } from '../parts/filters.tsx'
import { axisMoney, nanosOf, percent, shortNumber, wholeNumber, zoneLabel } from '../parts/format.ts'
import { useOutcomeName } from '../parts/outcome.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { definedOnly, rangeOf, useSearchState } from '../parts/search.ts'
import { Query } from '../parts/states.tsx'
import { Steps } from '../parts/steps.ts'
import { Figures, Money, ShortMoney } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { usageWords } from '../words/en/usage.ts'
import { useWords } from '../words/words.ts'

const measures = ['cost', 'calls', 'tokens', 'errors'] as const
type Measure = (typeof measures)[number]
type Split = 'model' | 'key' | 'account' | 'channel' | 'outcome'

interface Search {
  readonly split?: Split
  readonly by?: Measure
  readonly tab?: string
  readonly [name: string]: string | undefined
}

type Countable = Pick<SeriesPoint, 'calls' | 'errors' | 'inputTokens' | 'outputTokens' | 'cost'>
/** A point of a group. What the statistics do not have for this split is null. */
type Measured = { readonly [K in keyof Countable]: Countable[K] | null }

function measured(point: Measured, measure: Measure): number {
  if (measure === 'cost') return Number(nanosOf(point.cost ?? '0')) / 1e9
  return measure === 'tokens' ? (point.inputTokens ?? 0) + (point.outputTokens ?? 0) : (point[measure] ?? 0)
}

const formatOf =
  (measure: Measure) =>
  (value: number): string =>
    measure === 'cost' ? axisMoney(value) : shortNumber(value)

function useUsageQuery() {
  const [search] = useSearchState<Search>()
  const account = useAccount()
  const range = rangeOf(search, '7d')
  const { from, before } = range
  const { key, model, channel } = search
  return { query: definedOnly({ account: account?.id, key, model, channel, from, before }), range, search }
}

export function UsagePage() {
  const t = useWords(usageWords)
  const { search } = useUsageQuery()
  const staff = isStaff(useMe())
  const tab = search.tab ?? 'use'
  const splits = (
    staff ? (['model', 'key', 'account', 'channel', 'outcome'] as const) : (['model', 'key', 'outcome'] as const)
  ).map(value => ({ value, label: t(`split_${value}`) }))
  return (
    <Page title={t('title')} intro={t('intro')}>
      <div className="flex flex-wrap items-end gap-2">
        <RangeFilter standard="7d" names={['24h', '7d', '30d', '90d']} />
        <SelectFilter name="split" label={t('split')} all={t('split_none')} choices={splits} />
        <SelectFilter
          name="by"
          label={t('by')}
          all={t('by_cost')}
          choices={(['calls', 'tokens', 'errors'] as const).map(value => ({ value, label: t(`by_${value}`) }))}
        />
      </div>
      <Tabs
        label={t('title')}
        of={[
          { id: 'use', title: t('use') },
          { id: 'errors', title: t('errors') },
          { id: 'end-users', title: t('endUsers') },
        ]}
      />
      {tab === 'use' && <Use />}
      {tab === 'errors' && <Errors />}
      {tab === 'end-users' && <EndUsers />}
    </Page>
  )
}

function Use() {
  const { query } = useUsageQuery()
  const summary = useRead('GET /api/web/statistics/summary', { query }, { keepsPrevious: true })
  return (
    <>
      <Query of={summary}>{data => <Summary data={data} />}</Query>
      <OverTime />
      <Ranking />
    </>
  )
}

function Summary({ data }: { readonly data: FiguresOfTime }) {
  const t = useWords(usageWords)
  return (
    <Figures
      of={[
        { name: t('calls'), value: shortNumber(data.calls) },
        {
          name: t('tokensIn'),
          value: shortNumber(data.inputTokens),
          ...(data.cacheReadTokens > 0 && {
            note: t('cached', { share: percent(data.cacheReadTokens, data.inputTokens) }),
          }),
        },
        { name: t('tokensOut'), value: shortNumber(data.outputTokens) },
        { name: t('cost'), value: <ShortMoney usd={data.cost} /> },
        { name: t('savings'), value: <ShortMoney usd={data.cacheSavings} /> },
        ...(data.providerCost === null
          ? []
          : [{ name: t('providerCost'), value: <ShortMoney usd={data.providerCost} /> }]),
        ...(data.margin === null ? [] : [{ name: t('margin'), value: <ShortMoney usd={data.margin} /> }]),
      ]}
    />
  )
}

const DAY = 86_400_000

function OverTime() {
  const t = useWords(usageWords)
  const { query, range, search } = useUsageQuery()
  const measure = search.by ?? 'cost'
  const step = range.lengthMs > 4 * DAY ? 'day' : 'hour'
  const { zone, isInstead } = step === 'day' ? chartDays(range) : { zone: undefined, isInstead: false }
  const note = t(isInstead ? 'utcNote' : 'zoneNote', { zone: zoneLabel() })
  const split = search.split
  const asked = definedOnly({
    ...query,
    step,
    split,
    zone,
    by: split === undefined ? undefined : measure,
    top: split === undefined ? undefined : 6,
  })
  const series = useRead('GET /api/web/statistics/series', { query: asked as never }, { keepsPrevious: true })
  const openRecords = useOpenRecords()
  const outcomeName = useOutcomeName()
  const nameOf = split === 'outcome' ? outcomeName : (name: string) => name
  return (
    <Section title={t('overTime')} {...(step === 'day' && { note })}>
      <Query of={series}>
        {answer => {
          const { data, groups } = answer
          const steps = new Steps({ ...answer, zone }, data)
          const lines: readonly Line[] =
            groups === null
              ? [
                  {
                    name: t(`by_${measure}`),
                    values: steps.values(data, point => measured(point, measure)),
                    tone: measure === 'errors' ? 'bad' : 1,
                  },
                ]
              : groups.map(group => ({
                  name: group.others ? t('others') : nameOf(group.name ?? group.id ?? t('unnamed')),
                  values: steps.values(group.data, point => measured(point, measure)),
                  ...(group.others && { tone: 'muted' as const }),
                }))
          return (
            <Chart
              label={t('overTime')}
              times={steps.times}
              lines={lines}
              isStacked={groups !== null}
              format={formatOf(measure)}
              height={220}
              zone={isInstead ? 'UTC' : undefined}
              onStep={openRecords}
            />
          )
        }}
      </Query>
    </Section>
  )
}

interface RankRow extends Countable {
  readonly id: string
  readonly name: ReactNode
}

function RankTable({
  label,
  head,
  rows,
  measure,
}: {
  readonly label: string
  readonly head: string
  readonly rows: readonly RankRow[]
  readonly measure: Measure
}) {
  const t = useWords(usageWords)
  const total = rows.reduce((sum, row) => sum + measured(row, measure), 0)
  if (rows.length === 0) return <p className="text-muted">{t('none')}</p>
  return (
    <div className="overflow-x-auto">
      <table className="w-full" aria-label={label}>
        <thead>
          <tr className="h-8 border-line border-b text-left text-muted text-xs">
            <th scope="col" className="pr-4 font-medium">
              {head}
            </th>
            <th scope="col" className="whitespace-nowrap pr-4 text-right font-medium">
              {t('calls')}
            </th>
            <th scope="col" className="whitespace-nowrap pr-4 text-right font-medium max-md:hidden">
              {t('errors')}
            </th>
            <th scope="col" className="whitespace-nowrap pr-4 text-right font-medium max-md:hidden">
              {t('tokensIn')}
            </th>
            <th scope="col" className="whitespace-nowrap pr-4 text-right font-medium max-md:hidden">
              {t('tokensOut')}
            </th>
            <th scope="col" className="whitespace-nowrap pr-4 text-right font-medium">
              {t('cost')}
            </th>
            <th scope="col" className="text-right font-medium max-md:hidden">
              {t('share')}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={row.id} className="h-8 border-line border-b hover:bg-sunken">
              <td className="w-full max-w-0 truncate pr-4">{row.name}</td>
              <td className="pr-4 text-right tabular-nums">{wholeNumber(row.calls)}</td>
              <td className="pr-4 text-right tabular-nums max-md:hidden">{wholeNumber(row.errors)}</td>
              <td className="pr-4 text-right tabular-nums max-md:hidden">{wholeNumber(row.inputTokens)}</td>
              <td className="pr-4 text-right tabular-nums max-md:hidden">{wholeNumber(row.outputTokens)}</td>
              <td className="pr-4 text-right">
                <Money usd={row.cost} />
              </td>
              <td className="text-right tabular-nums max-md:hidden">{percent(measured(row, measure), total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Ranking() {
  const t = useWords(usageWords)
  const { query, search } = useUsageQuery()
  const of = search.split === undefined || search.split === 'outcome' ? 'model' : search.split
  const measure = search.by ?? 'cost'
  const top = useRead(
    'GET /api/web/statistics/top',
    { query: { ...query, of, by: measure, limit: 50 } as never },
    { keepsPrevious: true },
  )
  const linkOf = (id: string): object =>
    of === 'key'
      ? { to: '/keys/$key', params: { key: id } }
      : of === 'account'
        ? { to: '/accounts/$id', params: { id } }
        : { to: '/records', search: { [of]: id } }
  return (
    <Section title={t('ranking', { what: t(`split_${of}`) })}>
      <Query of={top}>
        {({ data }) => (
          <RankTable
            label={t('ranking', { what: t(`split_${of}`) })}
            head={t('name')}
            measure={measure}
            rows={data.map(row => {
              const id = row.id ?? row.name
              return {
                ...row,
                id: id ?? 'deleted',
                name:
                  id === null ? (
                    <span className="text-muted">{t('unnamed')}</span>
                  ) : (
                    <Link {...(linkOf(id) as { to: '/records' })} className="hover:underline" title={row.name ?? id}>
                      {row.name ?? id}
                    </Link>
                  ),
              }
            })}
          />
        )}
      </Query>
    </Section>
  )
}

function Errors() {
  const t = useWords(usageWords)
  const { query, search } = useUsageQuery()
  const outcomeName = useOutcomeName()
  const errors = useRead('GET /api/web/statistics/errors', { query }, { keepsPrevious: true })
  return (
    <Section title={t('errors')}>
      <Query of={errors}>
        {({ data }) =>
          data.length === 0 ? (
            <p className="text-muted">{t('noErrors')}</p>
          ) : (
            <table className="w-full max-w-2xl" aria-label={t('errors')}>
              <thead>
                <tr className="h-8 border-line border-b text-left text-muted text-xs">
                  <th scope="col" className="pr-4 font-medium">
                    {t('error')}
                  </th>
                  <th scope="col" className="text-right font-medium">
                    {t('calls')}
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map(row => (
                  <tr key={`${row.outcome} ${row.error}`} className="h-8 border-line border-b">
                    <td className="pr-4">
                      <Link
                        to="/records"
                        search={
                          {
                            ...(row.error === null ? { outcome: row.outcome } : { error: row.error }),
                            range: search.range ?? '7d',
                          } as never
                        }
                        className={row.error === null ? 'link' : 'link font-mono text-xs'}
                      >
                        {row.error ?? outcomeName(row.outcome)}
                      </Link>
                    </td>
                    <td className="text-right tabular-nums">{wholeNumber(row.calls)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Query>
    </Section>
  )
}

function EndUsers() {
  const t = useWords(usageWords)
  const { query, search } = useUsageQuery()
  const measure = search.by ?? 'cost'
  const { key: _key, model: _model, channel: _channel, ...own } = query as Readonly<Record<string, string>>
  const users = useRead(
    'GET /api/web/statistics/end-users',
    { query: { ...own, by: measure, limit: 100 } as never },
    { keepsPrevious: true },
  )
  return (
    <Section title={t('endUsers')}>
      <Query of={users}>
        {({ data }) =>
          data.length === 0 ? (
            <p className="text-muted">{t('noEndUsers')}</p>
          ) : (
            <RankTable
              label={t('endUsers')}
              head={t('endUser')}
              measure={measure}
              rows={data.map(row => ({
                ...row,
                id: row.endUser,
                name: (
                  <Link
                    to="/records"
                    search={{ endUser: row.endUser, range: '7d' } as never}
                    className="hover:underline"
                  >
                    {row.endUser}
                  </Link>
                ),
              }))}
            />
          )
        }
      </Query>
    </Section>
  )
}
