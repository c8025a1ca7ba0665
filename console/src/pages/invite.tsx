// Inviting people: the dialog, its link that is shown once, and the list of invitations.

import { useState } from 'react'
import { useMay } from '../api/may.ts'
import type { List } from '../api/reads.ts'
import { useList, useWrite } from '../api/reads.ts'
import { siteRoles } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Invitation, Invited } from '../api/types.ts'
import { Dialog, Menu, useQuestion } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, SelectField, TextField, useForm } from '../parts/form.tsx'
import { time } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { NameOrId } from '../parts/rows.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { SecretOnce } from '../parts/secret-once.tsx'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import type { Tone } from '../parts/values.tsx'
import { None, State, Time } from '../parts/values.tsx'
import { peopleWords } from '../words/en/people.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'

type SiteRole = Invitation['role']
type AccountRole = NonNullable<Invitation['accountRole']>

/** The link of an invitation or of a new password. Its token is behind `#`, so that no server logs it. */
export function LinkOnce({ made, onClose }: { readonly made: Invited; readonly onClose: () => void }) {
  const t = useWords(peopleWords)
  const isPassword = made.kind === 'password'
  const values = { email: made.email, time: time(made.expires, { seconds: false }) }
  return (
    <SecretOnce
      title={t('linkTitle')}
      text={t(isPassword ? 'resetLinkText' : 'linkText', values)}
      secret={`${location.origin}/console/${isPassword ? 'password' : 'join'}#${made.token}`}
      copyLabel={t('copyLink')}
      isLink
      onClose={onClose}
    />
  )
}

interface Wanted {
  readonly email: string
  readonly role: SiteRole
  readonly account: string
  readonly accountRole: AccountRole
  readonly days: '1' | '7' | '30'
}

interface InviteProps {
  /** The account that people are invited to; undefined: the site, and an account if one is written. */
  readonly account?: { readonly id: string; readonly name: string }
  readonly onClose: () => void
}

export function InviteDialog({ account, onClose }: InviteProps) {
  const t = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const me = useMe()
  const [made, setMade] = useState<Invited>()
  const invite = useWrite('POST /api/web/invitations', 'invitations')
  const form = useForm<Wanted>({
    initial: { email: '', role: 'member', account: account?.id ?? '', accountRole: 'developer', days: '7' },
    async save({ values: { email, role, account: to, accountRole, days } }) {
      const member = to.trim() === '' ? {} : { account: to.trim(), accountRole }
      setMade(await invite.mutateAsync({ body: { email, role, ...member, days: Number(days) } }))
    },
  })
  if (made !== undefined) return <LinkOnce made={made} onClose={onClose} />
  const { role, accountRole, account: to } = form.values
  const mayGiveRoles = me.role === 'admin' || me.role === 'owner'
  return (
    <Dialog
      title={account === undefined ? t('inviteTitle') : t('inviteToTitle', { name: account.name })}
      onClose={onClose}
    >
      <Form of={form} action={t('makeLink')} isNew onCancel={onClose}>
        <TextField form={form} name="email" label={t('email')} hint={t('inviteHint')} type="email" autoFocus />
        {mayGiveRoles && account === undefined && (
          <SelectField
            form={form}
            name="role"
            label={t('role')}
            hint={roles(`about_site_${role}`)}
            choices={siteRoles
              .slice(0, siteRoles.indexOf(me.role) + 1)
              .map(value => ({ value, label: roles(`site_${value}`) }))}
          />
        )}
        {account === undefined && (
          <TextField form={form} name="account" label={t('toAccount')} hint={t('toAccountHint')} mono />
        )}
        {to.trim() !== '' && (
          <SelectField
            form={form}
            name="accountRole"
            label={t('accountRole')}
            hint={roles(`about_account_${accountRole}`)}
            choices={(['viewer', 'developer', 'manager'] as const).map(value => ({
              value,
              label: roles(`account_${value}`),
            }))}
          />
        )}
        <SelectField
          form={form}
          name="days"
          label={t('days')}
          choices={(['1', '7', '30'] as const).map(value => ({ value, label: t(`days_${value}`) }))}
        />
      </Form>
    </Dialog>
  )
}

