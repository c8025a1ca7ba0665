// Limits of calls, tokens and calls at once. The amount of a limit is changed in a panel over the list.

import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useDelete, useList, useRead, useWrite } from '../api/reads.ts'
import type { Limit } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Panel, useQuestion } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, NumberField, useForm } from '../parts/form.tsx'
import { wholeNumber } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, Notice, Query, Warnings } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Facts } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { limitsWords } from '../words/en/limits.ts'
import { labelled } from '../words/joined.ts'
import { useWords } from '../words/words.ts'
import { useLimitTexts } from './limit-text.ts'
import { NewLimitDialog } from './new-limit.tsx'

interface Search {
  readonly resource?: Limit['resource']
  readonly key?: string
  readonly tier?: string
  readonly model?: string
  readonly sort?: 'id' | '-id'
  readonly limit?: string
  readonly new?: string
  readonly [name: string]: string | undefined
}

const FILTERS = ['resource', 'key', 'tier', 'model'] as const

export function LimitsPage() {
  const t = useWords(limitsWords)
  const texts = useLimitTexts()
  const [{ resource, key, tier, model, sort, limit, new: isNew }, change] = useSearchState<Search>()
  const account = useAccount()
  const may = useMay()
  const list = useList('GET /api/web/limits', {
    query: definedOnly({ resource, key, tier, model, sort, account: account?.id }),
  })
  const tiers = useRead('GET /api/web/tiers')
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const columns: readonly Column<Limit>[] = [
    {
      id: 'amount',
      title: t('limit'),
      cell: row => (
        <>
          <span className="tabular-nums">{wholeNumber(row.amount)}</span> {texts.what(row)}
        </>
      ),
      phone: 'main',
    },
    {
      id: 'appliesTo',
      title: t('appliesTo'),
      cell: row => <span title={texts.who(row)}>{texts.who(row)}</span>,
      phone: 'note',
      maxWidth: 420,
    },
    { id: 'shared', title: t('shared'), cell: row => texts.shared(row), phone: 'note' },
  ]
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('POST /api/web/limits') && <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
      }
    >
      <div>
        <FilterBar names={FILTERS} error={list.query.error}>
          <SelectFilter
            name="resource"
            label={t('resource')}
            choices={(['requests', 'tokens', 'concurrency'] as const).map(value => ({
              value,
              label: t(`resource_${value}`),
            }))}
          />
          <SelectFilter
            name="tier"
            label={t('tierName')}
            choices={(tiers.data?.data ?? []).map(({ name }) => ({ value: name, label: name }))}
          />
          <TextFilter name="model" label={t('modelName')} />
          <TextFilter name="key" label={t('keyId')} mono />
        </FilterBar>
        <DataTable
          name="limits"
          label={t('title')}
          list={list}
          columns={columns}
          rowKey={({ id }) => String(id)}
          open={({ id }) => ({
            to: '.',
            search: ((old: object) => ({ ...old, limit: String(id) })) as never,
          })}
          current={limit}
          filters={FILTERS}
          empty={
            <Empty
              title={t('emptyTitle')}
              action={
                may('POST /api/web/limits') && (
                  <button type="button" className="button" onClick={() => setCreating(true)}>
                    {t('create')}
                  </button>
                )
              }
              command="weir limits set requests 100/minute --per key --model 'openai/*'"
            >
              {t('emptyText')}
            </Empty>
          }
        />
      </div>
      {limit !== undefined && (
        <LimitPanel key={limit} id={Number(limit)} onClose={() => change({ limit: undefined })} />
      )}
      {isCreating && (
        <NewLimitDialog
          tiers={(tiers.data?.data ?? []).map(({ name }) => name)}
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

function LimitPanel({ id, onClose }: { readonly id: number; readonly onClose: () => void }) {
  const t = useWords(limitsWords)
  const limit = useRead('GET /api/web/limits/{limit}', { params: { limit: id } })
  return (
    <Panel title={t('panelTitle', { id: String(id) })} onClose={onClose}>
      <Query of={limit}>{data => <LimitDetails limit={data} onClose={onClose} />}</Query>
    </Panel>
  )
}

interface LimitValues {
  readonly amount: number | null
}

function LimitDetails({ limit, onClose }: { readonly limit: Limit; readonly onClose: () => void }) {
  const t = useWords(limitsWords)
  const texts = useLimitTexts()
  const may = useMay()
  const canEdit = may('PATCH /api/web/limits/{limit}') && limit.managedBy === null
  return (
    <div className="flex flex-col gap-6">
      {limit.managedBy === 'file' && <Notice tone="accent">{t('fromFile')}</Notice>}
      <Facts
        of={[
          !canEdit && { name: t('amount'), value: wholeNumber(limit.amount) },
          { name: t('what'), value: texts.what(limit) },
          { name: t('appliesTo'), value: texts.who(limit) },
          { name: t('shared'), value: texts.shared(limit) },
        ]}
      />
      {canEdit && <LimitForm limit={limit} onClose={onClose} />}
    </div>
  )
}

function LimitForm({ limit, onClose }: { readonly limit: Limit; readonly onClose: () => void }) {
  const t = useWords(limitsWords)
  const texts = useLimitTexts()
  const { id } = limit
  const [ask, question] = useQuestion()
  const [warnings, setWarnings] = useState<readonly string[]>([])
  const save = useWrite('PATCH /api/web/limits/{limit}', 'limits')
  const remove = useDelete('DELETE /api/web/limits/{limit}', 'limits')
  const form = useForm<LimitValues>({
    initial: { amount: limit.amount },
    version: limit.version,
    async save({ values: { amount }, ifMatch }) {
      const saved = await save.mutateAsync({
        params: { limit: id },
        body: { amount: amount ?? 0 },
        ...(ifMatch !== undefined && { ifMatch }),
      })
      setWarnings(saved.warnings)
    },
    async reload() {
      const now = await call('GET /api/web/limits/{limit}', { params: { limit: id } })
      return { initial: { amount: now.amount }, version: now.version }
    },
    done: t('saved'),
  })
  return (
    <>
      <Form of={form} action={t('save')}>
        <NumberField form={form} name="amount" label={t('amount')} hint={t('amountNote')} />
        <Warnings of={warnings} />
      </Form>
      <div>
        <button
          type="button"
          className="button button-bad"
          onClick={() =>
            ask({
              title: t('removeTitle', { text: `${wholeNumber(limit.amount)} ${texts.what(limit)}` }),
              children: labelled(texts.who(limit), t('removeText')),
              action: t('remove'),
              run: async () => {
                await remove.mutateAsync({ params: { limit: id } })
                say(t('removed'))
                onClose()
              },
            })
          }
        >
          {t('remove')}
        </button>
      </div>
      {question}
    </>
  )
}
