// The first start: the set-up token of the gateway's log creates the owner.

import type { BodyOf } from '../api/client.ts'
import { errorOf } from '../api/errors.ts'
import { post, signedIn } from '../api/session.ts'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { OpenPage } from '../shell/open-page.tsx'
import { joiningWords } from '../words/en/joining.ts'
import { useWords } from '../words/words.ts'
import { EmailField, NameField, PasswordField } from './joining-fields.tsx'

export function SetUpPage() {
  const t = useWords(joiningWords)
  const form = useForm({
    initial: { token: '', name: '', email: '', password: '' },
    async save({ values }) {
      const body: BodyOf<'POST /api/auth/setup'> = { ...values, token: values.token.trim() }
      const answer = await post('/api/auth/setup', body)
      if (!answer.ok) throw await errorOf(answer)
      await signedIn()
    },
  })
  return (
    <OpenPage title={t('setUpTitle')}>
      <p className="mb-4 text-muted">{t('setUpIntro')}</p>
      <Form of={form} action={t('setUpDone')} isNew>
        <TextField form={form} name="token" label={t('setUpToken')} hint={t('setUpTokenHint')} mono autoFocus />
        <NameField form={form} />
        <EmailField form={form} />
        <PasswordField form={form} label={t('password')} />
      </Form>
    </OpenPage>
  )
}
