// What a call would do: the answer of a dry run, from the verdict down to the bytes that would be sent.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { ExplainedCandidate, ExplainedLimit, ExplainedPrice, ExplainedRouting, Explanation } from '../api/types.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { whyWords } from '../words/en/why.ts'
import { useWords } from '../words/words.ts'
import { Reason } from './channel-health.tsx'
import { Code } from './copy.tsx'
import { decimal, duration, percent, wholeNumber } from './format.ts'
import { countDropped } from './funnel.ts'
import { Section } from './page.tsx'
import { SmallTable } from './small-table.tsx'
import { Notice } from './states.tsx'
import type { Column } from './table.tsx'
import { useHints } from './use-hints.ts'
import { Facts, None, ShortMoney, State, Tags } from './values.tsx'
import { Funnel, useLimitName } from './why-there.tsx'

export const ChannelLink = ({ id }: { readonly id: string }) => (
  <Link to="/channels/$id" params={{ id }} className="link break-all font-mono text-xs">
    {id}
  </Link>
)

export function ExplanationView({ of }: { readonly of: Explanation }) {
  return (
    <div className="flex flex-col gap-6">
      <Verdict of={of} />
      {of.routing !== undefined && <Candidates routing={of.routing} />}
      {of.limits !== undefined && of.limits.length > 0 && <Limits limits={of.limits} />}
      <MoneyPart of={of} />
      <Translation of={of} />
    </div>
  )
}

/** The verdict in one sentence, for screen readers. */
export function useVerdictText(): (of: Explanation) => string {
  const t = useWords(whyWords)
  return ({ wouldAnswer, routing }) => {
    if (wouldAnswer?.replays !== undefined)
      return t('replays', { call: wouldAnswer.replays, status: String(wouldAnswer.status) })
    if (wouldAnswer !== null) return t('refused', { status: String(wouldAnswer.status), code: wouldAnswer.code ?? '' })
    const { kind, forMs } = routing?.picked ?? {}
    if (kind !== 'wait') return t('forwardedPlain')
    return forMs == null ? t('wouldWait') : t('wouldWaitFor', { time: duration(forMs) })
  }
}

/** The first sentence: forwarded to where and why, refused with what, or waiting. The form says it to screen readers. */
function Verdict({ of: { wouldAnswer, routing } }: { readonly of: Explanation }) {
  const t = useWords(whyWords)
  const reasons = useWords(reasonsWords)
  const inLanguage = useHints(wouldAnswer !== null)
  if (wouldAnswer?.replays !== undefined)
    return (
      <Notice tone="accent" isSilent>
        {t('replays', { call: wouldAnswer.replays, status: String(wouldAnswer.status) })}
      </Notice>
    )
  if (wouldAnswer !== null) {
    const { status, code = '', message, hint, retryAfterMs } = wouldAnswer
    const why = inLanguage(
      ({ callErrors, write }) => callErrors[code] && `${callErrors[code]}${write(hint) ?? ''}`,
      message ?? reasons.find(`${code}_note`),
    )
    return (
      <Notice tone="bad" isSilent>
        <p className="font-medium">{t('refused', { status: String(status), code })}</p>
        <p>{why}</p>
        {retryAfterMs !== undefined && <p>{t('retryAfter', { time: duration(retryAfterMs) })}</p>}
      </Notice>
    )
  }
  const picked = routing?.picked
  if (picked?.kind === 'wait') {
    const text = picked.forMs == null ? t('wouldWait') : t('wouldWaitFor', { time: duration(picked.forMs) })
    return <Notice isSilent>{text}</Notice>
  }
  if (picked?.channel === undefined || picked.reason === undefined)
    return (
      <Notice tone="ok" isSilent>
        {t('forwardedPlain')}
      </Notice>
    )
  const policy = routing?.policy ?? ''
  const why =
    picked.reason === 'policy'
      ? t('by_policy', { policy: t.find(`policy_${policy}`) ?? policy })
      : t(`by_${picked.reason}`)
  const isByChance = picked.reason === 'policy' && (routing?.candidates.length ?? 0) > 1
  return (
    <Notice tone={picked.reason === 'nearest' ? 'warn' : 'ok'} isSilent>
      <p className="font-medium">
        {t.rich('forwarded', {
          channel: <ChannelLink key="channel" id={picked.channel} />,
          model: (
            <span key="model" className="break-all">
              {picked.model}
            </span>
          ),
          why,
        })}
      </p>
      {isByChance && <p className="text-muted">{t('chance')}</p>}
    </Notice>
  )
}

