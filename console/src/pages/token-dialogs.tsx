// The dialogs of a service token. Its text is shown once, when it is created or rotated.

import { useState } from 'react'
import { call } from '../api/client.ts'
import { useWrite } from '../api/reads.ts'
import { isStaff, siteRoles } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { NewServiceToken, ServiceToken } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Form, SelectField, TextField, TimeField, useForm } from '../parts/form.tsx'
import { RotateDialog } from '../parts/rotate-dialog.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import { SecretOnce } from '../parts/secret-once.tsx'
import { useAccount } from '../shell/account.ts'
import { rolesWords } from '../words/en/roles.ts'
import { tokensWords } from '../words/en/tokens.ts'
import { useWords } from '../words/words.ts'

interface DialogProps {
  readonly onClose: () => void
}

interface TokenDialogProps extends DialogProps {
  readonly token: ServiceToken
}

function TokenOnce({ made, onClose }: DialogProps & { readonly made: NewServiceToken }) {
  const t = useWords(tokensWords)
  return (
    <SecretOnce title={t('onceTitle')} text={t('onceText')} secret={made.token} copyLabel={t('copy')} onClose={onClose}>
      <div>
        <h3 className="mb-2">{t('try')}</h3>
        <Code text={`curl ${location.origin}/api/web/keys \\\n  -H "Authorization: Bearer ${made.token}"`} />
      </div>
    </SecretOnce>
  )
}

interface NewToken {
  readonly name: string
  readonly where: 'site' | 'account'
  readonly role: 'support' | 'admin' | 'owner'
  readonly account: string
  readonly accountRole: 'viewer' | 'developer' | 'manager'
  readonly expires: string | null
}

export function NewTokenDialog({ onClose }: DialogProps) {
  const t = useWords(tokensWords)
  const roles = useWords(rolesWords)
  const me = useMe()
  const chosen = useAccount()
  const [made, setMade] = useState<NewServiceToken>()
  const create = useWrite('POST /api/web/service-tokens', 'service-tokens')
  // Nobody can create a token with more rights than their own.
  const siteChoices = siteRoles.slice(1, siteRoles.indexOf(me.role) + 1) as readonly NewToken['role'][]
  const accounts = me.accounts.filter(({ role }) => role === 'manager')
  const initial: NewToken = {
    name: '',
    where: isStaff(me) && chosen === undefined ? 'site' : 'account',
    role: 'support',
    account: chosen?.id ?? accounts[0]?.account ?? '',
    accountRole: 'viewer',
    expires: null,
  }
  const form = useForm<NewToken>({
    initial,
    async save({ values: { name, where, role, account, accountRole, expires } }) {
      const rights = where === 'site' ? { role } : { account: account.trim(), accountRole }
      setMade(await create.mutateAsync({ body: { name, ...rights, expires } }))
    },
  })
  const { where, role, accountRole } = form.values
  if (made !== undefined) return <TokenOnce made={made} onClose={onClose} />
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('create')} isNew onCancel={onClose}>
        <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} autoFocus />
        {siteChoices.length > 0 && (
          <SelectField
            form={form}
            name="where"
            label={t('where')}
            choices={(['site', 'account'] as const).map(value => ({ value, label: t(`where_${value}`) }))}
          />
        )}
        {where === 'site' ? (
          <SelectField
            form={form}
            name="role"
            label={t('role')}
            hint={roles(`about_site_${role}`)}
            choices={siteChoices.map(value => ({ value, label: roles(`site_${value}`) }))}
          />
        ) : (
          <>
            {isStaff(me) ? (
              <TextField form={form} name="account" label={t('account')} hint={t('accountIdHint')} mono />
            ) : (
              <SelectField
                form={form}
                name="account"
                label={t('account')}
                choices={accounts.map(({ account, name }) => ({ value: account, label: name }))}
              />
            )}
            <SelectField
              form={form}
              name="accountRole"
              label={t('role')}
              hint={roles(`about_account_${accountRole}`)}
              choices={(['viewer', 'developer', 'manager'] as const).map(value => ({
                value,
                label: roles(`account_${value}`),
              }))}
            />
          </>
        )}
        <TimeField form={form} name="expires" label={t('expires')} hint={t('expiresHint')} />
      </Form>
    </Dialog>
  )
}

export function EditTokenDialog({ token, onClose }: TokenDialogProps) {
  const t = useWords(tokensWords)
  const update = useWrite('PATCH /api/web/service-tokens/{token}', 'service-tokens')
  const params = { token: token.id }
  const shape = ({ name, expires }: ServiceToken) => ({ name, expires })
  const form = useForm({
    initial: shape(token),
    version: versionOf(token),
    save: ({ changed, ifMatch }) => update.mutateAsync({ params, body: changed, ...matching(ifMatch) }),
    async reload() {
      const now = await call('GET /api/web/service-tokens/{token}', { params })
      return { initial: shape(now), version: versionOf(now) }
    },
    done: t('saved', { name: token.name }),
    onSaved: onClose,
  })
  return (
    <Dialog title={t('editTitle', { name: token.name })} onClose={onClose}>
      <Form of={form} action={t('save')} onCancel={onClose}>
        <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} autoFocus />
        <TimeField form={form} name="expires" label={t('expires')} hint={t('expiresHint')} />
      </Form>
    </Dialog>
  )
}

export function RotateTokenDialog({ token, onClose }: TokenDialogProps) {
  const t = useWords(tokensWords)
  const rotate = useWrite('POST /api/web/service-tokens/{token}/rotate', 'service-tokens')
  const [made, setMade] = useState<NewServiceToken>()
  if (made !== undefined) return <TokenOnce made={made} onClose={onClose} />
  return (
    <RotateDialog
      title={t('rotateTitle', { name: token.name })}
      action={t('rotate')}
      rotate={async body => setMade(await rotate.mutateAsync({ params: { token: token.id }, body }))}
      onClose={onClose}
    />
  )
}
