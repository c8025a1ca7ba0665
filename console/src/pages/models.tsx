// What can be called here, what it costs, and how it is. Staff also see the models that are known but cannot be called.

import { Link } from '@tanstack/react-router'
import { useMay } from '../api/may.ts'
import type { List } from '../api/reads.ts'
import { useList, useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { shortNumber } from '../parts/format.ts'
import { useIsNarrow } from '../parts/narrow.ts'
import { Page } from '../parts/page.tsx'
import { Rate } from '../parts/rates.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import type { Tone } from '../parts/values.tsx'
import { None, State, TagsLine } from '../parts/values.tsx'
import { modelsWords } from '../words/en/models.ts'
import { useWords } from '../words/words.ts'
import { useForbidden } from './model-rights.ts'
import type { ModelRow, ModelStatus } from './model-rows.ts'
import { filterRows, markForbidden, publicRows, staffRow } from './model-rows.ts'

interface Search {
  readonly text?: string
  readonly provider?: string
  readonly available?: string
  readonly sort?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['text', 'provider', 'available'] as const

const tones: Readonly<Record<ModelStatus, Tone>> = {
  up: 'ok',
  degraded: 'warn',
  down: 'bad',
  route: 'accent',
  off: 'muted',
  forbidden: 'muted',
}

export function ModelState({ status }: { readonly status: ModelStatus }) {
  const t = useWords(modelsWords)
  return (
    <span title={t(`statusNote_${status}`)}>
      <State tone={tones[status]}>{t(`status_${status}`)}</State>
    </span>
  )
}

function useColumns(): readonly Column<ModelRow>[] {
  const t = useWords(modelsWords)
  // Without the heads of columns, a price must say what it is for.
  const isNarrow = useIsNarrow()
  const rate = (name: 'input' | 'cacheRead' | 'output') => (row: ModelRow) =>
    row.isFree ? <span className="text-muted">{t('free')}</span> : <Rate value={row[name]} />
  return [
    { id: 'id', title: t('model'), sort: 'id', phone: 'main', cell: ({ id }) => <span title={id}>{id}</span> },
    { id: 'status', title: t('status'), phone: 'side', cell: ({ status }) => <ModelState status={status} /> },
    { id: 'provider', title: t('provider'), cell: ({ providerName }) => providerName || <None /> },
    { id: 'input', title: t('input'), align: 'right', sort: 'input', cell: rate('input'), phone: 'note' },
    { id: 'output', title: t('output'), align: 'right', sort: 'output', cell: rate('output'), phone: 'note' },
    { id: 'cacheRead', title: t('cacheRead'), align: 'right', cell: rate('cacheRead') },
    {
      id: 'context',
      title: t('context'),
      align: 'right',
      sort: 'context',
      phone: 'note',
      cell: ({ contextTokens }) =>
        contextTokens === null ? <None /> : `${isNarrow ? `${t('context')} ` : ''}${shortNumber(contextTokens)}`,
    },
    {
      id: 'can',
      title: t('can'),
      cell: ({ can }) => <TagsLine of={can.map(name => t.find(`can_${name}`) ?? name)} max={3} />,
    },
    {
      id: 'reads',
      title: t('reads'),
      cell: ({ reads }) => <TagsLine of={reads.map(name => t.find(`reads_${name}`) ?? name)} max={3} />,
      isOptional: true,
    },
  ]
}

export function ModelsPage() {
  const t = useWords(modelsWords)
  const [{ text, provider, available, sort }] = useSearchState<Search>()
  const me = useMe()
  const may = useMay()
  const isRest = isStaff(me) && available === 'false'
  const callable = useRead('GET /api/public/models', {}, { enabled: !isRest })
  const providers = useRead('GET /api/public/providers')
  const isForbidden = useForbidden()
  const rest = useList(
    'GET /api/web/models',
    {
      query: definedOnly({
        text,
        provider,
        available: 'false',
        limit: 200,
        sort: sort === 'id' || sort === '-id' ? (sort as 'id') : undefined,
      }),
    },
    { enabled: isRest },
  )
  const shown: List<ModelRow> = isRest
    ? { ...rest, rows: rest.rows.map(staffRow) }
    : {
        rows:
          callable.data === undefined
            ? []
            : filterRows(markForbidden(publicRows(callable.data, providers.data?.data ?? []), isForbidden), {
                text,
                provider,
                sort,
              }),
        query: callable as unknown as List<ModelRow>['query'],
        hasMore: false,
        more: () => {},
      }
  const columns = useColumns()
  return (
    <Page title={t('title')} intro={t('intro')}>
      <div>
        <FilterBar names={FILTERS} error={shown.query.error}>
          <TextFilter name="text" label={t('text')} width={220} />
          <SelectFilter
            name="provider"
            label={t('provider')}
            choices={(providers.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          />
          {isStaff(me) && (
            <SelectFilter
              name="available"
              label={t('show')}
              all={t('showCallable')}
              choices={[{ value: 'false', label: t('showRest') }]}
            />
          )}
        </FilterBar>
        <DataTable
          name="models"
          label={t('title')}
          list={shown}
          columns={isRest ? columns.filter(({ id }) => id !== 'can' && id !== 'reads') : columns}
          rowKey={({ id }) => id}
          open={({ id }) => ({ to: '/models/$', params: { _splat: id } })}
          filters={FILTERS}
          empty={
            <Empty
              title={t('emptyTitle')}
              action={
                may('POST /api/web/channels') &&
                isStaff(me) && (
                  <Link to="/channels" search={{ new: '1' }} className="button">
                    {t('addChannel')}
                  </Link>
                )
              }
              command={`curl ${location.origin}/v1/models`}
            >
              {isStaff(me) ? t('emptyText') : t('emptyMember')}
            </Empty>
          }
        />
      </div>
    </Page>
  )
}
