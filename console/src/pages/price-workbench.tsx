// Tries a price or a multiplier on past calls.

import { useState } from 'react'
import { useRead, useWrite } from '../api/reads.ts'
import type { Backtest } from '../api/types.ts'
import { Chart } from '../parts/chart.tsx'
import { RangeFilter } from '../parts/filters.tsx'
import { FieldFrame, Form, NumberField, SelectField, useForm } from '../parts/form.tsx'
import { axisMoney, nanosOf, shortMoney, wholeNumber } from '../parts/format.ts'
import { thousandthsOf } from '../parts/multiplier.ts'
import { Page, Section } from '../parts/page.tsx'
import { PriceForm } from '../parts/price-form.tsx'
import { definedOnly, rangeOf, useSearchState } from '../parts/search.ts'
import { Notice, Query } from '../parts/states.tsx'
import { Figures, Money, ShortMoney, Time } from '../parts/values.tsx'
import { pricesWords } from '../words/en/prices.ts'
import { workbenchWords } from '../words/en/workbench.ts'
import { useWords } from '../words/words.ts'

export function PriceWorkbenchPage() {
  const t = useWords(workbenchWords)
  const tp = useWords(pricesWords)
  const [search, change] = useSearchState()
  const [result, setResult] = useState<Backtest>()
  const { from, before } = rangeOf(search, '30d')
  const backtest = useWrite('POST /api/web/prices/backtest')
  const run = async (body: object): Promise<void> =>
    setResult(
      await backtest.mutateAsync({ body: definedOnly({ from, before, model: search.model, ...body }) as never }),
    )
  const models = useRead('GET /api/public/models')
  return (
    <Page title={t('title')} intro={t('intro')} back={{ to: '/prices', label: tp('back') }}>
      <div className="grid gap-8 lg:grid-cols-[360px_minmax(0,1fr)]">
        <div className="flex flex-col gap-6">
          <RangeFilter standard="30d" names={['7d', '30d', '90d']} />
          <FieldFrame label={t('model')} hint={t('modelHint')} error={undefined}>
            {ids => (
              <input
                {...ids}
                list="workbench-models"
                className="control w-full"
                autoComplete="off"
                defaultValue={search.model ?? ''}
                onBlur={event =>
                  change({ model: event.target.value.trim() === '' ? undefined : event.target.value.trim() })
                }
              />
            )}
          </FieldFrame>
          <datalist id="workbench-models">
            {(models.data?.data ?? []).map(({ id }) => (
              <option key={id} value={id} />
            ))}
          </datalist>
          {search.model === undefined ? (
            <MultiplierForm run={run} />
          ) : (
            <ModelForm key={search.model} model={search.model} run={run} />
          )}
        </div>
        <div className="min-w-0">
          <p role="status" className="sr-only">
            {result !== undefined &&
              (result.calls === 0
                ? t('nothing')
                : t('done', { was: shortMoney(result.was), wouldBe: shortMoney(result.wouldBe) }))}
          </p>
          {result === undefined ? <p className="text-muted">{t('empty')}</p> : <Result result={result} />}
        </div>
      </div>
    </Page>
  )
}

type Run = (body: object) => Promise<void>

function MultiplierForm({ run }: { readonly run: Run }) {
  const tiers = useRead('GET /api/web/tiers')
  return <Query of={tiers}>{({ data }) => <TierForm tiers={data.map(({ name }) => name)} run={run} />}</Query>
}

/** A multiplier belongs to a tier: the first one is chosen at the beginning. */
function TierForm({ tiers, run }: { readonly tiers: readonly string[]; readonly run: Run }) {
  const t = useWords(workbenchWords)
  const form = useForm({
    initial: { tier: tiers[0] ?? '', multiplier: 1.1 as number | null },
    save: ({ values: { tier, multiplier } }) => run({ tier, pricePerMille: thousandthsOf(multiplier ?? 1) }),
  })
  return (
    <Form of={form} action={t('run')} isNew>
      <SelectField
        form={form}
        name="tier"
        label={t('tier')}
        choices={tiers.map(name => ({ value: name, label: name }))}
      />
      <NumberField
        form={form}
        name="multiplier"
        param="pricePerMille"
        label={t('multiplier')}
        hint={t('multiplierHint')}
      />
    </Form>
  )
}

function ModelForm({ model, run }: { readonly model: string; readonly run: Run }) {
  const t = useWords(workbenchWords)
  const price = useRead('GET /api/web/prices/{model}', { params: { model } })
  return (
    <Section title={t('price')}>
      <Query of={price}>
        {data => <PriceForm price={data.price} action={t('run')} isNew save={written => run({ price: written })} />}
      </Query>
    </Section>
  )
}

function Result({ result }: { readonly result: Backtest }) {
  const t = useWords(workbenchWords)
  if (result.calls === 0) return <p className="text-muted">{t('nothing')}</p>
  const dollars = (usd: string): number => Number(nanosOf(usd)) / 1e9
  return (
    <div className="flex flex-col gap-6">
      {!result.complete && <Notice>{t.rich('incomplete', { time: <Time at={result.coveredFrom} /> })}</Notice>}
      <Figures
        of={[
          { name: t('calls'), value: wholeNumber(result.calls) },
          { name: t('was'), value: <ShortMoney usd={result.was} /> },
          { name: t('wouldBe'), value: <ShortMoney usd={result.wouldBe} /> },
          { name: t('difference'), value: <ShortMoney usd={result.difference} /> },
        ]}
      />
      {result.byDay.length > 1 && (
        <Chart
          label={t('chart')}
          times={result.byDay.map(({ day }) => Date.parse(day))}
          lines={[
            { name: t('was'), values: result.byDay.map(({ was }) => dollars(was)), tone: 'muted' },
            { name: t('wouldBe'), values: result.byDay.map(({ wouldBe }) => dollars(wouldBe)), tone: 1 },
          ]}
          format={axisMoney}
        />
      )}
      <Section title={t('byModel')}>
        <div className="overflow-x-auto">
          <table className="w-full" aria-label={t('byModel')}>
            <thead>
              <tr className="h-8 border-line border-b text-left text-muted text-xs">
                <th scope="col" className="pr-4 font-medium">
                  {t('model')}
                </th>
                <th scope="col" className="pr-4 text-right font-medium">
                  {t('calls')}
                </th>
                <th scope="col" className="pr-4 text-right font-medium max-md:hidden">
                  {t('was')}
                </th>
                <th scope="col" className="pr-4 text-right font-medium max-md:hidden">
                  {t('wouldBe')}
                </th>
                <th scope="col" className="text-right font-medium">
                  {t('difference')}
                </th>
              </tr>
            </thead>
            <tbody>
              {result.byModel.map(row => (
                <tr key={row.model} className="h-8 border-line border-b">
                  <td className="break-all pr-4">{row.model}</td>
                  <td className="pr-4 text-right tabular-nums">{wholeNumber(row.calls)}</td>
                  <td className="pr-4 text-right max-md:hidden">
                    <Money usd={row.was} />
                  </td>
                  <td className="pr-4 text-right max-md:hidden">
                    <Money usd={row.wouldBe} />
                  </td>
                  <td className="text-right">
                    <Money usd={row.difference} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Section>
      {result.leftOut.map(row => (
        <p key={row.reason} className="text-muted text-xs">
          {t('leftOut', { n: row.calls, reason: t.find(`left_${row.reason}`) ?? row.about })}
        </p>
      ))}
    </div>
  )
}
