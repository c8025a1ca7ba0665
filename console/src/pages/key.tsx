// One key: settings, budgets, use, and what it may do now.

import { Link, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useRead, useWrite } from '../api/reads.ts'
import type { Key } from '../api/types.ts'
import { Budgets } from '../parts/budgets.tsx'
import { Chart, useOpenRecords } from '../parts/chart.tsx'
import { useQuestion } from '../parts/dialog.tsx'
import { RangeFilter } from '../parts/filters.tsx'
import {
  Form,
  LinesField,
  NumberField,
  SelectField,
  SwitchField,
  TextField,
  TimeField,
  useForm,
} from '../parts/form.tsx'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Section, Tabs } from '../parts/page.tsx'
import { definedOnly, rangeOf, useSearchState } from '../parts/search.ts'
import { Snippets } from '../parts/snippets.tsx'
import { Notice, Query, Warnings } from '../parts/states.tsx'
import { Steps } from '../parts/steps.ts'
import { Facts, Id, Time } from '../parts/values.tsx'
import { keyWords } from '../words/en/key.ts'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'
import { KeyModels, KeyNow } from './key-now.tsx'
import { KeyState } from './key-state.tsx'

// Not needed to look at a key.
const RotateKeyDialog = lazy(async () => ({ default: (await import('./rotate-key.tsx')).RotateKeyDialog }))

export function KeyPage() {
  const t = useWords(keyWords)
  const { key: id } = useParams({ strict: false } as never) as { readonly key: string }
  const key = useRead('GET /api/web/keys/{key}', { params: { key: id } })
  return (
    <Page
      title={key.data?.name ?? id}
      back={{ to: '/keys', label: t('keys') }}
      actions={key.data !== undefined && <KeyActions value={key.data} />}
    >
      <Query of={key}>{data => <KeyContent key={data.id} value={data} />}</Query>
    </Page>
  )
}

function KeyActions({ value }: { readonly value: Key }) {
  const t = useWords(keyWords)
  const tk = useWords(keysWords)
  const may = useMay()
  const [ask, question] = useQuestion()
  const [isRotating, setRotating] = useState(false)
  const revoke = useWrite('DELETE /api/web/keys/{key}', 'keys')
  if (value.state === 'revoked' || !may('PATCH /api/web/keys/{key}', value.account)) return null
  const params = { key: value.id }
  return (
    <>
      <button type="button" className="button" onClick={() => setRotating(true)}>
        <Icon name="refresh" />
        {t('rotate')}
      </button>
      <button
        type="button"
        className="button button-bad"
        onClick={() =>
          ask({
            title: tk('revokeTitle', { name: value.name }),
            children: tk('revokeText'),
            action: tk('revoke'),
            run: async () => {
              await revoke.mutateAsync({ params })
              say(tk('revoked', { name: value.name }))
            },
          })
        }
      >
        {tk('revoke')}
      </button>
      {question}
      <Suspense>{isRotating && <RotateKeyDialog value={value} onClose={() => setRotating(false)} />}</Suspense>
    </>
  )
}

function KeyContent({ value }: { readonly value: Key }) {
  const t = useWords(keyWords)
  const tk = useWords(keysWords)
  const may = useMay()
  const [{ tab = 'settings' }] = useSearchState()
  return (
    <>
      {value.state === 'revoked' && <Notice tone="bad">{t('revokedNote')}</Notice>}
      {value.managedBy === 'file' && <Notice tone="accent">{t('byFile')}</Notice>}
      {value.oldTextUntil !== null && (
        <Notice>{t.rich('oldSecret', { time: <Time at={value.oldTextUntil} /> })}</Notice>
      )}
      <Facts
        of={[
          { name: tk('state'), value: <KeyState state={value.state} /> },
          { name: t('ending'), value: <span className="font-mono text-xs">…{value.suffix}</span> },
          {
            name: t('account'),
            value: (
              <Link to="/accounts/$id" params={{ id: value.account }} className="link">
                {value.accountName ?? value.account}
              </Link>
            ),
          },
          { name: t('created'), value: <Time at={value.created} /> },
          value.revoked !== null && { name: t('revokedAt'), value: <Time at={value.revoked} /> },
          { name: 'ID', value: <Id id={value.id} /> },
          may('GET /api/web/audit-log', value.account) && {
            name: t('history'),
            value: (
              <Link to="/audit" search={{ target: value.id }} className="link">
                {t('audit')}
              </Link>
            ),
          },
        ]}
      />
      <KeyNow id={value.id} />
      <Tabs
        label={value.name}
        of={[
          { id: 'settings', title: t('settings') },
          { id: 'budgets', title: t('budgets') },
          { id: 'models', title: t('models') },
          { id: 'use', title: t('use') },
          { id: 'snippets', title: t('snippets') },
        ]}
      />
      {tab === 'settings' && <KeySettings value={value} />}
      {tab === 'budgets' && (
        <div className="max-w-xl">
          <Budgets of={{ key: value.id }} canEdit={may('PUT /api/web/keys/{key}/budgets/{span}', value.account)} />
        </div>
      )}
      {tab === 'models' && <KeyModels id={value.id} />}
      {tab === 'use' && <KeyUse id={value.id} />}
      {tab === 'snippets' && (
        <div className="max-w-3xl">
          <Snippets keyText={`wk-…${value.suffix}`} />
        </div>
      )}
    </>
  )
}

