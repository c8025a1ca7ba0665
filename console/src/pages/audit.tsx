// The audit log: who changed what, and the proof that no row was changed.

import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useList } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { AuditRow } from '../api/types.ts'
import { Panel } from '../parts/dialog.tsx'
import { FilterBar, RangeFilter, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { zoneLabel } from '../parts/format.ts'
import { Page, Tabs } from '../parts/page.tsx'
import { NameOrId } from '../parts/rows.tsx'
import { definedOnly, useListRange, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Facts, Id, None, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { auditWords } from '../words/en/audit.ts'
import type { Translate } from '../words/words.ts'
import { useWords } from '../words/words.ts'
import { changesLine, changesOf, NOTHING, prettyValue } from './audit-changes.ts'
import { AuditProof } from './audit-proof.tsx'

interface Search {
  readonly actor?: string
  readonly action?: string
  readonly target?: string
  readonly sort?: 'seq' | '-seq'
  readonly row?: string
  readonly tab?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['actor', 'action', 'target', 'range', 'from', 'before'] as const

const PREFIX = 'action_'
const actionNames = Object.keys(auditWords.en)
  .filter(name => name.startsWith(PREFIX))
  .map(name => name.slice(PREFIX.length))

type Texts = Translate<typeof auditWords.en>

/** What was done, by the name of the operation. */
const actionName = (t: Texts, action: string): string => t.find(`action_${action}`) ?? action

export function AuditPage() {
  const t = useWords(auditWords)
  const me = useMe()
  const [{ tab }] = useSearchState<Search>()
  // Only staff read the rows as they were hashed.
  const tabs = [{ id: 'rows', title: t('tabRows') }, ...(isStaff(me) ? [{ id: 'chain', title: t('tabChain') }] : [])]
  return (
    <Page title={t('title')} intro={t('intro')}>
      {tabs.length > 1 && <Tabs label={t('tabs')} of={tabs} />}
      {tab === 'chain' && isStaff(me) ? <AuditProof /> : <Rows />}
    </Page>
  )
}

const columnsIn = (t: Texts, zone: string): readonly Column<AuditRow>[] => [
  {
    id: 'time',
    title: `${t('time')} (${zone})`,
    sort: 'seq',
    phone: 'note',
    cell: row => <Time at={row.made} />,
  },
  {
    id: 'actor',
    title: t('actor'),
    phone: 'side',
    cell: row => <NameOrId name={row.actorName} id={row.actor} />,
  },
  {
    id: 'action',
    title: t('action'),
    phone: 'main',
    cell: row => <span title={row.action}>{actionName(t, row.action)}</span>,
  },
  {
    id: 'target',
    title: t('target'),
    phone: 'note',
    cell: row =>
      row.targetName === null ? (
        <span className="font-mono text-xs" title={row.target}>
          {row.target}
        </span>
      ) : (
        <span title={`${row.targetName} · ${row.target}`}>{row.targetName}</span>
      ),
  },
  {
    id: 'changes',
    title: t('changes'),
    maxWidth: 420,
    cell: row => {
      const line = changesLine(row.changes)
      return line === '' ? <None /> : <span title={line}>{line}</span>
    },
  },
  {
    id: 'account',
    title: t('account'),
    isOptional: true,
    cell: row => (row.account === null ? <None /> : <NameOrId name={row.accountName} id={row.account} />),
  },
  { id: 'address', title: t('address'), isOptional: true, cell: row => row.address ?? <None /> },
  { id: 'seq', title: t('row'), align: 'right', isOptional: true, cell: row => row.seq },
]

const openRow = ({ seq }: AuditRow) => ({
  to: '.' as const,
  search: ((old: object) => ({ ...old, row: String(seq) })) as never,
})

function Rows() {
  const t = useWords(auditWords)
  const [search, change] = useSearchState<Search>()
  const { actor, action, target, sort, row: chosen } = search
  const account = useAccount()
  const { from, before } = useListRange(search, '30d')
  const list = useList('GET /api/web/audit-log', {
    query: definedOnly({ account: account?.id, actor, action, target, sort, from, before }),
  })
  const actions = actionNames
    .map(value => ({ value, label: actionName(t, value) }))
    .sort((a, b) => a.label.localeCompare(b.label))
  const zone = zoneLabel()
  const columns = useMemo(() => columnsIn(t, zone), [t, zone])
  const open = list.rows.find(row => String(row.seq) === chosen)
  return (
    <div>
      <FilterBar names={FILTERS} error={list.query.error}>
        <RangeFilter standard="30d" names={['24h', '7d', '30d', '90d']} />
        <TextFilter name="actor" label={t('actor')} mono />
        <SelectFilter name="action" label={t('action')} choices={actions} />
        <TextFilter name="target" label={t('target')} mono />
      </FilterBar>
      <DataTable
        name="audit"
        label={t('title')}
        list={list}
        columns={columns}
        rowKey={row => String(row.seq)}
        open={openRow}
        current={chosen}
        filters={FILTERS}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
      />
      {open !== undefined && <RowPanel row={open} onClose={() => change({ row: undefined })} />}
    </div>
  )
}

/** The page of the thing that was changed, if it has one. */
function TargetLink({ target }: { readonly target: string }) {
  const found = /^(key|acc|usr|hook)_\w+/.exec(target)
  const text = <span className="break-all font-mono text-xs">{target}</span>
  if (found === null) return text
  const [id, kind] = found
  const link = {
    key: { to: '/keys/$key', params: { key: id } },
    acc: { to: '/accounts/$id', params: { id } },
    usr: { to: '/people/$id', params: { id } },
    hook: { to: '/webhooks/$id', params: { id } },
  }[kind as 'key']
  return (
    <Link {...(link as { to: '/keys/$key'; params: { key: string } })} className="link">
      {text}
    </Link>
  )
}

function RowPanel({ row, onClose }: { readonly row: AuditRow; readonly onClose: () => void }) {
  const t = useWords(auditWords)
  const changes = changesOf(row.changes)
  const hasBefore = changes.some(({ before = NOTHING }) => before !== NOTHING)
  return (
    <Panel
      title={<span title={row.action}>{t('panelTitle', { seq: row.seq, action: actionName(t, row.action) })}</span>}
      onClose={onClose}
    >
      <div className="flex flex-col gap-6">
        <Facts
          of={[
            { name: t('time'), value: <Time at={row.made} /> },
            {
              name: t('actor'),
              value: (
                <>
                  {row.actorName !== null && <span className="mr-2">{row.actorName}</span>}
                  <NameOrId name={undefined} id={row.actor} />
                </>
              ),
            },
            {
              name: t('target'),
              value: (
                <>
                  {row.targetName !== null && <span className="mr-2">{row.targetName}</span>}
                  <TargetLink target={row.target} />
                </>
              ),
            },
            row.account !== null && {
              name: t('account'),
              value: <NameOrId name={row.accountName} id={row.account} />,
            },
            row.address !== null && { name: t('address'), value: row.address },
            row.request !== null && { name: t('request'), value: <Id id={row.request} /> },
            { name: t('hash'), value: <Id id={row.hash} /> },
          ]}
        />
        {changes.length === 0 ? (
          <p className="text-muted">{t('noChanges')}</p>
        ) : (
          <table className="w-full table-fixed" aria-label={t('changes')}>
            <thead>
              <tr className="h-8 border-line border-b text-left text-muted text-xs">
                <th scope="col" className="w-1/4 pr-4 font-medium">
                  {t('field')}
                </th>
                {hasBefore && (
                  <th scope="col" className="pr-4 font-medium">
                    {t('before')}
                  </th>
                )}
                <th scope="col" className="font-medium">
                  {hasBefore ? t('after') : t('value')}
                </th>
              </tr>
            </thead>
            <tbody>
              {changes.map(({ field, before, after }) => (
                <tr key={field} className="border-line border-b align-top">
                  <th scope="row" className="break-words py-1.5 pr-4 text-left font-normal text-muted">
                    {field}
                  </th>
                  {hasBefore && (
                    <td className="whitespace-pre-wrap break-words py-1.5 pr-4 text-muted">
                      {prettyValue(before ?? NOTHING)}
                    </td>
                  )}
                  <td className="whitespace-pre-wrap break-words py-1.5">{prettyValue(after)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </Panel>
  )
}
