// A link of an admin, with which a person chooses a new password.

import { Link, useNavigate } from '@tanstack/react-router'
import { errorOf, isApiError } from '../api/errors.ts'
import { post } from '../api/session.ts'
import type { InvitationPreview } from '../api/types.ts'
import { Form, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { joiningWords } from '../words/en/joining.ts'
import { useWords } from '../words/words.ts'
import { useInvitationPreview } from './join.tsx'
import { forgetLinkToken, PasswordField, useLinkToken } from './joining-fields.tsx'

export function PasswordPage() {
  const t = useWords(joiningWords)
  const token = useLinkToken()
  const { found, error } = useInvitationPreview(token)
  if (token === undefined || isApiError(error, 'invitation_invalid')) {
    return (
      <OpenPage title={token === undefined ? t('passwordNoToken') : t('passwordInvalid')}>
        <p className="mb-4 text-muted">{token === undefined ? t('noTokenText') : t('passwordInvalidText')}</p>
        <Link to="/sign-in" className="button">
          {t('toSignIn')}
        </Link>
      </OpenPage>
    )
  }
  return (
    <OpenPage title={t('passwordTitle')}>
      {error !== undefined && <Failure error={error} retry={() => location.reload()} />}
      {found === undefined && error === undefined && <Loading lines={3} />}
      {found !== undefined && <PasswordForm found={found} token={token} />}
    </OpenPage>
  )
}

function PasswordForm({ found, token }: { readonly found: InvitationPreview; readonly token: string }) {
  const t = useWords(joiningWords)
  const navigate = useNavigate()
  const form = useForm({
    initial: { password: '' },
    async save({ values }) {
      const answer = await post('/api/auth/password', { token, ...values })
      if (!answer.ok) throw await errorOf(answer)
      forgetLinkToken()
      say(t('passwordDone'))
      await navigate({ to: '/sign-in' })
    },
  })
  return (
    <>
      <p className="mb-4 break-words text-muted">{t('passwordFor', { email: found.email })}</p>
      <Form of={form} action={t('passwordSave')} isNew>
        <input type="text" autoComplete="username" value={found.email} readOnly hidden />
        <PasswordField form={form} label={t('passwordNew')} />
      </Form>
    </>
  )
}
