// Adding a channel: choose a provider, paste its key, and see at once whether it works.

import type { UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useDelete, useRead, useWrite } from '../api/reads.ts'
import type { Channel } from '../api/types.ts'
import { Dialog, useQuestion } from '../parts/dialog.tsx'
import { Form, LinesField, NumberField, TextField, useForm } from '../parts/form.tsx'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Notice, Query, useErrorText, Warnings } from '../parts/states.tsx'
import { TrialResult } from '../parts/trial.tsx'
import { channelsWords } from '../words/en/channels.ts'
import { isolated } from '../words/isolated.ts'
import { labelled } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { credentialsOf } from './channel-values.ts'

type Providers = AnswerOf<'GET /api/web/providers'>
type ProviderRow = Providers['data'][number]

interface NewChannelProps {
  /** The id of the provider that is already chosen; others are ignored. */
  readonly provider: string | undefined
  readonly providers: UseQueryResult<Providers>
  readonly onClose: () => void
}

export function NewChannelDialog({ provider: given, providers, onClose }: NewChannelProps) {
  const t = useWords(channelsWords)
  const [chosen, setChosen] = useState<string | null | undefined>(given)
  const [made, setMade] = useState<readonly Channel[]>()
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const provider = providers.data?.data.find(({ id }) => id === chosen)
  if (made !== undefined) {
    return (
      <Dialog title={t('addedTitle', { n: made.length })} onClose={onClose} wide>
        <div className="flex flex-col gap-4">
          <Warnings of={warnings} />
          {made.map(channel => (
            <MadeChannel key={channel.id} channel={channel} isOnly={made.length === 1} onClose={onClose} />
          ))}
          <div>
            <button type="button" className="button button-main" onClick={onClose}>
              {t('keepIt')}
            </button>
          </div>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={t('newTitle')} onClose={onClose} wide>
      {provider === undefined ? (
        <Query of={providers}>{data => <ProviderChoice providers={data.data} onChoose={setChosen} />}</Query>
      ) : (
        <KeyForm
          provider={provider}
          onBack={() => setChosen(null)}
          onClose={onClose}
          onMade={(channels, notes) => {
            setWarnings(notes)
            setMade(channels)
          }}
        />
      )}
    </Dialog>
  )
}

interface ProviderChoiceProps {
  readonly providers: readonly ProviderRow[]
  readonly onChoose: (id: string) => void
}

/** What begins with the text comes before what contains it. */
const rankOf = ({ id, name }: ProviderRow, text: string): number =>
  text === '' || id === text ? 0 : id.startsWith(text) || name.toLowerCase().startsWith(text) ? 1 : 2

function ProviderChoice({ providers, onChoose }: ProviderChoiceProps) {
  const t = useWords(channelsWords)
  const [text, setText] = useState('')
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  const wanted = text.trim().toLowerCase()
  // The built-in provider has its channel already.
  const shown = providers
    .filter(one => one.id !== 'demo' && `${one.id} ${one.name}`.toLowerCase().includes(wanted) && one.problem === null)
    .toSorted((one, other) => rankOf(one, wanted) - rankOf(other, wanted))
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={event => {
        event.preventDefault()
        if (shown.length > 0 && wanted !== '') onChoose(shown[0]!.id)
      }}
    >
      <div className="flex flex-col gap-1">
        <label htmlFor={id} className="font-medium">
          {t('findProvider')}
        </label>
        <input
          ref={input}
          id={id}
          type="search"
          autoComplete="off"
          className="control w-full"
          value={text}
          onChange={event => setText(event.target.value)}
        />
      </div>
      {shown.length === 0 && <p className="text-muted">{t('noProvider')}</p>}
      <ul
        aria-label={t('stepProvider')}
        className="grid max-h-[50dvh] grid-cols-1 overflow-y-auto border-line border-t md:grid-cols-2 md:gap-x-4"
      >
        {shown.map(one => (
          <li key={one.id} className="border-line border-b">
            <button
              type="button"
              className="flex min-h-10 w-full items-center justify-between gap-2 px-1 text-left hover:bg-sunken"
              onClick={() => onChoose(one.id)}
            >
              <span className="min-w-0">
                <span className="block truncate font-medium">{one.name}</span>
              </span>
              <span className="shrink-0 text-muted text-xs">
                {one.channels > 0
                  ? t('hasChannels', { n: one.channels })
                  : one.models > 0 && t('modelsOf', { n: one.models })}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <p>
        <Link to="/providers" search={{ new: '1' }} className="link">
          {t('ownProviders')}
        </Link>
      </p>
    </form>
  )
}

interface Values {
  readonly credentials: readonly string[] | null
  readonly name: string
  readonly baseUrl: string
  readonly tags: readonly string[] | null
  readonly weight: number | null
  readonly priority: number | null
}

interface KeyFormProps {
  readonly provider: ProviderRow
  readonly onBack: () => void
  readonly onClose: () => void
  readonly onMade: (channels: readonly Channel[], warnings: readonly string[]) => void
}

const hostOf = (url: string): string => {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}

function KeyForm({ provider, onBack, onClose, onMade }: KeyFormProps) {
  const t = useWords(channelsWords)
  const whole = useRead('GET /api/web/providers/{provider}', { params: { provider: provider.id } })
  const create = useWrite('POST /api/web/channels', 'channels', 'providers', 'models')
  const form = useForm<Values>({
    initial: { credentials: null, name: '', baseUrl: '', tags: null, weight: null, priority: null },
    async save({ values: { credentials, name, baseUrl, tags, weight, priority } }) {
      const { data, warnings } = await create.mutateAsync({
        body: {
          provider: provider.id,
          credentials: credentialsOf(credentials ?? []),
          ...(name !== '' && { name }),
          ...(baseUrl !== '' && { baseUrl }),
          ...(tags !== null && { tags }),
          ...(weight !== null && { weight }),
          ...(priority !== null && { priority }),
        },
      })
      onMade(data, warnings)
    },
  })
  const definition = whole.data?.definition
  const sign = typeof definition?.sign === 'string' ? definition.sign : ''
  const website = definition?.website
  const isKeyless = provider.keyless || sign === 'none'
  const hint = sign.startsWith('sigv4')
    ? t('keyHintSigv4')
    : sign === 'google-token'
      ? t('keyHintGoogle')
      : t('keyHint', { provider: provider.name })
  const host = hostOf(form.values.baseUrl === '' ? provider.baseUrl : form.values.baseUrl)
  const isMissing = form.values.credentials === null && !isKeyless
  // It names variables, such as a region, which only the operator knows.
  const isOpenUrl = provider.baseUrl.includes('{')
  const baseUrl = (
    <TextField
      form={form}
      name="baseUrl"
      label={t('baseUrl')}
      hint={t.rich(isOpenUrl ? 'baseUrlOpen' : 'baseUrlHint', {
        url: <code className="break-all">{provider.baseUrl}</code>,
      })}
      mono
    />
  )
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => frame.current?.querySelector<HTMLElement>('textarea, input')?.focus(), [])
  return (
    <div ref={frame}>
      <Form of={form} action={t('add')} isNew onCancel={onClose} disabled={isMissing ? t('needKey') : undefined}>
        <div className="flex flex-wrap items-center justify-between gap-2 border-line border-b pb-2">
          <span className="font-medium">{provider.name}</span>
          <button type="button" className="button button-quiet" onClick={onBack}>
            <Icon name="left" size={14} />
            {t('changeProvider')}
          </button>
        </div>
        {isKeyless ? (
          <p className="text-muted">{t('keyNone')}</p>
        ) : (
          <LinesField form={form} name="credentials" label={t('key')} hint={`${hint} ${t('keySafe', { host })}`} />
        )}
        {website !== undefined && !isKeyless && (
          <p>
            <a href={website} target="_blank" rel="noreferrer noopener" className="link inline-flex items-center gap-1">
              {t('getKey', { site: hostOf(website) })}
              <Icon name="external" size={12} />
            </a>
          </p>
        )}
        {isOpenUrl && baseUrl}
        <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} />
        <details>
          <summary className="min-h-6 cursor-pointer font-medium">{t('more')}</summary>
          <div className="mt-3 flex flex-col gap-4">
            {!isOpenUrl && baseUrl}
            <LinesField form={form} name="tags" label={t('tags')} hint={t('tagsHint')} />
            <div className="grid gap-4 md:grid-cols-2">
              <NumberField form={form} name="weight" label={t('weight')} hint={t('weightHint')} placeholder="1" />
              <NumberField form={form} name="priority" label={t('priority')} hint={t('priorityHint')} placeholder="0" />
            </div>
          </div>
        </details>
      </Form>
    </div>
  )
}

interface MadeChannelProps {
  readonly channel: Channel
  readonly isOnly: boolean
  readonly onClose: () => void
}

/** A new channel is tested at once. */
function MadeChannel({ channel, isOnly, onClose }: MadeChannelProps) {
  const t = useWords(channelsWords)
  const [isGone, setGone] = useState(false)
  const test = useWrite('POST /api/web/channels/{channel}/test', 'channels')
  const remove = useDelete('DELETE /api/web/channels/{channel}', 'channels', 'providers', 'models')
  const [ask, question] = useQuestion()
  const textOf = useErrorText()
  const { mutate } = test
  const { id, name } = channel
  useEffect(() => mutate({ params: { channel: id }, body: {} }), [id, mutate])
  if (isGone) return null
  return (
    <section aria-label={name ?? id} className="flex flex-col gap-2 border-line border-b pb-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <span className="min-w-0 break-words font-medium">{name ?? id}</span>
        <span className="flex flex-wrap gap-2">
          <Link to="/channels/$id" params={{ id }} className="button">
            {t('toChannel')}
          </Link>
          {test.data?.ok === false && (
            <button
              type="button"
              className="button button-bad"
              onClick={() =>
                ask({
                  title: labelled(t('remove'), isolated(name ?? id)),
                  action: t('remove'),
                  run: async () => {
                    await remove.mutateAsync({ params: { channel: id } })
                    say(t('removed', { name: name ?? id }))
                    setGone(true)
                    if (isOnly) onClose()
                  },
                })
              }
            >
              {t('remove')}
            </button>
          )}
        </span>
      </div>
      <div aria-live="polite">
        {test.isPending && <p className="text-muted">{t('testing')}</p>}
        {test.error !== null && <Notice>{textOf(test.error)}</Notice>}
        {test.data !== undefined && <TrialResult of={test.data} />}
      </div>
      {question}
    </section>
  )
}