const formOf = (value: Key) => ({
  name: value.name,
  tier: value.tier,
  qpm: value.qpm,
  expires: value.expires,
  allows: value.allows,
  denies: value.denies,
  endpoints: value.endpoints,
  addresses: value.addresses,
  requires: value.requires,
  strictCap: value.strictCap,
  keepsBodies: value.keepsBodies,
  strict: value.strict,
  explains: value.explains,
})

function KeySettings({ value }: { readonly value: Key }) {
  const t = useWords(keyWords)
  const may = useMay()
  const tiers = useRead('GET /api/web/tiers')
  const update = useWrite('PATCH /api/web/keys/{key}', 'keys')
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const params = { key: value.id }
  const form = useForm({
    initial: formOf(value),
    version: value.version,
    done: t('saved'),
    async save({ changed, ifMatch }) {
      const saved = await update.mutateAsync({
        params,
        body: changed as never,
        ...(ifMatch !== undefined && { ifMatch }),
      })
      setWarnings((saved as { readonly warnings?: readonly string[] }).warnings ?? [])
    },
    async reload() {
      const now = await call('GET /api/web/keys/{key}', { params })
      return { initial: formOf(now), version: now.version }
    },
  })
  const canEdit =
    may('PATCH /api/web/keys/{key}', value.account) && value.state !== 'revoked' && value.managedBy !== 'file'
  const locked = canEdit ? undefined : value.managedBy === 'file' ? t('byFile') : t('onlyDevelopers')
  const admin = may('POST /api/web/accounts') ? locked : t('onlyAdmins')
  const names = [...new Set([value.tier, ...(tiers.data?.data ?? []).map(({ name }) => name)])]
  return (
    <div className="max-w-xl">
      <Form of={form} action={t('save')} disabled={locked}>
        <Warnings of={warnings} />
        <TextField form={form} name="name" label={t('name')} disabled={locked} />
        <SelectField
          form={form}
          name="tier"
          label={t('tier')}
          hint={t('tierHint')}
          disabled={admin}
          choices={names.map(name => ({ value: name, label: name }))}
        />
        <NumberField form={form} name="qpm" label={t('qpm')} hint={t('qpmHint')} disabled={admin} />
        <TimeField form={form} name="expires" label={t('expires')} hint={t('expiresHint')} disabled={locked} />
        <LinesField form={form} name="allows" label={t('allows')} hint={t('allowsHint')} disabled={locked} />
        <LinesField form={form} name="denies" label={t('denies')} hint={t('deniesHint')} disabled={locked} />
        <LinesField form={form} name="endpoints" label={t('endpoints')} hint={t('endpointsHint')} disabled={locked} />
        <LinesField form={form} name="addresses" label={t('addresses')} hint={t('addressesHint')} disabled={locked} />
        <LinesField form={form} name="requires" label={t('requires')} hint={t('requiresHint')} disabled={admin} />
        <SwitchField form={form} name="strictCap" label={t('strictCap')} hint={t('strictCapHint')} disabled={locked} />
        <SwitchField
          form={form}
          name="keepsBodies"
          label={t('keepsBodies')}
          hint={t('keepsBodiesHint')}
          disabled={locked}
        />
        <SwitchField form={form} name="strict" label={t('strict')} hint={t('strictHint')} disabled={locked} />
        <SwitchField form={form} name="explains" label={t('explains')} hint={t('explainsHint')} disabled={admin} />
      </Form>
    </div>
  )
}

function KeyUse({ id }: { readonly id: string }) {
  const t = useWords(keyWords)
  const [search] = useSearchState()
  const { from, before, lengthMs } = rangeOf(search, '7d')
  const step = lengthMs > 4 * 86_400_000 ? 'day' : 'hour'
  const series = useRead(
    'GET /api/web/statistics/series',
    { query: definedOnly({ key: id, from, before, step }) as never },
    { keepsPrevious: true },
  )
  const openRecords = useOpenRecords({ key: id })
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <RangeFilter standard="7d" />
        <Link to="/records" search={{ key: id } as never} className="link">
          {t('records')}
        </Link>
      </div>
      <Section title={t('callsChart')}>
        <Query of={series}>
          {answer => {
            const steps = new Steps(answer, answer.data)
            return (
              <Chart
                label={t('callsChart')}
                times={steps.times}
                lines={[
                  { name: t('calls'), values: steps.values(answer.data, ({ calls }) => calls), tone: 1 },
                  { name: t('errors'), values: steps.values(answer.data, ({ errors }) => errors), tone: 'bad' },
                ]}
                onStep={openRecords}
              />
            )
          }}
        </Query>
      </Section>
    </div>
  )
}