const tones: Readonly<Record<Invitation['state'], Tone>> = {
  open: 'accent',
  accepted: 'ok',
  revoked: 'muted',
  expired: 'muted',
  invalid: 'muted',
}

export function AccountInvitations({ account }: { readonly account: string }) {
  return (
    <InvitationTable list={useList('GET /api/web/invitations', { query: { account, open: 'true' } })} isOfAccount />
  )
}

const FILTERS = ['email', 'state'] as const

export function SiteInvitations() {
  const t = useWords(peopleWords)
  const [{ email, state }] = useSearchState<Partial<Record<(typeof FILTERS)[number], string>>>()
  const list = useList('GET /api/web/invitations', {
    query: definedOnly({ email, open: state === undefined ? 'true' : undefined }),
  })
  return (
    <div>
      <FilterBar names={FILTERS} error={list.query.error}>
        <TextFilter name="email" label={t('email')} />
        <SelectFilter
          name="state"
          label={t('invitationState')}
          all={t('onlyOpen')}
          choices={[{ value: 'all', label: t('invitationsAll') }]}
        />
      </FilterBar>
      <InvitationTable list={list} />
    </div>
  )
}

interface InvitationTableProps {
  readonly list: List<Invitation>
  readonly isOfAccount?: boolean
}

function InvitationTable({ list, isOfAccount = false }: InvitationTableProps) {
  const t = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const may = useMay()
  const revoke = useWrite('DELETE /api/web/invitations/{invitation}', 'invitations')
  const [ask, question] = useQuestion()
  const roleOf = (row: Invitation): string =>
    [
      row.role !== 'member' && roles(`site_${row.role}`),
      row.accountRole !== null && roles(`account_${row.accountRole}`),
    ]
      .filter(Boolean)
      .join(' · ')
  const names = (row: Invitation) => row as Invitation & { readonly accountName?: string; readonly byName?: string }
  const columns: readonly Column<Invitation>[] = [
    { id: 'email', title: t('email'), phone: 'main', cell: row => <span title={row.email}>{row.email}</span> },
    { id: 'kind', title: t('kind'), phone: 'note', cell: row => t(`kind_${row.kind}`) },
    {
      id: 'state',
      title: t('invitationState'),
      phone: 'side',
      cell: row => <State tone={tones[row.state]}>{t(`invitation_${row.state}`)}</State>,
    },
    { id: 'role', title: t('role'), phone: 'note', cell: row => roleOf(row) || roles('site_member') },
    {
      id: 'account',
      title: t('account'),
      cell: row => (row.account === null ? <None /> : <NameOrId name={names(row).accountName} id={row.account} />),
    },
    {
      id: 'by',
      title: t('by'),
      cell: row => (row.by === null ? <None /> : <NameOrId name={names(row).byName} id={row.by} />),
    },
    { id: 'made', title: t('made'), cell: row => <Time at={row.made} isAge /> },
    { id: 'expires', title: t('expires'), phone: 'note', cell: row => <Time at={row.expires} /> },
  ]
  return (
    <>
      <DataTable
        name="invitations"
        label={t('invitations')}
        list={list}
        columns={isOfAccount ? columns.filter(({ id }) => id !== 'account' && id !== 'kind') : columns}
        rowKey={row => row.id}
        filters={['email']}
        empty={
          isOfAccount ? (
            <p className="py-2 text-muted">{t('invitationsNone')}</p>
          ) : (
            <Empty title={t('invitationsNone')}>{t('invitationsNoneText')}</Empty>
          )
        }
        actions={row => (
          <Menu
            label={row.email}
            items={[
              (row.state === 'open' || row.state === 'invalid') &&
                may('DELETE /api/web/invitations/{invitation}') && {
                  label: t('revoke'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('revokeTitle', { email: row.email }),
                      children: t('revokeText'),
                      action: t('revoke'),
                      run: async () => {
                        await revoke.mutateAsync({ params: { invitation: row.id } })
                        say(t('revoked', { email: row.email }))
                      },
                    }),
                },
            ]}
          />
        )}
      />
      {question}
    </>
  )
}
