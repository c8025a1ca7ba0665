// The list of calls, with filters in the address, and a panel that shows one call whole.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { CallRecord } from '../api/types.ts'
import { dialectName, dialectNames } from '../parts/dialects.ts'
import { Panel } from '../parts/dialog.tsx'
import { DownloadMenu } from '../parts/download.tsx'
import { FilterBar, RangeFilter, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { duration, wholeNumber } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { Outcome, outcomeNames, useOutcomeName } from '../parts/outcome.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useListRange, useSearchState } from '../parts/search.ts'
import { Empty, Loading, Query } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Money, None, Time, YesNo } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { recordWords } from '../words/en/record.ts'
import { recordsWords } from '../words/en/records.ts'
import type { Translate } from '../words/words.ts'
import { useWords } from '../words/words.ts'

// The list itself does not need it.
const CallView = lazy(async () => ({ default: (await import('../parts/call-view.tsx')).CallView }))

const MAIN = ['model', 'outcome', 'key', 'id'] as const
const MORE = [
  'provider',
  'channel',
  'error',
  'status',
  'costMin',
  'endUser',
  'streamed',
  'dialect',
  'tag',
  'requestedModel',
  'lossy',
  'attemptsMin',
  'durationMsMin',
] as const
const FILTERS = [...MAIN, ...MORE, 'range', 'from', 'before'] as const

/** They are the same until the language changes, so that the rows of a long list are not drawn again. */
export function useRecordColumns(): readonly Column<CallRecord>[] {
  const t = useWords(recordsWords)
  const staff = isStaff(useMe())
  return useMemo(() => columnsIn(t, staff), [t, staff])
}

const columnsIn = (t: Translate<typeof recordsWords.en>, staff: boolean): readonly Column<CallRecord>[] => [
  { id: 'time', title: t('time'), cell: call => <Time at={call.time} />, sort: 'time', phone: 'note' },
  { id: 'model', title: t('model'), cell: call => call.model ?? <None />, phone: 'main', maxWidth: 260 },
  { id: 'outcome', title: t('outcome'), cell: call => <Outcome outcome={call.outcome} />, phone: 'note' },
  {
    id: 'account',
    title: t('account'),
    cell: call => call.accountName ?? call.account,
    isOptional: !staff,
    maxWidth: 160,
  },
  {
    id: 'key',
    title: t('key'),
    cell: call => <span title={call.key}>{call.keyName ?? call.key}</span>,
    maxWidth: 140,
  },
  { id: 'channel', title: t('channel'), cell: call => call.channel ?? <None />, isOptional: true, maxWidth: 140 },
  { id: 'dialect', title: t('dialect'), cell: call => dialectName(call.dialect), isOptional: true },
  { id: 'status', title: t('status'), align: 'right', cell: call => call.status, isOptional: true },
  { id: 'error', title: t('error'), cell: call => call.error ?? <None />, isOptional: true },
  {
    id: 'in',
    title: t('tokensIn'),
    align: 'right',
    cell: call => wholeNumber(call.inputTokens),
  },
  { id: 'out', title: t('tokensOut'), align: 'right', cell: call => wholeNumber(call.outputTokens) },
  { id: 'first', title: t('first'), align: 'right', cell: call => duration(call.firstContentMs) },
  { id: 'duration', title: t('duration'), align: 'right', cell: call => duration(call.durationMs), phone: 'note' },
  { id: 'cost', title: t('cost'), align: 'right', cell: call => <Money usd={call.cost} />, phone: 'side' },
  { id: 'streamed', title: t('streamed'), cell: call => <YesNo value={call.streamed} />, isOptional: true },
  {
    id: 'loss',
    title: t('loss'),
    cell: call => (call.loss.length === 0 ? <None /> : call.loss.join(', ')),
    isOptional: true,
    maxWidth: 160,
  },
  { id: 'endUser', title: t('endUser'), cell: call => call.endUser ?? <None />, isOptional: true, maxWidth: 140 },
]

/** The panel of a call, over the list. */
export const openCall = ({ id }: CallRecord) => ({
  to: '.' as const,
  search: ((old: object) => ({ ...old, call: id })) as never,
})

