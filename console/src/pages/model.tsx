// One model or route: what it can do, what it costs, how to call it; for staff also its channels and their health.

import { Link, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMay } from '../api/may.ts'
import { useRead } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Channel, Model, PublicModel, PublicName } from '../api/types.ts'
import { ChannelHealth } from '../parts/channel-health.tsx'
import { ExplainForm } from '../parts/explain-form.tsx'
import { ChannelLink } from '../parts/explanation.tsx'
import { duration, wholeNumber } from '../parts/format.ts'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { SmallTable } from '../parts/small-table.tsx'
import { Snippets } from '../parts/snippets.tsx'
import { Empty, Failure, Loading, Notice } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Facts, None, Tags } from '../parts/values.tsx'
import { channelsWords } from '../words/en/channels.ts'
import { modelsWords } from '../words/en/models.ts'
import { isolated } from '../words/isolated.ts'
import { useWords } from '../words/words.ts'
import { PriceTable } from './model-price.tsx'
import { useIsForbidden } from './model-rights.ts'
import type { ModelStatus } from './model-rows.ts'
import { ModelState } from './models.tsx'

export function ModelPage() {
  const t = useWords(modelsWords)
  const { _splat: id = '' } = useParams({ strict: false }) as { readonly _splat?: string }
  const [{ tab }] = useSearchState()
  const me = useMe()
  const may = useMay()
  const all = useRead('GET /api/public/models')
  const providers = useRead('GET /api/public/providers')
  const open = all.data?.data.find(model => model.id === id)
  const name = all.data?.names.find(route => route.id === id)
  // Staff also see models that cannot be called.
  const asksWhole = isStaff(me) && all.data !== undefined && name === undefined
  const whole = useRead('GET /api/web/models/{model}', { params: { model: id } }, { enabled: asksWhole })
  const canExplain = may('POST /api/web/keys/{key}/explain')
  const isThere = open !== undefined || name !== undefined || whole.data !== undefined
  const isLoading = all.isPending || (asksWhole && whole.isPending)
  const isForbidden = useIsForbidden(id)
  const status: ModelStatus = isForbidden
    ? 'forbidden'
    : name !== undefined
      ? 'route'
      : open === undefined
        ? 'off'
        : (providers.data?.data.find(one => one.id === open.provider)?.status ?? 'up')
  return (
    <Page title={id} back={{ to: '/models', label: t('back') }}>
      {isThere ? (
        <>
          {isForbidden && <Notice>{t('forbidden')}</Notice>}
          {canExplain && (
            <Tabs
              label={id}
              of={[
                { id: 'about', title: t('tabAbout') },
                { id: 'explain', title: t('tabExplain') },
              ]}
            />
          )}
          {tab === 'explain' && canExplain ? (
            <ExplainForm model={id} />
          ) : (
            <About id={id} open={open} name={name} whole={whole.data} status={status} />
          )}
        </>
      ) : isLoading ? (
        <Loading />
      ) : all.error !== null ? (
        <Failure error={all.error} retry={() => void all.refetch()} />
      ) : (
        <Empty title={t('notThere')}>{t('notThereText')}</Empty>
      )}
    </Page>
  )
}

interface AboutProps {
  readonly id: string
  readonly open: PublicModel | undefined
  readonly name: PublicName | undefined
  readonly whole: Model | undefined
  readonly status: ModelStatus
}

function About({ id, open, name, whole, status }: AboutProps) {
  const t = useWords(modelsWords)
  return (
    <div className="flex flex-col gap-6">
      <ModelFacts id={id} open={open} name={name} whole={whole} status={status} />
      <Section title={t('price')}>
        <PricePart open={open} name={name} whole={whole} />
      </Section>
      {status !== 'off' && (
        <Section title={t('use')} note={t('useNote')}>
          <div className="max-w-3xl">
            <Snippets model={id} />
          </div>
        </Section>
      )}
      {whole !== undefined && <ModelChannels model={whole} />}
    </div>
  )
}

