// A dialog that gives a key or a service token a new secret. The old one goes on working for as long as is chosen here.

import { rotationWords } from '../words/en/rotation.ts'
import { useWords } from '../words/words.ts'
import { Dialog } from './dialog.tsx'
import { Form, SelectField, useForm } from './form.tsx'

const overlaps = ['0', '300', '3600', '86400', '604800'] as const

interface RotateDialogProps {
  readonly title: string
  readonly action: string
  readonly rotate: (body: { readonly overlapSeconds: number }) => Promise<void>
  readonly onClose: () => void
}

export function RotateDialog({ title, action, rotate, onClose }: RotateDialogProps) {
  const t = useWords(rotationWords)
  const form = useForm<{ readonly overlapSeconds: (typeof overlaps)[number] }>({
    initial: { overlapSeconds: '300' },
    save: ({ values }) => rotate({ overlapSeconds: Number(values.overlapSeconds) }),
  })
  return (
    <Dialog title={title} onClose={onClose}>
      <Form of={form} action={action} isNew onCancel={onClose}>
        <p className="text-muted">{t('text')}</p>
        <SelectField
          form={form}
          name="overlapSeconds"
          label={t('overlap')}
          choices={overlaps.map(value => ({ value, label: t(`overlap_${value}`) }))}
        />
      </Form>
    </Dialog>
  )
}
