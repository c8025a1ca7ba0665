// Tiers: the rate and the price of keys. A tier is edited in a panel over the list.

import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useDelete, useList, useRead, useWrite } from '../api/reads.ts'
import type { Tier } from '../api/types.ts'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog, Panel, useQuestion } from '../parts/dialog.tsx'
import { Form, NumberField, TextField, useForm } from '../parts/form.tsx'
import { wholeNumber } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { thousandthsOf } from '../parts/multiplier.ts'
import { Page } from '../parts/page.tsx'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty, Notice, Query } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { Facts } from '../parts/values.tsx'
import { tiersWords } from '../words/en/tiers.ts'
import { useWords } from '../words/words.ts'

interface Search {
  readonly tier?: string
  readonly sort?: 'name' | '-name' | 'qpm' | '-qpm'
  readonly new?: string
  readonly [name: string]: string | undefined
}

export function TiersPage() {
  const t = useWords(tiersWords)
  const [{ tier, sort, new: isNew }, change] = useSearchState<Search>()
  const may = useMay()
  const list = useList('GET /api/web/tiers', { query: definedOnly({ sort }) })
  const [isCreating, setCreating] = useState(isNew !== undefined)
  const seesKeys = list.rows.some(({ keys }) => keys !== null)
  const columns: readonly Column<Tier>[] = [
    { id: 'name', title: t('name'), sort: 'name', cell: ({ name }) => name, phone: 'main' },
    {
      id: 'qpm',
      title: t('qpm'),
      sort: 'qpm',
      align: 'right',
      cell: ({ qpm }) => wholeNumber(qpm),
      phone: 'note',
    },
    {
      id: 'accountQpm',
      title: t('accountQpm'),
      align: 'right',
      cell: ({ accountQpm }) => wholeNumber(accountQpm),
    },
    {
      id: 'accountConcurrency',
      title: t('accountConcurrency'),
      align: 'right',
      cell: ({ accountConcurrency }) => wholeNumber(accountConcurrency),
    },
    {
      id: 'multiplier',
      title: t('multiplier'),
      align: 'right',
      cell: ({ pricePerMille }) => t('times', { n: String(pricePerMille / 1_000) }),
      phone: 'side',
    },
  ]
  const keysColumn: Column<Tier> = {
    id: 'keys',
    title: t('keys'),
    align: 'right',
    cell: ({ keys }) => (keys === null ? '' : wholeNumber(keys)),
  }
  const close = (): void => change({ tier: undefined })
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        may('POST /api/web/tiers') && <CreateButton onClick={() => setCreating(true)}>{t('create')}</CreateButton>
      }
    >
      <DataTable
        name="tiers"
        label={t('title')}
        list={list}
        columns={seesKeys ? [...columns, keysColumn] : columns}
        rowKey={({ name }) => name}
        open={({ name }) => ({ to: '.', search: { ...definedOnly({ sort }), tier: name } as never })}
        current={tier}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
      />
      {tier !== undefined && <TierPanel key={tier} name={tier} onClose={close} />}
      {isCreating && (
        <NewTierDialog
          onClose={() => {
            setCreating(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

function TierPanel({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const tier = useRead('GET /api/web/tiers/{tier}', { params: { tier: name } })
  return (
    <Panel title={name} onClose={onClose}>
      <Query of={tier}>{data => <TierDetails tier={data} onClose={onClose} />}</Query>
    </Panel>
  )
}

interface TierValues {
  readonly qpm: number | null
  readonly multiplier: number | null
  readonly accountQpm: number | null
  readonly accountConcurrency: number | null
}

const valuesOf = ({ qpm, pricePerMille, accountQpm, accountConcurrency }: Tier): TierValues => ({
  qpm,
  multiplier: pricePerMille / 1_000,
  accountQpm,
  accountConcurrency,
})

/** As the gateway takes them. */
const bodyOf = ({ multiplier, ...rest }: Partial<TierValues>) =>
  multiplier === undefined ? rest : { ...rest, pricePerMille: multiplier === null ? null : thousandthsOf(multiplier) }

function TierDetails({ tier, onClose }: { readonly tier: Tier; readonly onClose: () => void }) {
  const t = useWords(tiersWords)
  const may = useMay()
  const { name, managedBy, keys } = tier
  const canEdit = may('PATCH /api/web/tiers/{tier}') && managedBy === null
  return (
    <div className="flex flex-col gap-6">
      {managedBy === 'file' && <Notice tone="accent">{t('fromFile')}</Notice>}
      {keys !== null && (
        <Facts
          of={[
            {
              name: t('keys'),
              value: (
                <>
                  {wholeNumber(keys)}{' '}
                  {keys > 0 && (
                    <Link to="/keys" search={{ tier: name }} className="link">
                      {t('keysWith')}
                    </Link>
                  )}
                </>
              ),
            },
          ]}
        />
      )}
      {canEdit ? <TierForm tier={tier} onClose={onClose} /> : <TierFacts tier={tier} />}
    </div>
  )
}

function TierFacts({ tier }: { readonly tier: Tier }) {
  const t = useWords(tiersWords)
  return (
    <>
      <Facts
        of={[
          { name: t('qpm'), value: wholeNumber(tier.qpm) },
          { name: t('accountQpm'), value: wholeNumber(tier.accountQpm) },
          { name: t('accountConcurrency'), value: wholeNumber(tier.accountConcurrency) },
          { name: t('multiplier'), value: t('times', { n: String(tier.pricePerMille / 1_000) }) },
        ]}
      />
      {tier.managedBy === null && <p className="text-muted">{t('readOnly')}</p>}
    </>
  )
}

function TierForm({ tier, onClose }: { readonly tier: Tier; readonly onClose: () => void }) {
  const t = useWords(tiersWords)
  const { name } = tier
  const [ask, question] = useQuestion()
  const save = useWrite('PATCH /api/web/tiers/{tier}', 'tiers')
  const remove = useDelete('DELETE /api/web/tiers/{tier}', 'tiers')
  const form = useForm<TierValues>({
    initial: valuesOf(tier),
    version: tier.version,
    save: ({ changed, ifMatch }) =>
      save.mutateAsync({
        params: { tier: name },
        body: bodyOf(changed) as Partial<Pick<Tier, 'qpm' | 'pricePerMille' | 'accountQpm' | 'accountConcurrency'>>,
        ...(ifMatch !== undefined && { ifMatch }),
      }),
    async reload() {
      const now = await call('GET /api/web/tiers/{tier}', { params: { tier: name } })
      return { initial: valuesOf(now), version: now.version }
    },
    done: t('saved', { name }),
  })
  return (
    <>
      <Form of={form} action={t('save')}>
        <TierFields form={form} />
        <p className="text-muted">{t('applies')}</p>
      </Form>
      <div>
        <button
          type="button"
          className="button button-bad"
          onClick={() =>
            ask({
              title: t('removeTitle', { name }),
              children: t('removeText'),
              action: t('remove'),
              run: async () => {
                await remove.mutateAsync({ params: { tier: name } })
                say(t('removed', { name }))
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

function TierFields<T extends TierValues>({ form }: { readonly form: ReturnType<typeof useForm<T>> }) {
  const t = useWords(tiersWords)
  const fields = form as unknown as ReturnType<typeof useForm<TierValues>>
  return (
    <>
      <NumberField form={fields} name="qpm" label={t('qpm')} />
      <NumberField form={fields} name="accountQpm" label={t('accountQpm')} />
      <NumberField form={fields} name="accountConcurrency" label={t('accountConcurrency')} />
      <NumberField
        form={fields}
        name="multiplier"
        param="pricePerMille"
        label={t('multiplier')}
        hint={t('multiplierHint')}
      />
    </>
  )
}

interface NewTier extends TierValues {
  readonly name: string
}

function NewTierDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(tiersWords)
  const create = useWrite('POST /api/web/tiers', 'tiers')
  const form = useForm<NewTier>({
    initial: { name: '', qpm: 60, multiplier: 1, accountQpm: null, accountConcurrency: null },
    async save({ values: { name, qpm, multiplier, accountQpm, accountConcurrency } }) {
      await create.mutateAsync({
        body: {
          name,
          qpm: qpm ?? 0,
          ...(multiplier !== null && { pricePerMille: thousandthsOf(multiplier) }),
          ...(accountQpm !== null && { accountQpm }),
          ...(accountConcurrency !== null && { accountConcurrency }),
        },
      })
      say(t('created', { name }))
      onClose()
    },
  })
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('create')} isNew onCancel={onClose}>
        <TextField form={form} name="name" label={t('name')} hint={t('nameHint')} autoFocus />
        <TierFields form={form} />
      </Form>
    </Dialog>
  )
}
