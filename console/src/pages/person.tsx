// One person: profile, role, access, and what they changed.

import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { siteRoles } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Invited, User } from '../api/types.ts'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { Form, SelectField, TextField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Section } from '../parts/page.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import { Failure, Loading, Notice, useErrorText } from '../parts/states.tsx'
import { Facts, Id, Time, YesNo } from '../parts/values.tsx'
import { peopleWords } from '../words/en/people.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { LinkOnce } from './invite.tsx'
import { UserState } from './people.tsx'
import { PersonAccounts, PersonSessions } from './person-access.tsx'

export function PersonPage() {
  const t = useWords(peopleWords)
  const { id } = useParams({ strict: false } as never) as { readonly id: string }
  const read = useRead('GET /api/web/users/{user}', { params: { user: id } })
  const back = { to: '/people', label: t('title') } as const
  if (read.data !== undefined) return <Person user={read.data} />
  return (
    <Page title={t('title')} back={back}>
      {read.error === null ? <Loading /> : <Failure error={read.error} retry={() => void read.refetch()} />}
    </Page>
  )
}

/** Why the viewer cannot change this person; undefined if they can. */
function useWhyNot(user: User): string | undefined {
  const t = useWords(peopleWords)
  const me = useMe()
  if (me.role === 'support') return t('supportReads')
  if (me.id === user.id) return t('self')
  return user.role === 'owner' && me.role !== 'owner' ? t('aboveYou') : undefined
}

function Person({ user }: { readonly user: User }) {
  const t = useWords(peopleWords)
  const me = useMe()
  const whyNot = useWhyNot(user)
  const name = user.removed ? t('removedName') : user.name
  return (
    <Page
      title={name}
      back={{ to: '/people', label: t('title') }}
      actions={whyNot === undefined && !user.removed && <Actions user={user} />}
    >
      <Facts
        of={[
          { name: t('state'), value: <UserState of={user} /> },
          { name: t('lastSignIn'), value: user.lastSignIn === null ? t('never') : <Time at={user.lastSignIn} /> },
          { name: t('secondFactor'), value: <YesNo value={user.secondFactor} /> },
          { name: t('accounts'), value: user.accounts },
          { name: t('created'), value: <Time at={user.created} /> },
          { name: 'ID', value: <Id id={user.id} /> },
          {
            name: t('audit'),
            value: (
              <Link to="/audit" search={{ actor: user.id }} className="link">
                {t('auditOf')}
              </Link>
            ),
          },
        ]}
      />
      {user.removed && <Notice>{t('wasRemoved')}</Notice>}
      {!user.removed && (
        <Section title={t('profile')}>
          <div className="max-w-md">
            {whyNot !== undefined && (
              <p className="mb-3 text-muted">
                {whyNot}{' '}
                {me.id === user.id && (
                  <Link to="/me" className="link">
                    {t('toProfile')}
                  </Link>
                )}
              </p>
            )}
            <ProfileForm user={user} whyNot={whyNot} />
          </div>
        </Section>
      )}
      {!user.removed && <PersonAccounts user={user} />}
      {!user.removed && <PersonSessions user={user} canEnd={whyNot === undefined} />}
    </Page>
  )
}

function ProfileForm({ user, whyNot }: { readonly user: User; readonly whyNot: string | undefined }) {
  const t = useWords(peopleWords)
  const roles = useWords(rolesWords)
  const me = useMe()
  const update = useWrite('PATCH /api/web/users/{user}', 'users')
  const params = { user: user.id }
  const shape = ({ name, email, role }: User) => ({ name, email, role })
  const form = useForm({
    initial: shape(user),
    version: versionOf(user),
    save: ({ changed, ifMatch }) => update.mutateAsync({ params, body: changed, ...matching(ifMatch) }),
    async reload() {
      const now = await call('GET /api/web/users/{user}', { params })
      return { initial: shape(now), version: versionOf(now) }
    },
    done: t('saved'),
  })
  if (whyNot !== undefined) {
    return (
      <Facts
        of={[
          { name: t('name'), value: user.name },
          { name: t('email'), value: user.email },
          { name: t('role'), value: roles(`site_${user.role}`) },
        ]}
      />
    )
  }
  const choices = siteRoles.slice(0, siteRoles.indexOf(me.role) + 1)
  return (
    <Form of={form} action={t('save')}>
      <TextField form={form} name="name" label={t('name')} />
      <TextField form={form} name="email" label={t('email')} type="email" />
      <SelectField
        form={form}
        name="role"
        label={t('role')}
        hint={`${roles(`about_site_${form.values.role}`)} ${t('roleHint')}`}
        choices={choices.map(value => ({ value, label: roles(`site_${value}`) }))}
      />
    </Form>
  )
}

function Actions({ user }: { readonly user: User }) {
  const t = useWords(peopleWords)
  const navigate = useNavigate()
  const textOf = useErrorText()
  const [ask, question] = useQuestion()
  const [link, setLink] = useState<Invited>()
  const update = useWrite('PATCH /api/web/users/{user}', 'users')
  const reset = useWrite('POST /api/web/users/{user}/password-reset', 'users', 'invitations')
  const remove = useWrite('DELETE /api/web/users/{user}', 'users')
  const params = { user: user.id }
  const { name } = user
  const setDisabled = async (disabled: boolean): Promise<void> => {
    await update.mutateAsync({ params, body: { disabled } })
    say(t(disabled ? 'disabled' : 'enabled', { name }))
  }
  return (
    <>
      <button
        type="button"
        className="button"
        onClick={() =>
          ask({
            title: t('resetTitle', { name }),
            children: t('resetText'),
            action: t('reset'),
            isBad: false,
            run: async () => setLink(await reset.mutateAsync({ params })),
          })
        }
      >
        {t('reset')}
      </button>
      <Menu
        label={name}
        className="button px-2"
        items={[
          user.disabled
            ? {
                label: t('enable'),
                icon: 'play',
                run: () => void setDisabled(false).catch(error => say(textOf(error), { isBad: true })),
              }
            : {
                label: t('disable'),
                icon: 'pause',
                run: () =>
                  ask({
                    title: t('disableTitle', { name }),
                    children: t('disableText', { name }),
                    action: t('disable'),
                    run: () => setDisabled(true),
                  }),
              },
          {
            label: t('remove'),
            icon: 'close',
            isBad: true,
            run: () =>
              ask({
                title: t('removeTitle', { name }),
                children: t('removeText'),
                action: t('remove'),
                typed: user.email,
                run: async () => {
                  await remove.mutateAsync({ params })
                  say(t('removed'))
                  await navigate({ to: '/people' })
                },
              }),
          },
        ]}
      />
      {question}
      {link !== undefined && <LinkOnce made={link} onClose={() => setLink(undefined)} />}
    </>
  )
}
