// The live page: calls under way by channel, and calls as they end.

import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import type { LiveCall } from '../api/live.ts'
import { useLive } from '../api/live.ts'
import type { List } from '../api/reads.ts'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Icon } from '../parts/icons.tsx'
import { outcomeNames, useOutcomeName } from '../parts/outcome.tsx'
import { Page, Section } from '../parts/page.tsx'
import { River } from '../parts/river.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty, Notice } from '../parts/states.tsx'
import { DataTable } from '../parts/table.tsx'
import { State } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { liveWords } from '../words/en/live.ts'
import { useWords } from '../words/words.ts'
import { CallPanel, firstCall, openCall, useRecordColumns } from './records.tsx'

const FILTERS = ['model', 'outcome', 'key', 'channel'] as const
const tones = { connecting: 'muted', live: 'ok', away: 'bad', refused: 'bad' } as const

/** Rows that are there already, as a list that has no more pages. */
const asList = (rows: readonly LiveCall[]): List<LiveCall> => ({
  rows,
  hasMore: false,
  more: () => undefined,
  query: { isPending: false, error: null, refetch: () => Promise.resolve() } as never,
})

export function LivePage() {
  const t = useWords(liveWords)
  const nameOf = useOutcomeName()
  const account = useAccount()
  const [search, change] = useSearchState()
  const [isPaused, setPaused] = useState(false)
  const { model, outcome, key, channel } = search
  const view = useLive({ account: account?.id, model, outcome, key, channel }, true)
  // Pausing keeps the rows in their place; the stream goes on behind them.
  const [shown, setShown] = useState(view.calls)
  if (!isPaused && shown !== view.calls) setShown(view.calls)
  const list = useMemo(() => asList(shown), [shown])
  const columns = useRecordColumns()
  const at = shown.findIndex(({ id }) => id === search.call)
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        <>
          <State tone={tones[view.state]}>{isPaused ? t('paused') : t(view.state)}</State>
          <button type="button" className="button" onClick={() => setPaused(!isPaused)}>
            <Icon name={isPaused ? 'play' : 'pause'} />
            {t(isPaused ? 'resume' : 'pause')}
          </button>
          <FullScreenButton />
        </>
      }
    >
      {view.underWay !== undefined && (
        <Section title={t('river')} note={t('riverNote')}>
          <River underWay={view.underWay} health={view.health} />
        </Section>
      )}
      {view.hasMissed && <Notice>{t('missed')}</Notice>}
      <Section title={t('tail')} note={t('kept', { n: view.calls.length })}>
        <FilterBar names={FILTERS} error={view.error}>
          <TextFilter name="model" label={t('model')} width={180} />
          <SelectFilter
            name="outcome"
            label={t('outcome')}
            choices={outcomeNames.map(value => ({ value, label: nameOf(value) }))}
          />
          <TextFilter name="key" label={t('key')} width={150} mono />
          {view.underWay !== undefined && <TextFilter name="channel" label={t('channel')} width={150} />}
        </FilterBar>
        <DataTable
          name="live"
          label={t('tail')}
          list={list}
          columns={columns}
          rowKey={call => call.id}
          open={openCall}
          current={search.call}
          empty={<Empty title={t('waiting')} command={firstCall()} />}
        />
      </Section>
      {search.call !== undefined && (
        <CallPanel
          call={search.call}
          go={step => {
            const next = shown[at + step]
            if (next !== undefined) change({ call: next.id })
          }}
          onClose={() => change({ call: undefined })}
        />
      )}
    </Page>
  )
}

/** For a screen on a wall: the page without the menus around it. Some browsers, such as those of phones, cannot do it. */
function FullScreenButton() {
  const t = useWords(liveWords)
  const isFull = useSyncExternalStore(watchFullScreen, () => document.fullscreenElement !== null)
  useEffect(() => leaveFullScreen, [])
  if (!document.fullscreenEnabled) return null
  const toggle = (): void => (isFull ? leaveFullScreen() : void document.querySelector('main')?.requestFullscreen())
  return (
    <button type="button" className="button" onClick={toggle}>
      <Icon name={isFull ? 'shrink' : 'enlarge'} />
      {t(isFull ? 'leaveFullScreen' : 'fullScreen')}
    </button>
  )
}

function watchFullScreen(onChange: () => void): () => void {
  document.addEventListener('fullscreenchange', onChange)
  return () => document.removeEventListener('fullscreenchange', onChange)
}

function leaveFullScreen(): void {
  if (document.fullscreenElement !== null) void document.exitFullscreen()
}
