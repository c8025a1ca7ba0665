// All accounts, and a dialog that creates one.

import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { Account, ListedAccount } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, MoneyField, SelectField, TextField, useForm } from '../parts/form.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Id, Money, None, State, Time } from '../parts/values.tsx'
import { accountsWords } from '../words/en/accounts.ts'
import { useWords } from '../words/words.ts'

interface Search {
  readonly name?: string
  readonly type?: Account['type']
  readonly kind?: Account['kind']
  readonly frozen?: 'true' | 'false'
  readonly sort?: 'created' | '-created' | 'name' | '-name' | 'balance' | '-balance'
  readonly new?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['name', 'type', 'kind', 'frozen'] as const

export function AccountState({ frozen }: Pick<Account, 'frozen'>) {
  const t = useWords(accountsWords)
  return frozen ? <State tone="bad">{t('state_frozen')}</State> : <State tone="ok">{t('state_active')}</State>
}

export function AccountsPage() {
  const t = useWords(accountsWords)
  const [{ name, type, kind, frozen, sort, new: isNew }, change] = useSearchState<Search>()
  const may = useMay()
  const list = useList('GET /api/web/accounts', {
    query: definedOnly({ name, type, kind, frozen, sort, use: 'true' as const }),
  })
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const columns: readonly Column<ListedAccount>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'name',
      phone: 'main',
      cell: row => <span title={row.name}>{row.name}</span>,
    },
    { id: 'state', title: t('state'), cell: row => <AccountState frozen={row.frozen} />, phone: 'note' },
    {
      id: 'balance',
      title: t('balance'),
      sort: 'balance',
      align: 'right',
      phone: 'side',
      cell: row => <Money usd={row.balance} />,
    },
    {
      id: 'available',
      title: t('available'),
      align: 'right',
      cell: row =>
        row.available === null ? <span className="text-muted">{t('unlimited')}</span> : <Money usd={row.available} />,
    },
    {
      id: 'spent',
      title: t('spent30d'),
      align: 'right',
      cell: row => (row.use === null ? <None /> : <Money usd={row.use.spent30d} />),
    },
    { id: 'keys', title: t('keys'), align: 'right', cell: row => row.use?.keys ?? <None /> },
    { id: 'lastUsed', title: t('lastUsed'), cell: row => <Time at={row.use?.lastUsed ?? null} isAge /> },
    { id: 'kind', title: t('kind'), cell: row => t(`kind_${row.kind}`), phone: 'note' },
    { id: 'type', title: t('type'), isOptional: true, cell: row => t(`type_${row.type}`), phone: 'note' },
    {
      id: 'tier',
      title: t('tier'),
      cell: row => row.tier ?? <span className="text-muted">{t('tierDefault')}</span>,
    },
    { id: 'created', title: t('created'), sort: 'created', cell: row => <Time at={row.created} /> },
    { id: 'id', title: 'ID', isOptional: true, cell: row => <Id id={row.id} /> },
  ]
  const create = may('POST /api/web/accounts') && (
    <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
  )
  return (
    <Page title={t('title')} intro={t('intro')} actions={create}>
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <TextFilter name="name" label={t('name')} />
          <SelectFilter
            name="type"
            label={t('type')}
            choices={(['personal', 'team'] as const).map(value => ({ value, label: t(`type_${value}`) }))}
          />
          <SelectFilter
            name="kind"
            label={t('kind')}
            choices={(['prepaid', 'postpaid'] as const).map(value => ({ value, label: t(`kind_${value}`) }))}
          />
          <SelectFilter
            name="frozen"
            label={t('state')}
            choices={[
              { value: 'false', label: t('state_active') },
              { value: 'true', label: t('state_frozen') },
            ]}
          />
        </FilterBar>
        <DataTable
          name="accounts"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={row => row.id}
          open={row => ({ to: '/accounts/$id', params: { id: row.id } })}
          filters={FILTERS}
          empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
        />
      </div>
      {isCreating && (
        <NewAccountDialog
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

interface NewAccount {
  readonly name: string
  readonly kind: Account['kind']
  readonly creditLimit: string
}

function NewAccountDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(accountsWords)
  const navigate = useNavigate()
  const create = useWrite('POST /api/web/accounts', 'accounts')
  const form = useForm<NewAccount>({
    initial: { name: '', kind: 'prepaid', creditLimit: '' },
    async save({ values: { name, kind, creditLimit } }) {
      const made = await create.mutateAsync({ body: { name, kind, ...(creditLimit !== '' && { creditLimit }) } })
      await navigate({ to: '/accounts/$id', params: { id: made.id } })
    },
  })
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('create')} isNew onCancel={onClose}>
        <TextField form={form} name="name" label={t('name')} autoFocus />
        <SelectField
          form={form}
          name="kind"
          label={t('kind')}
          hint={t('kindHint')}
          choices={(['prepaid', 'postpaid'] as const).map(value => ({ value, label: t(`kind_${value}`) }))}
        />
        {form.values.kind === 'prepaid' && (
          <MoneyField form={form} name="creditLimit" label={t('credit')} hint={t('creditHint')} />
        )}
      </Form>
    </Dialog>
  )
}
