// The list of channels with their health, changes to many of them at once, and a dialog that adds one and tests it.

import { lazy, Suspense, useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useRead, useWrite } from '../api/reads.ts'
import type { Channel } from '../api/types.ts'
import { ChannelHealth, healthStates, Reason } from '../parts/channel-health.tsx'
import { CreateButton } from '../parts/create-button.tsx'
import type { MenuItem } from '../parts/dialog.tsx'
import { Menu } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { duration, wholeNumber } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, useErrorText } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Id, None, TagsLine } from '../parts/values.tsx'
import { channelsWords } from '../words/en/channels.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { useWords } from '../words/words.ts'

// Forms are not needed for the list.
const ChangeManyDialog = lazy(async () => ({ default: (await import('./channels-bulk.tsx')).ChangeManyDialog }))
const NewChannelDialog = lazy(async () => ({ default: (await import('./new-channel.tsx')).NewChannelDialog }))

interface Search {
  readonly provider?: string
  readonly from?: Channel['from']
  readonly state?: Channel['state']
  readonly tag?: string
  readonly health?: string
  readonly text?: string
  readonly sort?: 'id' | '-id'
  readonly new?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['text', 'provider', 'health', 'state', 'tag', 'from'] as const

const channelName = ({ name, id }: Pick<Channel, 'name' | 'id'>): string => name ?? id

export function useChannelColumns(): readonly Column<Channel>[] {
  const t = useWords(channelsWords)
  return [
    {
      id: 'name',
      title: t('name'),
      sort: 'id',
      phone: 'main',
      cell: channel => <span title={channelName(channel)}>{channelName(channel)}</span>,
      maxWidth: 280,
    },
    {
      id: 'health',
      title: t('health'),
      cell: channel => <ChannelHealth channel={channel} />,
      phone: 'side',
    },
    { id: 'provider', title: t('provider'), cell: ({ provider }) => provider, phone: 'note' },
    { id: 'priority', title: t('priority'), align: 'right', cell: ({ priority }) => wholeNumber(priority) },
    { id: 'weight', title: t('weight'), align: 'right', cell: ({ weight }) => wholeNumber(weight) },
    {
      id: 'active',
      title: t('active'),
      align: 'right',
      cell: ({ health }) => (health === null ? <None /> : wholeNumber(health.activeCalls)),
    },
    {
      id: 'first',
      title: t('first'),
      align: 'right',
      cell: ({ health }) => duration(health?.firstMs ?? null),
    },
    {
      id: 'failure',
      title: t('lastFailure'),
      cell: ({ health }) =>
        health?.lastFailure == null ? (
          <None />
        ) : (
          <Reason code={health.lastFailure.verdict} forMs={health.lastFailure.agoMs} />
        ),
      isOptional: true,
    },
    {
      id: 'caps',
      title: t('caps'),
      cell: ({ requestsPerMinute, tokensPerMinute, concurrency }) =>
        requestsPerMinute === null && tokensPerMinute === null && concurrency === null ? (
          <None />
        ) : (
          t('capsOf', {
            rpm: requestsPerMinute ?? '∞',
            tpm: tokensPerMinute ?? '∞',
            concurrency: concurrency ?? '∞',
          })
        ),
      isOptional: true,
    },
    { id: 'tags', title: t('tags'), cell: ({ tags }) => <TagsLine of={tags} /> },
    { id: 'from', title: t('from'), cell: ({ from }) => t(`from_${from}`), isOptional: true },
    { id: 'id', title: t('id'), cell: ({ id }) => <Id id={id} />, isOptional: true },
  ]
}

export function ChannelsPage() {
  const t = useWords(channelsWords)
  const reasons = useWords(reasonsWords)
  const [{ provider, from, state, tag, health, text, sort, new: isNew }, change] = useSearchState<Search>()
  const may = useMay()
  const canEdit = may('PATCH /api/web/channels/{channel}')
  const query = { provider, from, state, tag, health, text, sort, limit: 200 }
  const list = useList('GET /api/web/channels', { query: definedOnly(query) }, { everyMs: 15_000 })
  const providers = useRead('GET /api/web/providers', { query: { limit: 200 } })
  const columns = useChannelColumns()
  const rowItems = useRowItems()
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const withChannels = (providers.data?.data ?? []).filter(one => one.channels > 0 || one.id === provider)
  const open = (): void => setCreating(true)
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={may('POST /api/web/channels') && <CreateButton onClick={open}>{t('create')}</CreateButton>}
    >
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <TextFilter name="text" label={t('text')} />
          <SelectFilter
            name="provider"
            label={t('provider')}
            choices={withChannels.map(({ id, name }) => ({ value: id, label: name }))}
          />
          <SelectFilter
            name="health"
            label={t('health')}
            choices={healthStates.map(value => ({ value, label: reasons(value) }))}
          />
          <SelectFilter
            name="state"
            label={t('state')}
            choices={(['enabled', 'disabled', 'unusable', 'gone'] as const).map(value => ({
              value,
              label: t(`state_${value}`),
            }))}
          />
          <TextFilter name="tag" label={t('tag')} width={110} />
          <SelectFilter
            name="from"
            label={t('from')}
            choices={(['stored', 'environment'] as const).map(value => ({ value, label: t(`from_${value}`) }))}
          />
        </FilterBar>
        {canEdit && <BulkBar channels={list.rows} selected={selected} onDone={() => setSelected(new Set())} />}
        <DataTable
          name="channels"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={({ id }) => id}
          rowName={channelName}
          open={({ id }) => ({ to: '/channels/$id', params: { id } })}
          filters={FILTERS}
          {...(canEdit && { selected, onSelect: setSelected })}
          empty={
            <Empty
              title={t('emptyTitle')}
              action={
                may('POST /api/web/channels') && (
                  <button type="button" className="button" onClick={open}>
                    {t('create')}
                  </button>
                )
              }
              command="echo sk-from-the-vault | weir channels create openai --name first"
            >
              {t('emptyText')}
            </Empty>
          }
          actions={channel => <Menu label={channelName(channel)} items={rowItems(channel)} />}
        />
      </div>
      <Suspense>
        {isCreating && (
          <NewChannelDialog
            provider={isNew}
            providers={providers}
            onClose={() => {
              setCreating(false)
              change({ new: undefined })
            }}
          />
        )}
      </Suspense>
    </Page>
  )
}

