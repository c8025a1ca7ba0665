// One change to many channels: only the fields that are filled in.

import { useWrite } from '../api/reads.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form, LinesField, NumberField, useForm } from '../parts/form.tsx'
import { say } from '../parts/messages.tsx'
import { definedOnly } from '../parts/search.ts'
import { channelsWords } from '../words/en/channels.ts'
import { useWords } from '../words/words.ts'

interface BulkValues {
  readonly weight: number | null
  readonly priority: number | null
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  readonly tags: readonly string[] | null
}

interface ChangeManyProps {
  readonly channels: readonly { readonly id: string; readonly version: number }[]
  readonly onClose: () => void
  readonly onDone: () => void
}

export function ChangeManyDialog({ channels, onClose, onDone }: ChangeManyProps) {
  const t = useWords(channelsWords)
  const bulk = useWrite('POST /api/web/channels/bulk', 'channels')
  const form = useForm<BulkValues>({
    initial: {
      weight: null,
      priority: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
      concurrency: null,
      tags: null,
    },
    async save({ values }) {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
      const { warnings } = await bulk.mutateAsync({ body: { channels, change: definedOnly(given) } })
      say(t('changed', { n: channels.length }))
      for (const warning of warnings) say(warning, { isBad: true })
      onClose()
      onDone()
    },
  })
  const placeholder = t('leaveAsIs')
  return (
    <Dialog title={t('changeManyTitle', { n: channels.length })} onClose={onClose}>
      <Form of={form} action={t('changeManyAction')} onCancel={onClose}>
        <p className="text-muted">{t('changeManyText')}</p>
        <div className="grid gap-4 md:grid-cols-2">
          <NumberField
            form={form}
            name="priority"
            label={t('priority')}
            hint={t('priorityHint')}
            placeholder={placeholder}
          />
          <NumberField form={form} name="weight" label={t('weight')} hint={t('weightHint')} placeholder={placeholder} />
        </div>
        <div className="grid gap-4 md:grid-cols-3">
          <NumberField form={form} name="requestsPerMinute" label={t('rpm')} placeholder={placeholder} />
          <NumberField form={form} name="tokensPerMinute" label={t('tpm')} placeholder={placeholder} />
          <NumberField form={form} name="concurrency" label={t('concurrency')} placeholder={placeholder} />
        </div>
        <LinesField form={form} name="tags" label={t('tags')} hint={t('tagsHint')} placeholder={placeholder} />
      </Form>
    </Dialog>
  )
}
