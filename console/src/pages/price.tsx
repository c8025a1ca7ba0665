// The price of one model: now, its history, and setting it.

import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useRead, useWrite } from '../api/reads.ts'
import type { ModelPrice, PriceVersion } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { useQuestion } from '../parts/dialog.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { PriceForm } from '../parts/price-form.tsx'
import { RateList } from '../parts/rates.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty, Notice, Query, Warnings } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Facts, State, Time } from '../parts/values.tsx'
import { pricesWords } from '../words/en/prices.ts'
import { useWords } from '../words/words.ts'

export function PricePage() {
  const t = useWords(pricesWords)
  const { _splat: model } = useParams({ strict: false } as never) as { readonly _splat: string }
  const price = useRead('GET /api/web/prices/{model}', { params: { model } })
  const [{ tab = 'price' }] = useSearchState()
  const may = useMay()
  const canEdit = may('PUT /api/web/prices/{model}')
  return (
    <Page
      title={model}
      back={{ to: '/prices', label: t('back') }}
      actions={
        may('POST /api/web/prices/backtest') && (
          <Link to="/prices/backtest" search={{ model } as never} className="button">
            {t('try')}
          </Link>
        )
      }
    >
      <Tabs
        label={model}
        of={[
          { id: 'price', title: t('tabNow') },
          ...(canEdit ? [{ id: 'edit', title: t('edit') }] : []),
          ...(may('GET /api/web/prices/history/{model}') ? [{ id: 'history', title: t('history') }] : []),
        ]}
      />
      {tab === 'price' && <Query of={price}>{data => <PriceNow price={data} canEdit={canEdit} />}</Query>}
      {tab === 'edit' && <Query of={price}>{data => <Edit key={data.version} price={data} />}</Query>}
      {tab === 'history' && <History model={model} />}
    </Page>
  )
}

function PriceNow({ price, canEdit }: { readonly price: ModelPrice; readonly canEdit: boolean }) {
  const t = useWords(pricesWords)
  const [ask, question] = useQuestion()
  const withdraw = useWrite('DELETE /api/web/prices/{model}', 'prices', 'models')
  const { model } = price
  const cases = price.price.cases
  return (
    <div className="flex flex-col gap-6">
      {price.managedBy === 'file' && <Notice tone="accent">{t('byFile')}</Notice>}
      <Facts
        of={[
          {
            name: t('origin'),
            value: <State tone={price.origin === 'operator' ? 'accent' : 'muted'}>{t(`origin_${price.origin}`)}</State>,
          },
          { name: t('version'), value: price.version },
          { name: t('made'), value: <Time at={price.made} /> },
        ]}
      />
      <RateList rates={price.price} />
      {Array.isArray(cases) && cases.length > 0 && (
        <div className="max-w-2xl">
          <h2 className="mb-2 text-sm">{t('cases')}</h2>
          <Code text={JSON.stringify(cases, null, 2)} label={t('cases')} />
        </div>
      )}
      {canEdit && price.origin === 'operator' && price.managedBy !== 'file' && (
        <div>
          <button
            type="button"
            className="button button-bad"
            onClick={() =>
              ask({
                title: t('withdrawTitle', { model }),
                children: t('withdrawText'),
                action: t('withdraw'),
                run: async () => {
                  await withdraw.mutateAsync({ params: { model } })
                  say(t('withdrawn', { model }))
                },
              })
            }
          >
            {t('withdraw')}
          </button>
        </div>
      )}
      {question}
    </div>
  )
}

function Edit({ price }: { readonly price: ModelPrice }) {
  const t = useWords(pricesWords)
  const set = useWrite('PUT /api/web/prices/{model}', 'prices', 'models')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const { model } = price
  return (
    <div className="flex max-w-2xl flex-col gap-4">
      <Warnings of={warnings} />
      <PriceForm
        price={price.price}
        action={t('save')}
        disabled={price.managedBy === 'file' ? t('byFile') : undefined}
        save={async written => {
          const saved = await set.mutateAsync({ params: { model }, body: { price: written } })
          setWarnings(saved.warnings)
          say(t('saved', { model }))
        }}
      />
    </div>
  )
}

function History({ model }: { readonly model: string }) {
  const t = useWords(pricesWords)
  const list = useList('GET /api/web/prices/history/{model}', { params: { model } })
  const columns: readonly Column<PriceVersion>[] = [
    { id: 'version', title: t('version'), cell: row => row.version, phone: 'main' },
    { id: 'made', title: t('made'), cell: row => <Time at={row.made} />, phone: 'note' },
    { id: 'origin', title: t('origin'), cell: row => t(`origin_${row.origin}`), phone: 'note' },
    {
      id: 'input',
      title: t('input'),
      align: 'right',
      cell: row => (row.price === null ? '–' : String(row.price.input ?? '–')),
      phone: 'side',
    },
    {
      id: 'output',
      title: t('output'),
      align: 'right',
      cell: row => (row.price === null ? '–' : String(row.price.output ?? '–')),
      phone: 'side',
    },
    { id: 'author', title: t('author'), cell: row => row.author },
  ]
  return (
    <DataTable
      name="price-history"
      label={t('history')}
      list={list}
      columns={columns}
      rowKey={row => String(row.version)}
      empty={<Empty title={t('emptyTitle')} />}
    />
  )
}
