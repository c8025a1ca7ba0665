// Signing in: a page, and a dialog over any page whose session has ended.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { isApiError } from '../api/errors.ts'
import { signIn, useSession } from '../api/session.ts'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { signInWords } from '../words/en/sign-in.ts'
import { useWords } from '../words/words.ts'

export function SignInForm() {
  const t = useWords(signInWords)
  const { me } = useSession()
  const [needsCode, setNeedsCode] = useState(false)
  const form = useForm({
    initial: { email: me?.email ?? '', password: '', code: '' },
    async save({ values: { email, password, code } }) {
      try {
        await signIn({ email, password, ...(code !== '' && { code }) })
      } catch (error) {
        if (!isApiError(error, 'code_needed')) throw error
        setNeedsCode(true)
      }
    },
  })
  return (
    <Form of={form} action={t('signIn')} isNew>
      <TextField
        form={form}
        name="email"
        label={t('email')}
        type="email"
        autoComplete="username"
        autoFocus={me === undefined}
      />
      <TextField form={form} name="password" label={t('password')} type="password" autoComplete="current-password" />
      {needsCode && (
        <TextField
          form={form}
          name="code"
          label={t('code')}
          hint={t('codeHint')}
          autoComplete="one-time-code"
          autoFocus
        />
      )}
    </Form>
  )
}

export function SignInPage() {
  const t = useWords(signInWords)
  const { site } = useSession()
  return (
    <OpenPage title={t('title')}>
      {site?.notice != null && site.notice !== '' && (
        <p className="mb-4 whitespace-pre-wrap break-words text-muted">{site.notice}</p>
      )}
      <SignInForm />
      <p className="mt-4 text-muted text-xs">{t('forgotten')}</p>
      <p className="mt-4 flex flex-wrap gap-4">
        {site?.registration && (
          <Link to="/register" className="link">
            {t('register')}
          </Link>
        )}
        <Link to="/pricing" className="link">
          {t('pricing')}
        </Link>
      </p>
    </OpenPage>
  )
}
