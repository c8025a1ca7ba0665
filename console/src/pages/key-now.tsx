// What a key may do now: what stops it, every bound with what is left of it, and the models that it may call.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useList, useRead } from '../api/reads.ts'
import type { KeyBudgetLeft, KeyLimitLeft, KeyReport, KeyStop, UsableModel } from '../api/types.ts'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { nanosOf, shortNumber, wholeNumber } from '../parts/format.ts'
import { Section } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { SmallTable } from '../parts/small-table.tsx'
import { Empty, Notice, Query } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { ShortMoney, State, Time } from '../parts/values.tsx'
import { budgetsWords } from '../words/en/budgets.ts'
import { keyNowWords } from '../words/en/key-now.ts'
import { playgroundWords } from '../words/en/playground.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { useLimitTexts } from './limit-text.ts'

export function KeyNow({ id }: { readonly id: string }) {
  const t = useWords(keyNowWords)
  const report = useRead('GET /api/web/keys/{key}/report', { params: { key: id } })
  return (
    <Section title={t('title')}>
      <Query of={report}>{data => <Report of={data} />}</Query>
    </Section>
  )
}

interface Bound {
  readonly id: string
  readonly name: string
  readonly rule: ReactNode
  readonly left: ReactNode
  readonly isStop?: boolean
}

