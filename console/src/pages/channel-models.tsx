// Testing a channel, and asking its provider for its models.

import { Link } from '@tanstack/react-router'
import { useId, useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useRead, useWrite } from '../api/reads.ts'
import type { Channel } from '../api/types.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import { Notice, useErrorText } from '../parts/states.tsx'
import { TrialResult } from '../parts/trial.tsx'
import { State } from '../parts/values.tsx'
import { channelWords } from '../words/en/channel.ts'
import { useWords } from '../words/words.ts'

export function ChannelTest({ channel: { id, provider } }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const textOf = useErrorText()
  const [model, setModel] = useState('')
  const models = useRead('GET /api/web/models', { query: { provider, limit: 200 } })
  const test = useWrite('POST /api/web/channels/{channel}/test', 'channels')
  const [inputId, listId] = [useId(), useId()]
  return (
    <div className="flex max-w-2xl flex-col gap-3">
      <form
        className="flex flex-wrap items-end gap-2"
        onSubmit={event => {
          event.preventDefault()
          test.mutate({ params: { channel: id }, body: model === '' ? {} : { model } })
        }}
      >
        <div className="flex min-w-0 flex-1 basis-56 flex-col gap-1">
          <label htmlFor={inputId} className="font-medium">
            {t('testModel')}
          </label>
          <input
            id={inputId}
            list={listId}
            className="control w-full font-mono text-xs"
            autoComplete="off"
            spellCheck={false}
            placeholder={t('testModelHint')}
            value={model}
            onChange={event => setModel(event.target.value.trim())}
          />
          <datalist id={listId}>
            {(models.data?.data ?? []).map(one => (
              <option key={one.id} value={one.id} />
            ))}
          </datalist>
        </div>
        <button type="submit" className="button button-main" disabled={test.isPending}>
          <Icon name="play" />
          {test.isPending ? t('testing') : t('test')}
        </button>
      </form>
      <div aria-live="polite">
        {test.error !== null && !test.isPending && <Notice tone="bad">{textOf(test.error)}</Notice>}
        {test.data !== undefined && !test.isPending && <TrialResult of={test.data} />}
      </div>
    </div>
  )
}

type Fetched = AnswerOf<'POST /api/web/channels/{channel}/fetch-models'>