function Candidates({ routing: { candidates, picked } }: { readonly routing: ExplainedRouting }) {
  const t = useWords(whyWords)
  const keyOf = ({ model, channel }: Pick<ExplainedCandidate, 'model' | 'channel'>): string => `${model} ${channel}`
  const chosen = picked?.channel === undefined ? undefined : `${picked.model} ${picked.channel}`
  const columns: readonly Column<ExplainedCandidate>[] = [
    { id: 'model', title: t('model'), cell: row => <span className="break-all">{row.model}</span>, phone: 'main' },
    {
      id: 'channel',
      title: t('channel'),
      cell: row => (row.channel === null ? <None /> : <ChannelLink id={row.channel} />),
      phone: 'note',
    },
    {
      id: 'standing',
      title: t('standing'),
      phone: 'side',
      cell: row =>
        row.dropped !== null ? (
          <Reason code={row.dropped} />
        ) : keyOf(row) === chosen ? (
          <State tone="accent">{t('picked')}</State>
        ) : (
          <State tone="ok">{t('canTake')}</State>
        ),
    },
    {
      id: 'until',
      title: t('until'),
      align: 'right',
      cell: row =>
        row.dropped !== null && row.availableInMs != null && row.availableInMs > 0 ? (
          duration(row.availableInMs)
        ) : (
          <None />
        ),
      phone: 'note',
    },
    {
      id: 'share',
      title: t('share'),
      align: 'right',
      cell: row => (row.share == null ? <None /> : <span title={t('shareNote')}>{percent(row.share, 1)}</span>),
      phone: 'note',
    },
    {
      id: 'score',
      title: t('score'),
      align: 'right',
      cell: row => (row.score == null ? <None /> : <span title={t('scoreNote')}>{decimal(row.score)}</span>),
      phone: 'note',
    },
    { id: 'tags', title: t('tags'), cell: row => <Tags of={row.tags ?? []} /> },
  ]
  return (
    <>
      <Section title={t('funnel')}>
        <Funnel
          total={candidates.length}
          dropped={countDropped(candidates)}
          {...(picked?.channel !== undefined && { chosen: <ChannelLink id={picked.channel} /> })}
        />
      </Section>
      {candidates.length > 0 && (
        <Section title={t('candidates')} note={t('candidatesNote')}>
          <SmallTable
            label={t('candidates')}
            columns={columns}
            rows={candidates}
            rowKey={keyOf}
            {...(chosen !== undefined && { current: chosen })}
          />
        </Section>
      )}
    </>
  )
}

function Limits({ limits }: { readonly limits: readonly ExplainedLimit[] }) {
  const t = useWords(whyWords)
  const nameOf = useLimitName()
  const columns: readonly Column<ExplainedLimit>[] = [
    {
      id: 'limit',
      title: t('limit'),
      cell: ({ limit, resource, span }) => `${wholeNumber(limit)} ${nameOf(resource, span)}`,
      phone: 'main',
    },
    {
      id: 'whose',
      title: t('whose'),
      cell: ({ whose }) => t.find(`whose_${whose.replaceAll(' ', '_')}`) ?? whose,
      phone: 'note',
    },
    {
      id: 'left',
      title: t('left'),
      align: 'right',
      phone: 'side',
      cell: ({ remaining }) =>
        remaining > 0 ? wholeNumber(remaining) : <State tone="bad">{wholeNumber(remaining)}</State>,
    },
    {
      id: 'resets',
      title: t('resets'),
      align: 'right',
      cell: ({ resetMs }) => (resetMs > 0 ? duration(resetMs) : <None />),
      phone: 'note',
    },
  ]
  return (
    <Section title={t('limits')}>
      <SmallTable
        label={t('limits')}
        columns={columns}
        rows={limits}
        rowKey={({ whose, resource, span, limit }) => `${whose} ${resource} ${span} ${limit}`}
      />
    </Section>
  )
}

