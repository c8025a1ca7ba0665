// The settings of how the site looks: logo, accent colour, help, how to pay, language, zone.

import type { CSSProperties } from 'react'
import { useId, useState } from 'react'
import type { BodyOf } from '../api/client.ts'
import type { Settings } from '../api/types.ts'
import { FieldError, invalidBy } from '../parts/field-error.tsx'
import type { FormState } from '../parts/form.tsx'
import { FieldFrame, SelectField, TextField, useFieldErrors } from '../parts/form.tsx'
import { bytes } from '../parts/format.ts'
import { zoneNames } from '../parts/zoned-time.ts'
import { settingsWords } from '../words/en/settings.ts'
import { useWords } from '../words/words.ts'

export interface LookValues {
  readonly logo: string | null
  readonly accentHue: number | null
  /** Empty: not set. The same for all that follow. */
  readonly supportUrl: string
  readonly howToPayEn: string
  readonly howToPayZh: string
  readonly defaultLanguage: 'en' | 'zh' | ''
  readonly reportingZone: string
}

export const lookOf = (settings: Settings): LookValues => ({
  logo: settings.logo,
  accentHue: settings.accentHue,
  supportUrl: settings.supportUrl ?? '',
  howToPayEn: settings.howToPay?.en ?? '',
  howToPayZh: settings.howToPay?.zh ?? '',
  defaultLanguage: settings.defaultLanguage ?? '',
  reportingZone: settings.reportingZone ?? '',
})

type Body = BodyOf<'PATCH /api/web/settings'>
type OtherFields = Omit<Body, keyof LookValues>

/** The changed fields as the API has them. */
export function bodyOf(changed: Partial<LookValues> & OtherFields, values: LookValues): Body {
  const { howToPayEn, howToPayZh, supportUrl, defaultLanguage, reportingZone, ...rest } = changed
  const { howToPayEn: en, howToPayZh: zh } = values
  return {
    ...rest,
    ...(supportUrl !== undefined && { supportUrl: supportUrl === '' ? null : supportUrl }),
    ...(defaultLanguage !== undefined && { defaultLanguage: defaultLanguage === '' ? null : defaultLanguage }),
    ...(reportingZone !== undefined && { reportingZone: reportingZone === '' ? null : reportingZone }),
    ...((howToPayEn !== undefined || howToPayZh !== undefined) && {
      howToPay: en === '' && zh === '' ? null : { en, zh },
    }),
  }
}

interface LookProps {
  readonly form: FormState<LookValues>
  /** Why a setting cannot be changed. */
  readonly whyNot: (name: string) => string | undefined
}

export function LookFields<T extends LookValues>({
  form: anyForm,
  whyNot,
}: Omit<LookProps, 'form'> & { readonly form: FormState<T> }) {
  const t = useWords(settingsWords)
  const form = anyForm as unknown as FormState<LookValues>
  return (
    <>
      <LogoField form={form} whyNot={whyNot} />
      <AccentField form={form} whyNot={whyNot} />
      <TextField
        form={form}
        name="supportUrl"
        label={t('supportUrl')}
        hint={t('supportUrlHint')}
        disabled={whyNot('supportUrl')}
      />
      <TextField
        form={form}
        name="howToPayEn"
        param="howToPay.en"
        label={t('howToPayEn')}
        lines={3}
        disabled={whyNot('howToPay')}
      />
      <TextField
        form={form}
        name="howToPayZh"
        param="howToPay.zh"
        label={t('howToPayZh')}
        hint={t('howToPayHint')}
        lines={3}
        disabled={whyNot('howToPay')}
      />
      <SelectField
        form={form}
        name="defaultLanguage"
        label={t('defaultLanguage')}
        disabled={whyNot('defaultLanguage')}
        choices={[
          { value: '', label: t('defaultLanguage_none') },
          { value: 'en', label: 'English' },
          { value: 'zh', label: '简体中文' },
        ]}
      />
      <SelectField
        form={form}
        name="reportingZone"
        label={t('reportingZone')}
        hint={t('reportingZoneHint')}
        disabled={whyNot('reportingZone')}
        choices={[
          { value: '', label: t('reportingZone_none') },
          ...zoneNames().map(value => ({ value, label: value })),
        ]}
      />
    </>
  )
}

