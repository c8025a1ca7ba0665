// An invitation: what it is for, and joining as a new person or as the person who is signed in.

import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { call } from '../api/client.ts'
import { errorOf, isApiError } from '../api/errors.ts'
import { boot, post, signedIn, signOut, useSession } from '../api/session.ts'
import type { InvitationPreview } from '../api/types.ts'
import { Form, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Failure, Loading, Notice, useErrorText } from '../parts/states.tsx'
import { Facts, Time } from '../parts/values.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { joiningWords } from '../words/en/joining.ts'
import { rolesWords } from '../words/en/roles.ts'
import { useWords } from '../words/words.ts'
import { forgetLinkToken, NameField, PasswordField, useLinkToken } from './joining-fields.tsx'

/** What a link is for. It does not use the link up. */
export function useInvitationPreview(token: string | undefined): {
  readonly found?: InvitationPreview
  readonly error?: unknown
} {
  const [state, setState] = useState<{ readonly found?: InvitationPreview; readonly error?: unknown }>({})
  useEffect(() => {
    if (token === undefined) return
    let isGone = false
    const look = async (): Promise<InvitationPreview> => {
      const answer = await post('/api/auth/invitation/look', { token })
      if (!answer.ok) throw await errorOf(answer)
      return (await answer.json()) as InvitationPreview
    }
    look().then(
      found => isGone || setState({ found }),
      error => isGone || setState({ error }),
    )
    return () => {
      isGone = true
    }
  }, [token])
  return state
}

export function JoinPage() {
  const t = useWords(joiningWords)
  const { site } = useSession()
  const token = useLinkToken()
  const { found, error } = useInvitationPreview(token)
  const title = found?.account != null ? found.account : (found?.site ?? site?.name ?? '')
  if (token === undefined) {
    return (
      <OpenPage title={t('noToken')}>
        <p className="mb-4 text-muted">{t('noTokenText')}</p>
        <SignInLink />
      </OpenPage>
    )
  }
  if (isApiError(error, 'invitation_invalid')) {
    return (
      <OpenPage title={t('invalid')}>
        <p className="mb-4 text-muted">{t('invalidText')}</p>
        <SignInLink />
      </OpenPage>
    )
  }
  return (
    <OpenPage
      title={found?.account == null ? t('joinTitle', { site: title }) : t('joinAccountTitle', { account: title })}
    >
      {error !== undefined && <Failure error={error} retry={() => location.reload()} />}
      {found === undefined && error === undefined && <Loading lines={4} />}
      {found !== undefined && (
        <div className="flex flex-col gap-6">
          <About of={found} />
          <Joining found={found} token={token} />
        </div>
      )}
    </OpenPage>
  )
}

function SignInLink() {
  const t = useWords(joiningWords)
  return (
    <Link to="/sign-in" className="button">
      {t('toSignIn')}
    </Link>
  )
}

function About({ of }: { readonly of: InvitationPreview }) {
  const t = useWords(joiningWords)
  const roles = useWords(rolesWords)
  return (
    <Facts
      of={[
        { name: t('for'), value: of.email },
        { name: t('site'), value: of.site },
        of.account !== null && { name: t('account'), value: of.account },
        of.accountRole !== null && {
          name: t('role'),
          value: (
            <>
              {roles(`account_${of.accountRole}`)}
              <span className="block text-muted text-xs">{roles(`about_account_${of.accountRole}`)}</span>
            </>
          ),
        },
        of.role !== 'member' && {
          name: t('siteRole'),
          value: (
            <>
              {roles(`site_${of.role}`)}
              <span className="block text-muted text-xs">{roles(`about_site_${of.role}`)}</span>
            </>
          ),
        },
        { name: t('expires'), value: <Time at={of.expires} /> },
      ]}
    />
  )
}

function Joining({ found, token }: { readonly found: InvitationPreview; readonly token: string }) {
  const { state, me } = useSession()
  if (state !== 'signed-in' || me === undefined) return <BothWays found={found} token={token} />
  return me.email === found.email ? <KnownPerson found={found} token={token} /> : <OtherPerson found={found} />
}

function useJoined(found: InvitationPreview): () => Promise<void> {
  const t = useWords(joiningWords)
  const navigate = useNavigate()
  return async () => {
    forgetLinkToken()
    say(t('joined', { name: found.account ?? found.site }))
    await navigate({ to: '/', search: {} })
  }
}

function NewPerson({ found, token }: { readonly found: InvitationPreview; readonly token: string }) {
  const t = useWords(joiningWords)
  const joined = useJoined(found)
  const form = useForm({
    initial: { name: '', password: '' },
    async save({ values }) {
      const answer = await post('/api/auth/invitation', { token, ...values })
      if (!answer.ok) throw await errorOf(answer)
      await signedIn()
      await joined()
    },
  })
  return (
    <Form of={form} action={t('join')} isNew>
      {/* Password managers need the address that the password belongs to. */}
      <input type="text" autoComplete="username" value={found.email} readOnly hidden />
      <NameField form={form} />
      <PasswordField form={form} label={t('password')} />
    </Form>
  )
}

/** The gateway does not say whether somebody has this address already, so the person chooses. */
function BothWays({ found, token }: { readonly found: InvitationPreview; readonly token: string }) {
  const t = useWords(joiningWords)
  return (
    <>
      <section className="flex flex-col gap-3">
        <h2>{t('newHere')}</h2>
        <NewPerson found={found} token={token} />
      </section>
      <section className="flex flex-col items-start gap-3">
        <h2>{t('alreadyHere')}</h2>
        <Link to="/sign-in" search={{ next: '/join' }} className="button">
          {t('signInToAccept')}
        </Link>
      </section>
    </>
  )
}

function KnownPerson({ found, token }: { readonly found: InvitationPreview; readonly token: string }) {
  const t = useWords(joiningWords)
  const joined = useJoined(found)
  const form = useForm({
    initial: {},
    async save() {
      await call('POST /api/web/invitations/accept', { body: { token } })
      await boot()
      await joined()
    },
  })
  return (
    <Form of={form} action={t('accept')} isNew>
      <p className="text-muted">
        {t('signedInAs', { email: found.email })} {found.account !== null && t('acceptNote')}
      </p>
    </Form>
  )
}

function OtherPerson({ found }: { readonly found: InvitationPreview }) {
  const t = useWords(joiningWords)
  const textOf = useErrorText()
  const { me } = useSession()
  return (
    <div className="flex flex-col items-start gap-4">
      <Notice>{t('otherPerson', { email: found.email, own: me?.email ?? '' })}</Notice>
      <button
        type="button"
        className="button"
        onClick={() => void signOut().catch(error => say(textOf(error), { isBad: true }))}
      >
        {t('signOut')}
      </button>
    </div>
  )
}