function MoneyPart({ of: { funds, hold, prices = [] } }: { readonly of: Explanation }) {
  const t = useWords(whyWords)
  const rate = (name: string) => (row: ExplainedPrice) =>
    row.free ? t('free') : (row.rates?.[name] ?? <None key={name} />)
  const columns: readonly Column<ExplainedPrice>[] = [
    { id: 'model', title: t('model'), cell: row => <span className="break-all">{row.model}</span>, phone: 'main' },
    { id: 'input', title: t('input'), align: 'right', cell: rate('input'), phone: 'note' },
    { id: 'output', title: t('output'), align: 'right', cell: rate('output'), phone: 'note' },
    {
      id: 'multiplier',
      title: t('multiplier'),
      align: 'right',
      cell: row => (row.multiplier === undefined ? <None /> : `× ${row.multiplier}`),
      phone: 'note',
    },
  ]
  return (
    <Section title={t('money')}>
      <div className="flex flex-col gap-3">
        {funds.frozen && <Notice tone="bad">{t('frozen')}</Notice>}
        <Facts
          of={[
            {
              name: t('available'),
              value: funds.available === null ? t('unlimited') : <ShortMoney usd={funds.available} />,
            },
            hold !== undefined && {
              name: t('hold'),
              value: (
                <>
                  <ShortMoney usd={hold.usd} />{' '}
                  <span className="text-muted">
                    {t('holdTokens', { input: hold.inputTokensMax, output: hold.outputTokensMax })}
                  </span>
                  {hold.cap !== undefined && <span className="block text-warn">{t('cap', { n: hold.cap })}</span>}
                </>
              ),
            },
          ]}
        />
        {prices.length > 0 && (
          <div>
            <p className="text-muted text-xs">{t('perMillion')}</p>
            <SmallTable label={t('pricesPart')} columns={columns} rows={prices} rowKey={row => row.model} />
          </div>
        )}
      </div>
    </Section>
  )
}

function Translation({ of: { loss, overrides = [], mediaToFetch, routing } }: { readonly of: Explanation }) {
  const t = useWords(whyWords)
  const upstream = routing?.upstream
  const notes: ReactNode[] = [
    loss !== undefined && loss.length === 0 && <p key="none">{t('noLoss')}</p>,
    loss !== undefined && loss.length > 0 && (
      <div key="loss" className="flex flex-wrap items-center gap-2">
        {t('loss')} <Tags of={loss} />
      </div>
    ),
    overrides.length > 0 && (
      <div key="overrides" className="flex flex-wrap items-center gap-2">
        {t('overrides')} <Tags of={overrides} />
      </div>
    ),
    mediaToFetch !== undefined && <p key="media">{t('media', { n: mediaToFetch })}</p>,
  ].filter(Boolean)
  if (notes.length === 0 && upstream === undefined) return null
  return (
    <Section title={upstream === undefined ? t('translation') : t('upstream')}>
      <div className="flex flex-col gap-2">
        {notes}
        {upstream !== undefined && (
          <>
            <Code text={requestText(upstream)} label={t('upstream')} />
            {upstream.bodyCut && <p className="text-muted">{t('bodyCut')}</p>}
          </>
        )}
      </div>
    </Section>
  )
}

interface SentRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** A request as text: its first line, its headers, and its body, set out in lines if it is JSON. */
export function requestText({ method, url, headers, body }: SentRequest): string {
  const head = [`${method} ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join('\n')
  return body === null || body === '' ? head : `${head}\n\n${prettyJson(body)}`
}

export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
