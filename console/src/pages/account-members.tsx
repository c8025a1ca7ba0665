// The members of an account, and its open invitations.

import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { boot, useMe } from '../api/session.ts'
import type { Account, Member } from '../api/types.ts'
import { Dialog, Menu, useQuestion } from '../parts/dialog.tsx'
import { Form, SelectField, TextField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Time } from '../parts/values.tsx'
import { accountsWords } from '../words/en/accounts.ts'
import { peopleWords } from '../words/en/people.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { AccountInvitations, InviteDialog } from './invite.tsx'

interface AccountProps {
  readonly account: Account
}

const accountRoles = ['viewer', 'developer', 'manager'] as const

export function Members({ account }: AccountProps) {
  const t = useWords(accountsWords)
  const people = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const me = useMe()
  const may = useMay()
  const navigate = useNavigate()
  const list = useList('GET /api/web/accounts/{account}/members', { params: { account: account.id } })
  const remove = useWrite('DELETE /api/web/accounts/{account}/members/{user}', 'accounts')
  const [ask, question] = useQuestion()
  const [open, setOpen] = useState<'invite' | 'add' | Member>()
  const canManage = may('PATCH /api/web/accounts/{account}/members/{user}', account.id)
  const columns: readonly Column<Member>[] = [
    {
      id: 'name',
      title: t('member'),
      phone: 'main',
      cell: row =>
        isStaff(me) ? (
          <Link to="/people/$id" params={{ id: row.user }} className="font-medium hover:text-accent hover:underline">
            {row.name}
          </Link>
        ) : (
          <span title={row.name}>{row.name}</span>
        ),
    },
    { id: 'email', title: people('email'), phone: 'note', cell: row => row.email },
    {
      id: 'role',
      title: t('role'),
      phone: 'side',
      cell: row => <span title={roles(`about_account_${row.role}`)}>{roles(`account_${row.role}`)}</span>,
    },
    { id: 'added', title: t('added'), phone: 'note', cell: row => <Time at={row.added} isAge /> },
  ]
  const removeMember = (row: Member): void => {
    const isSelf = row.user === me.id
    ask({
      title: isSelf
        ? t('leaveTitle', { account: account.name })
        : t('removeMemberTitle', { name: row.name, account: account.name }),
      children: isSelf ? t('leaveText') : t('removeMemberText'),
      action: isSelf ? t('leave') : t('removeMember'),
      run: async () => {
        await remove.mutateAsync({ params: { account: account.id, user: row.user } })
        say(isSelf ? t('left', { account: account.name }) : t('memberRemoved', { name: row.name }))
        if (!isSelf) return
        await boot()
        await navigate({ to: '/', search: {} })
      },
    })
  }
  return (
    <>
      <Section
        title={t('members')}
        actions={
          <span className="flex gap-2">
            {may('POST /api/web/accounts/{account}/members', account.id) && isStaff(me) && (
              <button type="button" className="button" onClick={() => setOpen('add')}>
                {t('addMember')}
              </button>
            )}
            {canManage && (
              <button type="button" className="button" data-create onClick={() => setOpen('invite')}>
                {people('invite')}
              </button>
            )}
          </span>
        }
      >
        <DataTable
          name="members"
          label={t('members')}
          list={list}
          columns={columns}
          rowKey={row => row.user}
          empty={<p className="py-2 text-muted">{t('membersNone')}</p>}
          actions={row => (
            <Menu
              label={row.name}
              items={[
                canManage && row.user !== me.id && { label: t('changeRole'), icon: 'account', run: () => setOpen(row) },
                (canManage || row.user === me.id) && {
                  label: row.user === me.id ? t('leave') : t('removeMember'),
                  icon: 'close',
                  isBad: true,
                  run: () => removeMember(row),
                },
              ]}
            />
          )}
        />
      </Section>
      {canManage && (
        <Section title={people('invitations')}>
          <AccountInvitations account={account.id} />
        </Section>
      )}
      {question}
      {open === 'invite' && <InviteDialog account={account} onClose={() => setOpen(undefined)} />}
      {open === 'add' && <AddMemberDialog account={account} onClose={() => setOpen(undefined)} />}
      {typeof open === 'object' && <RoleDialog account={account} member={open} onClose={() => setOpen(undefined)} />}
    </>
  )
}

interface DialogProps extends AccountProps {
  readonly onClose: () => void
}

function AddMemberDialog({ account, onClose }: DialogProps) {
  const t = useWords(accountsWords)
  const roles = useWords(rolesWords)
  const add = useWrite('POST /api/web/accounts/{account}/members', 'accounts')
  const form = useForm<{ readonly user: string; readonly role: Member['role'] }>({
    initial: { user: '', role: 'developer' },
    save: ({ values: { user, role } }) =>
      add.mutateAsync({ params: { account: account.id }, body: { user: user.trim(), role } }),
    done: t('memberAdded'),
    onSaved: onClose,
  })
  return (
    <Dialog title={t('addMemberTitle', { name: account.name })} onClose={onClose}>
      <Form of={form} action={t('addMember')} isNew onCancel={onClose}>
        <TextField form={form} name="user" label={t('addMemberUser')} hint={t('addMemberHint')} mono autoFocus />
        <SelectField
          form={form}
          name="role"
          label={t('role')}
          hint={roles(`about_account_${form.values.role}`)}
          choices={accountRoles.map(value => ({ value, label: roles(`account_${value}`) }))}
        />
      </Form>
    </Dialog>
  )
}

function RoleDialog({ account, member, onClose }: DialogProps & { readonly member: Member }) {
  const t = useWords(accountsWords)
  const people = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const update = useWrite('PATCH /api/web/accounts/{account}/members/{user}', 'accounts')
  const form = useForm<{ readonly role: Member['role'] }>({
    initial: { role: member.role },
    version: versionOf(member),
    async save({ values: { role }, ifMatch }) {
      const params = { account: account.id, user: member.user }
      await update.mutateAsync({ params, body: { role }, ...matching(ifMatch) })
      say(t('roleChanged', { name: member.name, role: roles(`account_${role}`) }))
    },
    onSaved: onClose,
  })
  return (
    <Dialog title={t('changeRoleTitle', { name: member.name })} onClose={onClose}>
      <Form of={form} action={people('save')} onCancel={onClose}>
        <SelectField
          form={form}
          name="role"
          label={t('role')}
          hint={roles(`about_account_${form.values.role}`)}
          choices={accountRoles.map(value => ({ value, label: roles(`account_${value}`) }))}
        />
      </Form>
    </Dialog>
  )
}
