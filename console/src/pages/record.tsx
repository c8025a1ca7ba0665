// One call as a page.

import { useParams } from '@tanstack/react-router'
import { useRead } from '../api/reads.ts'
import { CallView } from '../parts/call-view.tsx'
import { Page } from '../parts/page.tsx'
import { Query } from '../parts/states.tsx'
import { recordWords } from '../words/en/record.ts'
import { useWords } from '../words/words.ts'

export function RecordPage() {
  const t = useWords(recordWords)
  const { call } = useParams({ strict: false } as never) as { readonly call: string }
  const record = useRead('GET /api/web/records/{record}', { params: { record: call } })
  return (
    <Page title={t('title', { id: call })} back={{ to: '/records', label: t('records') }}>
      <Query of={record}>{data => <CallView record={data} />}</Query>
    </Page>
  )
}
