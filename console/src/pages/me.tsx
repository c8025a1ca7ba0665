// The profile of the viewer: name, email, password, second factor, sessions, language and looks.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useWrite } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { boot, useMe } from '../api/session.ts'
import type { Me } from '../api/types.ts'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import { useSearchState } from '../parts/search.ts'
import { Facts, Id, Time } from '../parts/values.tsx'
import { PreferencesFields } from '../shell/preferences-dialog.tsx'
import { meWords } from '../words/en/me.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { PasswordField } from './joining-fields.tsx'
import { SecondFactor } from './me-second-factor.tsx'
import { Sessions } from './me-sessions.tsx'

export function MePage() {
  const t = useWords(meWords)
  const [{ tab }] = useSearchState()
  // A form begins anew after saving: passwords do not stay in it.
  const [round, setRound] = useState(0)
  const again = (): void => setRound(round + 1)
  return (
    <Page title={t('title')}>
      <Tabs
        label={t('tabs')}
        of={[
          { id: 'profile', title: t('tabProfile') },
          { id: 'security', title: t('tabSecurity') },
          { id: 'sessions', title: t('tabSessions') },
          { id: 'preferences', title: t('tabPreferences') },
        ]}
      />
      {tab === 'security' ? (
        <>
          <Password key={round} onSaved={again} />
          <SecondFactor />
        </>
      ) : tab === 'sessions' ? (
        <Sessions />
      ) : tab === 'preferences' ? (
        <div className="max-w-md">
          <PreferencesFields />
          <p className="mt-4 text-muted text-xs">{t('preferencesNote')}</p>
        </div>
      ) : (
        <Profile key={round} onSaved={again} />
      )}
    </Page>
  )
}

interface ProfileFields {
  readonly name: string
  readonly email: string
  readonly currentPassword: string
}

const fieldsOf = ({ name, email }: Me): ProfileFields => ({ name, email: email ?? '', currentPassword: '' })

interface SavedProps {
  readonly onSaved: () => void
}

function Profile({ onSaved }: SavedProps) {
  const t = useWords(meWords)
  const roles = useWords(rolesWords)
  const me = useMe()
  const update = useWrite('PATCH /api/web/me', 'me')
  const form = useForm<ProfileFields>({
    initial: fieldsOf(me),
    version: versionOf(me),
    async save({ changed: { name, email, currentPassword }, ifMatch }) {
      const body = {
        ...(name !== undefined && { name }),
        ...(email !== undefined && { email, currentPassword: currentPassword ?? '' }),
      }
      await update.mutateAsync({ body, ...matching(ifMatch) })
      // The name is also at the top of every page.
      await boot()
    },
    async reload() {
      const now = await call('GET /api/web/me')
      return { initial: fieldsOf(now), version: versionOf(now) }
    },
    done: t('saved'),
    onSaved,
  })
  const isNewEmail = form.values.email !== form.initial.email
  return (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_minmax(0,360px)] lg:gap-12">
      <div className="max-w-md">
        <Form of={form} action={t('save')}>
          <TextField form={form} name="name" label={t('name')} autoComplete="name" />
          <TextField
            form={form}
            name="email"
            label={t('email')}
            type="email"
            autoComplete="username"
            disabled={isStaff(me) ? undefined : t('emailByAdmin')}
          />
          {isNewEmail && (
            <TextField
              form={form}
              name="currentPassword"
              label={t('currentPassword')}
              hint={t('currentPasswordHint')}
              type="password"
              autoComplete="current-password"
            />
          )}
        </Form>
      </div>
      <div className="flex flex-col gap-6">
        <Facts
          of={[
            {
              name: t('role'),
              value: (
                <>
                  {roles(`site_${me.role}`)}
                  <span className="block text-muted text-xs">{roles(`about_site_${me.role}`)}</span>
                </>
              ),
            },
            { name: t('since'), value: <Time at={me.created} /> },
            me.id !== null && { name: 'ID', value: <Id id={me.id} /> },
          ]}
        />
        <Section title={t('accounts')}>
          {me.accounts.length === 0 ? (
            <p className="text-muted">{t('accountsNone')}</p>
          ) : (
            <ul>
              {me.accounts.map(({ account, name, role }) => (
                <li
                  key={account}
                  className="flex min-h-8 items-center justify-between gap-4 border-line border-t py-1 last:border-b"
                >
                  <Link to="/account" search={{ account }} className="link min-w-0 truncate" title={name}>
                    {name}
                  </Link>
                  <span className="text-muted" title={roles(`about_account_${role}`)}>
                    {roles(`account_${role}`)}
                  </span>
                </li>
              ))}
            </ul>
          )}
        </Section>
      </div>
    </div>
  )
}

function Password({ onSaved }: SavedProps) {
  const t = useWords(meWords)
  const me = useMe()
  const change = useWrite('POST /api/web/me/password', 'sessions')
  const initial = { currentPassword: '', password: '' }
  const form = useForm({
    initial,
    async save({ values }) {
      await change.mutateAsync({ body: values })
      await boot()
    },
    done: t('passwordSet'),
    onSaved,
  })
  return (
    <Section title={t('passwordTitle')} note={t('passwordNote')}>
      <div className="max-w-md">
        <Form of={form} action={t('setPassword')}>
          {/* Password managers need the address that the password belongs to. */}
          <input type="text" autoComplete="username" value={me.email ?? ''} readOnly hidden />
          <TextField
            form={form}
            name="currentPassword"
            label={t('currentPassword')}
            type="password"
            autoComplete="current-password"
          />
          <PasswordField form={form} label={t('newPassword')} />
        </Form>
      </div>
    </Section>
  )
}
