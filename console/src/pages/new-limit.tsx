// A dialog that creates a limit, and says in a sentence what it will do.

import { useId } from 'react'
import { useWrite } from '../api/reads.ts'
import type { Limit } from '../api/types.ts'
import { Dialog } from '../parts/dialog.tsx'
import { FieldError, invalidBy } from '../parts/field-error.tsx'
import { Form, NumberField, SelectField, TextField, useFieldErrors, useForm } from '../parts/form.tsx'
import { wholeNumber } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { SaidLater } from '../parts/said.tsx'
import { Notice } from '../parts/states.tsx'
import { useAccount } from '../shell/account.ts'
import { limitsWords } from '../words/en/limits.ts'
import { useWords } from '../words/words.ts'
import { useLimitTexts } from './limit-text.ts'

interface NewLimit {
  readonly resource: Limit['resource']
  readonly span: 'minute' | 'day'
  readonly amount: number | null
  readonly key: string
  readonly account: string
  readonly tier: string
  readonly model: string
  readonly per: Limit['per']
}

const scopes = ['key', 'account', 'model'] as const

interface NewLimitProps {
  readonly tiers: readonly string[]
  readonly onClose: () => void
}

export function NewLimitDialog({ tiers, onClose }: NewLimitProps) {
  const t = useWords(limitsWords)
  const texts = useLimitTexts()
  const account = useAccount()
  const create = useWrite('POST /api/web/limits', 'limits')
  const form = useForm<NewLimit>({
    initial: {
      resource: 'requests',
      span: 'minute',
      amount: null,
      key: '',
      account: account?.id ?? '',
      tier: '',
      model: '',
      per: [],
    },
    async save({ values }) {
      const { warnings } = await create.mutateAsync({ body: bodyOf(values) })
      say(t('created'))
      for (const warning of warnings) say(warning, { isBad: true })
      onClose()
    },
  })
  const { values } = form
  const isConcurrency = values.resource === 'concurrency'
  const toggle = (scope: (typeof scopes)[number]): void =>
    form.set(
      'per',
      scopes.filter(other => (other === scope) !== values.per.includes(other)),
    )
  const body = bodyOf(values)
  const perId = useId()
  const perError = useFieldErrors(form)('per')
  const sentence =
    values.amount === null
      ? ''
      : t('sentence', {
          amount: wholeNumber(values.amount),
          what: texts.what(body),
          who: texts.who(body),
          shared: texts.shared(body),
        })
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('create')} isNew onCancel={onClose}>
        <div className="grid gap-4 md:grid-cols-2">
          <SelectField
            form={form}
            name="resource"
            label={t('resource')}
            choices={(['requests', 'tokens', 'concurrency'] as const).map(value => ({
              value,
              label: t(`resource_${value}`),
            }))}
          />
          {!isConcurrency && (
            <SelectField
              form={form}
              name="span"
              label={t('span')}
              choices={(['minute', 'day'] as const).map(value => ({ value, label: t(`span_${value}`) }))}
            />
          )}
        </div>
        <NumberField form={form} name="amount" label={t('amount')} />
        <TextField form={form} name="model" label={t('modelField')} hint={t('modelHint')} mono />
        <SelectField
          form={form}
          name="tier"
          label={t('tierField')}
          choices={[{ value: '', label: t('any') }, ...tiers.map(name => ({ value: name, label: name }))]}
        />
        <div className="grid gap-4 md:grid-cols-2">
          <TextField form={form} name="account" label={t('accountField')} hint={t('idHint', { prefix: 'acc' })} mono />
          <TextField form={form} name="key" label={t('keyField')} hint={t('idHint', { prefix: 'key' })} mono />
        </div>
        <fieldset className="flex flex-col gap-1">
          <legend className="font-medium">{t('per')}</legend>
          <div className="flex flex-wrap gap-4">
            {scopes.map(scope => (
              <label key={scope} className="flex min-h-6 items-center gap-2">
                <input
                  type="checkbox"
                  className="size-4 accent-accent"
                  {...invalidBy(perId, perError)}
                  checked={values.per.includes(scope)}
                  onChange={() => toggle(scope)}
                />
                {t(`part_${scope}`)}
              </label>
            ))}
          </div>
          <FieldError id={perId} text={perError} />
          <p className="text-muted text-xs">{t('perHint')}</p>
        </fieldset>
        {sentence !== '' && (
          <Notice tone="accent" isSilent>
            {sentence}
          </Notice>
        )}
        <SaidLater text={sentence} />
      </Form>
    </Dialog>
  )
}

const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim())

const bodyOf = ({ resource, span, amount, key, account, tier, model, per }: NewLimit) => ({
  resource,
  span: resource === 'concurrency' ? null : span,
  amount: amount ?? 0,
  key: orNull(key),
  account: orNull(account),
  tier: orNull(tier),
  model: orNull(model),
  per,
})
