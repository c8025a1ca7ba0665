// A dialog that gives a key a new secret. It is shown once; the old one goes on working for as long as is chosen here.

import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useWrite } from '../api/reads.ts'
import type { Key } from '../api/types.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Form, SelectField, useForm } from '../parts/form.tsx'
import { keyWords } from '../words/en/key.ts'
import { useWords } from '../words/words.ts'
import { KeyOnce } from './new-key.tsx'

const overlaps = ['0', '300', '3600', '86400', '604800'] as const

interface RotateKeyProps {
  readonly value: Key
  readonly onClose: () => void
}

export function RotateKeyDialog({ value, onClose }: RotateKeyProps) {
  const t = useWords(keyWords)
  const rotate = useWrite('POST /api/web/keys/{key}/rotate', 'keys')
  const [made, setMade] = useState<AnswerOf<'POST /api/web/keys/{key}/rotate'>>()
  const form = useForm<{ readonly overlapSeconds: (typeof overlaps)[number] }>({
    initial: { overlapSeconds: '300' },
    async save({ values }) {
      const body = { overlapSeconds: Number(values.overlapSeconds) }
      setMade(await rotate.mutateAsync({ params: { key: value.id }, body }))
    },
  })
  if (made !== undefined) return <KeyOnce made={made} onClose={onClose} />
  return (
    <Dialog title={t('rotateTitle', { name: value.name })} onClose={onClose}>
      <Form of={form} action={t('rotate')} isNew onCancel={onClose}>
        <p className="text-muted">{t('rotateText')}</p>
        <SelectField
          form={form}
          name="overlapSeconds"
          label={t('overlap')}
          choices={overlaps.map(seconds => ({ value: seconds, label: t(`overlap_${seconds}`) }))}
        />
      </Form>
    </Dialog>
  )
}
