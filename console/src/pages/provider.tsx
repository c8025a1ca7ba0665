// One provider: its models, its channels, and its definition, which can be edited if it is an own one.

import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useDelete, useList, useRead, useWrite } from '../api/reads.ts'
import type { Provider } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { useQuestion } from '../parts/dialog.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty, Notice, Query, Warnings } from '../parts/states.tsx'
import { DataTable } from '../parts/table.tsx'
import { useHints } from '../parts/use-hints.ts'
import { Facts, Tags } from '../parts/values.tsx'
import { providersWords } from '../words/en/providers.ts'
import { listed } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { useChannelColumns } from './channels.tsx'
import { ProviderModels } from './provider-models.tsx'
import { changedFields } from './provider-values.ts'
import { useDefinitionFault, useFromText } from './providers.tsx'

export function ProviderPage() {
  const t = useWords(providersWords)
  const fromText = useFromText()
  const { id } = useParams({ strict: false }) as { readonly id: string }
  const [{ tab }] = useSearchState()
  const may = useMay()
  const provider = useRead('GET /api/web/providers/{provider}', { params: { provider: id } })
  const inLanguage = useHints(provider.data?.problemHint != null)
  return (
    <Page
      title={provider.data?.name ?? id}
      back={{ to: '/providers', label: t('back') }}
      actions={
        may('POST /api/web/channels') &&
        provider.data !== undefined &&
        id !== 'demo' && (
          <Link to="/channels" search={{ new: id }} className="button button-main">
            <Icon name="plus" />
            {t('addChannel')}
          </Link>
        )
      }
    >
      <Query of={provider}>
        {data => (
          <>
            {data.problem !== null && (
              <Notice tone="bad">{inLanguage(words => words.write(data.problemHint), data.problem)}</Notice>
            )}
            <Facts
              of={[
                { name: t('id'), value: <span className="font-mono text-xs">{data.id}</span> },
                { name: t('from'), value: fromText(data.from) },
                { name: t('baseUrl'), value: <span className="break-all font-mono text-xs">{data.baseUrl}</span> },
                { name: t('speaks'), value: <Tags of={data.speaks} /> },
                data.tags.length > 0 && { name: t('tags'), value: <Tags of={data.tags} /> },
              ]}
            />
            <Tabs
              label={data.name}
              of={[
                { id: 'models', title: `${t('tabModels')} (${data.models})` },
                { id: 'channels', title: `${t('tabChannels')} (${data.channels})` },
                { id: 'definition', title: t('tabDefinition') },
              ]}
            />
            {tab === 'channels' ? (
              <ProviderChannels id={id} />
            ) : tab === 'definition' ? (
              <Definition key={`${id} ${data.from}`} provider={data} />
            ) : (
              <ProviderModels id={id} />
            )}
          </>
        )}
      </Query>
    </Page>
  )
}

function ProviderChannels({ id }: { readonly id: string }) {
  const t = useWords(providersWords)
  const columns = useChannelColumns()
  const list = useList('GET /api/web/channels', { query: { provider: id, limit: 200 } })
  return (
    <DataTable
      name="provider-channels"
      label={t('tabChannels')}
      list={list}
      columns={columns.filter(column => column.id !== 'provider')}
      rowKey={channel => channel.id}
      open={channel => ({ to: '/channels/$id', params: { id: channel.id } })}
      empty={<Empty title={t('noChannels')}>{t('noChannelsText')}</Empty>}
    />
  )
}

const textOf = (definition: Provider['definition']): string => JSON.stringify(definition, null, 2)

