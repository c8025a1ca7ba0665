// Creating a key needs one field: its name. The text of the key is shown once, with code for each SDK.

import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { useMe } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form, MoneyField, SelectField, TextField, useForm } from '../parts/form.tsx'
import { nanosOf } from '../parts/format.ts'
import { SecretOnce } from '../parts/secret-once.tsx'
import { Snippets } from '../parts/snippets.tsx'
import { Query, Warnings } from '../parts/states.tsx'
import { useAccount } from '../shell/account.ts'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'

interface AccountChoice {
  readonly value: string
  readonly label: string
  /** Calls would be refused, and the viewer may change that. */
  readonly needsCredit: boolean
}

/** Members choose among their accounts. Staff choose among all, or give the key a new account. */
export function NewKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(keysWords)
  const me = useMe()
  const staff = me.role === 'admin' || me.role === 'owner'
  const all = useRead('GET /api/web/accounts', { query: { limit: 100 } }, { enabled: staff })
  const [made, setMade] = useState<AnswerOf<'POST /api/web/keys'>>()
  if (made !== undefined) return <KeyOnce made={made} onClose={onClose} />
  const own = me.accounts
    .filter(({ role }) => role !== 'viewer')
    .map(({ account, name }) => ({ value: account, label: name, needsCredit: false }))
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      {staff ? (
        <Query of={all}>
          {({ data }) => {
            // An account that is paid afterwards needs no balance for the first call.
            const sorted = [...data].sort(
              (one, other) => Number(other.kind === 'postpaid') - Number(one.kind === 'postpaid'),
            )
            const choices = sorted.map(({ id, name, available }) => ({
              value: id,
              label: name,
              needsCredit: available !== null && nanosOf(available) <= 0n,
            }))
            const withNew = [...choices, { value: '', label: t('ownAccount'), needsCredit: true }]
            return <NewKeyForm choices={withNew} onMade={setMade} onClose={onClose} />
          }}
        </Query>
      ) : (
        <NewKeyForm choices={own} onMade={setMade} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface NewKeyFormProps {
  readonly choices: readonly AccountChoice[]
  readonly onMade: (made: AnswerOf<'POST /api/web/keys'>) => void
  readonly onClose: () => void
}

function NewKeyForm({ choices, onMade, onClose }: NewKeyFormProps) {
  const t = useWords(keysWords)
  const chosen = useAccount()
  const create = useWrite('POST /api/web/keys', 'keys', 'statistics', 'accounts')
  const form = useForm({
    initial: { name: '', account: chosen?.id ?? choices[0]?.value ?? '', credit: '5' },
    async save({ values: { name, account, credit } }) {
      const needsCredit = choices.find(({ value }) => value === account)?.needsCredit === true
      const body = {
        ...(name !== '' && { name }),
        ...(account !== '' && { account }),
        ...(needsCredit && credit !== '' && { credit }),
      }
      onMade(await create.mutateAsync({ body }))
    },
  })
  const needsCredit = choices.find(({ value }) => value === form.values.account)?.needsCredit === true
  return (
    <Form of={form} action={t('create')} isNew onCancel={onClose}>
      <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} autoFocus />
      {choices.length > 1 && (
        <SelectField form={form} name="account" label={t('newAccount')} hint={t('newAccountHint')} choices={choices} />
      )}
      {needsCredit && <MoneyField form={form} name="credit" label={t('credit')} hint={t('creditHint')} />}
    </Form>
  )
}

/** The text of a new key. Leaving before it was copied asks. */
export function KeyOnce({
  made,
  onClose,
}: {
  readonly made: { readonly key: string; readonly warnings?: readonly string[] }
  readonly onClose: () => void
}) {
  const t = useWords(keysWords)
  return (
    <SecretOnce
      title={t('onceTitle')}
      text={t('onceText')}
      secret={made.key}
      copyLabel={t('copyKey')}
      onClose={onClose}
    >
      <Warnings of={made.warnings} />
      <div>
        <h3 className="mb-2">{t('use')}</h3>
        <Snippets keyText={made.key} />
      </div>
    </SecretOnce>
  )
}
