// Codes that add money to an account: batches, single codes, making and voiding. The texts of codes are shown once.

import { useState } from 'react'
import { csvLine } from '../../../src/base/text/export-lines.ts'
import type { AnswerOf } from '../api/client.ts'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { Code, CodeBatch } from '../api/types.ts'
import { CopyButton } from '../parts/copy.tsx'
import { CreateButton } from '../parts/create-button.tsx'
import { Dialog, Menu, useQuestion } from '../parts/dialog.tsx'
import { FilterBar, SelectFilter, TextFilter } from '../parts/filters.tsx'
import { Form, LeaveGuard, MoneyField, NumberField, TextField, TimeField, useForm } from '../parts/form.tsx'
import { exactMoney, wholeNumber } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { say } from '../parts/messages.tsx'
import { Page, Tabs } from '../parts/page.tsx'
import { saveFile } from '../parts/save-file.ts'
import { definedOnly, useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import type { Tone } from '../parts/values.tsx'
import { Id, Money, None, State, Time } from '../parts/values.tsx'
import { codesWords } from '../words/en/codes.ts'
import { useWords } from '../words/words.ts'

type Made = AnswerOf<'POST /api/web/codes'>

export function CodesPage() {
  const t = useWords(codesWords)
  const may = useMay()
  const [search, change] = useSearchState()
  const [isMaking, setMaking] = useState(search.new !== undefined)
  const canVoid = may('POST /api/web/codes/voids')
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={may('POST /api/web/codes') && <CreateButton onClick={() => setMaking(true)}>{t('make')}</CreateButton>}
    >
      <Tabs
        label={t('title')}
        of={[
          { id: 'batches', title: t('batches') },
          { id: 'codes', title: t('codes') },
        ]}
      />
      {search.tab === 'codes' ? <Codes canVoid={canVoid} /> : <Batches canVoid={canVoid} />}
      {isMaking && (
        <MakeDialog
          onClose={() => {
            setMaking(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

function Expiry({ at }: { readonly at: string | null }) {
  const t = useWords(codesWords)
  return at === null ? <span className="text-muted">{t('never')}</span> : <Time at={at} />
}

function Batches({ canVoid }: { readonly canVoid: boolean }) {
  const t = useWords(codesWords)
  const list = useList('GET /api/web/codes/batches')
  const voids = useWrite('POST /api/web/codes/voids', 'codes')
  const [ask, question] = useQuestion()
  const open = ({ codes, redeemed, voided }: CodeBatch): number => codes - redeemed - voided
  const columns: readonly Column<CodeBatch>[] = [
    { id: 'batch', title: t('batch'), cell: batch => batch.batch, phone: 'main' },
    { id: 'codes', title: t('count'), align: 'right', cell: batch => wholeNumber(batch.codes), phone: 'note' },
    { id: 'redeemed', title: t('redeemed'), align: 'right', cell: batch => wholeNumber(batch.redeemed), phone: 'note' },
    { id: 'voided', title: t('voided'), align: 'right', cell: batch => wholeNumber(batch.voided) },
    { id: 'open', title: t('open'), align: 'right', cell: batch => wholeNumber(open(batch)) },
    { id: 'worth', title: t('worth'), align: 'right', cell: batch => <Money usd={batch.worth} />, phone: 'side' },
    { id: 'made', title: t('made'), cell: batch => <Time at={batch.made} />, phone: 'note' },
    { id: 'expires', title: t('expires'), cell: batch => <Expiry at={batch.expires} /> },
  ]
  return (
    <>
      <DataTable
        name="batches"
        label={t('batches')}
        list={list}
        columns={columns}
        rowKey={batch => batch.batch}
        open={batch => ({ to: '/codes', search: { tab: 'codes', batch: batch.batch } as never })}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
        actions={batch => (
          <Menu
            label={batch.batch}
            items={[
              canVoid &&
                open(batch) > 0 && {
                  label: t('void'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('voidTitle', { batch: batch.batch }),
                      children: t('voidText', { n: open(batch) }),
                      action: t('void'),
                      typed: batch.batch,
                      run: async () => {
                        const { voided } = await voids.mutateAsync({ body: { batch: batch.batch } })
                        say(t('voidedDone', { n: voided }))
                      },
                    }),
                },
            ]}
          />
        )}
      />
      {question}
    </>
  )
}

const tones: Readonly<Record<Code['state'], Tone>> = {
  open: 'ok',
  redeemed: 'accent',
  voided: 'muted',
  expired: 'warn',
}
const FILTERS = ['batch', 'state'] as const

function Codes({ canVoid }: { readonly canVoid: boolean }) {
  const t = useWords(codesWords)
  const voids = useWrite('POST /api/web/codes/voids', 'codes')
  const [ask, question] = useQuestion()
  const [{ batch, state }] = useSearchState<{
    readonly batch?: string
    readonly state?: Code['state']
    readonly [name: string]: string | undefined
  }>()
  const list = useList('GET /api/web/codes', { query: definedOnly({ batch, state }) })
  const columns: readonly Column<Code>[] = [
    { id: 'id', title: t('code'), cell: code => <span className="font-mono text-xs">{code.id}</span>, phone: 'main' },
    { id: 'batch', title: t('batch'), cell: code => code.batch, phone: 'note' },
    {
      id: 'state',
      title: t('state'),
      cell: code => <State tone={tones[code.state]}>{t(`state_${code.state}`)}</State>,
      phone: 'note',
    },
    { id: 'amount', title: t('amount'), align: 'right', cell: code => <Money usd={code.amount} />, phone: 'side' },
    { id: 'account', title: t('account'), cell: code => (code.account === null ? <None /> : <Id id={code.account} />) },
    { id: 'redeemed', title: t('redeemedAt'), cell: code => <Time at={code.redeemed} /> },
    { id: 'made', title: t('made'), cell: code => <Time at={code.made} />, isOptional: true },
    { id: 'expires', title: t('expires'), cell: code => <Expiry at={code.expires} /> },
  ]
  return (
    <div>
      <FilterBar names={FILTERS} error={list.query.error}>
        <TextFilter name="batch" label={t('batch')} />
        <SelectFilter
          name="state"
          label={t('state')}
          choices={(['open', 'redeemed', 'voided', 'expired'] as const).map(value => ({
            value,
            label: t(`state_${value}`),
          }))}
        />
      </FilterBar>
      <DataTable
        name="codes"
        label={t('codes')}
        list={list}
        columns={columns}
        rowKey={code => code.id}
        filters={FILTERS}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
        actions={code =>
          canVoid &&
          code.state === 'open' && (
            <Menu
              label={code.id}
              items={[
                {
                  label: t('voidOne'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('voidOneTitle', { code: code.id }),
                      children: t('voidText', { n: 1 }),
                      action: t('voidOne'),
                      run: async () => {
                        const { voided } = await voids.mutateAsync({ body: { code: code.id } })
                        say(t('voidedDone', { n: voided }))
                      },
                    }),
                },
              ]}
            />
          )
        }
      />
      {question}
    </div>
  )
}

function MakeDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(codesWords)
  const [made, setMade] = useState<Made>()
  const make = useWrite('POST /api/web/codes', 'codes')
  const form = useForm({
    initial: { count: 10 as number | null, amount: '', batch: '', expires: null as string | null },
    async save({ values: { count, amount, batch, expires } }) {
      const body = { count: count ?? 0, amount, ...(batch !== '' && { batch }), ...(expires !== null && { expires }) }
      setMade(await make.mutateAsync({ body }))
    },
  })
  if (made !== undefined) return <MadeCodes made={made} onClose={onClose} />
  return (
    <Dialog title={t('make')} onClose={onClose}>
      <Form of={form} action={t('make')} isNew onCancel={onClose}>
        <NumberField form={form} name="count" label={t('count')} hint={t('countHint')} />
        <MoneyField form={form} name="amount" label={t('amount')} hint={t('amountHint')} />
        <TextField form={form} name="batch" label={t('batch')} hint={t('batchHint')} />
        <TimeField form={form} name="expires" label={t('expires')} hint={t('expiresHint')} />
      </Form>
    </Dialog>
  )
}

function MadeCodes({ made, onClose }: { readonly made: Made; readonly onClose: () => void }) {
  const t = useWords(codesWords)
  const [isTaken, setTaken] = useState(false)
  const save = (): void => {
    const lines = made.codes.map(code => csvLine([code, made.batch, made.amount]))
    saveFile(`codes-${made.batch}.csv`, [csvLine(['code', 'batch', 'amount']), ...lines].join(''), 'text/csv')
    setTaken(true)
  }
  return (
    <Dialog title={t('onceTitle', { n: made.codes.length })} onClose={onClose} canClose={isTaken}>
      <div className="flex flex-col gap-4">
        <p className="text-muted">{t('onceText', { amount: exactMoney(made.amount), batch: made.batch })}</p>
        <textarea
          readOnly
          aria-label={t('codes')}
          rows={Math.min(10, made.codes.length)}
          className="control font-mono text-xs"
          value={made.codes.join('\n')}
        />
        <div className="flex flex-wrap gap-2">
          <button type="button" className="button button-main" onClick={save}>
            <Icon name="download" />
            {t('saveCsv')}
          </button>
          <CopyButton text={made.codes.join('\n')} label={t('copyAll')} onCopied={() => setTaken(true)} />
          <button type="button" className="button ml-auto" onClick={onClose}>
            {t('done')}
          </button>
        </div>
        <LeaveGuard when={!isTaken} />
      </div>
    </Dialog>
  )
}
