// The overview: what happened lately, in one request. Until the first call it leads to it in a few steps.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { lazy, Suspense } from 'react'
import { useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Overview, PeriodFigures, TopList, TopRow } from '../api/types.ts'
import { BudgetLine } from '../parts/budget-line.tsx'
import { Chart, useOpenRecords } from '../parts/chart.tsx'
import { RangeFilter } from '../parts/filters.tsx'
import { axisMoney, duration, nanosOf, percent, shortNumber, wholeNumber } from '../parts/format.ts'
import { useOutcomeName } from '../parts/outcome.tsx'
import { Page, Section } from '../parts/page.tsx'
import { definedOnly, rangeOf, useSearchState } from '../parts/search.ts'
import { Empty, Notice, Query } from '../parts/states.tsx'
import { Steps } from '../parts/steps.ts'
import { Figures, Money, ShortMoney, State, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { overviewWords } from '../words/en/overview.ts'
import { useWords } from '../words/words.ts'

/** Loaded only where a channel has trouble: its words are many. */
const Reason = lazy(async () => ({ default: (await import('../parts/channel-health.tsx')).Reason }))
/** Only a gateway without calls shows them. */
const FirstSteps = lazy(async () => ({ default: (await import('./first-steps.tsx')).FirstSteps }))

const HOUR = 3_600_000

/** About sixty steps, none of them smaller than what the statistics have. */
const stepOf = (lengthMs: number): 'minute' | 'hour' | 'day' =>
  lengthMs <= 2 * HOUR ? 'minute' : lengthMs <= 4 * 24 * HOUR ? 'hour' : 'day'

export function OverviewPage() {
  const t = useWords(overviewWords)
  const me = useMe()
  const account = useAccount()
  const [search] = useSearchState()
  const { from, before, lengthMs } = rangeOf(search)
  const hasAccount = isStaff(me) || account !== undefined
  const query = definedOnly({ account: account?.id, from, before, step: stepOf(lengthMs) })
  const overview = useRead(
    'GET /api/web/statistics/overview',
    { query },
    { keepsPrevious: true, everyMs: 30_000, enabled: hasAccount },
  )
  if (!hasAccount) {
    return (
      <Page title={t('title')}>
        <Empty title={t('noAccountTitle')}>{t('noAccountText')}</Empty>
      </Page>
    )
  }
  const isUnused =
    overview.data !== undefined && overview.data.current.calls === 0 && overview.data.previous.calls === 0
  return (
    <Page title={t('title')} actions={<RangeFilter />}>
      <Suspense>{isUnused && <FirstSteps overview={overview.data} />}</Suspense>
      <Query of={overview}>{data => <Content data={data} />}</Query>
    </Page>
  )
}

function Content({ data }: { readonly data: Overview }) {
  const t = useWords(overviewWords)
  const { current, previous, series, step } = data
  const openRecords = useOpenRecords()
  const outcomeName = useOutcomeName()
  const steps = new Steps(data, series)
  const label = t(step)
  return (
    <>
      {data.summedUp < 1 && <Notice tone="accent">{t('summedUp', { percent: percent(data.summedUp, 1) })}</Notice>}
      <Now data={data} />
      <Numbers current={current} previous={previous} />
      {current.calls > 0 && (
        <div className="grid gap-6 lg:grid-cols-2">
          <Section title={t('callsChart', { step: label })}>
            <Chart
              label={t('callsChart', { step: label })}
              times={steps.times}
              lines={[
                { name: t('calls'), values: steps.values(series, ({ calls }) => calls), tone: 1 },
                { name: t('errors'), values: steps.values(series, ({ errors }) => errors), tone: 'bad' },
              ]}
              onStep={openRecords}
            />
          </Section>
          <Section title={t('costChart', { step: label })}>
            <Chart
              label={t('costChart', { step: label })}
              times={steps.times}
              lines={[
                { name: t('spent'), values: steps.values(series, ({ cost }) => Number(nanosOf(cost)) / 1e9), tone: 1 },
              ]}
              format={axisMoney}
              onStep={openRecords}
            />
          </Section>
        </div>
      )}
      <div className="grid gap-6 md:grid-cols-2 xl:grid-cols-3">
        <Top title={t('topModels')} list={data.top.models} linkOf={id => ({ to: '/records', search: { model: id } })} />
        <Top title={t('topKeys')} list={data.top.keys} linkOf={id => ({ to: '/keys/$key', params: { key: id } })} />
        <Top
          title={t('topAccounts')}
          list={data.account === null ? data.top.accounts : null}
          linkOf={id => ({ to: '/accounts/$id', params: { id } })}
        />
        <Top
          title={t('topChannels')}
          list={data.top.channels}
          linkOf={id => ({ to: '/channels/$id', params: { id } })}
        />
        <Section
          title={t('errorCodes')}
          actions={data.errors.data.length > 0 && <span className="text-muted text-xs">{t('calls')}</span>}
        >
          {data.errors.data.length === 0 ? (
            <p className="text-muted">{t('noErrors')}</p>
          ) : (
            <ul>
              {data.errors.data.slice(0, 5).map(row => (
                <li
                  key={`${row.outcome} ${row.error}`}
                  className="flex h-8 items-center justify-between gap-3 border-line border-b"
                >
                  <Link
                    to="/records"
                    search={(row.error === null ? { outcome: row.outcome } : { error: row.error }) as never}
                    className={`min-w-0 truncate hover:underline ${row.error === null ? '' : 'font-mono text-xs'}`}
                  >
                    {row.error ?? outcomeName(row.outcome)}
                  </Link>
                  <span className="tabular-nums">{wholeNumber(row.calls)}</span>
                </li>
              ))}
            </ul>
          )}
        </Section>
      </div>
    </>
  )
}

/** What is so now: balance, budgets, channels, ledger. */
function Now({ data: { account, budgets, channels, ledger } }: { readonly data: Overview }) {
  const t = useWords(overviewWords)
  const hasTrouble = channels !== null && channels.troubled.length > 0
  if (account === null && channels === null && ledger === null) return null
  return (
    <div className="flex flex-wrap gap-x-12 gap-y-3">
      {account !== null && (
        <Small title={t('balance')}>
          <Link to="/funds" className="font-medium text-base hover:underline">
            <ShortMoney usd={account.balance} />
          </Link>
        </Small>
      )}
      {budgets?.map(budget => (
        <Small key={budget.span} title={t('budgets')}>
          <div className="w-64">
            <BudgetLine budget={budget} />
          </div>
        </Small>
      ))}
      {channels !== null && (
        <Small title={t('channels')}>
          <Link to="/channels" className="hover:underline">
            <State tone={hasTrouble ? 'warn' : 'ok'}>
              {hasTrouble
                ? t('channelsTroubled', { n: channels.troubled.length })
                : t('channelsFine', { n: channels.enabled })}
            </State>
          </Link>
          {channels.troubled.slice(0, 3).map(channel => (
            <span key={channel.id} className="ml-3 inline-flex items-baseline gap-1.5 text-xs">
              <Link
                to="/channels/$id"
                params={{ id: channel.id }}
                className="break-all text-muted hover:underline"
                title={channel.id}
              >
                {channel.name ?? channel.id}
              </Link>
              <Suspense fallback={null}>
                <Reason code={channel.state === 'enabled' ? (channel.health ?? 'unused') : channel.state} />
              </Suspense>
            </span>
          ))}
        </Small>
      )}
      {ledger !== null && (
        <Small title={t('ledger')}>
          <Link to="/ledger" className="hover:underline">
            <State tone={ledger.books === 'agree' ? 'ok' : ledger.books === 'do not agree' ? 'bad' : 'muted'}>
              {t(
                ledger.books === 'agree'
                  ? 'ledgerConsistent'
                  : ledger.books === 'do not agree'
                    ? 'ledgerInconsistent'
                    : 'ledgerNotYet',
              )}
            </State>
          </Link>
          {ledger.audited !== null && (
            <span className="ml-2 text-muted text-xs">
              {t.rich('checked', { time: <Time at={ledger.audited} isAge /> })}
            </span>
          )}
        </Small>
      )}
    </div>
  )
}

function Small({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div>
      <p className="text-muted text-xs">{title}</p>
      <div className="mt-0.5">{children}</div>
    </div>
  )
}

function Numbers({ current, previous }: { readonly current: PeriodFigures; readonly previous: PeriodFigures }) {
  const t = useWords(overviewWords)
  const change = (now: number, then: number): string => {
    if (then === 0) return t('newNow')
    const text = percent(Math.abs(now - then), then)
    return text === percent(0, 1) ? t('same') : t('before', { change: `${now > then ? '+' : '\u2212'}${text}` })
  }
  const { inputTokens: input, outputTokens: output } = current
  const dollars = (usd: string): number => Number(nanosOf(usd))
  return (
    <Figures
      of={[
        {
          name: t('calls'),
          value: <span title={wholeNumber(current.calls)}>{shortNumber(current.calls)}</span>,
          note: change(current.calls, previous.calls),
        },
        {
          name: t('errors'),
          value: percent(current.errors, current.calls),
          note: t('errorsNote', { n: current.errors }),
        },
        {
          name: t('tokens'),
          value: shortNumber(input + output),
          note: t('tokensNote', { input: shortNumber(input), output: shortNumber(output) }),
        },
        {
          name: t('spent'),
          value: <ShortMoney usd={current.cost} />,
          note: change(dollars(current.cost), dollars(previous.cost)),
        },
        ...(current.margin === null ? [] : [{ name: t('margin'), value: <ShortMoney usd={current.margin} /> }]),
        {
          name: t('first'),
          value: duration(current.firstContentMs?.p50 ?? null),
          ...(current.firstContentMs !== null && { note: t('p95', { time: duration(current.firstContentMs.p95) }) }),
        },
        {
          name: t('duration'),
          value: duration(current.durationMs?.p50 ?? null),
          ...(current.durationMs !== null && { note: t('p95', { time: duration(current.durationMs.p95) }) }),
        },
      ]}
    />
  )
}

interface TopProps {
  readonly title: string
  readonly list: TopList | null
  readonly linkOf: (id: string) => object
}

/** Models and channels have only a name. */
const nameOf = ({ id, name }: TopRow): string | null => id ?? name

/** The five of each kind that cost the most; a thin bar shows the share of the first. */
function Top({ title, list, linkOf }: TopProps) {
  const t = useWords(overviewWords)
  if (list === null) return null
  const rows = list.data.slice(0, 5)
  const costOf = (row: TopRow): number => Number(nanosOf(row.cost))
  const most = Math.max(1, ...rows.map(costOf))
  const heads = (
    <span className="flex gap-4 text-muted text-xs">
      {t('calls')}
      <span className="w-24 text-right">{t('spent')}</span>
    </span>
  )
  return (
    <Section title={title} actions={rows.length > 0 && heads}>
      {rows.length === 0 && <p className="text-muted">{t('none')}</p>}
      <ol>
        {rows.map(row => (
          <li
            key={row.id ?? row.name}
            className="relative flex h-8 items-center justify-between gap-3 border-line border-b"
          >
            <span
              aria-hidden="true"
              className="absolute bottom-0 left-0 h-0.5 bg-series-1"
              style={{ width: `${(costOf(row) / most) * 100}%` }}
            />
            {nameOf(row) === null ? (
              <span className="text-muted">{t('others')}</span>
            ) : (
              <Link
                {...(linkOf(nameOf(row)!) as { to: '/records' })}
                className="min-w-0 truncate hover:underline"
                title={row.name ?? row.id ?? undefined}
              >
                {row.name ?? row.id}
              </Link>
            )}
            <span className="flex shrink-0 gap-4">
              <span className="text-muted tabular-nums">{wholeNumber(row.calls)}</span>
              <span className="w-24 text-right">
                <Money usd={row.cost} />
              </span>
            </span>
          </li>
        ))}
      </ol>
    </Section>
  )
}
