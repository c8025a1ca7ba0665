// One channel: its health and a test, its settings and credential, what it changes in requests, and its models.

import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useDelete, useRead, useWrite } from '../api/reads.ts'
import type { Channel } from '../api/types.ts'
import { ChannelHealth, Reason, standingOf } from '../parts/channel-health.tsx'
import { Dialog, Menu, useQuestion } from '../parts/dialog.tsx'
import { Form, SelectField, useForm } from '../parts/form.tsx'
import { duration, wholeNumber } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Notice, Query, useErrorText } from '../parts/states.tsx'
import { useHints } from '../parts/use-hints.ts'
import { Facts, Figures, Id, None, Tags, Time } from '../parts/values.tsx'
import { channelWords } from '../words/en/channel.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { isolated } from '../words/isolated.ts'
import { comma } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { ChannelModels, ChannelTest } from './channel-models.tsx'
import { ChannelOverrides, ChannelSettings } from './channel-settings.tsx'

const nameOf = ({ name, id }: Channel): string => name ?? id

export function ChannelPage() {
  const t = useWords(channelWords)
  const { id } = useParams({ strict: false }) as { readonly id: string }
  const [{ tab }] = useSearchState()
  const channel = useRead('GET /api/web/channels/{channel}', { params: { channel: id } }, { everyMs: 10_000 })
  const inLanguage = useHints(channel.data?.problemHint != null)
  const title = channel.data === undefined ? id : nameOf(channel.data)
  return (
    <Page
      title={title}
      back={{ to: '/channels', label: t('back') }}
      actions={channel.data && <ChannelActions channel={channel.data} />}
    >
      <Query of={channel}>
        {data => (
          <>
            {data.problem !== null && (
              <Notice tone="bad">{inLanguage(words => words.write(data.problemHint), data.problem)}</Notice>
            )}
            {data.managedBy === 'file' && <Notice tone="accent">{t('fromFile')}</Notice>}
            <Tabs
              label={title}
              of={[
                { id: 'overview', title: t('tabOverview') },
                { id: 'settings', title: t('tabSettings') },
                { id: 'overrides', title: t('tabOverrides') },
                { id: 'models', title: t('tabModels') },
              ]}
            />
            {tab === 'settings' ? (
              <ChannelSettings key={data.id} channel={data} />
            ) : tab === 'overrides' ? (
              <ChannelOverrides key={data.id} channel={data} />
            ) : tab === 'models' ? (
              <ChannelModels key={data.id} channel={data} />
            ) : (
              <Overview channel={data} />
            )}
          </>
        )}
      </Query>
    </Page>
  )
}

