// The list of keys, and a dialog that creates one.

import { lazy, Suspense, useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useRead, useWrite } from '../api/reads.ts'
import type { Key, ListedKey } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, useErrorText } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Money, None, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'
import { KeyState } from './key-state.tsx'
import { KeysBulkBar } from './keys-bulk.tsx'

// Forms are not needed for the list.
const FindKeyDialog = lazy(async () => ({ default: (await import('./find-key.tsx')).FindKeyDialog }))
const NewKeyDialog = lazy(async () => ({ default: (await import('./new-key.tsx')).NewKeyDialog }))

const FILTERS = ['name', 'state', 'tier', 'suffix'] as const

interface Search {
  readonly name?: string
  readonly state?: Key['state']
  readonly tier?: string
  readonly suffix?: string
  readonly sort?: 'created' | '-created' | 'name' | '-name'
  readonly new?: string
  readonly [name: string]: string | undefined
}

export function KeysPage() {
  const t = useWords(keysWords)
  const textOf = useErrorText()
  const [{ name, state, tier, suffix, sort, new: isNew }, change] = useSearchState<Search>()
  const account = useAccount()
  const may = useMay()
  const query = { account: account?.id, name, state, tier, suffix, sort, use: 'true' as const }
  const list = useList('GET /api/web/keys', { query: definedOnly(query) })
  const tiers = useRead('GET /api/web/tiers')
  const [ask, question] = useQuestion()
  const revoke = useWrite('DELETE /api/web/keys/{key}', 'keys')
  const update = useWrite('PATCH /api/web/keys/{key}', 'keys')
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const [isFinding, setFinding] = useState(false)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const isOwn = ({ account: owner }: Pick<Key, 'account'>): boolean => may('PATCH /api/web/keys/{key}', owner)
  const canEdit = (key: Key): boolean => key.state !== 'revoked' && isOwn(key)
  const canSelect = list.rows.every(isOwn)
  const accountColumn: Column<ListedKey> = {
    id: 'account',
    title: t('account'),
    cell: key => key.accountName ?? key.account,
    phone: 'note',
  }
  const columns: readonly Column<ListedKey>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'name',
      phone: 'main',
      cell: key => <span title={key.name}>{key.name}</span>,
    },
    ...(account === undefined ? [accountColumn] : []),
    {
      id: 'suffix',
      title: t('ending'),
      cell: key => <span className="font-mono text-xs">…{key.suffix}</span>,
      phone: 'note',
    },
    { id: 'state', title: t('state'), cell: key => <KeyState state={key.state} />, phone: 'side' },
    { id: 'tier', title: t('tier'), cell: key => key.tier, phone: 'note' },
    {
      id: 'lastUsed',
      title: t('lastUsed'),
      phone: 'note',
      cell: ({ use }) =>
        use === null ? (
          <None />
        ) : use.lastUsed === null ? (
          <span className="text-muted">{t('neverUsed')}</span>
        ) : (
          <Time at={use.lastUsed} isAge />
        ),
    },
    {
      id: 'spent30d',
      title: t('spent30d'),
      align: 'right',
      cell: ({ use }) => (use === null ? <None /> : <Money usd={use.spent30d} />),
    },
    { id: 'created', title: t('created'), sort: 'created', cell: key => <Time at={key.created} /> },
    {
      id: 'expires',
      title: t('expires'),
      cell: key =>
        key.expires === null ? <span className="text-muted">{t('neverExpires')}</span> : <Time at={key.expires} />,
    },
  ]
  const disableItem = (key: Key) => ({
    label: key.disabled ? t('enable') : t('disable'),
    icon: key.disabled ? ('play' as const) : ('pause' as const),
    run: () =>
      update.mutate(
        { params: { key: key.id }, body: { disabled: !key.disabled } },
        {
          onSuccess: () => say(t(key.disabled ? 'enabled' : 'disabled', { name: key.name })),
          onError: error => say(textOf(error), { isBad: true }),
        },
      ),
  })
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        <>
          <button type="button" className="button" onClick={() => setFinding(true)}>
            <Icon name="search" />
            {t('find')}
          </button>
          {may('POST /api/web/keys') && <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>}
        </>
      }
    >
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <TextFilter name="name" label={t('name')} />
          <TextFilter name="suffix" label={t('ending')} width={90} mono />
          <SelectFilter
            name="state"
            label={t('state')}
            choices={(['active', 'disabled', 'expired', 'revoked'] as const).map(value => ({
              value,
              label: t(`state_${value}`),
            }))}
          />
          <SelectFilter
            name="tier"
            label={t('tier')}
            choices={(tiers.data?.data ?? []).map(one => ({ value: one.name, label: one.name }))}
          />
        </FilterBar>
        {canSelect && <KeysBulkBar keys={list.rows} selected={selected} onDone={() => setSelected(new Set())} />}
        <DataTable
          name="keys"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={key => key.id}
          rowName={key => key.name}
          open={key => ({ to: '/keys/$key', params: { key: key.id } })}
          filters={FILTERS}
          {...(canSelect && { selected, onSelect: setSelected })}
          empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
          actions={key => (
            <Menu
              label={key.name}
              items={[
                canEdit(key) && disableItem(key),
                canEdit(key) && {
                  label: t('revoke'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('revokeTitle', { name: key.name }),
                      children: t('revokeText'),
                      action: t('revoke'),
                      run: async () => {
                        await revoke.mutateAsync({ params: { key: key.id } })
                        say(t('revoked', { name: key.name }))
                      },
                    }),
                },
              ]}
            />
          )}
        />
      </div>
      {question}
      <Suspense>
        {isFinding && <FindKeyDialog onClose={() => setFinding(false)} />}
        {isCreating && (
          <NewKeyDialog
            onClose={() => {
              setCreating(false)
              change({ new: undefined })
            }}
          />
        )}
      </Suspense>
    </Page>
  )
}
