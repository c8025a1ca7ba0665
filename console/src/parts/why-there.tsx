// Why a call went where it went, or would go: a sentence and a funnel. For the record of a call, and for a dry run.

import type { ReactNode } from 'react'
import { whyWords } from '../words/en/why.ts'
import { useWords } from '../words/words.ts'
import { Reason } from './channel-health.tsx'
import { wholeNumber } from './format.ts'
import type { FunnelRow } from './funnel.ts'
import { funnelOf, readRouting } from './funnel.ts'
import { Facts, Tags } from './values.tsx'

interface FunnelProps {
  readonly total: number
  readonly dropped: Readonly<Record<string, number>>
  /** What was chosen in the end. */
  readonly chosen?: ReactNode
}

/** One line for each step: how many channels are left after it, as a bar and as a number, and what it dropped. */
export function Funnel({ total, dropped, chosen }: FunnelProps) {
  const t = useWords(whyWords)
  const rows = funnelOf(total, dropped)
  return (
    <ol aria-label={t('funnel')} className="flex flex-col">
      {rows.map(row => (
        <FunnelLine key={row.step} row={row} total={total} />
      ))}
      {chosen !== undefined && (
        <li className="grid grid-cols-[minmax(0,11rem)_2.5rem_minmax(0,1fr)] items-center gap-x-3 py-1 max-md:grid-cols-[minmax(0,1fr)_2rem]">
          <span className="font-medium">{t('chosen')}</span>
          <span className="text-right font-medium tabular-nums">1</span>
          <span className="min-w-0 break-words max-md:col-span-2">{chosen}</span>
        </li>
      )}
    </ol>
  )
}

function FunnelLine({ row, total }: { readonly row: FunnelRow; readonly total: number }) {
  const t = useWords(whyWords)
  return (
    <li className="grid grid-cols-[minmax(0,11rem)_2.5rem_minmax(0,1fr)] items-center gap-x-3 border-line border-b py-1 max-md:grid-cols-[minmax(0,1fr)_2rem]">
      <span>{t(`step_${row.step}`)}</span>
      <span className="text-right tabular-nums">{wholeNumber(row.left)}</span>
      <span className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 max-md:col-span-2">
        <span aria-hidden="true" className="h-2.5 w-full max-w-56 rounded-sm bg-line">
          <span
            className="block h-full rounded-sm bg-accent"
            style={{ width: total === 0 ? 0 : `${(100 * row.left) / total}%` }}
          />
        </span>
        {row.dropped.map(([reason, n]) => (
          <span key={reason} className="inline-flex items-center gap-1.5">
            <span className="text-muted tabular-nums">{t('lost', { n })}</span>
            <Reason code={reason} />
          </span>
        ))}
      </span>
    </li>
  )
}

/** `requests a minute`, in the language of the viewer. */
export function useLimitName(): (resource: string, span: string | null) => string {
  const t = useWords(whyWords)
  return (resource, span) => t.find(span === null || span === '' ? resource : `${resource}_${span}`) ?? resource
}

interface WhyThereProps {
  /** `routing` of the record. */
  readonly routing: unknown
  /** The channel of the record, as an id or a link to it. */
  readonly channel?: ReactNode
}

/** Why the call of a record went there. Members do not see routing: the caller leaves this part out for them. */
export function WhyThere({ routing, channel }: WhyThereProps) {
  const t = useWords(whyWords)
  const nameOf = useLimitName()
  const found = readRouting(routing)
  if (found === undefined) return <p className="text-muted">{t('notKnown')}</p>
  const { candidates, policy, by, affinity, dropped, limits, overrides } = found
  const lost = Object.values(dropped).reduce((sum, n) => sum + n, 0)
  const parts = [
    candidates !== null && candidates > 1 && t('counted', { n: candidates }),
    lost > 0 && t('blocked', { n: lost }),
    by === 'kept' && t('by_kept'),
    by === 'policy' && t('by_policy', { policy: (policy && t.find(`policy_${policy}`)) ?? policy ?? '' }),
    by === 'nearest' && t('by_nearest'),
  ].filter(part => part !== false)
  return (
    <div className="flex flex-col gap-3">
      <p className="max-w-2xl">
        {candidates === 1 && t('onlyOne')}
        {parts.length > 0 && t('sentence', { parts: parts.join(t('join')) })} {affinity === 'moved' && t('moved')}
      </p>
      {candidates !== null && candidates > 1 && (
        <Funnel total={candidates} dropped={dropped} {...(channel != null && { chosen: channel })} />
      )}
      {(limits.length > 0 || overrides.length > 0) && (
        <Facts
          of={[
            limits.length > 0 && {
              name: t('limitsLeft'),
              value: limits.map(({ resource, span, remaining, limit }) => (
                <span key={`${resource} ${span} ${limit}`} className="block tabular-nums">
                  {t('limitLeft', { remaining, limit, what: nameOf(resource, span) })}
                </span>
              )),
            },
            overrides.length > 0 && { name: t('overrides'), value: <Tags of={overrides} /> },
          ]}
        />
      )}
    </div>
  )
}
