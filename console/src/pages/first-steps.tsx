// Leads an unused gateway or account to its first answered call.

import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useState } from 'react'
import { useMay } from '../api/may.ts'
import { useList } from '../api/reads.ts'
import { isStaff } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import type { Overview } from '../api/types.ts'
import { Section } from '../parts/page.tsx'
import { definedOnly } from '../parts/search.ts'
import { Snippets } from '../parts/snippets.tsx'
import { State } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { overviewWords } from '../words/en/overview.ts'
import { useWords } from '../words/words.ts'
import { NewKeyDialog } from './new-key.tsx'

interface StepProps {
  readonly number: number
  readonly title: string
  readonly text: string
  readonly isDone?: boolean
  readonly children?: ReactNode
}

function Step({ number, title, text, isDone = false, children }: StepProps) {
  const t = useWords(overviewWords)
  return (
    <li className="flex gap-3 border-line border-b py-3">
      <span
        aria-hidden="true"
        className={`grid size-6 shrink-0 place-items-center rounded-full border text-xs ${isDone ? 'border-ok text-ok' : 'border-line-strong'}`}
      >
        {number}
      </span>
      <div className="flex min-w-0 flex-1 flex-col items-start gap-2">
        <div>
          <h3 className="flex flex-wrap gap-x-3">
            {title}
            {isDone && (
              <span className="font-normal">
                <State tone="ok">{t('stepDone')}</State>
              </span>
            )}
          </h3>
          <p className="max-w-xl text-muted">{text}</p>
        </div>
        {children}
      </div>
    </li>
  )
}

export function FirstSteps({ overview }: { readonly overview: Overview }) {
  const t = useWords(overviewWords)
  const staff = isStaff(useMe())
  const may = useMay()
  const account = useAccount()
  const keys = useList('GET /api/web/keys', {
    query: definedOnly({ account: account?.id, state: 'active' as const, limit: 1 }),
  })
  const [isCreating, setCreating] = useState(false)
  const hasChannel = overview.channels !== null && overview.channels.enabled > 1
  const canAdd = staff && may('POST /api/web/channels')
  const first = canAdd ? 1 : 0
  return (
    <Section title={t('stepsTitle')} note={t(canAdd ? 'stepsText' : 'stepsTextMember')}>
      <ol className="border-line border-t">
        {canAdd && (
          <Step number={1} title={t('step1')} text={t('step1Text')} isDone={hasChannel}>
            <Link to="/channels" search={{ new: '1' } as never} className="button">
              {t('step1Action')}
            </Link>
          </Step>
        )}
        <Step number={first + 1} title={t('step2')} text={t('step2Text')} isDone={keys.rows.length > 0}>
          {may('POST /api/web/keys') && (
            <button type="button" className="button button-main" onClick={() => setCreating(true)}>
              {t('step2Action')}
            </button>
          )}
        </Step>
        <Step number={first + 2} title={t('step3')} text={t('step3Text')}>
          <div className="w-full max-w-2xl">
            <Snippets />
          </div>
        </Step>
        <Step number={first + 3} title={t('step4')} text={t('step4Text')}>
          <Link to="/live" className="button">
            {t('step4Action')}
          </Link>
        </Step>
      </ol>
      {isCreating && <NewKeyDialog onClose={() => setCreating(false)} />}
    </Section>
  )
}
