// Budgets of an account or a key: how much it may spend in total, in a day, in a month.

import { useState } from 'react'
import { useRead, useWrite } from '../api/reads.ts'
import type { Budget } from '../api/types.ts'
import { budgetsWords } from '../words/en/budgets.ts'
import { useWords } from '../words/words.ts'
import { BudgetLine } from './budget-line.tsx'
import { Dialog, Menu, useQuestion } from './dialog.tsx'
import { Form, MoneyField, SelectField, useForm } from './form.tsx'
import { Icon } from './icons.tsx'
import { say } from './messages.tsx'
import { Query } from './states.tsx'

interface BudgetsProps {
  readonly of: { readonly account: string } | { readonly key: string }
  readonly canEdit: boolean
}

export function Budgets({ of, canEdit }: BudgetsProps) {
  const t = useWords(budgetsWords)
  const isKey = 'key' in of
  const accountRead = useRead(
    'GET /api/web/accounts/{account}/budgets',
    { params: { account: isKey ? '' : of.account } },
    { enabled: !isKey },
  )
  const keyRead = useRead(
    'GET /api/web/keys/{key}/budgets',
    { params: { key: isKey ? of.key : '' } },
    { enabled: isKey },
  )
  const read = isKey ? keyRead : accountRead
  const removeOfAccount = useWrite('DELETE /api/web/accounts/{account}/budgets/{span}', 'accounts')
  const removeOfKey = useWrite('DELETE /api/web/keys/{key}/budgets/{span}', 'keys')
  const [ask, question] = useQuestion()
  const [edited, setEdited] = useState<Budget | 'new'>()
  const remove = (span: Budget['span']): Promise<unknown> =>
    isKey
      ? removeOfKey.mutateAsync({ params: { key: of.key, span } })
      : removeOfAccount.mutateAsync({ params: { account: of.account, span } })
  return (
    <Query of={read}>
      {({ data }) => (
        <div className="flex flex-col gap-3">
          {data.length === 0 && <p className="text-muted">{t(isKey ? 'noneOfKey' : 'noneOfAccount')}</p>}
          {data.map(budget => (
            <div key={budget.span} className="flex items-center gap-2 border-line border-b pb-3">
              <BudgetLine budget={budget} />
              {canEdit && (
                <Menu
                  label={t(`span_${budget.span}`)}
                  items={[
                    { label: t('change'), icon: 'settings', run: () => setEdited(budget) },
                    {
                      label: t('remove'),
                      icon: 'close',
                      isBad: true,
                      run: () =>
                        ask({
                          title: t('removeTitle', { span: t(`span_${budget.span}`) }),
                          children: t('removeText'),
                          action: t('remove'),
                          run: () => remove(budget.span),
                        }),
                    },
                  ]}
                />
              )}
            </div>
          ))}
          {canEdit && data.length < 3 && (
            <div>
              <button type="button" className="button" onClick={() => setEdited('new')}>
                <Icon name="plus" />
                {t('add')}
              </button>
            </div>
          )}
          {question}
          {edited !== undefined && (
            <BudgetDialog
              of={of}
              budget={edited === 'new' ? undefined : edited}
              taken={data.map(({ span }) => span)}
              onClose={() => setEdited(undefined)}
            />
          )}
        </div>
      )}
    </Query>
  )
}

interface DialogProps {
  readonly of: BudgetsProps['of']
  readonly budget: Budget | undefined
  readonly taken: readonly Budget['span'][]
  readonly onClose: () => void
}

const spans = ['day', 'month', 'total'] as const

function BudgetDialog({ of, budget, taken, onClose }: DialogProps) {
  const t = useWords(budgetsWords)
  const setOfAccount = useWrite('PUT /api/web/accounts/{account}/budgets/{span}', 'accounts')
  const setOfKey = useWrite('PUT /api/web/keys/{key}/budgets/{span}', 'keys')
  const free = spans.filter(span => !taken.includes(span))
  const form = useForm({
    initial: { span: budget?.span ?? free[0] ?? ('day' as Budget['span']), cap: budget?.cap ?? '' },
    async save({ values: { span, cap } }) {
      if ('key' in of) await setOfKey.mutateAsync({ params: { key: of.key, span }, body: { cap } })
      else await setOfAccount.mutateAsync({ params: { account: of.account, span }, body: { cap } })
      say(t('saved'))
      onClose()
    },
  })
  return (
    <Dialog title={budget === undefined ? t('add') : t('change')} onClose={onClose}>
      <Form of={form} action={t('save')} isNew onCancel={onClose}>
        <SelectField
          form={form}
          name="span"
          label={t('span')}
          disabled={budget === undefined ? undefined : t('spanFixed')}
          choices={(budget === undefined ? free : [budget.span]).map(value => ({ value, label: t(`span_${value}`) }))}
        />
        <MoneyField form={form} name="cap" label={t('cap')} hint={t('capHint')} />
        <p className="text-muted">{t('key' in of ? 'ofKey' : 'ofAccount')}</p>
      </Form>
    </Dialog>
  )
}