function ChannelActions({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const may = useMay()
  const textOf = useErrorText()
  const navigate = useNavigate()
  const [ask, question] = useQuestion()
  const [isMoving, setMoving] = useState(false)
  const enable = useWrite('POST /api/web/channels/{channel}/enable', 'channels', 'models')
  const disable = useWrite('POST /api/web/channels/{channel}/disable', 'channels', 'models')
  const resetHealth = useWrite('POST /api/web/channels/{channel}/reset-health', 'channels')
  const reset = useWrite('POST /api/web/channels/{channel}/reset', 'channels')
  const remove = useDelete('DELETE /api/web/channels/{channel}', 'channels', 'providers', 'models')
  if (!may('PATCH /api/web/channels/{channel}')) return null
  const { id, version } = channel
  const name = nameOf(channel)
  const params = { channel: id }
  const isOpen = channel.managedBy === null
  const turnOff = (): void =>
    ask({
      title: t('disableTitle', { name }),
      children: t('disableText'),
      action: t('disable'),
      run: async () => {
        await disable.mutateAsync({ params, ifMatch: version })
        say(t('disabled'))
      },
    })
  return (
    <>
      {isOpen && channel.state !== 'gone' && (
        <button
          type="button"
          className="button"
          onClick={() =>
            channel.disabled
              ? enable.mutate(
                  { params, ifMatch: version },
                  { onSuccess: () => say(t('enabled')), onError: error => say(textOf(error), { isBad: true }) },
                )
              : turnOff()
          }
        >
          <Icon name={channel.disabled ? 'play' : 'pause'} />
          {channel.disabled ? t('enable') : t('disable')}
        </button>
      )}
      <Menu
        label={name}
        className="button px-2!"
        items={[
          {
            label: t('resetHealth'),
            icon: 'refresh',
            run: () =>
              ask({
                title: t('resetHealthTitle', { name }),
                children: t('resetHealthText'),
                action: t('resetHealth'),
                isBad: false,
                run: async () => {
                  await resetHealth.mutateAsync({ params })
                  say(t('healthReset'))
                },
              }),
          },
          isOpen && version > 0 && { label: t('move'), icon: 'right', run: () => setMoving(true) },
          isOpen &&
            version > 0 && {
              label: t('resetSettings'),
              icon: 'settings',
              run: () =>
                ask({
                  title: t('resetSettingsTitle', { name }),
                  children: t('resetSettingsText'),
                  action: t('resetSettings'),
                  run: async () => {
                    await reset.mutateAsync({ params, ifMatch: version })
                    say(t('settingsReset'))
                    if (channel.state === 'gone') void navigate({ to: '/channels' })
                  },
                }),
            },
          isOpen &&
            channel.from === 'stored' && {
              label: t('remove'),
              icon: 'close',
              isBad: true,
              run: () =>
                ask({
                  title: t('removeTitle', { name }),
                  children: t('removeText'),
                  action: t('remove'),
                  run: async () => {
                    await remove.mutateAsync({ params, ifMatch: version })
                    say(t('removed', { name }))
                    void navigate({ to: '/channels' })
                  },
                }),
            },
        ]}
      >
        <Icon name="more" />
        <span className="sr-only">{name}</span>
      </Menu>
      {question}
      {isMoving && <MoveDialog channel={channel} onClose={() => setMoving(false)} />}
    </>
  )
}

function MoveDialog({ channel, onClose }: { readonly channel: Channel; readonly onClose: () => void }) {
  const t = useWords(channelWords)
  const navigate = useNavigate()
  const others = useRead('GET /api/web/channels', { query: { provider: channel.provider, limit: 200 } })
  const move = useWrite('POST /api/web/channels/{channel}/move', 'channels')
  const choices = (others.data?.data ?? [])
    .filter(({ id, state }) => id !== channel.id && state !== 'gone')
    .map(one => ({ value: one.id, label: one.name === null ? one.id : `${isolated(one.name)} (${one.id})` }))
  const form = useForm({
    initial: { to: '' },
    async save({ values: { to } }) {
      const target = to === '' ? (choices[0]?.value ?? '') : to
      const { warnings } = await move.mutateAsync({ params: { channel: channel.id }, body: { to: target } })
      say(t('moved'))
      for (const warning of warnings) say(warning, { isBad: true })
      onClose()
      void navigate({ to: '/channels/$id', params: { id: target } })
    },
  })
  return (
    <Dialog title={t('moveTitle', { name: nameOf(channel) })} onClose={onClose}>
      <Form
        of={form}
        action={t('moveAction')}
        isNew
        onCancel={onClose}
        disabled={choices.length === 0 ? t('moveNone') : undefined}
      >
        <p className="text-muted">{t('moveText')}</p>
        {others.data !== undefined && choices.length === 0 ? (
          <Notice>{t('moveNone')}</Notice>
        ) : (
          <SelectField form={form} name="to" label={t('moveTo')} choices={choices} />
        )}
      </Form>
    </Dialog>
  )
}

function Overview({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const may = useMay()
  return (
    <div className="flex flex-col gap-6">
      <HealthFigures channel={channel} />
      {may('POST /api/web/channels/{channel}/test') && channel.state !== 'gone' && channel.state !== 'unusable' && (
        <Section title={t('testSection')} note={t('testNote')}>
          <ChannelTest channel={channel} />
        </Section>
      )}
      <ChannelFacts channel={channel} />
    </div>
  )
}

function HealthFigures({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const reasons = useWords(reasonsWords)
  const { health } = channel
  const code = standingOf(channel)
  const waitMs = channel.state === 'enabled' ? (health?.availableInMs ?? 0) : 0
  return (
    <Figures
      of={[
        {
          name: t('health'),
          value: <ChannelHealth channel={{ ...channel, health: health && { ...health, availableInMs: 0 } }} />,
          isWord: true,
          note: waitMs > 0 ? t('availableIn', { time: duration(waitMs) }) : (reasons.find(`${code}_note`) ?? ''),
        },
        {
          name: t('active'),
          value: wholeNumber(health?.activeCalls ?? 0),
          note: health?.limit == null ? '' : t('learned', { n: health.limit }),
        },
        { name: t('first'), value: duration(health?.firstMs ?? null) },
        {
          name: t('lastFailure'),
          value: health?.lastFailure == null ? <None /> : <Reason code={health.lastFailure.verdict} />,
          isWord: true,
          note: health?.lastFailure == null ? t('neverFailed') : t('ago', { time: duration(health.lastFailure.agoMs) }),
        },
      ]}
    />
  )
}

function ChannelFacts({ channel }: { readonly channel: Channel }) {
  const t = useWords(channelWords)
  const { id, provider, from, credential, credentialFrom } = channel
  return (
    <Facts
      of={[
        { name: t('id'), value: <Id id={id} /> },
        {
          name: t('provider'),
          value: (
            <Link to="/providers/$id" params={{ id: provider }} className="link">
              {provider}
            </Link>
          ),
        },
        { name: t('from'), value: t(`from_${from}`) },
        {
          name: t('credential'),
          value:
            credential === null ? (
              t('noCredential')
            ) : (
              <>
                {t('fingerprint', { text: credential.fingerprint })}
                {comma()}
                <span className="break-all">{t('boundTo', { origin: credential.origin })}</span>
                {credentialFrom !== null && `${comma()}${t('credentialFrom', { place: credentialFrom })}`}
              </>
            ),
        },
        { name: t('baseUrl'), value: <span className="break-all font-mono text-xs">{channel.baseUrl ?? '–'}</span> },
        { name: t('proxy'), value: channel.proxy ? t('ownProxy') : t('gatewayProxy') },
        { name: t('tags'), value: <Tags of={channel.tags} /> },
        channel.created !== null && { name: t('created'), value: <Time at={channel.created} /> },
        channel.changed !== null && {
          name: t('changed'),
          value: (
            <>
              <Time at={channel.changed} /> {channel.author !== null && <Id id={channel.author} />}
            </>
          ),
        },
        {
          name: t('seeAlso'),
          value: (
            <span className="flex flex-wrap gap-4">
              <Link to="/records" search={{ channel: id }} className="link">
                {t('records')}
              </Link>
              <Link to="/usage" search={{ channel: id }} className="link">
                {t('usage')}
              </Link>
              <Link to="/audit" search={{ target: id }} className="link">
                {t('audit')}
              </Link>
            </span>
          ),
        },
      ]}
    />
  )
}
