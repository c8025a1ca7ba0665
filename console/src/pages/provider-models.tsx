// The models of one provider, as staff see them.

import { useList } from '../api/reads.ts'
import type { Model } from '../api/types.ts'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { shortNumber } from '../parts/format.ts'
import { Rate } from '../parts/rates.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { None, State } from '../parts/values.tsx'
import { providersWords } from '../words/en/providers.ts'
import { useWords } from '../words/words.ts'

interface Search {
  readonly text?: string
  readonly available?: string
  readonly sort?: 'id' | '-id'
  readonly [name: string]: string | undefined
}

const FILTERS = ['text', 'available'] as const

export function ProviderModels({ id }: { readonly id: string }) {
  const t = useWords(providersWords)
  const [{ text, available, sort }] = useSearchState<Search>()
  const list = useList('GET /api/web/models', {
    query: definedOnly({ provider: id, text, available, sort, limit: 200 }),
  })
  const columns: readonly Column<Model>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'id',
      phone: 'main',
      cell: model => <span title={model.id}>{model.id.slice(id.length + 1)}</span>,
    },
    {
      id: 'available',
      title: t('available'),
      phone: 'side',
      cell: model =>
        model.available ? (
          <State tone="ok">{t('yes')}</State>
        ) : model.price === null && !model.free ? (
          <State tone="warn">{t('noPrice')}</State>
        ) : (
          <State tone="muted">{t('noChannel')}</State>
        ),
    },
    {
      id: 'price',
      title: t('price'),
      align: 'right',
      phone: 'note',
      cell: ({ price, free }) =>
        free ? (
          t('free')
        ) : price === null ? (
          <None />
        ) : (
          <span title={t('priceNote')}>
            <Rate value={price.rates.input} /> / <Rate value={price.rates.output} />
          </span>
        ),
    },
    {
      id: 'context',
      title: t('context'),
      align: 'right',
      cell: ({ contextTokens }) => (contextTokens === null ? <None /> : shortNumber(contextTokens)),
      phone: 'note',
    },
  ]
  return (
    <div>
      <FilterBar names={FILTERS} error={list.query.error}>
        <TextFilter name="text" label={t('filterText')} />
        <SelectFilter
          name="available"
          label={t('available')}
          choices={[
            { value: 'true', label: t('availableOnly') },
            { value: 'false', label: t('notAvailable') },
          ]}
        />
      </FilterBar>
      <DataTable
        name="provider-models"
        label={t('tabModels')}
        list={list}
        columns={columns}
        rowKey={model => model.id}
        open={model => ({ to: '/models/$', params: { _splat: model.id } })}
        filters={FILTERS}
        empty={<Empty title={t('noModels')}>{t('noModelsOpen')}</Empty>}
      />
    </div>
  )
}
