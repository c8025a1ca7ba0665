// One webhook: its deliveries, a test, its settings and its secret.

import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { useMe } from '../api/session.ts'
import type { Webhook } from '../api/types.ts'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { duration } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { matching, NameOrId, versionOf } from '../parts/rows.tsx'
import { useSearchState } from '../parts/search.ts'
import { Failure, Loading, useErrorText } from '../parts/states.tsx'
import { Facts, Figures, Id, Time } from '../parts/values.tsx'
import { webhooksWords } from '../words/en/webhooks.ts'
import { loadHints } from '../words/hint-words.ts'
import { useWords } from '../words/words.ts'
import { Deliveries } from './webhook-deliveries.tsx'
import type { WebhookFields } from './webhooks.tsx'
import { EventsField, WebhookSecretOnce, WebhookState } from './webhooks.tsx'

export function WebhookPage() {
  const t = useWords(webhooksWords)
  const { id } = useParams({ strict: false } as never) as { readonly id: string }
  const read = useRead('GET /api/web/webhooks/{webhook}', { params: { webhook: id } })
  if (read.data !== undefined) return <OneWebhook webhook={read.data} />
  return (
    <Page title={t('one')} back={{ to: '/webhooks', label: t('title') }}>
      {read.error === null ? <Loading /> : <Failure error={read.error} retry={() => void read.refetch()} />}
    </Page>
  )
}

function OneWebhook({ webhook }: { readonly webhook: Webhook }) {
  const t = useWords(webhooksWords)
  const [{ tab }] = useSearchState()
  const may = useMay()
  const canEdit = may('PATCH /api/web/webhooks/{webhook}', webhook.account ?? undefined)
  return (
    <Page
      title={webhook.url}
      back={{ to: '/webhooks', label: t('title') }}
      actions={canEdit && <Actions webhook={webhook} />}
    >
      <Figures
        of={[
          { name: t('state'), value: <WebhookState of={webhook} />, isWord: true },
          { name: t('waiting'), value: webhook.waiting, note: t('waitingNote') },
          { name: t('dropped'), value: webhook.dropped, note: t('droppedNote') },
        ]}
      />
      <Tabs
        label={t('tabs')}
        of={[
          { id: 'deliveries', title: t('tabDeliveries') },
          { id: 'settings', title: t('tabSettings') },
        ]}
      />
      {tab === 'settings' ? <Settings webhook={webhook} canEdit={canEdit} /> : <Deliveries webhook={webhook} />}
    </Page>
  )
}

function Settings({ webhook, canEdit }: { readonly webhook: Webhook; readonly canEdit: boolean }) {
  const t = useWords(webhooksWords)
  const me = useMe()
  const update = useWrite('PATCH /api/web/webhooks/{webhook}', 'webhooks')
  const params = { webhook: webhook.id }
  const shape = ({ url, events }: Webhook): WebhookFields => ({ url, events })
  const form = useForm<WebhookFields>({
    initial: shape(webhook),
    version: versionOf(webhook),
    save: ({ changed, ifMatch }) => update.mutateAsync({ params, body: changed, ...matching(ifMatch) }),
    async reload() {
      const now = await call('GET /api/web/webhooks/{webhook}', { params })
      return { initial: shape(now), version: versionOf(now) }
    },
    done: t('saved'),
  })
  const whyNot = webhook.managedBy === 'file' ? t('byFile') : canEdit ? undefined : t('supportReads')
  return (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_minmax(0,320px)] lg:gap-12">
      <div className="max-w-lg">
        <Form of={form} action={t('save')} disabled={whyNot}>
          {whyNot !== undefined && <p className="text-muted">{whyNot}</p>}
          <TextField
            form={form}
            name="url"
            label={t('url')}
            hint={me.role === 'support' ? t('urlMasked') : t('urlHint')}
            type="url"
            disabled={whyNot}
          />
          <EventsField form={form} isOfSite={webhook.account === null} disabled={whyNot} />
        </Form>
      </div>
      <Facts
        of={[
          {
            name: t('account'),
            value:
              webhook.account === null ? t('wholeSite') : <NameOrId name={webhook.accountName} id={webhook.account} />,
          },
          { name: t('author'), value: <NameOrId name={undefined} id={webhook.author} /> },
          { name: t('created'), value: <Time at={webhook.created} /> },
          { name: 'ID', value: <Id id={webhook.id} /> },
        ]}
      />
    </div>
  )
}

type Tested = Awaited<ReturnType<typeof sendTest>>
const sendTest = (webhook: string) => call('POST /api/web/webhooks/{webhook}/test', { params: { webhook } })

function Actions({ webhook }: { readonly webhook: Webhook }) {
  const t = useWords(webhooksWords)
  const textOf = useErrorText()
  const navigate = useNavigate()
  const [ask, question] = useQuestion()
  const [secret, setSecret] = useState<string>()
  const test = useWrite('POST /api/web/webhooks/{webhook}/test', 'webhooks')
  const update = useWrite('PATCH /api/web/webhooks/{webhook}', 'webhooks')
  const renew = useWrite('POST /api/web/webhooks/{webhook}/secret', 'webhooks')
  const remove = useWrite('DELETE /api/web/webhooks/{webhook}', 'webhooks')
  const params = { webhook: webhook.id }
  const isOwn = webhook.managedBy !== 'file'
  const failed = (error: unknown): void => say(textOf(error), { isBad: true })
  const report = async ({ delivered, status, ms, error, errorHint }: Tested): Promise<void> => {
    if (delivered) return say(t('tested', { status: status ?? '', ms: duration(ms) }))
    const reason = (await loadHints())?.write(errorHint) ?? error ?? String(status ?? t('noAnswer'))
    say(t('testFailed', { error: reason }), { isBad: true })
  }
  const setDisabled = (disabled: boolean): void =>
    update.mutate(
      { params, body: { disabled } },
      { onSuccess: () => say(t(disabled ? 'disabled' : 'enabled')), onError: failed },
    )
  return (
    <>
      <button
        type="button"
        className="button button-main"
        disabled={test.isPending}
        onClick={() => test.mutate({ params }, { onSuccess: report, onError: failed })}
      >
        {test.isPending ? t('testRunning') : t('test')}
      </button>
      <Menu
        label={t('one')}
        className="button px-2"
        items={[
          isOwn && {
            label: webhook.disabled ? t('enable') : t('disable'),
            icon: webhook.disabled ? 'play' : 'pause',
            run: () => setDisabled(!webhook.disabled),
          },
          isOwn && {
            label: t('newSecret'),
            icon: 'refresh',
            run: () =>
              ask({
                title: t('newSecretTitle'),
                children: t('newSecretText', { url: webhook.url }),
                action: t('newSecret'),
                run: async () => setSecret((await renew.mutateAsync({ params })).secret),
              }),
          },
          isOwn && {
            label: t('remove'),
            icon: 'close',
            isBad: true,
            run: () =>
              ask({
                title: t('removeTitle', { url: webhook.url }),
                children: t('removeText'),
                action: t('remove'),
                run: async () => {
                  await remove.mutateAsync({ params })
                  say(t('removed'))
                  await navigate({ to: '/webhooks' })
                },
              }),
          },
        ]}
      />
      {question}
      {secret !== undefined && <WebhookSecretOnce secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  )
}
