// The accounts of a person, and their sessions, which an admin can end.

import { Link } from '@tanstack/react-router'
import { useList, useWrite } from '../api/reads.ts'
import type { Membership, Session, User } from '../api/types.ts'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Time } from '../parts/values.tsx'
import { accountsWords } from '../words/en/accounts.ts'
import { peopleWords } from '../words/en/people.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { agentName } from './agent-name.ts'

export function PersonAccounts({ user }: { readonly user: User }) {
  const t = useWords(peopleWords)
  const accounts = useWords(accountsWords)
  const roles = useWords(rolesWords)
  const list = useList('GET /api/web/users/{user}/accounts', { params: { user: user.id } })
  const columns: readonly Column<Membership>[] = [
    {
      id: 'account',
      title: t('account'),
      phone: 'main',
      cell: row => (
        <Link
          to="/accounts/$id"
          params={{ id: row.account }}
          className="font-medium hover:text-accent hover:underline"
          title={row.name}
        >
          {row.name}
        </Link>
      ),
    },
    { id: 'role', title: t('accountRole'), phone: 'side', cell: row => roles(`account_${row.role}`) },
    { id: 'type', title: accounts('type'), phone: 'note', cell: row => accounts(`type_${row.type}`) },
    { id: 'added', title: accounts('added'), phone: 'note', cell: row => <Time at={row.added} /> },
  ]
  return (
    <Section title={t('memberOf')}>
      <DataTable
        name="person-accounts"
        label={t('memberOf')}
        list={list}
        columns={columns}
        rowKey={row => row.account}
        empty={<p className="py-2 text-muted">{t('memberOfNone')}</p>}
      />
    </Section>
  )
}

export function PersonSessions({ user, canEnd }: { readonly user: User; readonly canEnd: boolean }) {
  const t = useWords(peopleWords)
  const [ask, question] = useQuestion()
  const params = { user: user.id }
  const { name } = user
  const list = useList('GET /api/web/users/{user}/sessions', { params, query: { ended: 'false' } })
  const end = useWrite('DELETE /api/web/users/{user}/sessions/{session}', 'users')
  const endAll = useWrite('DELETE /api/web/users/{user}/sessions', 'users')
  const columns: readonly Column<Session>[] = [
    {
      id: 'agent',
      title: t('agent'),
      phone: 'main',
      cell: row => <span title={row.agent}>{agentName(row.agent)}</span>,
    },
    { id: 'address', title: t('address'), phone: 'note', cell: row => row.address },
    { id: 'seen', title: t('seen'), phone: 'side', cell: row => <Time at={row.seen} isAge /> },
    { id: 'made', title: t('made'), phone: 'note', cell: row => <Time at={row.made} /> },
  ]
  return (
    <Section
      title={t('sessions')}
      actions={
        canEnd &&
        list.rows.length > 0 && (
          <button
            type="button"
            className="button button-bad"
            onClick={() =>
              ask({
                title: t('endAllTitle', { name }),
                children: t('endText'),
                action: t('endAll'),
                run: async () => {
                  await endAll.mutateAsync({ params })
                  say(t('sessionsEnded'))
                },
              })
            }
          >
            {t('endAll')}
          </button>
        )
      }
    >
      <DataTable
        name="person-sessions"
        label={t('sessions')}
        list={list}
        columns={columns}
        rowKey={row => row.id}
        empty={<p className="py-2 text-muted">{t('sessionsNone')}</p>}
        actions={row => (
          <Menu
            label={agentName(row.agent)}
            items={[
              canEnd && {
                label: t('endSession'),
                icon: 'close',
                isBad: true,
                run: () =>
                  ask({
                    title: t('endSessionTitle', { name }),
                    children: t('endText'),
                    action: t('endSession'),
                    run: async () => {
                      await end.mutateAsync({ params: { ...params, session: row.id } })
                      say(t('sessionEnded'))
                    },
                  }),
              },
            ]}
          />
        )}
      />
      {question}
    </Section>
  )
}
