// One call, whole: where its time, its money and its words went, and why it went there.

import { Link } from '@tanstack/react-router'
import type { RecordInFull } from '../api/types.ts'
import { callErrorWords } from '../words/en/call-errors.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { recordWords } from '../words/en/record.ts'
import { rules } from '../words/en/rules.ts'
import { statementWords } from '../words/en/statement.ts'
import { whyWords } from '../words/en/why.ts'
import { isolated } from '../words/isolated.ts'
import { useWords } from '../words/words.ts'
import { lineAmount, multiplierOf, roundedUp, sumOfLines } from './bill.ts'
import { Bodies } from './call-bodies.tsx'
import { dialectName } from './dialects.ts'
import { ChannelLink } from './explanation.tsx'
import { duration, exactMoney, nanosOf, usdOf, wholeNumber } from './format.ts'
import { gatewayTime } from './gateway-time.ts'
import { Outcome } from './outcome.tsx'
import { Section } from './page.tsx'
import { useRateName } from './rates.tsx'
import { Turns } from './turns.tsx'
import { useHints } from './use-hints.ts'
import type { Fact } from './values.tsx'
import { Facts, Figures, Id, Money, None, ShortMoney, State, Tags, Time, YesNo } from './values.tsx'
import type { Span } from './waterfall.tsx'
import { Waterfall } from './waterfall.tsx'
import { WhyThere } from './why-there.tsx'

export function CallView({ record }: { readonly record: RecordInFull }) {
  return (
    <div className="flex flex-col gap-6">
      <Summary record={record} />
      <Times record={record} />
      <Why record={record} />
      <Bill record={record} />
      <Way record={record} />
      <About record={record} />
      {hasConversation(record) && <Turns key={record.id} record={record} />}
      <Bodies key={record.id} call={record.id} account={record.account} />
    </div>
  )
}

const hasConversation = (record: RecordInFull): record is RecordInFull & { readonly conversation: string } =>
  record.conversation !== null

/** Members do not see channels. The record has the reasons for the first attempt only. */
function Why({ record: { routing, channel, attempts } }: { readonly record: RecordInFull }) {
  const t = useWords(whyWords)
  if (routing === null) return null
  const first = attempts?.[0]?.channel ?? channel
  const hasMoved = first !== null && channel !== null && first !== channel
  return (
    <Section title={t('title')} {...(hasMoved && { note: t('firstAttempt', { channel }) })}>
      <WhyThere routing={routing} {...(first !== null && { channel: <ChannelLink id={first} /> })} />
    </Section>
  )
}

/** What an error code means, as a sentence. A code of a later version has none. */
function useErrorSentence(): (code: string) => string | undefined {
  const errors = useWords(callErrorWords)
  const reasons = useWords(reasonsWords)
  return code => errors.find(code) ?? reasons.find(`${code}_note`)
}

function Summary({ record }: { readonly record: RecordInFull }) {
  const t = useWords(recordWords)
  const sentenceOf = useErrorSentence()
  const sentence = record.error === null ? undefined : sentenceOf(record.error)
  return (
    <div className="flex flex-col gap-3">
      <p className="flex flex-wrap gap-x-4">
        <Outcome outcome={record.outcome} />
        <span className="text-muted">
          {record.status}
          {record.error !== null && (
            <>
              {' · '}
              <span className="font-mono text-xs">{record.error}</span>
            </>
          )}
        </span>
        <Time at={record.time} />
      </p>
      {sentence !== undefined && <p className="-mt-2">{sentence}</p>}
      <Figures
        of={[
          { name: t('duration'), value: duration(record.durationMs) },
          { name: t('firstContent'), value: duration(record.firstContentMs) },
          {
            name: t('tokensIn'),
            value: wholeNumber(record.inputTokens),
            ...(record.cacheReadTokens > 0 && { note: t('cached', { n: record.cacheReadTokens }) }),
          },
          {
            name: t('tokensOut'),
            value: wholeNumber(record.outputTokens),
            ...(record.reasoningTokens > 0 && { note: t('reasoning', { n: record.reasoningTokens }) }),
          },
          {
            name: t('cost'),
            value: <ShortMoney usd={record.cost} />,
            ...(nanosOf(record.shortfall) > 0n && { note: t('notCovered', { amount: exactMoney(record.shortfall) }) }),
          },
        ]}
      />
    </div>
  )
}

const isFailure = (verdict: string): boolean => verdict !== 'answered'

