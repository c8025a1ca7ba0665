// The result of testing a channel: whether it works, what to do if not, and what was sent and received.

import type { Trial } from '../api/types.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { trialWords } from '../words/en/trial.ts'
import { useWords } from '../words/words.ts'
import { Code } from './copy.tsx'
import { prettyJson, requestText } from './explanation.tsx'
import { duration } from './format.ts'
import { Notice } from './states.tsx'
import { useHints } from './use-hints.ts'
import { Tags } from './values.tsx'

export function TrialResult({ of }: { readonly of: Trial }) {
  const t = useWords(trialWords)
  const reasons = useWords(reasonsWords)
  const inLanguage = useHints(of.faultHint !== null)
  const { ok, verdict, model, timings, fault, faultHint, status, advice, sent, received } = of
  return (
    <div className="flex flex-col gap-2">
      <Notice tone={ok ? 'ok' : 'bad'}>
        {ok ? (
          <p className="font-medium">{t('works', { model, time: duration(timings.totalMs) })}</p>
        ) : (
          <>
            <p className="font-medium">{t('failed', { reason: reasons.find(verdict) ?? verdict })}</p>
            <p>{t.find(`advice_${verdict}`) ?? advice}</p>
            {(status !== null || fault !== null) && (
              <p className="break-words text-muted text-xs">
                {status !== null && t('status', { status: String(status) })}{' '}
                {inLanguage(words => words.write(faultHint), fault)}
              </p>
            )}
          </>
        )}
      </Notice>
      <details>
        <summary className="min-h-6 cursor-pointer text-muted">{t('sent')}</summary>
        <div className="mt-1 flex flex-col gap-2">
          {sent.overrides.length > 0 && (
            <div className="flex flex-wrap items-center gap-2">
              {t('overrides')} <Tags of={sent.overrides} />
            </div>
          )}
          <Code text={requestText(sent)} label={t('sent')} />
        </div>
      </details>
      {received !== null && (
        <details>
          <summary className="min-h-6 cursor-pointer text-muted">{t('received')}</summary>
          <div className="mt-1">
            <Code text={prettyJson(received.body)} label={t('received')} />
          </div>
        </details>
      )}
    </div>
  )
}
