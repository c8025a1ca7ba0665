// The ledger: the trial balance, which sums to zero before the viewer's eyes; the auditor; the gateway's own accounts.

import { useRead } from '../api/reads.ts'
import type { TrialBalance } from '../api/types.ts'
import { exactMoney, nanosOf, sumMoney, usdOf, wholeNumber } from '../parts/format.ts'
import { LedgerFindings } from '../parts/ledger-findings.tsx'
import { Page, Section } from '../parts/page.tsx'
import { useSearchState } from '../parts/search.ts'
import { Statement } from '../parts/statement.tsx'
import { Notice, Query } from '../parts/states.tsx'
import { Money, State, Time } from '../parts/values.tsx'
import { ledgerWords } from '../words/en/ledger.ts'
import { useWords } from '../words/words.ts'

export function LedgerPage() {
  const t = useWords(ledgerWords)
  const trial = useRead('GET /api/web/ledger/trial-balance')
  const check = useRead('GET /api/web/ledger/check')
  const [{ of }, change] = useSearchState()
  const own = trial.data?.own.find(({ account }) => account === of)
  return (
    <Page title={t('title')} intro={t('intro')}>
      <Section title={t('auditor')} note={t('auditorNote')}>
        <Query of={check}>
          {({ books, audited, findings }) => (
            <div className="flex flex-col gap-2">
              <p className="flex flex-wrap gap-x-3">
                <State tone={books === 'agree' ? 'ok' : books === 'do not agree' ? 'bad' : 'muted'}>
                  {t(books === 'agree' ? 'consistent' : books === 'do not agree' ? 'inconsistent' : 'notYet')}
                </State>
                {audited !== null && (
                  <span className="text-muted">{t.rich('audited', { time: <Time at={audited} isAge /> })}</span>
                )}
              </p>
              {findings.length > 0 && <LedgerFindings of={findings} />}
            </div>
          )}
        </Query>
      </Section>
      <Section title={t('trialBalance')} note={t('trialNote')}>
        <Query of={trial}>
          {data => <Trial data={data} chosen={of} choose={id => change({ of: id }, { isNewEntry: true })} />}
        </Query>
      </Section>
      {own !== undefined && (
        <Section
          title={t('statementOf', { name: t.find(`own_${own.name}`) ?? own.name })}
          note={t.find(`about_${own.name}`) ?? own.about}
        >
          <Statement key={own.account} account={own.account} />
        </Section>
      )}
    </Page>
  )
}

interface TrialProps {
  readonly data: TrialBalance
  readonly chosen: string | undefined
  readonly choose: (account: string) => void
}

/** Adds up the table in the browser; the sum of the server must be the same, and zero. */
function Trial({ data, chosen, choose }: TrialProps) {
  const t = useWords(ledgerWords)
  const sum = sumMoney([...data.own, ...data.customers].map(({ balance }) => balance))
  const isZero = sum === 0n && nanosOf(data.sum) === 0n
  return (
    <div className="flex flex-col gap-3">
      <div className="overflow-x-auto">
        <table className="w-full max-w-3xl" aria-label={t('trialBalance')}>
          <thead>
            <tr className="h-8 border-line border-b text-left text-muted text-xs">
              <th scope="col" className="pr-4 font-medium">
                {t('account')}
              </th>
              <th scope="col" className="pr-4 text-right font-medium">
                {t('count')}
              </th>
              <th scope="col" className="text-right font-medium">
                {t('balance')}
              </th>
            </tr>
          </thead>
          <tbody>
            {data.own.map(({ account, name, about, balance }) => (
              <tr key={account} className={`h-10 border-line border-b ${chosen === account ? 'bg-accent-soft' : ''}`}>
                <td className="pr-4">
                  <button
                    type="button"
                    className="link min-h-6 text-left"
                    aria-pressed={chosen === account}
                    onClick={() => choose(account)}
                  >
                    {t.find(`own_${name}`) ?? name}
                  </button>
                  <span className="ml-2 text-muted text-xs max-md:hidden">{t.find(`about_${name}`) ?? about}</span>
                </td>
                <td />
                <td className="text-right">
                  <Money usd={balance} />
                </td>
              </tr>
            ))}
            {data.customers.map(({ kind, accounts, balance }) => (
              <tr key={kind} className="h-10 border-line border-b">
                <td className="pr-4">{t(kind)}</td>
                <td className="pr-4 text-right tabular-nums">{wholeNumber(accounts)}</td>
                <td className="text-right">
                  <Money usd={balance} />
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr className="h-10 font-medium">
              <td className="pr-4">{t('sum')}</td>
              <td />
              <td className="text-right tabular-nums">{isZero ? '$0.000000' : exactMoney(usdOf(sum))}</td>
            </tr>
          </tfoot>
        </table>
      </div>
      {isZero ? (
        <p>
          <State tone="ok">{t('zero', { n: data.transfers })}</State>
        </p>
      ) : (
        <Notice tone="bad">{t('notZero', { sum: exactMoney(usdOf(sum)) })}</Notice>
      )}
    </div>
  )
}