function ModelFacts({ id, open, name, whole, status }: AboutProps) {
  const t = useWords(modelsWords)
  const me = useMe()
  const may = useMay()
  const any = open ?? whole ?? name
  const tokens = (n: number | null | undefined): ReactNode => (n == null ? <None /> : t('tokens', { n }))
  const provider = open?.provider ?? whole?.provider
  const speaks = open?.speaks ?? whole?.speaks
  const can = Object.entries(open?.can ?? {}).flatMap(([what, is]) =>
    is === true ? [t.find(`can_${what}`) ?? what] : [],
  )
  const traits = Object.entries(whole?.capabilities ?? {})
  return (
    <Facts
      of={[
        { name: t('status'), value: <ModelState status={status} /> },
        provider !== undefined && {
          name: t('provider'),
          value: isStaff(me) ? (
            <Link to="/providers/$id" params={{ id: provider }} className="link">
              {provider}
            </Link>
          ) : (
            provider
          ),
        },
        { name: t('context'), value: tokens(any?.contextTokens) },
        { name: t('outputMax'), value: tokens(any?.outputTokensMax) },
        open?.reads != null && {
          name: t('reads'),
          value: <Tags of={open.reads.map(what => t.find(`reads_${what}`) ?? what)} />,
        },
        can.length > 0 && { name: t('can'), value: <Tags of={can} /> },
        speaks !== undefined && { name: t('dialects'), value: <Tags of={speaks} /> },
        traits.length > 0 && {
          name: t('traits'),
          value: (
            <ul className="break-words font-mono text-xs leading-5">
              {traits.map(([what, value]) => (
                <li key={what} data-raw>
                  {what} {JSON.stringify(value)}
                </li>
              ))}
            </ul>
          ),
        },
        {
          name: t('seeAlso'),
          value: (
            <span className="flex flex-wrap gap-x-4 gap-y-1">
              <Link to="/records" search={{ model: id }} className="link">
                {t('records')}
              </Link>
              <Link to="/usage" search={{ model: id }} className="link">
                {t('usage')}
              </Link>
              {name === undefined && (
                <Link to="/prices/$" params={{ _splat: id }} className="link">
                  {t('history')}
                </Link>
              )}
              {name !== undefined && isStaff(me) && (
                <Link to="/routes/$name" params={{ name: id }} className="link">
                  {t('toRoute')}
                </Link>
              )}
              {status !== 'off' && may('POST /api/web/keys') && (
                <Link to="/playground" search={{ model: id }} className="link">
                  {t('try')}
                </Link>
              )}
            </span>
          ),
        },
      ]}
    />
  )
}

function PricePart({ open, name, whole }: Pick<AboutProps, 'open' | 'name' | 'whole'>) {
  const t = useWords(modelsWords)
  if (name !== undefined) return <p>{t('priceRoute')}</p>
  if (open !== undefined) return open.price.free ? <p>{t('priceFree')}</p> : <PriceTable price={open.price} />
  if (whole?.price == null) return <p>{whole?.free ? t('priceFree') : t('priceNone')}</p>
  return <PriceTable price={{ free: false, cases: [], ...whole.price.rates }} />
}

function ModelChannels({ model }: { readonly model: Model }) {
  const t = useWords(modelsWords)
  const c = useWords(channelsWords)
  const channels = useRead('GET /api/web/channels', { query: { provider: model.provider, limit: 200 } })
  const columns: readonly Column<Channel>[] = [
    {
      id: 'name',
      title: c('name'),
      phone: 'main',
      cell: ({ id, name }) => (
        <>
          {name !== null && <span className="mr-2">{isolated(name)}</span>}
          <ChannelLink id={id} />
        </>
      ),
    },
    { id: 'health', title: c('health'), phone: 'side', cell: channel => <ChannelHealth channel={channel} /> },
    { id: 'priority', title: c('priority'), align: 'right', cell: ({ priority }) => wholeNumber(priority) },
    { id: 'weight', title: c('weight'), align: 'right', cell: ({ weight }) => wholeNumber(weight) },
    {
      id: 'first',
      title: c('first'),
      align: 'right',
      phone: 'note',
      cell: ({ health }) => duration(health?.firstMs ?? null),
    },
  ]
  const rows = channels.data?.data ?? []
  return (
    <Section title={t('channels')}>
      {channels.data !== undefined && rows.length === 0 ? (
        <p className="text-muted">{t('channelsNone')}</p>
      ) : (
        <SmallTable label={t('channels')} columns={columns} rows={rows} rowKey={({ id }) => id} />
      )}
    </Section>
  )
}
