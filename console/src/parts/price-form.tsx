// A form for the rates of a price. Empty rates are left out; special cases are written as JSON.

import { useState } from 'react'
import type { WrittenPrice } from '../api/types.ts'
import { pricesWords } from '../words/en/prices.ts'
import { useWords } from '../words/words.ts'
import { FieldFrame, Form, TextField, useFieldErrors, useForm } from './form.tsx'
import { rateNames, useRateName } from './rates.tsx'

interface PriceFormProps {
  readonly price: WrittenPrice
  readonly action: string
  readonly disabled?: string | undefined
  readonly isNew?: boolean
  readonly save: (price: WrittenPrice) => Promise<void>
}

/** Undefined: the text is no JSON list. */
function casesOf(text: string): readonly unknown[] | undefined {
  if (text.trim() === '') return []
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

const MAIN = 5

export function PriceForm({ price, action, disabled, isNew = false, save }: PriceFormProps) {
  const t = useWords(pricesWords)
  const nameOf = useRateName()
  const [showsAll, setShowsAll] = useState(rateNames.slice(MAIN).some(name => price[name] !== undefined))
  const written = Object.fromEntries(rateNames.map(name => [name, price[name] ?? ''])) as Record<
    (typeof rateNames)[number],
    string
  >
  const { cases: oldCases, ...rest } = price
  const form = useForm({
    initial: {
      ...written,
      cases: oldCases === undefined || oldCases.length === 0 ? '' : JSON.stringify(oldCases, null, 2),
    },
    async save({ values: { cases, ...rates } }) {
      const given = Object.fromEntries(Object.entries(rates).filter(([, value]) => value.trim() !== ''))
      const kept = Object.fromEntries(Object.entries(rest).filter(([name]) => !(name in written)))
      const special = casesOf(cases) ?? []
      await save({ ...kept, ...given, ...(special.length > 0 && { cases: special }) } as unknown as WrittenPrice)
    },
  })
  const isBad = casesOf(form.values.cases) === undefined
  const casesError = useFieldErrors(form)('cases')
  return (
    <Form of={form} action={action} isNew={isNew} disabled={isBad ? t('badJson') : disabled}>
      <p className="text-muted">{t('rateUnit')}</p>
      <div className="grid gap-4 sm:grid-cols-2">
        {rateNames.slice(0, showsAll ? undefined : MAIN).map(name => (
          <TextField key={name} form={form} name={name} label={nameOf(name)} />
        ))}
      </div>
      {!showsAll && (
        <div>
          <button type="button" className="button button-quiet" onClick={() => setShowsAll(true)}>
            {t('moreRates')}
          </button>
        </div>
      )}
      <FieldFrame label={t('cases')} name="cases" hint={t('casesHint')} error={isBad ? t('badJson') : casesError}>
        {ids => (
          <textarea
            {...ids}
            rows={6}
            spellCheck={false}
            className="control w-full font-mono text-xs"
            value={form.values.cases}
            onChange={event => form.set('cases', event.target.value)}
          />
        )}
      </FieldFrame>
    </Form>
  )
}