function Report({ of }: { readonly of: KeyReport }) {
  const t = useWords(keyNowWords)
  const bounds = useBounds(of)
  const columns: readonly Column<Bound>[] = [
    { id: 'name', title: t('limit'), phone: 'main', cell: ({ name }) => name },
    { id: 'rule', title: t('rule'), phone: 'note', cell: ({ rule }) => rule },
    {
      id: 'left',
      title: t('left'),
      phone: 'side',
      cell: ({ left, isStop }) => (isStop ? <span className="text-bad">{left}</span> : left),
    },
  ]
  return (
    <div className="flex max-w-4xl flex-col gap-3">
      {of.stops.length === 0 ? (
        <p>
          <State tone="ok">{t('accepted')}</State>
        </p>
      ) : (
        <Notice tone="bad">
          <p className="font-medium">{t('refused')}</p>
          <ul className="list-disc pl-5">
            {of.stops.map((stop, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: two budgets may stop a key in the same way
              <li key={index}>
                <StopText stop={stop} state={of.state} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
      <SmallTable label={t('title')} columns={columns} rows={bounds} rowKey={({ id }) => id} />
    </div>
  )
}

function StopText({
  stop: { code, text, until },
  state,
}: {
  readonly stop: KeyStop
  readonly state: KeyReport['state']
}) {
  const t = useWords(keyNowWords)
  const own = code === 'key_invalid' ? t('stop_key_invalid', { state: t(`state_${state}`) }) : t.find(`stop_${code}`)
  return (
    <>
      {own ?? text}{' '}
      <span className="text-muted">
        ({until === null ? t('notByItself') : t.rich('until', { time: <Time at={until} /> })})
      </span>
    </>
  )
}

function useBounds({ state, expires, tier, models, endpoints, addresses, limits, budgets, funds }: KeyReport): Bound[] {
  const t = useWords(keyNowWords)
  const limitRows = useLimitRows(limits)
  const budgetRows = useBudgetRows(budgets)
  // The endpoints of generations are dialects.
  const dialects = useWords(playgroundWords)
  const endpointName = (name: string): string => t.find(`endpoint_${name}`) ?? dialects.find(`dialect_${name}`) ?? name
  const unbounded = <span className="text-muted">{t('noLimit')}</span>
  const { allowed, allowedToAccount, denied, requiredTags } = models
  const modelParts = [
    allowed !== null && t('keyAllows', { names: listed(allowed) || t('none') }),
    allowedToAccount !== null && t('accountAllows', { names: listed(allowedToAccount) || t('none') }),
    denied !== null && denied.length > 0 && t('denied', { names: listed(denied) }),
    requiredTags !== null && requiredTags.length > 0 && t('needsTags', { names: listed(requiredTags) }),
  ].filter(part => part !== false)
  const boundTo = (id: string, name: string, values: readonly string[] | null): Bound[] =>
    values === null ? [] : [{ id, name, rule: listed(values) || t('none'), left: null }]
  return [
    {
      id: 'key',
      name: t('key'),
      rule:
        expires === null
          ? t(`state_${state}`)
          : t.rich('keyExpires', { state: t(`state_${state}`), time: <Time at={expires} /> }),
      left: null,
    },
    { id: 'tier', name: t('tier'), rule: t('tierText', { name: tier }), left: null },
    {
      id: 'models',
      name: t('models'),
      rule: modelParts.length === 0 ? t('allModels') : modelParts.join(t('join')),
      left: (
        <Link to="." search={((old: object) => ({ ...old, tab: 'models' })) as never} replace className="link">
          {t('whichModels')}
        </Link>
      ),
    },
    ...boundTo('endpoints', t('endpoints'), endpoints?.map(endpointName) ?? null),
    ...boundTo('addresses', t('addresses'), addresses),
    ...limitRows,
    ...budgetRows,
    {
      id: 'money',
      name: t('money'),
      rule: funds.frozen ? t('frozen') : <FundsText of={funds} />,
      left: funds.available === null ? unbounded : <ShortMoney usd={funds.available} />,
      isStop: funds.frozen || (funds.available !== null && nanosOf(funds.available) <= 0n),
    },
  ]
}

function FundsText({ of: { kind, balance, held, creditLimit } }: { readonly of: KeyReport['funds'] }) {
  const t = useWords(keyNowWords)
  if (kind === 'postpaid') return t('postpaid')
  const sums = { balance: <ShortMoney usd={balance} />, credit: <ShortMoney usd={creditLimit} /> }
  return (
    <>
      {nanosOf(creditLimit) === 0n ? t.rich('prepaid', sums) : t.rich('prepaidCredit', sums)}
      <HeldText usd={held} />
    </>
  )
}

function HeldText({ usd }: { readonly usd: string }) {
  const t = useWords(keyNowWords)
  if (nanosOf(usd) === 0n) return null
  return <span className="text-muted"> · {t.rich('held', { held: <ShortMoney usd={usd} /> })}</span>
}

function useLimitRows(limits: readonly KeyLimitLeft[]): Bound[] {
  const t = useWords(keyNowWords)
  const texts = useLimitTexts()
  return limits.map(({ resource, span, max, left, used, whose, resets }, index) => {
    const text = t.find(`whose_${whose.replaceAll(' ', '_')}`) ?? whose
    return {
      id: `limit-${index}`,
      name: t('limitOf', { what: texts.what({ resource, span }) }),
      rule: (
        <>
          {t('limitText', { max: wholeNumber(max), whose: text })}
          {used > 0 && resource !== 'concurrency' && (
            <span className="text-muted"> · {t.rich('allAgain', { time: <Time at={resets} /> })}</span>
          )}
        </>
      ),
      left: <span title={wholeNumber(left)}>{left < 100_000 ? wholeNumber(left) : shortNumber(left)}</span>,
      isStop: left < 1,
    }
  })
}

function useBudgetRows(budgets: readonly KeyBudgetLeft[]): Bound[] {
  const t = useWords(keyNowWords)
  const tb = useWords(budgetsWords)
  return budgets.map(({ scope, span, cap, spent, held, left, resets }) => ({
    id: `budget-${scope}-${span}`,
    name: t('budgetOf', { span: tb(`span_${span}`) }),
    rule: (
      <>
        {t.rich(scope === 'key' ? 'budgetOfKey' : 'budgetOfAccount', {
          spent: <ShortMoney usd={spent} />,
          cap: <ShortMoney usd={cap} />,
        })}
        <HeldText usd={held} />
        {resets !== null && <span className="text-muted"> · {t.rich('again', { time: <Time at={resets} /> })}</span>}
      </>
    ),
    left: <ShortMoney usd={left} />,
    isStop: nanosOf(left) <= 0n,
  }))
}

const FILTERS = ['text', 'allowed'] as const

/** The names that the gateway serves, and whether the key may call them. */
export function KeyModels({ id }: { readonly id: string }) {
  const t = useWords(keyNowWords)
  const [{ text, allowed, sort }] = useSearchState()
  const query = { text, allowed, sort, limit: 200 }
  const list = useList('GET /api/web/keys/{key}/models', { params: { key: id }, query: definedOnly(query) as never })
  const columns: readonly Column<UsableModel>[] = [
    {
      id: 'name',
      title: t('model'),
      sort: 'name',
      phone: 'main',
      cell: ({ name }) => <span title={name}>{name}</span>,
    },
    {
      id: 'may',
      title: t('may'),
      phone: 'side',
      cell: row => (row.allowed ? <State tone="ok">{t('yes')}</State> : <State tone="bad">{t('no')}</State>),
    },
    {
      id: 'why',
      title: t('why'),
      phone: 'note',
      maxWidth: 520,
      cell: ({ reason }) => reason !== null && <span title={reason}>{t.find(`why_${reason}`) ?? reason}</span>,
    },
    { id: 'kind', title: t('kind'), cell: ({ kind }) => t(`kind_${kind}`) },
  ]
  return (
    <div>
      <p className="mb-3 text-muted">{t('modelsIntro')}</p>
      <FilterBar names={FILTERS} error={list.query.error}>
        <TextFilter name="text" label={t('modelText')} width={220} />
        <SelectFilter
          name="allowed"
          label={t('may')}
          choices={[
            { value: 'true', label: t('yes') },
            { value: 'false', label: t('no') },
          ]}
        />
      </FilterBar>
      <DataTable
        name="key-models"
        label={t('models')}
        list={list}
        columns={columns}
        rowKey={({ name }) => name}
        filters={FILTERS}
        empty={<Empty title={t('modelsNone')}>{t('modelsNoneText')}</Empty>}
      />
    </div>
  )
}
