// One account. Members open their own at /account, staff open any at /accounts/$id.

import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { useMe } from '../api/session.ts'
import type { Account } from '../api/types.ts'
import { useQuestion } from '../parts/dialog.tsx'
import { Form, LinesField, MoneyField, SelectField, SwitchField, TextField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { matching, versionOf } from '../parts/rows.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty, Failure, Loading, Notice, useErrorText, Warnings } from '../parts/states.tsx'
import { Facts, Figures, Id, ShortMoney, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { accountsWords } from '../words/en/accounts.ts'
import { useWords } from '../words/words.ts'
import { Members } from './account-members.tsx'
import { PostMoney } from './account-money.tsx'
import { AccountState } from './accounts.tsx'
import { WebhookList } from './webhooks.tsx'

export function OwnAccountPage() {
  const t = useWords(accountsWords)
  const me = useMe()
  const chosen = useAccount() ?? me.accounts.map(({ account, name }) => ({ id: account, name }))[0]
  if (chosen !== undefined) return <AccountOf key={chosen.id} id={chosen.id} />
  return (
    <Page title={t('ownTitle')}>
      <Empty title={t('noAccount')}>{t('noAccountText')}</Empty>
    </Page>
  )
}

export function AccountPage() {
  const { id } = useParams({ strict: false } as never) as { readonly id: string }
  return <AccountOf key={id} id={id} isOfStaff />
}

interface AccountOfProps {
  readonly id: string
  readonly isOfStaff?: boolean
}

function AccountOf({ id, isOfStaff = false }: AccountOfProps) {
  const t = useWords(accountsWords)
  const [{ tab }] = useSearchState()
  const read = useRead('GET /api/web/accounts/{account}', { params: { account: id } })
  const may = useMay()
  const account = read.data
  const back = isOfStaff ? { back: { to: '/accounts', label: t('title') } as const } : {}
  if (account === undefined) {
    return (
      <Page title={t('ownTitle')} {...back}>
        {read.error === null ? <Loading /> : <Failure error={read.error} retry={() => void read.refetch()} />}
      </Page>
    )
  }
  const tabs = [
    { id: 'account', title: t('tabAccount') },
    { id: 'members', title: t('tabMembers') },
    ...(may('GET /api/web/webhooks', id) ? [{ id: 'webhooks', title: t('tabWebhooks') }] : []),
  ]
  return (
    <Page title={account.name} {...back} actions={<PostMoney account={account} />}>
      {account.frozen && <Notice tone="bad">{t.rich('isFrozen', { time: <Time at={account.frozenSince} /> })}</Notice>}
      <Tabs label={t('tabs')} of={tabs} />
      {tab === 'members' ? (
        <Members account={account} />
      ) : tab === 'webhooks' ? (
        <WebhookList account={{ id: account.id, name: account.name }} />
      ) : (
        <Main account={account} />
      )}
    </Page>
  )
}

function Main({ account }: { readonly account: Account }) {
  const t = useWords(accountsWords)
  const { kind } = account
  return (
    <>
      <Figures
        of={[
          { name: t('balance'), value: <ShortMoney usd={account.balance} />, note: t(`kind_${kind}`) },
          {
            name: t('available'),
            value: account.available === null ? t('unlimited') : <ShortMoney usd={account.available} />,
            note: t('availableNote'),
          },
          { name: t('held'), value: <ShortMoney usd={account.held} />, note: t('heldNote') },
          ...(kind === 'prepaid' ? [{ name: t('credit'), value: <ShortMoney usd={account.creditLimit} /> }] : []),
        ]}
      />
      <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_minmax(0,320px)] lg:gap-12">
        <Section title={t('settings')}>
          <div className="max-w-lg">
            <SettingsForm account={account} />
          </div>
        </Section>
        <div className="flex flex-col gap-6 max-lg:order-first">
          <Section title={t('related')}>
            <Related account={account} />
          </Section>
          <Facts
            of={[
              { name: t('state'), value: <AccountState frozen={account.frozen} /> },
              { name: t('type'), value: t(`type_${account.type}`) },
              { name: t('created'), value: <Time at={account.created} /> },
              { name: 'ID', value: <Id id={account.id} /> },
            ]}
          />
          <Freeze account={account} />
        </div>
      </div>
    </>
  )
}

function Related({ account: { id } }: { readonly account: Account }) {
  const t = useWords(accountsWords)
  const may = useMay()
  const search = { account: id }
  const links = [
    { to: '/keys', label: t('keys'), isShown: may('GET /api/web/keys', id) },
    { to: '/records', label: t('records'), isShown: may('GET /api/web/records', id) },
    { to: '/usage', label: t('usage'), isShown: may('GET /api/web/statistics/summary', id) },
    { to: '/funds', label: t('funds'), isShown: may('GET /api/web/accounts/{account}/statement', id) },
    { to: '/tokens', label: t('tokens'), isShown: may('GET /api/web/service-tokens', id) },
    { to: '/audit', label: t('audit'), isShown: may('GET /api/web/audit-log', id) },
  ] as const
  return (
    <ul className="flex flex-wrap gap-x-4 gap-y-1">
      {links
        .filter(({ isShown }) => isShown)
        .map(({ to, label }) => (
          <li key={to}>
            <Link to={to} search={search as never} className="link inline-flex min-h-6 items-center">
              {label}
            </Link>
          </li>
        ))}
    </ul>
  )
}

interface AccountSettings extends Pick<Account, 'name' | 'kind' | 'creditLimit' | 'keepsBodies' | 'allows' | 'denies'> {
  /** Empty: the default tier. */
  readonly tier: string
}

const settingsOf = ({ name, kind, creditLimit, keepsBodies, tier, allows, denies }: Account): AccountSettings => ({
  name,
  kind,
  creditLimit,
  keepsBodies,
  tier: tier ?? '',
  allows,
  denies,
})

const bodyOf = ({ tier, ...changed }: Partial<AccountSettings>) => ({
  ...changed,
  ...(tier !== undefined && { tier: tier === '' ? null : tier }),
})

function SettingsForm({ account }: { readonly account: Account }) {
  const t = useWords(accountsWords)
  const me = useMe()
  const may = useMay()
  const tiers = useRead('GET /api/web/tiers')
  const update = useWrite('PATCH /api/web/accounts/{account}', 'accounts', 'statistics')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const params = { account: account.id }
  const isAdmin = me.role === 'admin' || me.role === 'owner'
  const byFile = account.managedBy === 'file' ? t('byFile') : undefined
  const form = useForm<AccountSettings>({
    initial: settingsOf(account),
    version: versionOf(account),
    async save({ changed, ifMatch }) {
      const saved = await update.mutateAsync({ params, body: bodyOf(changed), ...matching(ifMatch) })
      setWarnings(saved.warnings)
    },
    async reload() {
      const now = await call('GET /api/web/accounts/{account}', { params })
      return { initial: settingsOf(now), version: versionOf(now) }
    },
    done: t('saved', { name: account.name }),
  })
  const whyNot = byFile ?? (may('PATCH /api/web/accounts/{account}', account.id) ? undefined : t('managerOnly'))
  const adminOnly = whyNot ?? (isAdmin ? undefined : t('adminOnly'))
  const tierNames = (tiers.data?.data ?? []).map(({ name }) => name)
  const tierChoices = [...new Set([...tierNames, ...(account.tier === null ? [] : [account.tier])])]
  return (
    <Form of={form} action={t('save')} disabled={whyNot}>
      <Warnings of={warnings} />
      {whyNot !== undefined && <p className="text-muted">{whyNot}</p>}
      <TextField form={form} name="name" label={t('name')} disabled={account.type === 'team' ? adminOnly : whyNot} />
      <SelectField
        form={form}
        name="kind"
        label={t('kind')}
        hint={t('kindHint')}
        disabled={adminOnly}
        choices={(['prepaid', 'postpaid'] as const).map(value => ({ value, label: t(`kind_${value}`) }))}
      />
      {form.values.kind === 'prepaid' && (
        <MoneyField form={form} name="creditLimit" label={t('credit')} hint={t('creditHint')} disabled={adminOnly} />
      )}
      <SelectField
        form={form}
        name="tier"
        label={t('tier')}
        hint={t('tierHint')}
        disabled={adminOnly}
        choices={[{ value: '', label: t('tierDefault') }, ...tierChoices.map(value => ({ value, label: value }))]}
      />
      <LinesField form={form} name="allows" label={t('allows')} hint={t('allowsHint')} disabled={whyNot} />
      <LinesField form={form} name="denies" label={t('denies')} hint={t('deniesHint')} disabled={whyNot} />
      <SwitchField
        form={form}
        name="keepsBodies"
        label={t('keepsBodies')}
        hint={t('keepsBodiesHint')}
        disabled={whyNot}
      />
    </Form>
  )
}

function Freeze({ account }: { readonly account: Account }) {
  const t = useWords(accountsWords)
  const me = useMe()
  const textOf = useErrorText()
  const [ask, question] = useQuestion()
  const update = useWrite('PATCH /api/web/accounts/{account}', 'accounts')
  const { name } = account
  if (me.role !== 'admin' && me.role !== 'owner') return null
  const set = async (frozen: boolean): Promise<void> => {
    await update.mutateAsync({ params: { account: account.id }, body: { frozen } })
    say(t(frozen ? 'frozen' : 'unfrozen', { name }))
  }
  return (
    <div>
      {account.frozen ? (
        <button
          type="button"
          className="button"
          disabled={update.isPending}
          onClick={() => void set(false).catch(error => say(textOf(error), { isBad: true }))}
        >
          {t('unfreeze')}
        </button>
      ) : (
        <button
          type="button"
          className="button button-bad"
          onClick={() =>
            ask({
              title: t('freezeTitle', { name }),
              children: t('freezeText'),
              action: t('freeze'),
              run: () => set(true),
            })
          }
        >
          {t('freeze')}
        </button>
      )}
      {question}
    </div>
  )
}
