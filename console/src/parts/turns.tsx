// The turns of the conversation that a call belongs to: the nearest before and after it, of the same key.

import { Link } from '@tanstack/react-router'
import { useRead } from '../api/reads.ts'
import type { CallRecord, RecordInFull } from '../api/types.ts'
import { recordWords } from '../words/en/record.ts'
import { useWords } from '../words/words.ts'
import { wholeNumber } from './format.ts'
import { Outcome } from './outcome.tsx'
import { Section } from './page.tsx'
import { SmallTable } from './small-table.tsx'
import type { Column } from './table.tsx'
import { Money, None, Time } from './values.tsx'

const DAY_MS = 86_400_000
/** How many turns are listed before this one, and after it. */
const NEAREST = 20

export function Turns({ record }: { readonly record: RecordInFull & { readonly conversation: string } }) {
  const t = useWords(recordWords)
  const atMs = Date.parse(record.time)
  const [dayBefore, dayAfter] = [atMs - DAY_MS, atMs + DAY_MS].map(ms => new Date(ms).toISOString()) as [string, string]
  const { conversation, key, time } = record
  const same = { conversation, key }
  // Two reads, so that the nearest are found however many turns there are. This call is the first of those after.
  const before = useRead('GET /api/web/records', {
    query: { ...same, from: dayBefore, before: time, sort: '-time', limit: NEAREST },
  })
  const after = useRead('GET /api/web/records', {
    query: { ...same, from: time, before: dayAfter, sort: 'time', limit: NEAREST + 1 },
  })
  const columns = useTurnColumns(record.id)
  if (before.data === undefined || after.data === undefined) return null
  const rows = [...before.data.data.toReversed(), ...after.data.data]
  if (rows.every(({ id }) => id === record.id)) return null
  const hasMore = before.data.next !== null || after.data.next !== null
  return (
    <Section title={t('turns')} note={t('turnsNote')}>
      <SmallTable label={t('turns')} columns={columns} rows={rows} rowKey={({ id }) => id} current={record.id} />
      {hasMore && <p className="mt-2 text-muted text-xs">{t('turnsMore')}</p>}
    </Section>
  )
}

function useTurnColumns(shown: string): readonly Column<CallRecord>[] {
  const t = useWords(recordWords)
  return [
    {
      id: 'time',
      title: t('time'),
      cell: ({ id, time }) =>
        id === shown ? (
          <Time at={time} />
        ) : (
          <Link to="/records/$call" params={{ call: id }} className="link">
            <Time at={time} />
          </Link>
        ),
      phone: 'main',
    },
    { id: 'model', title: t('model'), cell: call => call.model ?? <None />, phone: 'note' },
    { id: 'outcome', title: t('outcome'), cell: call => <Outcome outcome={call.outcome} />, phone: 'note' },
    {
      id: 'in',
      title: t('tokensIn'),
      align: 'right',
      cell: call => wholeNumber(call.inputTokens),
      phone: 'note',
    },
    {
      id: 'out',
      title: t('tokensOut'),
      align: 'right',
      cell: call => wholeNumber(call.outputTokens),
      phone: 'note',
    },
    { id: 'cost', title: t('cost'), align: 'right', cell: call => <Money usd={call.cost} />, phone: 'side' },
  ]
}
