// What the ledger audit has found.

import type { AnswerOf } from '../api/client.ts'
import { ledgerWords } from '../words/en/ledger.ts'
import { useWords } from '../words/words.ts'
import { useHints } from './use-hints.ts'
import { Id } from './values.tsx'

export function LedgerFindings({ of }: { readonly of: AnswerOf<'GET /api/web/ledger/check'>['findings'] }) {
  const inLanguage = useHints(of.length > 0)
  const t = useWords(ledgerWords)
  return (
    <ul className="border-line border-t">
      {of.map(({ check, account, finding, findingHint }) => (
        <li key={`${check} ${account} ${finding}`} className="flex flex-wrap gap-x-4 border-line border-b py-1.5">
          <span title={check}>{t.find(`check_${check}`) ?? check}</span>
          {account !== null && <Id id={account} />}
          <span className="min-w-0 flex-1 basis-64 break-words text-bad">
            {inLanguage(words => words.write(findingHint), finding)}
          </span>
        </li>
      ))}
    </ul>
  )
}