export function ChannelModels({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const may = useMay()
  const textOf = useErrorText()
  const fetching = useWrite('POST /api/web/channels/{channel}/fetch-models')
  const canFetch = may('POST /api/web/channels/{channel}/fetch-models')
  return (
    <div className="flex flex-col gap-4">
      <p className="max-w-2xl text-muted">{canFetch ? t('fetchNote') : t('readOnly')}</p>
      {canFetch && (
        <div>
          <button
            type="button"
            className="button button-main"
            disabled={fetching.isPending}
            onClick={() => fetching.mutate({ params: { channel: channel.id } })}
          >
            <Icon name="refresh" />
            {fetching.isPending ? t('fetching') : t('fetch')}
          </button>
        </div>
      )}
      <p role="status" className="sr-only">
        {fetching.data !== undefined &&
          !fetching.isPending &&
          t('fetched', {
            fresh: fetching.data.fresh.length,
            known: fetching.data.known.length,
            gone: fetching.data.gone.length,
          })}
      </p>
      <div>
        {fetching.error !== null && !fetching.isPending && <Notice tone="bad">{textOf(fetching.error)}</Notice>}
        {fetching.data !== undefined && <FetchedModels provider={channel.provider} models={fetching.data} />}
      </div>
    </div>
  )
}

function FetchedModels({ provider, models }: { readonly provider: string; readonly models: Fetched }) {
  const t = useWords(channelWords)
  const priced = new Set(models.priced)
  return (
    <div className="flex flex-col gap-6">
      <FreshModels provider={provider} ids={models.fresh} priced={priced} />
      <Section title={`${t('known')} (${models.known.length})`}>
        <ModelLines provider={provider} ids={models.known} priced={priced} isKnown />
      </Section>
      <Section title={`${t('gone')} (${models.gone.length})`}>
        <ModelLines provider={provider} ids={models.gone} isKnown />
      </Section>
    </div>
  )
}

interface ModelLinesProps {
  readonly provider: string
  readonly ids: readonly string[]
  readonly priced?: ReadonlySet<string>
  readonly isKnown?: boolean
  readonly chosen?: ReadonlySet<string>
  readonly onToggle?: (id: string) => void
}

function ModelLines({ provider, ids, priced, isKnown = false, chosen, onToggle }: ModelLinesProps) {
  const t = useWords(channelWords)
  const may = useMay()
  if (ids.length === 0) return <p className="text-muted">{t('none')}</p>
  return (
    <ul className="grid gap-x-6 md:grid-cols-2">
      {ids.map(id => (
        <li key={id} className="flex min-h-8 items-center justify-between gap-2 border-line border-b">
          <span className="flex min-w-0 items-center gap-2">
            {onToggle !== undefined && (
              <input
                type="checkbox"
                className="size-4 shrink-0 accent-accent"
                aria-label={id}
                checked={chosen?.has(id) ?? false}
                onChange={() => onToggle(id)}
              />
            )}
            {isKnown ? (
              <Link to="/models/$" params={{ _splat: `${provider}/${id}` }} className="link break-all">
                {id}
              </Link>
            ) : (
              <span className="break-all">{id}</span>
            )}
          </span>
          {priced !== undefined &&
            (priced.has(id) ? (
              <State tone="ok">{t('priced')}</State>
            ) : may('PUT /api/web/prices/{model}') ? (
              <Link to="/prices/$" params={{ _splat: `${provider}/${id}` }} className="link whitespace-nowrap">
                {t('setPrice')}
              </Link>
            ) : (
              <State tone="warn">{t('unpriced')}</State>
            ))}
        </li>
      ))}
    </ul>
  )
}

interface FreshModelsProps {
  readonly provider: string
  readonly ids: readonly string[]
  readonly priced: ReadonlySet<string>
}

/** Models that an own definition lacks can be added to it. */
function FreshModels({ provider, ids, priced }: FreshModelsProps) {
  const t = useWords(channelWords)
  const may = useMay()
  const textOf = useErrorText()
  const whole = useRead('GET /api/web/providers/{provider}', { params: { provider } })
  const adopt = useWrite('POST /api/web/providers/{provider}/models', 'providers', 'models', 'prices')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const isOwn = whole.data !== undefined && whole.data.from !== 'shipped' && whole.data.managedBy === null
  const canAdopt = isOwn && may('POST /api/web/providers/{provider}/models') && ids.length > 0
  const add = (): void =>
    adopt.mutate(
      { params: { provider }, body: { models: [...chosen].map(id => ({ id })) } },
      {
        onSuccess: ({ warnings }) => {
          say(t('adopted', { n: chosen.size }))
          for (const warning of warnings) say(warning, { isBad: true })
          setChosen(new Set())
        },
        onError: error => say(textOf(error), { isBad: true }),
      },
    )
  return (
    <Section
      title={`${t('fresh')} (${ids.length})`}
      {...(ids.length > 0 && whole.data !== undefined && { note: isOwn ? t('adoptNote') : t('adoptShipped') })}
      actions={
        canAdopt && (
          <span className="flex gap-2">
            <button type="button" className="button" onClick={() => setChosen(new Set(ids))}>
              {t('chooseAll')}
            </button>
            <button type="button" className="button" disabled={chosen.size === 0} onClick={add}>
              {t('adopt')}
            </button>
          </span>
        )
      }
    >
      <ModelLines
        provider={provider}
        ids={ids}
        priced={priced}
        {...(canAdopt && {
          chosen,
          onToggle: (id: string) => {
            const next = new Set(chosen)
            if (!next.delete(id)) next.add(id)
            setChosen(next)
          },
        })}
      />
    </Section>
  )
}
