// A dialog that gives a key a new secret, which is shown once.

import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { useWrite } from '../api/reads.ts'
import type { Key } from '../api/types.ts'
import { RotateDialog } from '../parts/rotate-dialog.tsx'
import { keyWords } from '../words/en/key.ts'
import { useWords } from '../words/words.ts'
import { KeyOnce } from './new-key.tsx'

interface RotateKeyProps {
  readonly value: Key
  readonly onClose: () => void
}

export function RotateKeyDialog({ value, onClose }: RotateKeyProps) {
  const t = useWords(keyWords)
  const rotate = useWrite('POST /api/web/keys/{key}/rotate', 'keys')
  const [made, setMade] = useState<AnswerOf<'POST /api/web/keys/{key}/rotate'>>()
  if (made !== undefined) return <KeyOnce made={made} onClose={onClose} />
  return (
    <RotateDialog
      title={t('rotateTitle', { name: value.name })}
      action={t('rotate')}
      rotate={async body => setMade(await rotate.mutateAsync({ params: { key: value.id }, body }))}
      onClose={onClose}
    />
  )
}
