// Rates of a price: US dollars for a million tokens, or for each.

import { ratesWords } from '../words/en/rates.ts'
import { useWords } from '../words/words.ts'
import { None } from './values.tsx'

/** All rates in the order in which they are shown. Those that begin with `per` are for each, the others for a million. */
export const rateNames = [
  'input',
  'output',
  'cacheRead',
  'cacheWrite',
  'cacheWrite1h',
  'reasoning',
  'inputAudio',
  'cacheReadAudio',
  'outputAudio',
  'inputImage',
  'cacheReadImage',
  'outputImage',
  'toolUse',
  'perRequest',
  'perSearch',
  'perImage',
  'perCharacter',
  'perSecond',
  'perFileSearch',
  'perCodeSession',
  'perGroundedCall',
] as const
type RateName = (typeof rateNames)[number]
export type Rates = Partial<Readonly<Record<RateName, string>>>

export function useRateName(): (name: string) => string {
  const t = useWords(ratesWords)
  return name => t.find(name) ?? name
}

/** One rate in a list. A rate of zero is none: a model that is paid by seconds or images would look free otherwise. */
export function Rate({ value }: { readonly value: unknown }) {
  return typeof value === 'string' && Number(value) > 0 ? <span className="tabular-nums">${value}</span> : <None />
}

/** All rates that a price has, in two columns. */
export function RateList({ rates }: { readonly rates: Readonly<Record<string, unknown>> }) {
  const t = useWords(ratesWords)
  const nameOf = useRateName()
  const shown = rateNames.filter(name => typeof rates[name] === 'string')
  return (
    <table className="w-full max-w-md" aria-label={t('rates')}>
      <thead>
        <tr className="h-8 border-line border-b text-left text-muted text-xs">
          <th scope="col" className="font-medium">
            {t('what')}
          </th>
          <th scope="col" className="text-right font-medium">
            {t('rate')}
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map(name => (
          <tr key={name} className="h-8 border-line border-b">
            <td>{nameOf(name)}</td>
            <td className="text-right">
              <span className="tabular-nums">${String(rates[name])}</span>{' '}
              <span className="text-muted text-xs">{t(name.startsWith('per') ? 'each' : 'million')}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
