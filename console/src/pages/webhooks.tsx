// Webhooks: the list, and a dialog that creates one. Its secret is shown once.

import { useId, useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Webhook } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { FieldError, invalidBy } from '../parts/field-error.tsx'
import type { FormState } from '../parts/form.tsx'
import { Form, SelectField, TextField, useFieldErrors, useForm } from '../parts/form.tsx'
import { Page } from '../parts/page.tsx'
import { NameOrId } from '../parts/rows.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { SecretOnce } from '../parts/secret-once.tsx'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { None, State, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { webhooksWords } from '../words/en/webhooks.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'

type EventName = Webhook['events'][number]
type AccountEvent = Exclude<EventName, 'channel.down' | 'channel.up' | 'ledger.drift'>

const accountEvents: readonly AccountEvent[] = [
  'balance.low',
  'balance.empty',
  'budget.low',
  'key.revoked',
  'account.frozen',
]
const siteEvents: readonly EventName[] = [...accountEvents, 'channel.down', 'channel.up', 'ledger.drift']

/** What an event means, in a sentence. */
export function useEventText(): (event: string) => string {
  const t = useWords(webhooksWords)
  return event => t.find(`event_${event.replaceAll('.', '_')}`) ?? event
}

export function WebhookState({ of: { disabled } }: { readonly of: Pick<Webhook, 'disabled'> }) {
  const t = useWords(webhooksWords)
  return disabled ? <State tone="muted">{t('state_off')}</State> : <State tone="ok">{t('state_on')}</State>
}

