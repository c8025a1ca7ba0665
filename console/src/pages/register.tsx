// Registration, where the site allows it.

import { Link } from '@tanstack/react-router'
import { errorOf } from '../api/errors.ts'
import { post, signedIn, useSession } from '../api/session.ts'
import { Form, useForm } from '../parts/form.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { joiningWords } from '../words/en/joining.ts'
import { useWords } from '../words/words.ts'
import { EmailField, NameField, PasswordField } from './joining-fields.tsx'

export function RegisterPage() {
  const t = useWords(joiningWords)
  const { site } = useSession()
  const isOpen = site?.registration === true
  return (
    <OpenPage title={isOpen ? t('registerTitle') : t('registerClosed')}>
      {isOpen ? <RegisterForm /> : <p className="text-muted">{t('registerClosedText', { site: site?.name ?? '' })}</p>}
      <p className="mt-4 flex flex-wrap gap-4">
        <Link to="/sign-in" className="link">
          {t('haveAccount')}
        </Link>
        <Link to="/pricing" className="link">
          {t('pricing')}
        </Link>
      </p>
    </OpenPage>
  )
}

function RegisterForm() {
  const t = useWords(joiningWords)
  const { site } = useSession()
  const form = useForm({
    initial: { name: '', email: '', password: '' },
    async save({ values }) {
      const answer = await post('/api/auth/registration', values)
      if (!answer.ok) throw await errorOf(answer)
      await signedIn()
    },
  })
  return (
    <>
      {site?.notice != null && site.notice !== '' && (
        <p className="mb-4 whitespace-pre-wrap break-words text-muted">{site.notice}</p>
      )}
      <Form of={form} action={t('register')} isNew>
        <NameField form={form} />
        <EmailField form={form} />
        <PasswordField form={form} label={t('password')} />
      </Form>
    </>
  )
}
