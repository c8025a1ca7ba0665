// The list of providers, and a dialog that defines one.

import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { wholeNumber } from '../parts/format.ts'
import { readJsonObject } from '../parts/json-text.ts'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, Notice } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { useHints } from '../parts/use-hints.ts'
import { State, TagsLine } from '../parts/values.tsx'
import { providersWords } from '../words/en/providers.ts'
import { useWords } from '../words/words.ts'

type Row = AnswerOf<'GET /api/web/providers'>['data'][number]

interface Search {
  readonly text?: string
  readonly from?: 'shipped' | 'own'
  readonly sort?: 'id' | '-id'
  readonly new?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['text', 'from'] as const

export function useFromText(): (from: Row['from']) => string {
  const t = useWords(providersWords)
  return from => (from === 'own over shipped' ? t('fromOver') : from === 'own' ? t('from_own') : t('from_shipped'))
}

export function ProvidersPage() {
  const t = useWords(providersWords)
  const fromText = useFromText()
  const [{ text, from, sort, new: isNew }, change] = useSearchState<Search>()
  const may = useMay()
  const list = useList('GET /api/web/providers', { query: definedOnly({ text, from, sort, limit: 200 }) })
  const inLanguage = useHints(list.rows.some(({ problem }) => problem !== null))
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const columns: readonly Column<Row>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'id',
      phone: 'main',
      cell: ({ name, problem, problemHint }) => (
        <>
          <span title={name}>{name}</span>
          {problem !== null && (
            <span className="ml-2 font-normal" title={inLanguage(words => words.write(problemHint), problem)}>
              <State tone="bad">{t('problem')}</State>
            </span>
          )}
        </>
      ),
    },
    { id: 'id', title: t('id'), cell: ({ id }) => <span className="font-mono text-xs">{id}</span>, phone: 'note' },
    {
      id: 'channels',
      title: t('channels'),
      align: 'right',
      phone: 'note',
      cell: ({ channels }) =>
        channels === 0 ? <span className="text-muted">0</span> : <State tone="ok">{wholeNumber(channels)}</State>,
    },
    { id: 'models', title: t('models'), align: 'right', cell: ({ models }) => wholeNumber(models) },
    { id: 'speaks', title: t('speaks'), cell: ({ speaks }) => <TagsLine of={speaks} />, maxWidth: 320 },
    { id: 'from', title: t('from'), cell: row => fromText(row.from), phone: 'note' },
    {
      id: 'baseUrl',
      title: t('baseUrl'),
      cell: ({ baseUrl }) => <span className="font-mono text-xs">{baseUrl}</span>,
      isOptional: true,
    },
    { id: 'tags', title: t('tags'), cell: ({ tags }) => <TagsLine of={tags} />, isOptional: true },
  ]
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('POST /api/web/providers') && <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
      }
    >
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <TextFilter name="text" label={t('text')} />
          <SelectFilter
            name="from"
            label={t('from')}
            choices={(['shipped', 'own'] as const).map(value => ({ value, label: t(`from_${value}`) }))}
          />
        </FilterBar>
        <DataTable
          name="providers"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => ({ to: '/providers/$id', params: { id } })}
          filters={FILTERS}
          empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
        />
      </div>
      {isCreating && (
        <NewProviderDialog
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

const EXAMPLE = JSON.stringify(
  {
    id: 'relay',
    name: 'Relay',
    baseUrl: 'https://relay.example.com/v1',
    keyEnv: 'RELAY_API_KEY',
    baseUrlEnv: 'RELAY_BASE_URL',
    sign: 'bearer',
    speaks: { 'openai-chat': '/chat/completions' },
    models: [{ id: 'river-1', contextTokens: 32_000, price: { input: '1', output: '4' } }],
  },
  null,
  2,
)

/** What is wrong with the text of a definition; undefined if it can be sent. */
export function useDefinitionFault(text: string): string | undefined {
  const t = useWords(providersWords)
  const read = readJsonObject(text)
  if ('value' in read) return undefined
  return read.fault === null ? t('noObject') : t('jsonInvalid', { ...read.fault })
}

function NewProviderDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(providersWords)
  const navigate = useNavigate()
  const create = useWrite('POST /api/web/providers', 'providers', 'models', 'prices')
  const form = useForm({
    initial: { definition: EXAMPLE },
    async save({ values: { definition } }) {
      const made = await create.mutateAsync({ body: { definition: JSON.parse(definition) } })
      say(t('created', { name: made.name }))
      for (const warning of made.warnings) say(warning, { isBad: true })
      onClose()
      void navigate({ to: '/providers/$id', params: { id: made.id } })
    },
  })
  const fault = useDefinitionFault(form.values.definition)
  return (
    <Dialog title={t('newTitle')} onClose={onClose} wide>
      <Form of={form} action={t('create')} isNew onCancel={onClose} disabled={fault}>
        <p className="text-muted">{t('newNote')}</p>
        <TextField
          form={form}
          name="definition"
          label={t('definition')}
          hint={t('definitionNote')}
          lines={Math.min(24, Math.max(12, form.values.definition.split('\n').length))}
          mono
        />
        {fault !== undefined && <Notice tone="bad">{fault}</Notice>}
      </Form>
    </Dialog>
  )
}
