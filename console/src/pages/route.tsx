// One route: its members, and what would happen to a call with its name.

import { useNavigate, useParams } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useDelete, useRead, useWrite } from '../api/reads.ts'
import type { ModelRoute } from '../api/types.ts'
import { useQuestion } from '../parts/dialog.tsx'
import { ExplainForm } from '../parts/explain-form.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Notice, Query, Warnings } from '../parts/states.tsx'
import { Facts, Id, Time } from '../parts/values.tsx'
import { routesWords } from '../words/en/routes.ts'
import { whyWords } from '../words/en/why.ts'
import { useWords } from '../words/words.ts'
import type { Policy, RouteValues } from './route-members.tsx'
import { RouteFields } from './route-members.tsx'
import { sortedMembers } from './route-values.ts'
import { MembersLine } from './routes.tsx'

export function RoutePage() {
  const t = useWords(routesWords)
  const { name } = useParams({ strict: false }) as { readonly name: string }
  const [{ tab }] = useSearchState()
  const route = useRead('GET /api/web/routes/{name}', { params: { name } })
  const may = useMay()
  const navigate = useNavigate()
  const [ask, question] = useQuestion()
  const remove = useDelete('DELETE /api/web/routes/{name}', 'routes', 'models')
  const canEdit = may('PUT /api/web/routes/{name}') && route.data !== undefined && route.data.managedBy === null
  return (
    <Page
      title={name}
      back={{ to: '/routes', label: t('back') }}
      actions={
        canEdit && (
          <button
            type="button"
            className="button button-bad"
            onClick={() =>
              ask({
                title: t('removeTitle', { name }),
                children: t('removeText'),
                action: t('remove'),
                run: async () => {
                  const { warnings } = await remove.mutateAsync({ params: { name } })
                  say(t('removed', { name }))
                  for (const warning of warnings) say(warning, { isBad: true })
                  void navigate({ to: '/routes' })
                },
              })
            }
          >
            {t('remove')}
          </button>
        )
      }
    >
      <Query of={route}>
        {data => (
          <>
            <Tabs
              label={name}
              of={[
                { id: 'members', title: t('settings') },
                { id: 'explain', title: t('tabExplain') },
              ]}
            />
            {tab === 'explain' ? <ExplainRoute name={name} /> : <RouteSettings route={data} canEdit={canEdit} />}
          </>
        )}
      </Query>
      {question}
    </Page>
  )
}

const valuesOf = ({ policy, members }: ModelRoute): RouteValues => ({
  policy: policy as Policy,
  members: sortedMembers(members),
})

function RouteSettings({ route, canEdit }: { readonly route: ModelRoute; readonly canEdit: boolean }) {
  const t = useWords(routesWords)
  const why = useWords(whyWords)
  const { name } = route
  return (
    <div className="flex max-w-2xl flex-col gap-6">
      {route.managedBy === 'file' && <Notice tone="accent">{t('fromFile')}</Notice>}
      {canEdit && <RouteForm key={name} route={route} />}
      <Facts
        of={[
          !canEdit && { name: t('members'), value: <MembersLine members={route.members} /> },
          !canEdit && { name: t('policy'), value: why.find(`policy_${route.policy}`) ?? route.policy },
          { name: t('changed'), value: <Time at={route.changed} /> },
          { name: t('author'), value: <Id id={route.author} /> },
        ]}
      />
    </div>
  )
}

function RouteForm({ route }: { readonly route: ModelRoute }) {
  const t = useWords(routesWords)
  const { name } = route
  const save = useWrite('PUT /api/web/routes/{name}', 'routes', 'models')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const form = useForm<RouteValues>({
    initial: valuesOf(route),
    version: route.version,
    // A route is replaced whole.
    async save({ values: { policy, members }, ifMatch }) {
      const saved = await save.mutateAsync({
        params: { name },
        body: { policy, members },
        ...(ifMatch !== undefined && { ifMatch }),
      })
      setWarnings(saved.warnings)
    },
    async reload() {
      const now = await call('GET /api/web/routes/{name}', { params: { name } })
      return { initial: valuesOf(now), version: now.version }
    },
    done: t('saved', { name }),
  })
  return (
    <Form of={form} action={t('save')}>
      <RouteFields form={form} />
      <Warnings of={warnings} />
    </Form>
  )
}

/** A pattern is no name that a caller could write, so that one must be given. */
function ExplainRoute({ name }: { readonly name: string }) {
  const t = useWords(routesWords)
  const id = useId()
  const [written, setWritten] = useState(name.replace('*', ''))
  if (!name.includes('*')) return <ExplainForm model={name} />
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
          value={written}
          onChange={event => setWritten(event.target.value)}
        />
        <p className="text-muted text-xs">{t('pattern')}</p>
      </div>
      <ExplainForm key={written} model={written} />
    </div>
  )
}
