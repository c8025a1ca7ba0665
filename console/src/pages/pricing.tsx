// Models and prices for everybody, without signing in.

import { Link } from '@tanstack/react-router'
import { errorOf, offline } from '../api/errors.ts'
import { useQuery } from '../api/reads.ts'
import type { PublicModels, PublicPrice, PublicPricing } from '../api/types.ts'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { shortNumber } from '../parts/format.ts'
import { Rate } from '../parts/rates.tsx'
import { useSearchState } from '../parts/search.ts'
import { Query } from '../parts/states.tsx'
import { None } from '../parts/values.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { pricingWords } from '../words/en/pricing.ts'
import { useWords } from '../words/words.ts'

async function read<T>(path: string): Promise<T> {
  const answer = await fetch(path).catch((error: unknown) => {
    throw offline(String(error))
  })
  if (!answer.ok) throw await errorOf(answer)
  return (await answer.json()) as T
}

const SHOWN_MAX = 400

export function PricingPage() {
  const t = useWords(pricingWords)
  const [{ text = '', tier }] = useSearchState()
  const pricing = useQuery({
    queryKey: ['GET /api/public/pricing', tier],
    queryFn: () =>
      read<PublicPricing>(`/api/public/pricing${tier === undefined ? '' : `?tier=${encodeURIComponent(tier)}`}`),
    placeholderData: old => old,
  })
  const models = useQuery({
    queryKey: ['GET /api/public/models'],
    queryFn: () => read<PublicModels>('/api/public/models'),
  })
  const contextOf = new Map((models.data?.data ?? []).map(({ id, contextTokens }) => [id, contextTokens]))
  return (
    <OpenPage title={t('title')} wide>
      <Query of={pricing}>
        {data => {
          const found = data.data.filter(({ model }) => model.toLowerCase().includes(text.toLowerCase()))
          return (
            <>
              <FilterBar
                names={['text', 'tier']}
                error={null}
                actions={
                  <Link to="/sign-in" className="button">
                    {t('signIn')}
                  </Link>
                }
              >
                <TextFilter name="text" label={t('search')} width={220} />
                {data.tiers.length > 1 && (
                  <SelectFilter
                    name="tier"
                    label={t('tier')}
                    all={t('standard')}
                    choices={data.tiers.map(({ name }) => ({ value: name, label: name }))}
                  />
                )}
              </FilterBar>
              <p className="mb-2 text-muted">
                {t('unit')} {t('shown', { n: found.length })}
              </p>
              {found.length === 0 ? (
                <p className="text-muted">{t('none')}</p>
              ) : (
                <PriceTable prices={found.slice(0, SHOWN_MAX)} contextOf={contextOf} />
              )}
            </>
          )
        }}
      </Query>
    </OpenPage>
  )
}

function PriceTable({
  prices,
  contextOf,
}: {
  readonly prices: readonly PublicPrice[]
  readonly contextOf: ReadonlyMap<string, number | null>
}) {
  const t = useWords(pricingWords)
  return (
    <table className="w-full" aria-label={t('title')}>
      <thead>
        <tr className="h-8 border-line border-b text-left text-muted text-xs">
          <th scope="col" className="pr-4 font-medium">
            {t('model')}
          </th>
          <th scope="col" className="pr-4 text-right font-medium">
            {t('input')}
          </th>
          <th scope="col" className="pr-4 text-right font-medium">
            {t('output')}
          </th>
          <th scope="col" className="pr-4 text-right font-medium max-md:hidden">
            {t('cacheRead')}
          </th>
          <th scope="col" className="text-right font-medium max-md:hidden">
            {t('context')}
          </th>
        </tr>
      </thead>
      <tbody>
        {prices.map(price => (
          <tr key={price.model} className="h-8 border-line border-b">
            <td className="break-all pr-4">{price.model}</td>
            {price.free ? (
              <td colSpan={2} className="pr-4 text-right text-ok">
                {t('free')}
              </td>
            ) : (
              <>
                <td className="pr-4 text-right">
                  <Rate value={price.input} />
                </td>
                <td className="pr-4 text-right">
                  <Rate value={price.output} />
                </td>
              </>
            )}
            <td className="pr-4 text-right max-md:hidden">
              {price.free ? <None /> : <Rate value={price.cacheRead} />}
            </td>
            <td className="text-right tabular-nums max-md:hidden">
              {contextOf.get(price.model) == null ? <None /> : shortNumber(contextOf.get(price.model)!)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
