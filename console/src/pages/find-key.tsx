// The search for a key by its text.

import { useNavigate } from '@tanstack/react-router'
import { call } from '../api/client.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'

/** Opens the page of the key with this text. The text is in the body of the request and never in an address. */
export function FindKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(keysWords)
  const navigate = useNavigate()
  const form = useForm({
    initial: { key: '' },
    async save({ values: { key } }) {
      const { id } = await call('POST /api/web/keys/find', { body: { key: key.trim() } })
      await navigate({ to: '/keys/$key', params: { key: id } })
    },
  })
  return (
    <Dialog title={t('find')} onClose={onClose}>
      <Form of={form} action={t('findAction')} isNew onCancel={onClose}>
        <TextField form={form} name="key" label={t('findLabel')} hint={t('findHint')} type="password" mono autoFocus />
      </Form>
    </Dialog>
  )
}