/** What the gateway takes, as bytes of the file. */
const LOGO_BYTES_MAX = 12_000

const readAsUrl = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })

function LogoField({ form, whyNot }: LookProps) {
  const t = useWords(settingsWords)
  const [error, setError] = useState<string>()
  const refused = useFieldErrors(form)('logo')
  const size = bytes(LOGO_BYTES_MAX)
  const { logo } = form.values
  const choose = async (file: File): Promise<void> => {
    const isFit = file.type === 'image/png' && file.size <= LOGO_BYTES_MAX
    setError(isFit ? undefined : t('logoBad', { size }))
    if (isFit) form.set('logo', await readAsUrl(file))
  }
  return (
    <FieldFrame
      label={t('logo')}
      name="logo"
      hint={t('logoHint', { size })}
      error={error ?? refused}
      disabled={whyNot('logo')}
    >
      {ids => (
        <span className="flex flex-wrap items-center gap-3">
          {logo === null ? (
            <span className="text-muted">{t('logoNone')}</span>
          ) : (
            <img src={logo} alt={t('logo')} className="size-8 rounded-sm border border-line object-contain" />
          )}
          {/* The browser's own control speaks the language of the browser. */}
          <label
            htmlFor={ids.id}
            className={`button cursor-pointer focus-within:outline-2 focus-within:outline-accent ${ids.disabled ? 'hidden' : ''}`}
          >
            {t('logoChoose')}
            <input
              {...ids}
              type="file"
              accept="image/png"
              className="sr-only"
              onChange={event => {
                const file = event.target.files?.[0]
                event.target.value = ''
                if (file !== undefined) void choose(file)
              }}
            />
          </label>
          {logo !== null && !ids.disabled && (
            <button type="button" className="button" onClick={() => form.set('logo', null)}>
              {t('logoRemove')}
            </button>
          )}
        </span>
      )}
    </FieldFrame>
  )
}

/** About the hue of the console's own accent. */
const FIRST_HUE = 200

function AccentField({ form, whyNot }: LookProps) {
  const t = useWords(settingsWords)
  const id = useId()
  const hue = form.values.accentHue
  const disabled = whyNot('accentHue')
  const error = useFieldErrors(form)('accentHue')
  return (
    <div className="flex flex-col gap-2">
      <div className="flex items-start gap-2">
        <input
          id={id}
          type="checkbox"
          className="mt-0.5 size-4 shrink-0 accent-accent"
          disabled={disabled !== undefined}
          aria-describedby={`${id}-hint`}
          checked={hue !== null}
          onChange={event => form.set('accentHue', event.target.checked ? FIRST_HUE : null)}
        />
        <div>
          <label htmlFor={id} className="font-medium">
            {t('accent')}
          </label>
          <p id={`${id}-hint`} className="text-muted text-xs">
            {disabled ?? t('accentHint')}
          </p>
        </div>
      </div>
      {hue !== null && (
        <div className="flex items-center gap-3 pl-6">
          <input
            type="range"
            min={0}
            max={359}
            aria-label={t('hue')}
            {...invalidBy(id, error)}
            disabled={disabled !== undefined}
            className="min-w-0 flex-1 accent-accent"
            value={hue}
            onChange={event => form.set('accentHue', event.target.valueAsNumber)}
          />
          <span className="w-10 text-right tabular-nums">{t('hueValue', { n: hue })}</span>
          <span
            aria-hidden="true"
            data-accent
            className="size-6 rounded-sm border border-line bg-accent"
            style={{ '--accent-hue': hue } as CSSProperties}
          />
        </div>
      )}
      <FieldError id={id} text={error} />
    </div>
  )
}
