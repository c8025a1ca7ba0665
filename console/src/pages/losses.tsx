// The loss map: what each pair of dialects loses, from the tests of Weir itself, and what the viewer's callers lost lately.

import { Link } from '@tanstack/react-router'
import { useQuery, useRead } from '../api/reads.ts'
import { dialectName as nameOf } from '../parts/dialects.ts'
import { RangeFilter } from '../parts/filters.tsx'
import { wholeNumber } from '../parts/format.ts'
import { Page, Section } from '../parts/page.tsx'
import { definedOnly, rangeOf, useSearchState } from '../parts/search.ts'
import { Query } from '../parts/states.tsx'
import { State } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { lossesWords } from '../words/en/losses.ts'
import { useWords } from '../words/words.ts'

interface Matrix {
  readonly dialects: readonly string[]
  readonly features: readonly { readonly name: string; readonly tests: string }[]
  /** By the caller's dialect, the provider's dialect and the feature: the codes of what is lost. */
  readonly results: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>>>
}

export function LossesPage() {
  const t = useWords(lossesWords)
  const matrix = useQuery({
    queryKey: ['protocol matrix'],
    queryFn: async () => (await import('../../generated/protocol-matrix.json')).default as unknown as Matrix,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Page title={t('title')} intro={t('intro')}>
      <Query of={matrix}>{data => <LossMap matrix={data} />}</Query>
      <Yours />
    </Page>
  )
}

function LossMap({ matrix: { dialects, features, results } }: { readonly matrix: Matrix }) {
  const t = useWords(lossesWords)
  const [{ caller, provider }, change] = useSearchState()
  const lostIn = (from: string, to: string): readonly string[] => [
    ...new Set(Object.values(results[from]?.[to] ?? {}).flat()),
  ]
  const cell = caller === undefined || provider === undefined ? undefined : results[caller]?.[provider]
  return (
    <>
      <div className="relative overflow-x-auto">
        <table className="w-full max-w-4xl" aria-label={t('title')}>
          <thead>
            <tr className="h-8 border-line border-b text-left text-muted text-xs">
              <th scope="col" className="pr-4 font-medium">
                {t('caller')} ↓ · {t('provider')} →
              </th>
              {dialects.map(to => (
                <th key={to} scope="col" className="pr-4 font-medium max-md:pb-2 max-md:align-bottom">
                  {/* A phone has no room for them side by side. */}
                  <span className="max-md:inline-block max-md:[writing-mode:vertical-rl]">{nameOf(to)}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {dialects.map(from => (
              <tr key={from} className="h-9 border-line border-b">
                <th scope="row" className="pr-4 text-left font-medium">
                  {nameOf(from)}
                </th>
                {dialects.map(to => {
                  const lost = lostIn(from, to)
                  const isChosen = caller === from && provider === to
                  return (
                    <td key={to} className="pr-4">
                      <button
                        type="button"
                        aria-pressed={isChosen}
                        title={t('cell', { caller: nameOf(from), provider: nameOf(to) })}
                        className={`-ml-2 min-h-7 whitespace-nowrap rounded-sm px-2 hover:bg-sunken ${isChosen ? 'bg-accent-soft' : ''}`}
                        onClick={() => change({ caller: from, provider: to })}
                      >
                        <span className="sr-only">{t('cell', { caller: nameOf(from), provider: nameOf(to) })} </span>
                        {lost.length === 0 ? (
                          <State tone="ok">
                            <span className="max-md:sr-only">{t('nothing')}</span>
                          </State>
                        ) : (
                          <State tone="warn">
                            <span className="max-md:sr-only">{t('some', { n: lost.length })}</span>
                            <span aria-hidden="true" className="md:hidden">
                              {lost.length}
                            </span>
                          </State>
                        )}
                      </button>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {cell === undefined ? (
        <p className="text-muted">{t('choose')}</p>
      ) : (
        <Section title={t('cell', { caller: nameOf(caller!), provider: nameOf(provider!) })}>
          <table
            className="w-full max-w-3xl"
            aria-label={t('cell', { caller: nameOf(caller!), provider: nameOf(provider!) })}
          >
            <thead>
              <tr className="h-8 border-line border-b text-left text-muted text-xs">
                <th scope="col" className="pr-4 font-medium">
                  {t('feature')}
                </th>
                <th scope="col" className="font-medium">
                  {t('lost')}
                </th>
              </tr>
            </thead>
            <tbody>
              {features.map(({ name }) => (
                <tr key={name} className="h-8 border-line border-b">
                  <td className="pr-4">{t.find(`feature_${name.replaceAll(' ', '_')}`) ?? name}</td>
                  <td>
                    {(cell[name] ?? []).length === 0 ? (
                      <State tone="ok">{t('nothing')}</State>
                    ) : (
                      <State tone="warn">
                        <code className="text-xs">{cell[name]!.join(', ')}</code>
                      </State>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Section>
      )}
    </>
  )
}

function Yours() {
  const t = useWords(lossesWords)
  const account = useAccount()
  const [search] = useSearchState()
  const { from, before } = rangeOf(search, '7d')
  const query = definedOnly({ account: account?.id, from, before, lossy: 'true' as const, limit: 200 })
  const calls = useRead('GET /api/web/records', { query }, { keepsPrevious: true })
  return (
    <Section
      title={t('yours')}
      note={t('yoursNote')}
      actions={<RangeFilter standard="7d" names={['24h', '7d', '30d']} />}
    >
      <Query of={calls}>
        {({ data }) => {
          const counts = new Map<string, number>()
          for (const loss of data.flatMap(call => call.loss)) counts.set(loss, (counts.get(loss) ?? 0) + 1)
          const rows = [...counts].sort(([, a], [, b]) => b - a)
          if (rows.length === 0) return <p className="text-muted">{t('yoursNone')}</p>
          return (
            <table className="w-full max-w-3xl" aria-label={t('yours')}>
              <thead>
                <tr className="h-8 border-line border-b text-left text-muted text-xs">
                  <th scope="col" className="pr-4 font-medium">
                    {t('loss')}
                  </th>
                  <th scope="col" className="text-right font-medium">
                    {t('calls')}
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(([loss, n]) => (
                  <tr key={loss} className="h-8 border-line border-b">
                    <td className="pr-4">
                      <Link
                        to="/records"
                        search={{ lossy: 'true', range: search.range ?? '7d' } as never}
                        className="link"
                      >
                        <code className="break-all text-xs">{loss}</code>
                      </Link>
                    </td>
                    <td className="text-right tabular-nums">{wholeNumber(n)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }}
      </Query>
    </Section>
  )
}
