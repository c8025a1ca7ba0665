// Service tokens: list, create, change, rotate, revoke.

import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { ServiceToken } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import type { Tone } from '../parts/values.tsx'
import { State, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { rolesWords } from '../words/en/roles.ts'
import { tokensWords } from '../words/en/tokens.ts'
import { useWords } from '../words/words.ts'
import { EditTokenDialog, NewTokenDialog, RotateTokenDialog } from './token-dialogs.tsx'

const tones: Readonly<Record<ServiceToken['state'], Tone>> = { active: 'ok', expired: 'warn', revoked: 'bad' }
const FILTERS = ['name', 'state'] as const

interface Search {
  readonly name?: string
  readonly state?: ServiceToken['state']
  readonly sort?: 'created' | '-created' | 'name' | '-name'
  readonly new?: string
  readonly [name: string]: string | undefined
}

function Rights({ of: { role, account, accountRole, ...row } }: { readonly of: ServiceToken }) {
  const t = useWords(tokensWords)
  const roles = useWords(rolesWords)
  if (role !== null) return t('ofSite', { role: roles(`site_${role}`) })
  const { accountName } = row as { readonly accountName?: string | null }
  return t('ofAccount', { role: roles(`account_${accountRole ?? 'viewer'}`), account: accountName ?? account ?? '' })
}

export function TokensPage() {
  const t = useWords(tokensWords)
  const [{ name, state, sort, new: isNew }, change] = useSearchState<Search>()
  const account = useAccount()
  const may = useMay()
  const list = useList('GET /api/web/service-tokens', {
    query: definedOnly({ account: account?.id, name, state, sort }),
  })
  const revoke = useWrite('DELETE /api/web/service-tokens/{token}', 'service-tokens')
  const [ask, question] = useQuestion()
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const [open, setOpen] = useState<{ readonly what: 'edit' | 'rotate'; readonly token: ServiceToken }>()
  const canEdit = ({ state: now, account: owner }: ServiceToken): boolean =>
    now !== 'revoked' && may('PATCH /api/web/service-tokens/{token}', owner)
  const columns: readonly Column<ServiceToken>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'name',
      phone: 'main',
      cell: row => (
        <span className="font-medium" title={row.name}>
          {row.name}
        </span>
      ),
    },
    { id: 'suffix', title: t('ending'), cell: row => <span className="font-mono text-xs">…{row.suffix}</span> },
    {
      id: 'state',
      title: t('state'),
      phone: 'side',
      cell: row => <State tone={tones[row.state]}>{t(`state_${row.state}`)}</State>,
    },
    { id: 'rights', title: t('rights'), phone: 'note', cell: row => <Rights of={row} /> },
    {
      id: 'lastUsed',
      title: t('lastUsed'),
      phone: 'note',
      cell: row =>
        row.lastUsed === null ? <span className="text-muted">{t('neverUsed')}</span> : <Time at={row.lastUsed} isAge />,
    },
    { id: 'created', title: t('created'), sort: 'created', cell: row => <Time at={row.created} /> },
    { id: 'creator', title: t('creator'), isOptional: true, cell: row => row.creator },
    {
      id: 'expires',
      title: t('expires'),
      cell: row =>
        row.expires === null ? <span className="text-muted">{t('neverExpires')}</span> : <Time at={row.expires} />,
    },
    {
      id: 'old',
      title: t('oldSecret'),
      cell: row =>
        row.oldTextUntil !== null && (
          <span className="text-warn">{t.rich('oldSecretUntil', { time: <Time at={row.oldTextUntil} /> })}</span>
        ),
    },
  ]
  const createButton = may('POST /api/web/service-tokens') && (
    <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
  )
  const isEmpty = !list.query.isPending && list.rows.length === 0 && name === undefined && state === undefined
  return (
    <Page title={t('title')} intro={t('intro')} actions={!isEmpty && createButton}>
      <div>
        {!isEmpty && (
          <FilterBar names={FILTERS} error={list.query.error}>
            <TextFilter name="name" label={t('name')} />
            <SelectFilter
              name="state"
              label={t('state')}
              choices={(['active', 'expired', 'revoked'] as const).map(value => ({
                value,
                label: t(`state_${value}`),
              }))}
            />
          </FilterBar>
        )}
        <DataTable
          name="tokens"
          label={t('title')}
          list={list}
          columns={columns.filter(column => column.id !== 'old' || list.rows.some(row => row.oldTextUntil !== null))}
          rowKey={row => row.id}
          filters={FILTERS}
          empty={
            <Empty
              title={t('emptyTitle')}
              action={createButton}
              command={`curl ${location.origin}/api/web/keys -H "Authorization: Bearer wst-…"`}
            >
              {t('emptyText')}
            </Empty>
          }
          actions={row => (
            <Menu
              label={row.name}
              items={[
                canEdit(row) && {
                  label: t('edit'),
                  icon: 'settings',
                  run: () => setOpen({ what: 'edit', token: row }),
                },
                canEdit(row) && {
                  label: t('rotate'),
                  icon: 'refresh',
                  run: () => setOpen({ what: 'rotate', token: row }),
                },
                canEdit(row) && {
                  label: t('revoke'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('revokeTitle', { name: row.name }),
                      children: t('revokeText'),
                      action: t('revoke'),
                      run: async () => {
                        await revoke.mutateAsync({ params: { token: row.id } })
                        say(t('revoked', { name: row.name }))
                      },
                    }),
                },
              ]}
            />
          )}
        />
      </div>
      {question}
      {isCreating && (
        <NewTokenDialog
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
      {open?.what === 'edit' && <EditTokenDialog token={open.token} onClose={() => setOpen(undefined)} />}
      {open?.what === 'rotate' && <RotateTokenDialog token={open.token} onClose={() => setOpen(undefined)} />}
    </Page>
  )
}
