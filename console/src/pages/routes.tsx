// The list of routes (model names of the operator), a dialog that creates one, and a dry run for any name.

import { useNavigate } from '@tanstack/react-router'
import { Fragment, useId, useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { ModelRoute } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { ExplainForm } from '../parts/explain-form.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, TextField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Time } from '../parts/values.tsx'
import { routesWords } from '../words/en/routes.ts'
import { whyWords } from '../words/en/why.ts'
import { useWords } from '../words/words.ts'
import type { Policy, RouteValues } from './route-members.tsx'
import { policies, RouteFields } from './route-members.tsx'
import { stepsOf } from './route-values.ts'

interface Search {
  readonly text?: string
  readonly policy?: Policy
  readonly sort?: 'name' | '-name' | 'changed' | '-changed'
  readonly tab?: string
  readonly model?: string
  readonly new?: string
  readonly [name: string]: string | undefined
}

/** The members as a line of text: a (3), b, then c. */
export function MembersLine({ members }: { readonly members: ModelRoute['members'] }) {
  const t = useWords(routesWords)
  const steps = stepsOf(members)
  return (
    <>
      {steps.map((step, at) => (
        <Fragment key={step[0]!.priority}>
          {at > 0 && <span className="text-muted"> {t('nextStep')} </span>}
          {step.map(({ model, weight }, index) => (
            <Fragment key={model}>
              {index > 0 && ', '}
              {model}
              {step.length > 1 && <span className="text-muted"> ×{weight}</span>}
            </Fragment>
          ))}
        </Fragment>
      ))}
    </>
  )
}

export function RoutesPage() {
  const t = useWords(routesWords)
  const [{ tab, new: isNew }, change] = useSearchState<Search>()
  const may = useMay()
  const [isCreating, setCreating] = useState(isNew !== undefined)
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('PUT /api/web/routes/{name}') && (
          <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
        )
      }
    >
      <Tabs
        label={t('title')}
        of={[
          { id: 'names', title: t('tabNames') },
          { id: 'explain', title: t('tabExplain') },
        ]}
      />
      {tab === 'explain' ? <ExplainAny /> : <RouteList onCreate={() => setCreating(true)} />}
      {isCreating && (
        <NewRouteDialog
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

const FILTERS = ['text', 'policy'] as const

function RouteList({ onCreate }: { readonly onCreate: () => void }) {
  const t = useWords(routesWords)
  const why = useWords(whyWords)
  const may = useMay()
  const [{ text, policy, sort }] = useSearchState<Search>()
  const found = useList('GET /api/web/routes', { query: definedOnly({ policy, sort, limit: 200 }) })
  const wanted = text?.toLowerCase()
  const list = {
    ...found,
    rows: wanted === undefined ? found.rows : found.rows.filter(({ name }) => name.toLowerCase().includes(wanted)),
  }
  const columns: readonly Column<ModelRoute>[] = [
    {
      id: 'name',
      title: t('name'),
      sort: 'name',
      phone: 'main',
      cell: ({ name }) => <span title={name}>{name}</span>,
    },
    {
      id: 'members',
      title: t('members'),
      cell: ({ members }) => <MembersLine members={members} />,
      phone: 'note',
      maxWidth: 560,
    },
    {
      id: 'policy',
      title: t('policy'),
      cell: ({ policy: name }) => why.find(`policy_${name}`) ?? name,
      phone: 'side',
    },
    { id: 'changed', title: t('changed'), sort: 'changed', cell: ({ changed }) => <Time at={changed} /> },
  ]
  return (
    <div>
      <FilterBar names={FILTERS} error={found.query.error}>
        <TextFilter name="text" label={t('text')} />
        <SelectFilter
          name="policy"
          label={t('policy')}
          choices={policies.map(value => ({ value, label: why(`policy_${value}`) }))}
        />
      </FilterBar>
      <DataTable
        name="routes"
        label={t('title')}
        list={list}
        columns={columns}
        rowKey={({ name }) => name}
        open={({ name }) => ({ to: '/routes/$name', params: { name } })}
        filters={FILTERS}
        empty={
          <Empty
            title={t('emptyTitle')}
            action={
              may('PUT /api/web/routes/{name}') && (
                <button type="button" className="button" onClick={onCreate}>
                  {t('create')}
                </button>
              )
            }
            command="weir routes set smart openai/gpt-4o=3 openai/gpt-4o-mini then anthropic/claude-sonnet-4-5"
          >
            {t('emptyText')}
          </Empty>
        }
      />
    </div>
  )
}

function ExplainAny() {
  const t = useWords(routesWords)
  const [{ model }, change] = useSearchState<Search>()
  const id = useId()
  const [name, setName] = useState(model ?? 'demo/echo')
  return (
    <div className="flex flex-col gap-4">
      <div className="flex max-w-2xl flex-col gap-1">
        <label htmlFor={id} className="font-medium">
          {t('explainModel')}
        </label>
        <input
          id={id}
          className="control w-full font-mono text-xs"
          autoComplete="off"
          spellCheck={false}
          value={name}
          onChange={event => setName(event.target.value)}
          onBlur={() => change({ model: name })}
        />
        <p className="text-muted text-xs">{t('explainHint')}</p>
      </div>
      <ExplainForm key={name} model={name} />
    </div>
  )
}

interface NewRoute extends RouteValues {
  readonly name: string
}

function NewRouteDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(routesWords)
  const navigate = useNavigate()
  const save = useWrite('PUT /api/web/routes/{name}', 'routes', 'models')
  const form = useForm<NewRoute>({
    initial: { name: '', policy: 'balanced', members: [{ model: '', priority: 0, weight: 1 }] },
    async save({ values: { name, policy, members } }) {
      const made = await save.mutateAsync({ params: { name }, body: { policy, members } })
      say(t('created', { name }))
      for (const warning of made.warnings) say(warning, { isBad: true })
      onClose()
      void navigate({ to: '/routes/$name', params: { name } })
    },
  })
  return (
    <Dialog title={t('newTitle')} onClose={onClose} wide>
      <Form
        of={form}
        action={t('create')}
        isNew
        onCancel={onClose}
        disabled={form.values.name.trim() === '' ? t('nameHint') : undefined}
      >
        <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} autoFocus mono />
        <RouteFields form={form} />
      </Form>
    </Dialog>
  )
}
