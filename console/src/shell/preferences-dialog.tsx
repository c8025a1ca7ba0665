// Language, theme, density, time zone and shortcuts of the viewer.

import type { ReactNode } from 'react'
import { useId } from 'react'
import { call } from '../api/client.ts'
import { offline } from '../api/errors.ts'
import { currentSession, noteFault } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { zoneNames } from '../parts/zoned-time.ts'
import type { Preferences } from '../preferences.ts'
import { setPreferences, usePreferences } from '../preferences.ts'
import { shellWords } from '../words/en/shell.ts'
import { shellPartsWords } from '../words/en/shell-parts.ts'
import { listed } from '../words/joined.ts'
import { loadLanguage, useWords } from '../words/words.ts'

function Choice({
  label,
  value,
  onChange,
  children,
}: {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly children: ReactNode
}) {
  const id = useId()
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      <select id={id} className="control" value={value} onChange={event => onChange(event.target.value)}>
        {children}
      </select>
    </div>
  )
}

/** Chosen for this browser at once, and stored for the person, so that another browser begins with it. */
function choose(changed: Partial<Omit<Preferences, 'shortcuts'>>): void {
  setPreferences(changed)
  if (currentSession().state !== 'signed-in') return
  // The choice holds here in any case; a gateway that is away must not undo it.
  const preferences = changed.zone === 'local' ? { ...changed, zone: null } : changed
  call('PATCH /api/web/me', { body: { preferences } }).catch(() => undefined)
}

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone

export function PreferencesFields() {
  const t = useWords(shellPartsWords)
  const shell = useWords(shellWords)
  const { language, theme, density, zone, shortcuts } = usePreferences()
  const id = useId()
  const chooseLanguage = async (next: Preferences['language']): Promise<void> => {
    await loadLanguage(next)
    choose({ language: next })
  }
  return (
    <div className="flex flex-col gap-4">
      <Choice
        label={shell('language')}
        value={language}
        onChange={value =>
          void chooseLanguage(value as Preferences['language']).catch(error => noteFault(offline(String(error))))
        }
      >
        <option value="en" lang="en">
          {'English'}
        </option>
        <option value="zh" lang="zh-CN">
          {'简体中文'}
        </option>
      </Choice>
      <Choice label={shell('theme')} value={theme} onChange={value => choose({ theme: value as Preferences['theme'] })}>
        <option value="system">{t('theme_system')}</option>
        <option value="light">{t('theme_light')}</option>
        <option value="dark">{t('theme_dark')}</option>
      </Choice>
      <Choice
        label={t('density')}
        value={density}
        onChange={value => choose({ density: value as Preferences['density'] })}
      >
        <option value="dense">{t('density_dense')}</option>
        <option value="comfortable">{t('density_comfortable')}</option>
      </Choice>
      <Choice label={t('zone')} value={zone} onChange={value => choose({ zone: value })}>
        <option value="local">
          {t('zone_local')} ({ownZone})
        </option>
        {zoneNames().map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </Choice>
      <label htmlFor={id} className="flex items-center gap-2">
        <input
          id={id}
          type="checkbox"
          className="size-4 accent-accent"
          checked={shortcuts}
          onChange={event => setPreferences({ shortcuts: event.target.checked })}
        />
        {t('shortcuts')}
      </label>
    </div>
  )
}

export function PreferencesDialog({ onClose }: { readonly onClose: () => void }) {
  const t = useWords(shellWords)
  return (
    <Dialog title={listed([t('language'), t('theme')])} onClose={onClose}>
      <PreferencesFields />
    </Dialog>
  )
}
