// The deliveries of a webhook, and one of them in a panel.

import { useMay } from '../api/may.ts'
import { useList, useRead, useWrite } from '../api/reads.ts'
import type { Webhook, WebhookDelivery } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { Panel } from '../parts/dialog.tsx'
import { duration } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty, Query, useErrorText } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { useHints } from '../parts/use-hints.ts'
import type { Tone } from '../parts/values.tsx'
import { Facts, Id, None, State, Time } from '../parts/values.tsx'
import { webhooksWords } from '../words/en/webhooks.ts'
import { useWords } from '../words/words.ts'
import { useEventText } from './webhooks.tsx'

const tones: Readonly<Record<WebhookDelivery['state'], Tone>> = { delivered: 'ok', waiting: 'warn', 'given up': 'bad' }

function DeliveryState({ state }: Pick<WebhookDelivery, 'state'>) {
  const t = useWords(webhooksWords)
  return <State tone={tones[state]}>{t(`delivery_${state === 'given up' ? 'given_up' : state}`)}</State>
}

/** Why a delivery failed, in the language of the viewer. */
function useDeliveryError({ error, errorHint }: Pick<WebhookDelivery, 'error' | 'errorHint'>): string | null {
  return useHints(errorHint !== null)(words => words.write(errorHint), error)
}

/** The status, or why there is none. */
function Answer({ of }: { readonly of: WebhookDelivery }) {
  const { status } = of
  const error = useDeliveryError(of)
  if (status === null && error === null) return <None />
  return (
    <span title={error ?? undefined} className={status !== null && status < 300 ? '' : 'text-bad'}>
      {[status, error].filter(part => part !== null).join(' · ')}
    </span>
  )
}

export function Deliveries({ webhook }: { readonly webhook: Webhook }) {
  const t = useWords(webhooksWords)
  const textOf = useEventText()
  const [{ delivery }, change] = useSearchState()
  const list = useList(
    'GET /api/web/webhooks/{webhook}/deliveries',
    { params: { webhook: webhook.id } },
    { everyMs: 15_000 },
  )
  const columns: readonly Column<WebhookDelivery>[] = [
    {
      id: 'event',
      title: t('event'),
      phone: 'main',
      cell: row => <span title={row.event}>{textOf(row.event)}</span>,
    },
    { id: 'state', title: t('deliveryState'), phone: 'side', cell: row => <DeliveryState state={row.state} /> },
    { id: 'made', title: t('made'), phone: 'note', cell: row => <Time at={row.made} /> },
    { id: 'attempts', title: t('attempts'), align: 'right', cell: row => row.attempts },
    { id: 'answer', title: t('answer'), phone: 'note', cell: row => <Answer of={row} /> },
    { id: 'ms', title: t('took'), align: 'right', cell: row => duration(row.ms) },
    { id: 'next', title: t('next'), cell: row => (row.next === null ? <None /> : <Time at={row.next} isAge />) },
  ]
  const open = list.rows.find(row => row.id === delivery)
  return (
    <>
      <DataTable
        name="deliveries"
        label={t('deliveries')}
        list={list}
        columns={columns}
        rowKey={row => row.id}
        current={delivery}
        open={row => ({ to: '.', search: ((old: object) => ({ ...old, delivery: row.id })) as never })}
        empty={<Empty title={t('deliveriesNone')}>{t('deliveriesNoneText')}</Empty>}
      />
      {open !== undefined && (
        <DeliveryPanel webhook={webhook} delivery={open} onClose={() => change({ delivery: undefined })} />
      )}
    </>
  )
}

interface PanelProps {
  readonly webhook: Webhook
  readonly delivery: WebhookDelivery
  readonly onClose: () => void
}

function DeliveryPanel({ webhook, delivery, onClose }: PanelProps) {
  const t = useWords(webhooksWords)
  const may = useMay()
  const textOf = useEventText()
  const errorText = useErrorText()
  const error = useDeliveryError(delivery)
  const params = { webhook: webhook.id, delivery: delivery.id }
  const sent = useRead('GET /api/web/webhooks/{webhook}/deliveries/{delivery}', { params })
  const again = useWrite('POST /api/web/webhooks/{webhook}/deliveries/{delivery}/send-again', 'webhooks')
  const canSend = may('POST /api/web/webhooks/{webhook}/deliveries/{delivery}/send-again', webhook.account ?? undefined)
  return (
    <Panel
      title={`${t('delivery')} · ${textOf(delivery.event)}`}
      onClose={onClose}
      actions={
        canSend &&
        !webhook.disabled && (
          <button
            type="button"
            className="button"
            disabled={again.isPending}
            onClick={() =>
              again.mutate(
                { params },
                {
                  onSuccess: () => say(t('sentAgain')),
                  onError: fault => say(errorText(fault), { isBad: true }),
                },
              )
            }
          >
            <Icon name="refresh" />
            {t('sendAgain')}
          </button>
        )
      }
    >
      <div className="flex flex-col gap-4">
        <Facts
          of={[
            {
              name: t('event'),
              value: (
                <>
                  {textOf(delivery.event)} <code className="text-muted text-xs">{delivery.event}</code>
                </>
              ),
            },
            { name: t('deliveryState'), value: <DeliveryState state={delivery.state} /> },
            { name: t('made'), value: <Time at={delivery.made} /> },
            { name: t('attempts'), value: delivery.attempts },
            { name: t('tried'), value: <Time at={delivery.tried} /> },
            { name: t('answer'), value: delivery.status ?? <None /> },
            { name: t('error'), value: error ?? <None /> },
            { name: t('took'), value: duration(delivery.ms) },
            { name: t('next'), value: <Time at={delivery.next} /> },
            { name: 'ID', value: <Id id={delivery.id} /> },
          ]}
        />
        <Section title={t('sent')} note={t('sentNote')}>
          <Query of={sent}>
            {({ request: { url, headers, body } }) => (
              <Code
                text={[
                  `POST ${url}`,
                  ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
                  '',
                  JSON.stringify(JSON.parse(body), null, 2),
                ].join('\n')}
              />
            )}
          </Query>
        </Section>
      </div>
    </Panel>
  )
}
