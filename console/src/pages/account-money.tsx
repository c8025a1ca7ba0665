// Posting money to an account: top-up, gift, correction, refund. Each is confirmed with the amount and the account.

import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useWrite } from '../api/reads.ts'
import type { Account, Posting } from '../api/types.ts'
import { Dialog, Menu } from '../parts/dialog.tsx'
import { Form, MoneyField, TextField, useForm } from '../parts/form.tsx'
import { exactMoney, nanosOf, usdOf } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Notice, useErrorText } from '../parts/states.tsx'
import { Facts } from '../parts/values.tsx'
import { accountsWords } from '../words/en/accounts.ts'
import { isolated } from '../words/isolated.ts'
import { useWords } from '../words/words.ts'

const kinds = ['topUp', 'gift', 'adjustment', 'refund'] as const
type Kind = (typeof kinds)[number]

export function PostMoney({ account }: { readonly account: Account }) {
  const t = useWords(accountsWords)
  const may = useMay()
  const [kind, setKind] = useState<Kind>()
  if (!may('POST /api/web/accounts/{account}/top-ups', account.id)) return null
  return (
    <>
      <button type="button" className="button button-main" onClick={() => setKind('topUp')}>
        <Icon name="plus" />
        {t('topUp')}
      </button>
      <Menu
        label={t('money')}
        className="button px-2"
        items={kinds.slice(1).map(one => ({ label: t(one), icon: 'funds', run: () => setKind(one) }))}
      />
      {kind !== undefined && <PostDialog key={kind} kind={kind} account={account} onClose={() => setKind(undefined)} />}
    </>
  )
}

interface Wanted {
  readonly amount: string
  readonly call: string
  readonly reference: string
}

const isAmount = (text: string, isSigned: boolean): boolean =>
  (isSigned ? /^-?\d{1,9}(\.\d{1,9})?$/ : /^\d{1,9}(\.\d{1,9})?$/).test(text) && nanosOf(text) !== 0n

interface PostDialogProps {
  readonly kind: Kind
  readonly account: Account
  readonly onClose: () => void
}

/** First what, then a question that names the amount and the account. */
function PostDialog({ kind, account, onClose }: PostDialogProps) {
  const t = useWords(accountsWords)
  const [isAsking, setAsking] = useState(false)
  // One key for each opened dialog: pressing twice, or again after a lost answer, books once.
  const [idempotencyKey] = useState(() => crypto.getRandomValues(new Uint32Array(4)).join('-'))
  const form = useForm<Wanted>({
    initial: { amount: '', call: '', reference: '' },
    save: () => Promise.resolve(setAsking(true)),
  })
  const { amount, call, reference } = form.values
  const canGoOn =
    kind === 'refund'
      ? /^req_\w{11}$/.test(call.trim()) && (amount === '' || isAmount(amount, false))
      : isAmount(amount, kind === 'adjustment') && reference.trim() !== ''
  if (isAsking) {
    return (
      <Confirm
        kind={kind}
        account={account}
        wanted={{ amount, call: call.trim(), reference: reference.trim() }}
        idempotencyKey={idempotencyKey}
        onBack={() => setAsking(false)}
        onClose={onClose}
      />
    )
  }
  return (
    <Dialog title={`${t(kind)} · ${isolated(account.name)}`} onClose={onClose}>
      <Form of={form} action={t('next')} isNew onCancel={onClose} disabled={canGoOn ? undefined : ''}>
        <p className="text-muted">{t(`${kind}About`)}</p>
        {kind === 'refund' && <TextField form={form} name="call" label={t('call')} hint={t('callHint')} mono />}
        <MoneyField
          form={form}
          name="amount"
          label={t('amount')}
          {...(kind === 'refund' && { hint: t('refundAmountHint') })}
        />
        <TextField form={form} name="reference" label={t('reason')} hint={t('reasonHint')} />
      </Form>
    </Dialog>
  )
}

interface ConfirmProps extends PostDialogProps {
  readonly wanted: Wanted
  readonly idempotencyKey: string
  readonly onBack: () => void
}

function usePost(): Readonly<
  Record<Kind, (account: string, wanted: Wanted, idempotencyKey: string) => Promise<Posting>>
> {
  const topUp = useWrite('POST /api/web/accounts/{account}/top-ups', 'accounts', 'ledger', 'statistics')
  const gift = useWrite('POST /api/web/accounts/{account}/gifts', 'accounts', 'ledger', 'statistics')
  const adjustment = useWrite('POST /api/web/accounts/{account}/adjustments', 'accounts', 'ledger', 'statistics')
  const refund = useWrite('POST /api/web/accounts/{account}/refunds', 'accounts', 'ledger', 'statistics', 'records')
  const posting =
    (write: typeof topUp | typeof gift | typeof adjustment) =>
    (account: string, { amount, reference }: Wanted, idempotencyKey: string): Promise<Posting> =>
      (write as typeof topUp).mutateAsync({ params: { account }, body: { amount, reference }, idempotencyKey })
  return {
    topUp: posting(topUp),
    gift: posting(gift),
    adjustment: posting(adjustment),
    refund: (account, { amount, call, reference }, idempotencyKey) =>
      refund.mutateAsync({
        params: { account },
        body: { call, ...(amount !== '' && { amount }), ...(reference !== '' && { reference }) },
        idempotencyKey,
      }),
  }
}

function Confirm({ kind, account, wanted, idempotencyKey, onBack, onClose }: ConfirmProps) {
  const t = useWords(accountsWords)
  const textOf = useErrorText()
  const post = usePost()
  const [isRunning, setRunning] = useState(false)
  const [error, setError] = useState<unknown>()
  const [isRepeated, setRepeated] = useState(false)
  const amount = wanted.amount === '' ? t('allOfIt') : exactMoney(wanted.amount)
  const values = { account: account.name, amount }
  const title = kind === 'refund' ? t('refundTitle', { ...values, call: wanted.call }) : t(`${kind}Title`, values)
  const run = async (): Promise<void> => {
    setRunning(true)
    setError(undefined)
    try {
      const posted = await post[kind](account.id, wanted, idempotencyKey)
      if (posted.repeated) return setRepeated(true)
      const { balance } = posted
      say(t('posted', { amount: exactMoney(posted.amount), account: account.name, balance: exactMoney(balance) }))
      onClose()
    } catch (caught) {
      setError(caught)
    } finally {
      setRunning(false)
    }
  }
  const after = wanted.amount === '' ? undefined : usdOf(nanosOf(account.balance) + nanosOf(wanted.amount))
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={event => {
          event.preventDefault()
          void run()
        }}
      >
        <Facts
          of={[
            wanted.reference !== '' && { name: t('reason'), value: wanted.reference },
            { name: t('balanceNow'), value: exactMoney(account.balance) },
            after !== undefined && { name: t('balanceAfter'), value: exactMoney(after) },
          ]}
        />
        <p className="text-muted">{t('postText')}</p>
        {error !== undefined && <Notice tone="bad">{textOf(error)}</Notice>}
        {isRepeated && <Notice>{t('repeated')}</Notice>}
        <div className="flex justify-end gap-2">
          <button type="button" className="button" onClick={onBack}>
            {t('back')}
          </button>
          <button type="submit" className="button button-main" disabled={isRunning || isRepeated}>
            {t(kind)}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
