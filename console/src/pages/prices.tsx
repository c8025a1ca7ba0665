// The list of prices.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { ModelPrice } from '../api/types.ts'
import { Dialog } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { Rate, useRateName } from '../parts/rates.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, useErrorText } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { State, Time, YesNo } from '../parts/values.tsx'
import { pricesWords } from '../words/en/prices.ts'
import { useWords } from '../words/words.ts'

const FILTERS = ['model', 'origin'] as const

interface Search {
  readonly model?: string
  readonly origin?: ModelPrice['origin']
  readonly sort?: 'model' | '-model'
  readonly [name: string]: string | undefined
}

export function PricesPage() {
  const t = useWords(pricesWords)
  const may = useMay()
  const [{ model, origin, sort }] = useSearchState<Search>()
  const list = useList('GET /api/web/prices', { query: definedOnly({ model, origin, sort }) })
  const columns: readonly Column<ModelPrice>[] = [
    { id: 'model', title: t('model'), sort: 'model', cell: row => row.model, phone: 'main' },
    { id: 'input', title: t('input'), align: 'right', cell: row => <Rate value={row.price.input} />, phone: 'note' },
    { id: 'output', title: t('output'), align: 'right', cell: row => <Rate value={row.price.output} />, phone: 'note' },
    { id: 'cacheRead', title: t('cacheRead'), align: 'right', cell: row => <Rate value={row.price.cacheRead} /> },
    {
      id: 'origin',
      title: t('origin'),
      cell: row => <State tone={row.origin === 'operator' ? 'accent' : 'muted'}>{t(`origin_${row.origin}`)}</State>,
      phone: 'note',
    },
    { id: 'inUse', title: t('inUse'), cell: row => <YesNo value={row.inUse} /> },
    { id: 'version', title: t('version'), align: 'right', cell: row => row.version, isOptional: true },
    { id: 'made', title: t('made'), cell: row => <Time at={row.made} />, isOptional: true },
  ]
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('POST /api/web/prices/backtest') && (
          <>
            <PriceCheck />
            <Link to="/prices/backtest" className="button">
              {t('backtest')}
            </Link>
          </>
        )
      }
    >
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <TextFilter name="model" label={t('model')} width={220} />
          <SelectFilter
            name="origin"
            label={t('origin')}
            choices={(['shipped', 'operator'] as const).map(value => ({ value, label: t(`origin_${value}`) }))}
          />
        </FilterBar>
        <DataTable
          name="prices"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={row => row.model}
          open={row => ({ to: '/prices/$', params: { _splat: row.model } as never })}
          filters={FILTERS}
          empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
        />
      </div>
    </Page>
  )
}

function PriceCheck() {
  const t = useWords(pricesWords)
  const rateName = useRateName()
  const textOf = useErrorText()
  const [result, setResult] = useState<AnswerOf<'POST /api/web/prices/check'>>()
  const check = useWrite('POST /api/web/prices/check')
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={check.isPending}
        onClick={() =>
          check.mutate({}, { onSuccess: setResult, onError: error => say(textOf(error), { isBad: true }) })
        }
      >
        {t('check')}
      </button>
      {result !== undefined && (
        <Dialog title={t('checkTitle')} onClose={() => setResult(undefined)} wide>
          {!result.compared && <p className="text-muted">{t('notCompared')}</p>}
          {result.compared && result.disagreements.length === 0 && (
            <p>
              <State tone="ok">{t('checkAgree', { n: result.prices })}</State>
            </p>
          )}
          {result.disagreements.length > 0 && (
            <div className="flex flex-col gap-2">
              <p>{t('checkDiffer', { n: result.disagreements.length })}</p>
              <table className="w-full" aria-label={t('checkTitle')}>
                <thead>
                  <tr className="h-8 border-line border-b text-left text-muted text-xs">
                    <th scope="col" className="pr-4 font-medium">
                      {t('model')}
                    </th>
                    <th scope="col" className="pr-4 font-medium">
                      {t('rate')}
                    </th>
                    <th scope="col" className="pr-4 text-right font-medium">
                      {t('ours')}
                    </th>
                    <th scope="col" className="text-right font-medium">
                      {t('theirs')}
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {result.disagreements.map(row => (
                    <tr key={`${row.model} ${row.rate} ${row.when}`} className="border-line border-b">
                      <td className="break-all py-1 pr-4">{row.model}</td>
                      <td className="pr-4">{rateName(row.rate)}</td>
                      <td className="pr-4 text-right tabular-nums">{row.ours ?? '–'}</td>
                      <td className="text-right tabular-nums">{row.theirs.map(({ rate }) => rate).join(', ')}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Dialog>
      )}
    </>
  )
}