/** The bars: the stages of the gateway, and the attempts in place of the stage `forward` for staff. */
function useSpans({ timeline, attempts, firstContentMs }: RecordInFull): readonly Span[] {
  const t = useWords(recordWords)
  const reasons = useWords(reasonsWords)
  const spans = timeline.flatMap(({ stage, atMs, ms }, index): readonly Span[] => {
    const isUpstream = stage === 'forward'
    const span: Span = {
      id: `${stage} ${index}`,
      name: t(`stage_${stage}`),
      atMs: atMs ?? undefined,
      ms,
      tone: isUpstream ? 'upstream' : stage === 'wait' ? 'wait' : 'gateway',
      firstAtMs: isUpstream && firstContentMs !== null ? firstContentMs : undefined,
      isNested: stage === 'adapt',
    }
    if (!isUpstream || attempts === null || attempts.length === 0) return [span]
    return attempts.map((attempt, place): Span => {
      return {
        id: `attempt ${place}`,
        name: t('attempt', { n: place + 1, channel: attempt.channel }),
        atMs: attempt.atMs ?? undefined,
        ms: attempt.ms,
        tone: isFailure(attempt.verdict) ? 'failed' : 'upstream',
        firstAtMs: attempt.atMs !== null && attempt.firstMs !== null ? attempt.atMs + attempt.firstMs : undefined,
        note: t('attemptNote', {
          verdict: reasons.find(attempt.verdict) ?? attempt.verdict,
          status: attempt.status ?? '–',
          model: attempt.model ?? '–',
        }),
      }
    })
  })
  // A translation is a part of its attempt, and often begins in the same tenth of a millisecond.
  return spans.sort(
    (a, b) => (a.atMs ?? 0) - (b.atMs ?? 0) || Number(a.isNested ?? false) - Number(b.isNested ?? false),
  )
}

function Times({ record }: { readonly record: RecordInFull }) {
  const t = useWords(recordWords)
  const reasons = useWords(reasonsWords)
  const spans = useSpans(record)
  const gatewayMs = gatewayTime(record)
  if (spans.length === 0) return null
  return (
    <Section title={t('whereTime')} note={t('timeNote')}>
      <Waterfall spans={spans} totalMs={record.durationMs} />
      {record.attempts !== null && (
        <ul className="mt-1">
          {record.attempts.map((attempt, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: attempts have an order and nothing else
            <li key={index} className="text-muted text-xs">
              {t('attempt', { n: index + 1, channel: attempt.channel })}
              {': '}
              {t('attemptNote', {
                verdict: reasons.find(attempt.verdict) ?? attempt.verdict,
                status: attempt.status ?? '–',
                model: attempt.model ?? record.model ?? '–',
              })}
            </li>
          ))}
        </ul>
      )}
      {gatewayMs !== undefined && (
        <p className="mt-2 text-muted text-xs">
          {t('inGateway', { gateway: duration(gatewayMs), total: duration(record.durationMs) })}
        </p>
      )}
    </Section>
  )
}

const perMillion = 1_000_000n
/** An amount in millionths of a nano-dollar, as dollars with all its digits. */
const exactAmount = (amount: bigint): string => {
  const whole = amount / perMillion
  const rest = (amount % perMillion).toString().padStart(6, '0').replace(/0+$/, '')
  const text = exactMoney(usdOf(whole))
  if (rest === '') return text
  const [dollars, fraction = ''] = text.split('.')
  return `${dollars}.${fraction.padEnd(9, '0')}${rest}`
}

/** The rate of each line that is not about tokens. */
const feeOf: Readonly<Record<string, string>> = {
  'request': 'perRequest',
  'search': 'perSearch',
  'image': 'perImage',
  'character': 'perCharacter',
  'second': 'perSecond',
  'file search': 'perFileSearch',
  'code session': 'perCodeSession',
  'grounded call': 'perGroundedCall',
}

/** Rules whose sentence says where the usage comes from. */
const saysUsage: ReadonlySet<string> = new Set([
  'completed',
  'completed_unreported',
  'task_reported',
  'task_unreported',
])

/** Why the call was charged as it was, or not at all. */
function useRuleText(rule: string): string {
  return useHints(true)(words => words.rules[rule], rules[rule] ?? rule)
}