export function RecordsPage() {
  const t = useWords(recordsWords)
  const [search, change] = useSearchState()
  const account = useAccount()
  const may = useMay()
  const columns = useRecordColumns()
  const { from, before } = useListRange(search)
  const filters = Object.fromEntries([...MAIN, ...MORE].map(name => [name, search[name]]))
  const query = definedOnly({ ...filters, account: account?.id, from, before, sort: search.sort }) as Readonly<
    Record<string, string>
  >
  const list = useList('GET /api/web/records', { query: query as never })
  const chosen = search.call
  const go = (step: 1 | -1): void => {
    const at = list.rows.findIndex(({ id }) => id === chosen)
    const next = list.rows[at + step]
    if (next !== undefined) change({ call: next.id })
  }
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        <>
          <Link to="/live" className="button">
            <Icon name="live" />
            {t('live')}
          </Link>
          {may('GET /api/web/records/deletions') && (
            <Link to="/records/deletions" className="button">
              {t('deletions')}
            </Link>
          )}
        </>
      }
    >
      <div>
        <RecordFilters actions={<DownloadMenu of="records" query={query} />} error={list.query.error} />
        <DataTable
          name="records"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={call => call.id}
          open={openCall}
          filters={FILTERS}
          current={chosen}
          empty={<FirstCall />}
        />
      </div>
      {chosen !== undefined && <CallPanel call={chosen} go={go} onClose={() => change({ call: undefined })} />}
    </Page>
  )
}

export const firstCall = (): string => `curl ${location.origin}/v1/chat/completions \\
  -H "Authorization: Bearer $WEIR_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]}'`

function FirstCall() {
  const t = useWords(recordsWords)
  return (
    <Empty title={t('emptyTitle')} command={firstCall()}>
      {t('emptyText')}
    </Empty>
  )
}

function RecordFilters({ actions, error }: { readonly actions: ReactNode; readonly error: unknown }) {
  const t = useWords(recordsWords)
  const nameOf = useOutcomeName()
  const staff = isStaff(useMe())
  const [search] = useSearchState()
  const [isOpen, setOpen] = useState(MORE.some(name => search[name] !== undefined))
  const yesNo = [
    { value: 'true', label: t('yes') },
    { value: 'false', label: t('no') },
  ]
  return (
    <FilterBar names={FILTERS} actions={actions} error={error}>
      <RangeFilter />
      <TextFilter name="model" label={t('model')} width={180} />
      <SelectFilter
        name="outcome"
        label={t('outcome')}
        choices={outcomeNames.map(value => ({ value, label: nameOf(value) }))}
      />
      <TextFilter name="id" label={t('id')} width={150} mono />
      {isOpen && (
        <>
          <TextFilter name="key" label={t('key')} width={150} mono />
          {staff && <TextFilter name="channel" label={t('channel')} width={130} />}
          <SelectFilter
            name="dialect"
            label={t('dialect')}
            choices={dialectNames.map(value => ({ value, label: dialectName(value) }))}
          />
          <TextFilter name="requestedModel" label={t('requestedModel')} width={150} />
          <TextFilter name="error" label={t('error')} width={130} />
          <TextFilter name="status" label={t('status')} width={70} />
          <SelectFilter name="streamed" label={t('streamed')} choices={yesNo} />
          <SelectFilter name="lossy" label={t('lossy')} choices={yesNo} />
          <TextFilter name="costMin" label={t('costMin')} width={90} />
          <TextFilter name="durationMsMin" label={t('durationMin')} width={110} />
          <TextFilter name="attemptsMin" label={t('attemptsMin')} width={90} />
          <TextFilter name="tag" label={t('tag')} width={120} />
          <TextFilter name="endUser" label={t('endUser')} width={120} />
        </>
      )}
      <button type="button" className="button button-quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t(isOpen ? 'lessFilters' : 'moreFilters')}
      </button>
    </FilterBar>
  )
}

interface CallPanelProps {
  readonly call: string
  readonly go: (step: 1 | -1) => void
  readonly onClose: () => void
}

/** The panel stays while another call is chosen, so that the focus stays on its buttons. */
export function CallPanel({ call, go, onClose }: CallPanelProps) {
  const t = useWords(recordWords)
  const content = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another call is read from its beginning
  useEffect(() => {
    // Without a block the effect would return the promise of newer browsers.
    void content.current?.closest('section')?.scrollTo(0, 0)
  }, [call])
  const record = useRead('GET /api/web/records/{record}', { params: { record: call } })
  const button = 'grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken'
  return (
    <Panel
      title={<span className="font-mono text-xs">{call}</span>}
      onClose={onClose}
      actions={
        <>
          <button
            type="button"
            data-previous
            className={button}
            aria-label={t('previous')}
            title={`${t('previous')} [`}
            onClick={() => go(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            data-next
            className={button}
            aria-label={t('next')}
            title={`${t('next')} ]`}
            onClick={() => go(1)}
          >
            <Icon name="down" />
          </button>
          <Link
            to="/records/$call"
            params={{ call }}
            className={button}
            aria-label={t('openPage')}
            title={t('openPage')}
          >
            <Icon name="external" size={14} />
          </Link>
        </>
      }
    >
      <p role="status" className="sr-only">
        {t('title', { id: call })}
      </p>
      <div ref={content}>
        <Suspense fallback={<Loading />}>
          <Query of={record}>{data => <CallView key={data.id} record={data} />}</Query>
        </Suspense>
      </div>
    </Panel>
  )
}
