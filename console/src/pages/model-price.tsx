// The price of a model: a line for each rate, and the cases in which other rates apply.

import type { Price, PriceCase } from '../api/types.ts'
import { useRateName } from '../parts/rates.tsx'
import { SmallTable } from '../parts/small-table.tsx'
import type { Column } from '../parts/table.tsx'
import { modelsWords } from '../words/en/models.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'

interface Rate {
  readonly name: string
  readonly usd: string
}

/** The rates in the order in which people read them. */
const order = ['input', 'output', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'reasoning']

function ratesOf(price: Price | PriceCase): readonly Rate[] {
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length)
  return Object.entries(price)
    .flatMap(([name, usd]) => (typeof usd === 'string' && name !== 'class' && name !== 'from' ? [{ name, usd }] : []))
    .toSorted((one, other) => place(one.name) - place(other.name))
}

export function PriceTable({ price }: { readonly price: Price }) {
  const t = useWords(modelsWords)
  const { convertedFrom } = price
  return (
    <div className="flex max-w-xl flex-col gap-4">
      <Rates label={t('price')} rates={ratesOf(price)} />
      {price.cases.map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a case has no other name, and the order is fixed
        <div key={at}>
          <h3 className="text-sm">{t('cases')}</h3>
          <p className="text-muted">
            <CaseText of={one} />
          </p>
          <Rates label={t('cases')} rates={ratesOf(one)} />
        </div>
      ))}
      <p className="text-muted text-xs">
        {t('tierNote')}{' '}
        {convertedFrom !== undefined && t('converted', { code: convertedFrom.code, units: convertedFrom.unitsPerUsd })}
      </p>
    </div>
  )
}

function Rates({ label, rates }: { readonly label: string; readonly rates: readonly Rate[] }) {
  const t = useWords(modelsWords)
  const rateName = useRateName()
  const columns: readonly Column<Rate>[] = [
    { id: 'what', title: t('what'), phone: 'main', cell: ({ name }) => rateName(name) },
    { id: 'rate', title: t('rate'), align: 'right', phone: 'side', cell: ({ usd }) => `$${usd}` },
    {
      id: 'unit',
      title: t('unitName'),
      phone: 'note',
      cell: ({ name }) => <span className="text-muted">{name.startsWith('per') ? t('unitOne') : t('unit')}</span>,
    },
  ]
  return <SmallTable label={label} columns={columns} rows={rates} rowKey={({ name }) => name} />
}

function CaseText({ of }: { readonly of: PriceCase }) {
  const t = useWords(modelsWords)
  const parts = [
    of.class !== undefined && t('caseClass', { name: of.class }),
    of.inputAbove !== undefined && t('caseAbove', { n: of.inputAbove }),
    of.hours !== undefined && t('caseHours', { hours: listed(of.hours) }),
    of.from !== undefined && t('caseFrom', { date: of.from }),
  ].filter(part => part !== false)
  return <>{parts.join(' · ')}</>
}
