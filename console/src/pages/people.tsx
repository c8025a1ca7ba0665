// The people of the site, and their invitations.

import { useState } from 'react'
import { useList } from '../api/reads.ts'
import { siteRoles } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { User } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { State, Time, YesNo } from '../parts/values.tsx'
import { peopleWords } from '../words/en/people.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { InviteDialog, SiteInvitations } from './invite.tsx'

interface Search {
  readonly name?: string
  readonly email?: string
  readonly role?: User['role']
  readonly state?: string
  readonly sort?: 'created' | '-created' | 'email' | '-email' | 'name' | '-name'
  readonly tab?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['name', 'email', 'role', 'state'] as const

export function UserState({ of: { disabled, removed } }: { readonly of: Pick<User, 'disabled' | 'removed'> }) {
  const t = useWords(peopleWords)
  if (removed) return <State tone="muted">{t('state_removed')}</State>
  return disabled ? <State tone="bad">{t('state_disabled')}</State> : <State tone="ok">{t('state_active')}</State>
}

export function PeoplePage() {
  const t = useWords(peopleWords)
  const [{ tab }] = useSearchState<Search>()
  const me = useMe()
  const [isInviting, setInviting] = useState(false)
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        (me.role === 'admin' || me.role === 'owner') && (
          <CreateButton onClick={() => setInviting(true)}>{t('invite')}</CreateButton>
        )
      }
    >
      <Tabs
        label={t('tabs')}
        of={[
          { id: 'people', title: t('tabPeople') },
          { id: 'invitations', title: t('tabInvitations') },
        ]}
      />
      {tab === 'invitations' ? <SiteInvitations /> : <PeopleList />}
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
    </Page>
  )
}

function PeopleList() {
  const t = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const [{ name, email, role, state, sort }] = useSearchState<Search>()
  const list = useList('GET /api/web/users', {
    query: definedOnly({
      name,
      email,
      role,
      sort,
      disabled: state === 'disabled' ? 'true' : state === 'active' ? 'false' : undefined,
      removed: state === 'removed' ? 'true' : 'false',
    }),
  })
  const columns: readonly Column<User>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'name',
      phone: 'main',
      cell: row => (row.removed ? t('removedName') : <span title={row.name}>{row.name}</span>),
    },
    {
      id: 'email',
      title: t('email'),
      sort: 'email',
      phone: 'note',
      cell: row => <span title={row.email}>{row.email}</span>,
    },
    { id: 'role', title: t('role'), phone: 'note', cell: row => roles(`site_${row.role}`) },
    { id: 'state', title: t('state'), phone: 'side', cell: row => <UserState of={row} /> },
    { id: 'accounts', title: t('accounts'), align: 'right', cell: row => row.accounts },
    { id: 'secondFactor', title: t('secondFactor'), cell: row => <YesNo value={row.secondFactor} /> },
    {
      id: 'lastSignIn',
      title: t('lastSignIn'),
      phone: 'note',
      cell: row =>
        row.lastSignIn === null ? <span className="text-muted">{t('never')}</span> : <Time at={row.lastSignIn} isAge />,
    },
    { id: 'created', title: t('created'), sort: 'created', cell: row => <Time at={row.created} /> },
  ]
  return (
    <div>
      <FilterBar names={FILTERS} error={list.query.error}>
        <TextFilter name="name" label={t('name')} />
        <TextFilter name="email" label={t('email')} />
        <SelectFilter
          name="role"
          label={t('role')}
          choices={siteRoles.map(value => ({ value, label: roles(`site_${value}`) }))}
        />
        <SelectFilter
          name="state"
          label={t('state')}
          choices={(['active', 'disabled', 'removed'] as const).map(value => ({ value, label: t(`state_${value}`) }))}
        />
      </FilterBar>
      <DataTable
        name="people"
        label={t('title')}
        list={list}
        columns={columns}
        rowKey={row => row.id}
        open={row => ({ to: '/people/$id', params: { id: row.id } })}
        filters={FILTERS}
        empty={<Empty title={t('emptyTitle')} />}
      />
    </div>
  )
}
