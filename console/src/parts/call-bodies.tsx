// The stored bodies of a call. Reading them is noted in the audit log, so that it asks first.

import { useState } from 'react'
import type { AnswerOf } from '../api/client.ts'
import { call as send } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import { useMay } from '../api/may.ts'
import { recordWords } from '../words/en/record.ts'
import { useWords } from '../words/words.ts'
import { Code } from './copy.tsx'
import { useQuestion } from './dialog.tsx'
import { Section } from './page.tsx'

type Stored = AnswerOf<'GET /api/web/records/{record}/bodies'>

/** JSON is shown with one field on each line; everything else as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

export function Bodies({ call, account }: { readonly call: string; readonly account: string }) {
  const t = useWords(recordWords)
  const may = useMay()
  const [ask, question] = useQuestion()
  const [bodies, setBodies] = useState<Stored | 'none'>()
  if (!may('GET /api/web/records/{record}/bodies', account)) return null
  const read = async (): Promise<void> => {
    try {
      setBodies(await send('GET /api/web/records/{record}/bodies', { params: { record: call } }))
    } catch (error) {
      if (!isApiError(error) || error.status !== 404) throw error
      setBodies('none')
    }
  }
  return (
    <Section title={t('bodies')}>
      {bodies === undefined && (
        <button
          type="button"
          className="button"
          onClick={() =>
            ask({
              title: t('bodiesTitle'),
              children: t('bodiesText'),
              action: t('showBodies'),
              isBad: false,
              run: read,
            })
          }
        >
          {t('showBodies')}
        </button>
      )}
      {bodies === 'none' && <p className="text-muted">{t('bodiesNone')}</p>}
      {bodies !== undefined && bodies !== 'none' && (
        <div className="flex flex-col gap-4">
          {(['request', 'answer'] as const).map(part => (
            <div key={part}>
              <h3 className="mb-1">
                {t(part)} {bodies[part].truncated && <span className="font-normal text-muted">{t('truncated')}</span>}
              </h3>
              <Code text={readable(bodies[part].text)} label={t(part)} />
            </div>
          ))}
        </div>
      )}
      {question}
    </Section>
  )
}
