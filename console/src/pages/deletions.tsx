// Deletions of records: what was ordered, how far it is, and ordering one.

import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList, useWrite } from '../api/reads.ts'
import type { RecordDeletion } from '../api/types.ts'
import { Dialog, useQuestion } from '../parts/dialog.tsx'
import { Form, TextField, TimeField, useForm } from '../parts/form.tsx'
import { time, wholeNumber } from '../parts/format.ts'
import { say } from '../parts/messages.tsx'
import { Page } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { State, Time } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { deletionsWords } from '../words/en/deletions.ts'
import { comma } from '../words/joined.ts'
import { useWords } from '../words/words.ts'

interface Wanted {
  readonly account: string | null
  readonly key: string | null
  readonly ofEndUser: boolean
  readonly from: string | null
  readonly before: string | null
}

/** What a deletion covers, in words. */
function useScopeText(): (wanted: Wanted) => string {
  const t = useWords(deletionsWords)
  return ({ account, key, ofEndUser, from, before }) => {
    const who = key !== null ? t('ofKey', { key }) : account !== null ? t('ofAccount', { account }) : t('ofAll')
    const hasRange = from !== null || before !== null
    const shown = (at: string | null): string => (at === null ? '–' : time(at))
    const more = [
      ofEndUser && t('ofEndUser'),
      hasRange && t('sinceUntil', { from: shown(from), before: shown(before) }),
    ].filter(part => part !== false)
    return more.length === 0 ? who : [who.trim(), ...more].join(comma())
  }
}

export function DeletionsPage() {
  const t = useWords(deletionsWords)
  const may = useMay()
  const textOf = useScopeText()
  const [search, change] = useSearchState()
  const [isNew, setNew] = useState(search.new !== undefined)
  const list = useList('GET /api/web/records/deletions', undefined, { everyMs: 10_000 })
  const columns: readonly Column<RecordDeletion>[] = [
    { id: 'made', title: t('made'), cell: row => <Time at={row.made} />, phone: 'note' },
    {
      id: 'what',
      title: t('what'),
      cell: row => <span title={textOf(row)}>{textOf(row)}</span>,
      phone: 'main',
      maxWidth: 520,
    },
    { id: 'deleted', title: t('deleted'), align: 'right', cell: row => wholeNumber(row.deleted), phone: 'note' },
    {
      id: 'state',
      title: t('state'),
      cell: row => (
        <State tone={row.done === null ? 'accent' : 'ok'}>{t(row.done === null ? 'running' : 'done')}</State>
      ),
      phone: 'side',
    },
    { id: 'author', title: t('by'), cell: row => row.author },
  ]
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      back={{ to: '/records', label: t('back') }}
      actions={
        may('POST /api/web/records/deletions') && (
          <button type="button" className="button button-bad" data-create onClick={() => setNew(true)}>
            {t('create')}
          </button>
        )
      }
    >
      <DataTable
        name="deletions"
        label={t('title')}
        list={list}
        columns={columns}
        rowKey={row => String(row.id)}
        empty={<Empty title={t('emptyTitle')}>{t('emptyText')}</Empty>}
      />
      {isNew && (
        <NewDeletion
          onClose={() => {
            setNew(false)
            change({ new: undefined })
          }}
        />
      )}
    </Page>
  )
}

function NewDeletion({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(deletionsWords)
  const account = useAccount()
  const textOf = useScopeText()
  const [ask, question] = useQuestion()
  const order = useWrite('POST /api/web/records/deletions', 'records')
  const form = useForm({
    initial: {
      account: account?.id ?? '',
      key: '',
      endUser: '',
      from: null as string | null,
      before: null as string | null,
    },
    async save({ values }) {
      const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim())
      const wanted = {
        ...values,
        account: orNull(values.account),
        key: orNull(values.key),
        endUser: orNull(values.endUser),
      }
      ask({
        title: t('askTitle'),
        children: t('askText', { what: textOf({ ...wanted, ofEndUser: wanted.endUser !== null }) }),
        action: t('create'),
        run: async () => {
          const body = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null))
          await order.mutateAsync({ body })
          say(t('ordered'))
          onClose()
        },
      })
    },
  })
  return (
    <Dialog title={t('newTitle')} onClose={onClose}>
      <Form of={form} action={t('next')} isNew isBad onCancel={onClose}>
        <TextField form={form} name="account" label={t('account')} mono />
        <TextField form={form} name="key" label={t('key')} hint={t('keyHint')} mono />
        <TextField form={form} name="endUser" label={t('endUser')} hint={t('endUserHint')} />
        <TimeField form={form} name="from" label={t('from')} hint={t('timeHint')} />
        <TimeField form={form} name="before" label={t('before')} hint={t('timeHint')} />
      </Form>
      {question}
    </Dialog>
  )
}
