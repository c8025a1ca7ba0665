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
  const chosen = useAccount()
  const staff = me.role === 'admin' || me.role === 'owner'
  const all = useRead('GET /api/web/accounts', { query: { limit: 100 } }, { enabled: staff })
  const [made, setMade] = useState<AnswerOf<'POST /api/web/keys'>>()
  if (made !== undefined) return <KeyOnce made={made} onClose={onClose} />
  const own = me.accounts.filter(({ role }) => role !== 'viewer').map(({ account, name }) => choiceOf(account, name))
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      {staff ? (
        <Query of={all}>
          {({ data }) => {
            const choices = data.map(({ id, name, available }) => ({
              value: id,
              label: name,
              needsCredit: available !== null && nanosOf(available) <= 0n,
            }))
            const listed = new Set(data.map(({ id }) => id))
            // The list has the first accounts only. The chosen one may be another.
            const others = chosen === undefined || listed.has(chosen.id) ? [] : [choiceOf(chosen.id, chosen.name)]
            const withNew = [...choices, ...others, { value: '', label: t('ownAccount'), needsCredit: true }]
            // No account of a customer is chosen in advance: its calls would be paid by the wrong one.
            const account = chosen?.id ?? own.find(({ value }) => listed.has(value))?.value ?? ''
            return <NewKeyForm choices={withNew} account={account} onMade={setMade} onClose={onClose} />
          }}
        </Query>
      ) : (
        <NewKeyForm choices={own} account={chosen?.id ?? own[0]?.value ?? ''} onMade={setMade} onClose={onClose} />
      )}
    </Dialog>
  )
}

const choiceOf = (id: string, name = id): AccountChoice => ({ value: id, label: name, needsCredit: false })

interface NewKeyFormProps {
  readonly choices: readonly AccountChoice[]
  /** The account that is chosen in advance. */
  readonly account: string
  readonly onMade: (made: AnswerOf<'POST /api/web/keys'>) => void
  readonly onClose: () => void
}

function NewKeyForm({ choices, account: preselected, onMade, onClose }: NewKeyFormProps) {
  const t = useWords(keysWords)
  const create = useWrite('POST /api/web/keys', 'keys', 'statistics', 'accounts')
  const form = useForm({
    initial: { name: '', account: preselected, credit: '5' },
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
