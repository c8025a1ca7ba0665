// The statement of an account. The browser itself adds up all lines that are shown, computes the hashes of closed days, and
// says whether they agree.

import { Link } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import type { List } from '../api/reads.ts'
import { useList, useRead } from '../api/reads.ts'
import type { StatementLine } from '../api/types.ts'
import { statementWords } from '../words/en/statement.ts'
import { listed } from '../words/joined.ts'
import type { Translate } from '../words/words.ts'
import { useWords } from '../words/words.ts'
import { DownloadMenu } from './download.tsx'
import { FilterBar, RangeFilter, SelectFilter } from './filters.tsx'
import { exactMoney, usdOf } from './format.ts'
import { definedOnly, useListRange, useSearchState } from './search.ts'
import type { DayProofs } from './statement-days.ts'
import { proveDays } from './statement-days.ts'
import { proveStatement } from './statement-proof.ts'
import { Empty, Notice } from './states.tsx'
import type { Column } from './table.tsx'
import { DataTable } from './table.tsx'
import { Money, None, State, Time } from './values.tsx'

const kinds = ['charge', 'shortfall', 'top_up', 'gift', 'adjustment', 'refund', 'redemption', 'opening'] as const
const FILTERS = ['kind', 'range', 'from', 'before'] as const

interface Search {
  readonly kind?: StatementLine['kind']
  readonly [name: string]: string | undefined
}

const columnsIn = (t: Translate<typeof statementWords.en>): readonly Column<StatementLine>[] => [
  { id: 'made', title: t('made'), cell: line => <Time at={line.made} />, phone: 'note' },
  { id: 'kind', title: t('kind'), cell: line => t(`kind_${line.kind}`), phone: 'main' },
  { id: 'ref', title: t('ref'), cell: line => <Ref line={line} />, phone: 'note' },
  { id: 'reference', title: t('reference'), cell: line => line.reference ?? <None />, maxWidth: 240, phone: 'note' },
  {
    id: 'with',
    title: t('with'),
    cell: line => <span className="font-mono text-xs">{line.with}</span>,
    isOptional: true,
  },
  { id: 'author', title: t('author'), cell: line => line.author ?? <None />, isOptional: true },
  { id: 'amount', title: t('amount'), align: 'right', cell: line => <Money usd={line.amount} />, phone: 'side' },
  { id: 'balance', title: t('balance'), align: 'right', cell: line => <Money usd={line.balance} /> },
]

export function Statement({ account }: { readonly account: string }) {
  const t = useWords(statementWords)
  const [search] = useSearchState<Search>()
  const isRanged = search.range !== undefined || search.from !== undefined
  const { from, before } = useListRange(search)
  const query = definedOnly({ kind: search.kind, limit: 200, ...(isRanged && { from, before }) })
  const list = useList('GET /api/web/accounts/{account}/statement', { params: { account }, query })
  const columns = useMemo(() => columnsIn(t), [t])
  return (
    <div>
      <FilterBar
        names={FILTERS}
        error={list.query.error}
        actions={
          <DownloadMenu
            of="statement"
            query={definedOnly({ account, kind: search.kind, ...(isRanged && { from, before }) })}
          />
        }
      >
        <SelectFilter
          name="kind"
          label={t('kind')}
          choices={kinds.map(value => ({ value, label: t(`kind_${value}`) }))}
        />
        <RangeFilter standard="all" names={['all', '24h', '7d', '30d', '90d']} />
      </FilterBar>
      <ProofLine list={list} isFiltered={search.kind !== undefined} isRanged={isRanged} />
      {search.kind === undefined && <DayProof account={account} list={list} isRanged={isRanged} />}
      <DataTable
        name="statement"
        label={t('title')}
        list={list}
        columns={columns}
        rowKey={line => `${line.kind} ${line.ref} ${line.made} ${line.amount}`}
        filters={FILTERS}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
      />
    </div>
  )
}

function Ref({ line }: { readonly line: StatementLine }) {
  if (!line.ref.startsWith('req_')) return <span className="font-mono text-xs">{line.ref}</span>
  return (
    <Link to="/records/$call" params={{ call: line.ref }} className="link font-mono text-xs">
      {line.ref}
    </Link>
  )
}

const isSameProof = (one: DayProofs | undefined, other: DayProofs): boolean =>
  one !== undefined && String(one.agree) === String(other.agree) && String(one.differ) === String(other.differ)

interface DayProofProps {
  readonly account: string
  readonly list: List<StatementLine>
  readonly isRanged: boolean
}

/** Says whether the lines of each closed day that is shown in full have the hash that the gateway wrote at its end. */
function DayProof({ account, list, isRanged }: DayProofProps) {
  const t = useWords(statementWords)
  const days = useRead('GET /api/web/accounts/{account}/daily-hashes', { params: { account }, query: { limit: 200 } })
  const [proof, setProof] = useState<DayProofs>()
  const { rows, hasMore } = list
  const shownDays = days.data?.data
  const hasHashes = crypto.subtle !== undefined
  useEffect(() => {
    if (shownDays === undefined || !hasHashes) return
    let isOld = false
    const proving = proveDays({
      account,
      lines: rows,

      isWhole: !hasMore && !isRanged,
      days: shownDays,
    })
    // The rows are another list at each rendering, so that the same proof must not cause the next one.
    void proving.then(found => isOld || setProof(old => (isSameProof(old, found) ? old : found)))
    return () => {
      isOld = true
    }
  }, [account, rows, hasMore, isRanged, shownDays, hasHashes])
  if (!hasHashes) return <p className="mb-2 text-muted text-xs">{t('daysInsecure')}</p>
  if (proof === undefined) return null
  if (proof.differ.length > 0) {
    return (
      <div className="mb-2">
        <Notice tone="bad">{t('daysDiffer', { days: listed(proof.differ) })}</Notice>
      </div>
    )
  }
  if (proof.agree.length === 0) return null
  return (
    <p className="mb-2 text-xs">
      <State tone="ok">{t('daysAgree', { n: proof.agree.length })}</State>
    </p>
  )
}

interface ProofProps {
  readonly list: List<StatementLine>
  readonly isFiltered: boolean
  readonly isRanged: boolean
}

/** "312 lines, sum −$4.21: every balance agrees." Lines of one kind have gaps, so that their balances prove nothing. */
function ProofLine({ list, isFiltered, isRanged }: ProofProps) {
  const t = useWords(statementWords)
  if (list.rows.length === 0) return null
  const { lines, sum, wrongAt } = proveStatement(list.rows, !list.hasMore && !isRanged && !isFiltered)
  const values = { n: lines, sum: exactMoney(usdOf(sum)) }
  if (isFiltered) return <p className="mb-2 text-muted text-xs">{t('sumOnly', values)}</p>
  if (wrongAt === undefined) {
    return (
      <p className="mb-2 text-xs">
        <State tone="ok">{t(list.hasMore || isRanged ? 'agreesPart' : 'agrees', values)}</State>
      </p>
    )
  }
  return (
    <div className="mb-2">
      <Notice tone="bad">{t('disagrees', { ref: list.rows[wrongAt]!.ref })}</Notice>
    </div>
  )
}