function Definition({ provider }: { readonly provider: Provider }) {
  const t = useWords(providersWords)
  const may = useMay()
  const isOwn = provider.from !== 'shipped'
  const canEdit = may('PATCH /api/web/providers/{provider}') && provider.managedBy === null
  return (
    <div className="flex flex-col gap-4">
      {provider.managedBy === 'file' && <Notice tone="accent">{t('fromFile')}</Notice>}
      {!isOwn && <p className="max-w-2xl text-muted">{t('shippedNote')}</p>}
      {isOwn && canEdit ? <DefinitionForm provider={provider} /> : <Code text={textOf(provider.definition)} />}
      {canEdit && <DefinitionActions provider={provider} isOwn={isOwn} />}
    </div>
  )
}

/** A shipped definition can be copied; an own one can be deleted. */
function DefinitionActions({ provider, isOwn }: { readonly provider: Provider; readonly isOwn: boolean }) {
  const t = useWords(providersWords)
  const { id, name, from } = provider
  const navigate = useNavigate()
  const [ask, question] = useQuestion()
  const copy = useWrite('POST /api/web/providers', 'providers', 'models', 'prices')
  const withdraw = useWrite('DELETE /api/web/providers/{provider}', 'providers', 'models', 'prices', 'channels')
  const erase = useDelete('DELETE /api/web/providers/{provider}', 'providers', 'models', 'prices', 'channels')
  // Without a shipped definition, the provider is gone.
  const remove = from === 'own' ? erase : withdraw
  const version = provider.version
  const askCopy = (): void =>
    ask({
      title: t('copyTitle', { name }),
      children: t('copyText'),
      action: t('copyAsOwn'),
      isBad: false,
      run: async () => {
        const { warnings } = await copy.mutateAsync({ body: { definition: provider.definition } })
        say(t('copied', { name }))
        for (const warning of warnings) say(warning, { isBad: true })
      },
    })
  const askRemove = (): void =>
    ask({
      title: t('removeTitle', { name }),
      children: from === 'own' ? t('removeText') : t('removeTextOver'),
      action: t('remove'),
      run: async () => {
        const { warnings } = await remove.mutateAsync({
          params: { provider: id },
          ...(version !== undefined && { ifMatch: version }),
        })
        say(t('removed', { name }))
        for (const warning of warnings) say(warning, { isBad: true })
        if (from === 'own') void navigate({ to: '/providers' })
      },
    })
  if (id === 'demo') return null
  return (
    <div>
      <button type="button" className={`button ${isOwn ? 'button-bad' : ''}`} onClick={isOwn ? askRemove : askCopy}>
        {isOwn ? t('remove') : t('copyAsOwn')}
      </button>
      {question}
    </div>
  )
}

function DefinitionForm({ provider }: { readonly provider: Provider }) {
  const t = useWords(providersWords)
  const { id, name } = provider
  const [notes, setNotes] = useState<readonly string[]>([])
  const save = useWrite('PATCH /api/web/providers/{provider}', 'providers', 'models', 'prices', 'channels')
  const form = useForm({
    initial: { definition: textOf(provider.definition) },
    version: provider.version,
    async save({ values: { definition }, ifMatch }) {
      const changed = changedFields(provider.definition, JSON.parse(definition) as Provider['definition'])
      const { cleared, warnings } = await save.mutateAsync({
        params: { provider: id },
        body: { definition: changed },
        ...(ifMatch !== undefined && { ifMatch }),
      })
      setNotes([...(cleared.length > 0 ? [t('cleared', { channels: listed(cleared) })] : []), ...warnings])
    },
    async reload() {
      const now = await call('GET /api/web/providers/{provider}', { params: { provider: id } })
      return { initial: { definition: textOf(now.definition) }, version: now.version }
    },
    done: t('saved', { name }),
  })
  const fault = useDefinitionFault(form.values.definition)
  return (
    <Form of={form} action={t('save')} disabled={fault}>
      <TextField
        form={form}
        name="definition"
        label={t('definition')}
        hint={t('definitionNote')}
        lines={Math.min(32, Math.max(12, form.values.definition.split('\n').length))}
        mono
      />
      {fault !== undefined && <Notice tone="bad">{fault}</Notice>}
      <Warnings of={notes} />
    </Form>
  )
}