/** What can be done with a channel from the list. */
function useRowItems(): (channel: Channel) => readonly (MenuItem | false)[] {
  const t = useWords(channelsWords)
  const may = useMay()
  const textOf = useErrorText()
  const enable = useWrite('POST /api/web/channels/{channel}/enable', 'channels')
  const disable = useWrite('POST /api/web/channels/{channel}/disable', 'channels')
  const reset = useWrite('POST /api/web/channels/{channel}/reset-health', 'channels')
  const onError = (error: unknown): void => say(textOf(error), { isBad: true })
  return channel => {
    const request = { params: { channel: channel.id }, ifMatch: channel.version }
    const isOpen = channel.managedBy === null
    return [
      may('POST /api/web/channels/{channel}/enable') &&
        isOpen &&
        (channel.disabled
          ? {
              label: t('enable'),
              icon: 'play',
              run: () => enable.mutate(request, { onSuccess: () => say(t('enabled', { n: 1 })), onError }),
            }
          : {
              label: t('disable'),
              icon: 'pause',
              run: () => disable.mutate(request, { onSuccess: () => say(t('disabled', { n: 1 })), onError }),
            }),
      may('POST /api/web/channels/{channel}/reset-health') &&
        channel.health !== null && {
          label: t('resetHealth'),
          icon: 'refresh',
          run: () =>
            reset.mutate(
              { params: { channel: channel.id } },
              { onSuccess: () => say(t('healthReset', { name: channelName(channel) })), onError },
            ),
        },
    ]
  }
}

interface BulkBarProps {
  readonly channels: readonly Channel[]
  readonly selected: ReadonlySet<string>
  readonly onDone: () => void
}

/** Actions for the chosen channels: all of them are changed, or none. */
function BulkBar({ channels, selected, onDone }: BulkBarProps) {
  const t = useWords(channelsWords)
  const textOf = useErrorText()
  const bulk = useWrite('POST /api/web/channels/bulk', 'channels')
  const [isChanging, setChanging] = useState(false)
  const chosen = channels.filter(({ id }) => selected.has(id))
  if (chosen.length === 0) return null
  const open = chosen.filter(({ managedBy }) => managedBy === null)
  const ids = open.map(({ id, version }) => ({ id, version }))
  const turn = (disabled: boolean): void =>
    bulk.mutate(
      { body: { channels: ids, change: { disabled } } },
      {
        onSuccess: ({ warnings }) => {
          say(t(disabled ? 'disabled' : 'enabled', { n: ids.length }))
          for (const warning of warnings) say(warning, { isBad: true })
          onDone()
        },
        onError: error => say(textOf(error), { isBad: true }),
      },
    )
  return (
    <div className="mb-2 flex flex-wrap items-center gap-2 rounded bg-accent-soft px-3 py-1.5">
      <span role="status" className="font-medium">
        {t('chosen', { n: chosen.length })}
      </span>
      {open.length < chosen.length && (
        <span className="text-muted">{t('fileSkipped', { n: chosen.length - open.length })}</span>
      )}
      {open.length > 0 && (
        <>
          <button type="button" className="button" onClick={() => turn(false)}>
            {t('enable')}
          </button>
          <button type="button" className="button" onClick={() => turn(true)}>
            {t('disable')}
          </button>
          <button type="button" className="button" onClick={() => setChanging(true)}>
            {t('changeMany')}
          </button>
        </>
      )}
      <button type="button" className="button button-quiet" onClick={onDone}>
        {t('clearChoice')}
      </button>
      <Suspense>
        {isChanging && <ChangeManyDialog channels={ids} onClose={() => setChanging(false)} onDone={onDone} />}
      </Suspense>
    </div>
  )
}
