// The fields of the forms in which a person joins, and the token of a link.

import { useEffect, useState } from 'react'
import type { FormState } from '../parts/form.tsx'
import { TextField } from '../parts/form.tsx'
import { joiningWords } from '../words/en/joining.ts'
import { useWords } from '../words/words.ts'

interface Person {
  readonly name: string
  readonly email: string
  readonly password: string
}

type FormWith<K extends keyof Person> = FormState<Pick<Person, K>>

export function NameField<T extends Pick<Person, 'name'>>({ form }: { readonly form: FormState<T> }) {
  const t = useWords(joiningWords)
  return (
    <TextField
      form={form as unknown as FormWith<'name'>}
      name="name"
      label={t('name')}
      hint={t('nameHint')}
      autoComplete="name"
    />
  )
}

export function EmailField<T extends Pick<Person, 'email'>>({ form }: { readonly form: FormState<T> }) {
  const t = useWords(joiningWords)
  return (
    <TextField
      form={form as unknown as FormWith<'email'>}
      name="email"
      label={t('email')}
      hint={t('emailHint')}
      type="email"
      autoComplete="username"
    />
  )
}

export function PasswordField<T extends Pick<Person, 'password'>>({
  form,
  label,
}: {
  readonly form: FormState<T>
  readonly label: string
}) {
  const t = useWords(joiningWords)
  return (
    <TextField
      form={form as unknown as FormWith<'password'>}
      name="password"
      label={label}
      hint={t('passwordHint')}
      type="password"
      autoComplete="new-password"
    />
  )
}

// A page may be left for signing in and come back, so the token of the last link is kept while the tab is open.
let lastToken: string | undefined

/** The token behind `#`. It is removed from the address at once, so that nobody copies or bookmarks it. */
export function useLinkToken(): string | undefined {
  const [token] = useState(() => {
    if (location.hash.length > 1) lastToken = decodeURIComponent(location.hash.slice(1))
    return lastToken
  })
  useEffect(() => {
    if (location.hash !== '') history.replaceState(history.state, '', location.pathname + location.search)
  }, [])
  return token
}

/** The link was used. */
export const forgetLinkToken = (): void => {
  lastToken = undefined
}