export function WebhooksPage() {
  const t = useWords(webhooksWords)
  const account = useAccount()
  const [{ new: isNew }, change] = useSearchState()
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const me = useMe()
  const may = useMay()
  const managed = me.accounts.find(({ role }) => role === 'manager')
  const chosen =
    account === undefined
      ? isStaff(me) || managed === undefined
        ? undefined
        : { id: managed.account, name: managed.name }
      : { id: account.id, name: account.name ?? account.id }
  const canCreate =
    chosen === undefined ? may('POST /api/web/webhooks') : may('POST /api/web/accounts/{account}/webhooks', chosen.id)
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={canCreate && <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>}
    >
      <Table {...(account !== undefined && { account: account.id })} />
      {isCreating && (
        <NewWebhookDialog
          account={chosen}
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

/** The webhooks of one account, on its page. */
export function WebhookList({ account }: { readonly account: { readonly id: string; readonly name: string } }) {
  const t = useWords(webhooksWords)
  const may = useMay()
  const [isCreating, setCreating] = useState(false)
  return (
    <div>
      {may('POST /api/web/accounts/{account}/webhooks', account.id) && (
        <div className="mb-3 flex justify-end">
          <button type="button" className="button" data-create onClick={() => setCreating(true)}>
            {t('create')}
          </button>
        </div>
      )}
      <Table account={account.id} />
      {isCreating && <NewWebhookDialog account={account} onClose={() => setCreating(false)} />}
    </div>
  )
}

function Table({ account }: { readonly account?: string }) {
  const t = useWords(webhooksWords)
  const textOf = useEventText()
  const list = useList('GET /api/web/webhooks', { query: definedOnly({ account }) })
  const columns: readonly Column<Webhook>[] = [
    { id: 'url', title: t('url'), phone: 'main', cell: row => <span title={row.url}>{row.url}</span> },
    { id: 'state', title: t('state'), phone: 'side', cell: row => <WebhookState of={row} /> },
    {
      id: 'events',
      title: t('events'),
      phone: 'note',
      cell: row => (
        <span title={row.events.map(event => `${textOf(event)} (${event})`).join('\n')}>
          {listed(row.events.map(textOf))}
        </span>
      ),
    },
    {
      id: 'account',
      title: t('account'),
      cell: row => (row.account === null ? t('wholeSite') : <NameOrId name={row.accountName} id={row.account} />),
    },
    { id: 'waiting', title: t('waiting'), align: 'right', cell: row => (row.waiting === 0 ? <None /> : row.waiting) },
    {
      id: 'dropped',
      title: t('dropped'),
      align: 'right',
      cell: row => (row.dropped === 0 ? <None /> : <span className="text-bad">{row.dropped}</span>),
    },
    { id: 'created', title: t('created'), cell: row => <Time at={row.created} /> },
  ]
  return (
    <DataTable
      name="webhooks"
      label={t('title')}
      list={list}
      columns={account === undefined ? columns : columns.filter(({ id }) => id !== 'account')}
      rowKey={row => row.id}
      open={row => ({ to: '/webhooks/$id', params: { id: row.id } })}
      empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
    />
  )
}

export interface WebhookFields {
  readonly url: string
  readonly events: readonly EventName[]
}

/** The events that a webhook may have, each with what it means. */
export function EventsField<T extends WebhookFields>({
  form,
  isOfSite,
  disabled,
}: {
  readonly form: FormState<T>
  readonly isOfSite: boolean
  readonly disabled?: string | undefined
}) {
  const t = useWords(webhooksWords)
  const textOf = useEventText()
  const id = useId()
  const error = useFieldErrors(form)('events')
  const chosen = form.values.events
  const order = isOfSite ? siteEvents : accountEvents
  const toggle = (event: EventName): void => {
    const next = chosen.includes(event) ? chosen.filter(one => one !== event) : [...chosen, event]
    form.set('events', order.filter(one => next.includes(one)) as T['events'])
  }
  return (
    <fieldset className="flex flex-col gap-1" disabled={disabled !== undefined}>
      <legend data-field="events" className="mb-1 font-medium">
        {t('events')}
      </legend>
      {order.map(event => (
        <label key={event} htmlFor={`${id}-${event}`} className="flex min-h-6 items-start gap-2">
          <input
            id={`${id}-${event}`}
            type="checkbox"
            className="mt-0.5 size-4 shrink-0 accent-accent"
            {...invalidBy(id, error)}
            checked={chosen.includes(event)}
            onChange={() => toggle(event)}
          />
          <span>
            <span className="font-mono text-xs">{event}</span>
            <span className="block text-muted text-xs">{textOf(event)}</span>
          </span>
        </label>
      ))}
      <FieldError id={id} text={error} />
    </fieldset>
  )
}

interface NewWebhookProps {
  readonly account: { readonly id: string; readonly name: string } | undefined
  readonly onClose: () => void
}

export function WebhookSecretOnce({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  const t = useWords(webhooksWords)
  return (
    <SecretOnce title={t('onceTitle')} text={t('onceText')} secret={secret} copyLabel={t('copy')} onClose={onClose} />
  )
}

interface NewWebhook extends WebhookFields {
  readonly where: 'site' | 'account'
}

function NewWebhookDialog({ account, onClose }: NewWebhookProps) {
  const t = useWords(webhooksWords)
  const may = useMay()
  const [secret, setSecret] = useState<string>()
  const ofSite = useWrite('POST /api/web/webhooks', 'webhooks')
  const ofAccount = useWrite('POST /api/web/accounts/{account}/webhooks', 'webhooks')
  const form = useForm<NewWebhook>({
    initial: { url: '', events: ['balance.low', 'balance.empty'], where: account === undefined ? 'site' : 'account' },
    async save({ values: { url, events, where } }) {
      const body = { url: url.trim(), events: events as readonly AccountEvent[] }
      const made =
        where === 'account' && account !== undefined
          ? await ofAccount.mutateAsync({ params: { account: account.id }, body })
          : await ofSite.mutateAsync({ body })
      setSecret(made.secret)
    },
  })
  if (secret !== undefined) return <WebhookSecretOnce secret={secret} onClose={onClose} />
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('create')} isNew onCancel={onClose}>
        <TextField form={form} name="url" label={t('url')} hint={t('urlHint')} type="url" autoFocus />
        {account !== undefined && may('POST /api/web/webhooks') && (
          <SelectField
            form={form}
            name="where"
            label={t('newForSite')}
            choices={[
              { value: 'account', label: t('for_account', { name: account.name }) },
              { value: 'site', label: t('for_site') },
            ]}
          />
        )}
        <EventsField form={form} isOfSite={form.values.where === 'site'} />
      </Form>
    </Dialog>
  )
}
