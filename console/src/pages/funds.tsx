// The money of an account: balance, statement, budgets, codes, alert.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { useSession } from '../api/session.ts'
import type { Account } from '../api/types.ts'
import { Budgets } from '../parts/budgets.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Form, MoneyField, TextField, useForm } from '../parts/form.tsx'
import { nanosOf, shortMoney } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Statement } from '../parts/statement.tsx'
import { Empty, Notice, Query } from '../parts/states.tsx'
import { Figures, ShortMoney, State } from '../parts/values.tsx'
import { usePreferences } from '../preferences.ts'
import { useAccount } from '../shell/account.ts'
import { fundsWords } from '../words/en/funds.ts'
import { useWords } from '../words/words.ts'

export function FundsPage() {
  const t = useWords(fundsWords)
  const chosen = useAccount()
  if (chosen === undefined) {
    return (
      <Page title={t('title')} intro={t('intro')}>
        <Empty
          title={t('chooseTitle')}
          action={
            <Link to="/accounts" className="button">
              {t('accounts')}
            </Link>
          }
        >
          {t('chooseText')}
        </Empty>
      </Page>
    )
  }
  return <FundsOf key={chosen.id} id={chosen.id} />
}

function FundsOf({ id }: { readonly id: string }) {
  const t = useWords(fundsWords)
  const may = useMay()
  const [search] = useSearchState()
  const [isRedeeming, setRedeeming] = useState(false)
  const account = useRead('GET /api/web/accounts/{account}', { params: { account: id } })
  const tab = search.tab ?? 'statement'
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('POST /api/web/accounts/{account}/redemptions') && (
          <button type="button" className="button button-main" data-create onClick={() => setRedeeming(true)}>
            <Icon name="codes" />
            {t('redeem')}
          </button>
        )
      }
    >
      <Query of={account}>{data => <Balance account={data} />}</Query>
      <HowToPay />
      <Tabs
        label={t('title')}
        of={[
          { id: 'statement', title: t('statement') },
          { id: 'budgets', title: t('budgets') },
          { id: 'alert', title: t('alert') },
        ]}
      />
      {tab === 'statement' && <Statement account={id} />}
      {tab === 'budgets' && (
        <Section title={t('budgets')} note={t('budgetsNote')}>
          <div className="max-w-xl">
            <Budgets of={{ account: id }} canEdit={may('PUT /api/web/accounts/{account}/budgets/{span}')} />
          </div>
        </Section>
      )}
      {tab === 'alert' && <Alert id={id} canEdit={may('PUT /api/web/accounts/{account}/balance-alert')} />}
      {isRedeeming && <RedeemDialog id={id} onClose={() => setRedeeming(false)} />}
    </Page>
  )
}

function Balance({ account }: { readonly account: Account }) {
  const t = useWords(fundsWords)
  const figures = [
    { name: t('balance'), value: <ShortMoney usd={account.balance} /> },
    { name: t('held'), value: <ShortMoney usd={account.held} />, note: t('heldNote') },
    ...(nanosOf(account.creditLimit) === 0n
      ? []
      : [{ name: t('credit'), value: <ShortMoney usd={account.creditLimit} /> }]),
    {
      name: t('available'),
      value: account.available === null ? t('noLimit') : <ShortMoney usd={account.available} />,
      note: t(account.kind === 'prepaid' ? 'prepaid' : 'postpaid'),
    },
  ]
  return (
    <div className="flex flex-col gap-4">
      {account.frozen && <Notice tone="bad">{t('frozen')}</Notice>}
      {account.kind === 'prepaid' &&
        account.available !== null &&
        nanosOf(account.available) <= 0n &&
        !account.frozen && <Notice>{t('empty')}</Notice>}
      <Figures of={figures} />
    </div>
  )
}

/** What the operator of the site wrote about paying, as plain text. */
function HowToPay() {
  const t = useWords(fundsWords)
  const { language } = usePreferences()
  const texts = useSession().site?.howToPay
  // A text may be there in one language only.
  const text = texts?.[language] || texts?.en || texts?.zh
  if (!text) return null
  return (
    <Section title={t('howToPay')}>
      <p data-raw className="max-w-2xl whitespace-pre-wrap break-words">
        {text}
      </p>
    </Section>
  )
}

function RedeemDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const t = useWords(fundsWords)
  const redeem = useWrite('POST /api/web/accounts/{account}/redemptions', 'accounts', 'statistics')
  const form = useForm({
    initial: { code: '' },
    async save({ values: { code } }) {
      const { amount, balance } = await redeem.mutateAsync({ params: { account: id }, body: { code: code.trim() } })
      say(t('redeemed', { amount: shortMoney(amount), balance: shortMoney(balance) }))
      onClose()
    },
  })
  return (
    <Dialog title={t('redeem')} onClose={onClose}>
      <Form of={form} action={t('redeem')} isNew onCancel={onClose}>
        <TextField form={form} name="code" label={t('code')} hint={t('codeHint')} mono autoFocus />
      </Form>
    </Dialog>
  )
}

const alertTones = { fine: 'ok', low: 'warn', empty: 'bad' } as const

function Alert({ id, canEdit }: { readonly id: string; readonly canEdit: boolean }) {
  const t = useWords(fundsWords)
  const read = useRead('GET /api/web/accounts/{account}/balance-alert', { params: { account: id } })
  return (
    <Section title={t('alert')} note={t('alertNote')}>
      <Query of={read}>
        {({ threshold, state }) => (
          <div className="flex max-w-sm flex-col gap-4">
            {state !== null && <State tone={alertTones[state]}>{t(`alert_${state}`)}</State>}
            <AlertForm key={threshold ?? 'none'} id={id} threshold={threshold ?? ''} canEdit={canEdit} />
          </div>
        )}
      </Query>
    </Section>
  )
}

function AlertForm({
  id,
  threshold,
  canEdit,
}: {
  readonly id: string
  readonly threshold: string
  readonly canEdit: boolean
}) {
  const t = useWords(fundsWords)
  const set = useWrite('PUT /api/web/accounts/{account}/balance-alert', 'accounts')
  const remove = useWrite('DELETE /api/web/accounts/{account}/balance-alert', 'accounts')
  const form = useForm({
    initial: { threshold },
    done: t('alertSaved'),
    save: ({ values }) =>
      values.threshold === ''
        ? remove.mutateAsync({ params: { account: id } })
        : set.mutateAsync({ params: { account: id }, body: { threshold: values.threshold } }),
  })
  return (
    <Form of={form} action={t('saveAlert')} disabled={canEdit ? undefined : t('onlyManagers')}>
      <MoneyField
        form={form}
        name="threshold"
        label={t('threshold')}
        hint={t('thresholdHint')}
        disabled={canEdit ? undefined : t('onlyManagers')}
      />
    </Form>
  )
}
