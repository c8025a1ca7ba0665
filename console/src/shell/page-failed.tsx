// What is shown instead of a page that does not exist or that failed.

import { Link } from '@tanstack/react-router'
import { Page } from '../parts/page.tsx'
import { Notice } from '../parts/states.tsx'
import { statesWords } from '../words/en/states.ts'
import { useWords } from '../words/words.ts'
import { SupportLink } from './site.tsx'

export function PageMissing() {
  const t = useWords(statesWords)
  return (
    <Page title={t('notFound')} intro={t('notFoundText')}>
      <p>
        <Link to="/" className="link">
          {t('toOverview')}
        </Link>
      </p>
    </Page>
  )
}

/** A page that the roles of the viewer do not reach. */
export function PageForbidden() {
  const t = useWords(statesWords)
  return (
    <Page title={t('forbidden')}>
      <Notice>{t('forbiddenNote')}</Notice>
      <SupportLink className="self-start" />
    </Page>
  )
}

/** A page of an older console can no longer be loaded after an upgrade: loading the document again gets the new one. */
export function PageFailed({ error }: { readonly error: Error }) {
  const t = useWords(statesWords)
  return (
    <Page title={t('pageFailed')}>
      <Notice tone="bad">{error.message}</Notice>
      <p className="flex flex-wrap items-center gap-4">
        <button type="button" className="button" onClick={() => location.reload()}>
          {t('reload')}
        </button>
        <SupportLink />
      </p>
    </Page>
  )
}