function Bill({ record }: { readonly record: RecordInFull }) {
  const t = useWords(recordWords)
  const statement = useWords(statementWords)
  const rateName = useRateName()
  const ruleText = useRuleText(record.rule)
  const { lines, cost, held } = record
  const factor = multiplierOf(lines, cost)
  const back = nanosOf(held) - nanosOf(cost)
  const head = 'pr-4 font-medium'
  return (
    <Section title={t('whereMoney')}>
      {lines.length === 0 ? (
        <p className="text-muted">{t('noLines')}</p>
      ) : (
        <div className="overflow-x-auto">
          <table className="w-full max-w-2xl" aria-label={t('whereMoney')}>
            <thead>
              <tr className="h-8 border-line border-b text-left text-muted text-xs">
                <th scope="col" className={head}>
                  {t('what')}
                </th>
                <th scope="col" className={`${head} text-right`}>
                  {t('count')}
                </th>
                <th scope="col" className={`${head} text-right`}>
                  {t('rate')}
                </th>
                <th scope="col" className="text-right font-medium">
                  {t('amount')}
                </th>
              </tr>
            </thead>
            <tbody>
              {lines.map(line => (
                <tr key={line.what} className="h-8 border-line border-b">
                  <td className="pr-4">{rateName(feeOf[line.what] ?? line.what)}</td>
                  <td className="pr-4 text-right tabular-nums">{wholeNumber(line.count)}</td>
                  <td className="whitespace-nowrap pr-4 text-right tabular-nums">× {line.rate}</td>
                  <td className="whitespace-nowrap text-right tabular-nums">= {exactAmount(lineAmount(line))}</td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr className="h-8">
                <td colSpan={3} className="pr-4 text-muted">
                  {t('sum')}
                </td>
                <td className="text-right tabular-nums">{exactMoney(usdOf(roundedUp(sumOfLines(lines))))}</td>
              </tr>
              <tr className="h-8 font-medium">
                <td colSpan={3} className="pr-4">
                  {t('charged')}{' '}
                  {factor !== undefined && (
                    <span className="font-normal text-muted">{t('multiplier', { factor })}</span>
                  )}
                </td>
                <td className="text-right tabular-nums">{exactMoney(cost)}</td>
              </tr>
            </tfoot>
          </table>
        </div>
      )}
      {(nanosOf(held) > 0n || lines.length > 0) && (
        <p className="mt-2">
          {t('moneyTrail', {
            held: exactMoney(held),
            charged: exactMoney(cost),
            back: exactMoney(usdOf(back < 0n ? 0n : back)),
          })}
        </p>
      )}
      <p className="text-muted">
        <span title={record.rule}>{ruleText}</span>{' '}
        {!saysUsage.has(record.rule) && (t.find(`usage_${record.usageSource}`) ?? record.usageSource)}
      </p>
      {/* One transfer is the charge itself; further ones are refunds. */}
      {record.transfers.length > 1 && (
        <ul className="mt-2 max-w-2xl" aria-label={t('transfers')}>
          {record.transfers.map(transfer => (
            <li
              key={`${transfer.kind} ${transfer.made}`}
              className="flex flex-wrap justify-between gap-x-4 border-line border-b py-1"
            >
              <span>
                {statement.find(`kind_${transfer.kind}`) ?? transfer.kind}{' '}
                {transfer.reference !== null && <span className="text-muted">{transfer.reference}</span>}
              </span>
              <span className="flex gap-4">
                <Time at={transfer.made} />
                <Money usd={transfer.amount} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

function Way({ record }: { readonly record: RecordInFull }) {
  const t = useWords(recordWords)
  const isKnown = record.requestHash !== null && record.upstreamHash !== null
  return (
    <Section title={t('translation')}>
      <div className="flex flex-col gap-2">
        {record.loss.length === 0 ? (
          <p>
            <State tone="ok">{t('lossNone')}</State>
          </p>
        ) : (
          <div>
            <State tone="warn">{t('lossSome')}</State>
            <ul className="mt-1 list-disc pl-6">
              {record.loss.map(loss => (
                <li key={loss} className="break-all font-mono text-xs leading-5">
                  {loss}
                </li>
              ))}
            </ul>
          </div>
        )}
        {isKnown && (
          <p className="text-muted">{t(record.requestHash === record.upstreamHash ? 'unchanged' : 'changed')}</p>
        )}
      </div>
    </Section>
  )
}

function About({ record }: { readonly record: RecordInFull }) {
  const t = useWords(recordWords)
  const facts: readonly (Fact | false)[] = [
    { name: t('id'), value: <Id id={record.id} /> },
    {
      name: t('account'),
      value: (
        <Link to="/accounts/$id" params={{ id: record.account }} className="link">
          {record.accountName ?? record.account}
        </Link>
      ),
    },
    {
      name: t('key'),
      value: (
        <Link to="/keys/$key" params={{ key: record.key }} className="link">
          {isolated(record.keyName ?? record.key)}{' '}
          {record.keySuffix !== null && <span className="font-mono text-xs">…{record.keySuffix}</span>}
        </Link>
      ),
    },
    { name: t('dialect'), value: dialectName(record.dialect) },
    { name: t('requestedModel'), value: record.requestedModel ?? record.model ?? <None /> },
    { name: t('model'), value: record.model ?? <None /> },
    record.channel !== null && { name: t('channel'), value: record.channel },
    { name: t('streamed'), value: <YesNo value={record.streamed} /> },
    record.endUser !== null && { name: t('endUser'), value: record.endUser },
    Object.keys(record.tags).length > 0 && {
      name: t('tags'),
      value: <Tags of={Object.entries(record.tags).map(([name, value]) => `${name}=${value}`)} />,
    },
    record.conversation !== null && { name: t('conversation'), value: <Id id={record.conversation} /> },
    record.priceVersion !== null && { name: t('priceVersion'), value: record.priceVersion },
    record.requestHash !== null && { name: t('requestHash'), value: <Id id={record.requestHash} /> },
    record.upstreamHash !== null && { name: t('upstreamHash'), value: <Id id={record.upstreamHash} /> },
  ]
  return (
    <Section title={t('about')}>
      <Facts of={facts} />
    </Section>
  )
}
