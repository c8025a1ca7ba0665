// Forms. Only what the viewer has changed is sent, with the version that the form began with. If somebody else has changed the
// same thing meanwhile, the form shows both values of each field, and the viewer chooses.

import { useBlocker } from '@tanstack/react-router'
import type { ReactNode, RefObject } from 'react'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { ApiError } from '../api/errors.ts'
import { formWords } from '../words/en/form.ts'
import { useWords } from '../words/words.ts'
import { Dialog } from './dialog.tsx'
import { FieldError } from './field-error.tsx'
import { fieldTime, timeOfField, zoneLabel } from './format.ts'
import { say } from './messages.tsx'
import { Notice, useErrorText } from './states.tsx'

export interface Saved<T> {
  /** The fields that differ from what the form began with. */
  readonly changed: Partial<T>
  readonly values: T
  readonly ifMatch?: number
}

interface FormOptions<T extends object> {
  readonly initial: T
  /** The version of `initial`, for the If-Match of the change. */
  readonly version?: number | undefined
  save(saved: Saved<T>): Promise<unknown>
  /** Reads the present values again, after somebody else has changed them. */
  reload?(): Promise<{ readonly initial: T; readonly version: number | undefined }>
  /** Said after saving. */
  readonly done?: string
  onSaved?(): void
}

export interface FormState<T extends object> {
  readonly values: T
  readonly initial: T
  readonly isDirty: boolean
  readonly isSaving: boolean
  readonly error: unknown
  /** Fields that somebody else has changed while the viewer was changing them. */
  readonly conflicts: readonly (keyof T & string)[]
  readonly theirs: T | undefined
  set<K extends keyof T>(name: K, value: T[K]): void
  submit(): Promise<void>
  reset(): void
  keepMine(name: keyof T & string): void
  takeTheirs(name: keyof T & string): void
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const differences = <T extends object>(from: T, to: T): (keyof T & string)[] =>
  (Object.keys(to) as (keyof T & string)[]).filter(name => !isSame(from[name], to[name]))

export function useForm<T extends object>(options: FormOptions<T>): FormState<T> {
  const [base, setBase] = useState({ initial: options.initial, version: options.version })
  const [values, setValues] = useState(options.initial)
  const [isSaving, setSaving] = useState(false)
  const [error, setError] = useState<unknown>()
  const [theirs, setTheirs] = useState<T>()
  const [conflicts, setConflicts] = useState<readonly (keyof T & string)[]>([])
  const changedNames = differences(base.initial, values)
  // Newer values from the gateway replace what is shown, as long as the viewer has changed nothing.
  if (changedNames.length === 0 && options.version !== base.version) {
    setBase({ initial: options.initial, version: options.version })
    setValues(options.initial)
  }
  const settle = (name: keyof T & string, next?: T[keyof T & string]): void => {
    if (next !== undefined) setValues(old => ({ ...old, [name]: next }))
    setConflicts(old => old.filter(other => other !== name))
  }
  async function merge(caught: ApiError): Promise<void> {
    if (options.reload === undefined) return setError(caught)
    const now = await options.reload()
    const touched = new Set(differences(base.initial, now.initial))
    setTheirs(now.initial)
    setConflicts(changedNames.filter(name => touched.has(name)))
    setBase(now)
    setValues({ ...now.initial, ...pick(values, changedNames) })
    setError(caught)
  }
  return {
    values,
    initial: base.initial,
    isDirty: changedNames.length > 0,
    isSaving,
    error,
    conflicts,
    theirs,
    set: (name, value) => setValues(old => ({ ...old, [name]: value })),
    reset: () => {
      setValues(base.initial)
      setError(undefined)
      setConflicts([])
    },
    keepMine: name => settle(name),
    takeTheirs: name => settle(name, theirs?.[name]),
    async submit() {
      setSaving(true)
      setError(undefined)
      const changed = pick(values, changedNames)
      try {
        await options.save({ changed, values, ...(base.version !== undefined && { ifMatch: base.version }) })
        setBase(old => ({ ...old, initial: values }))
        setTheirs(undefined)
        if (options.done !== undefined) say(options.done)
        options.onSaved?.()
      } catch (caught) {
        if (caught instanceof ApiError && caught.status === 412) await merge(caught).catch(setError)
        else setError(caught)
      } finally {
        setSaving(false)
      }
    },
  }
}

function pick<T extends object>(values: T, names: readonly (keyof T)[]): Partial<T> {
  return Object.fromEntries(names.map(name => [name, values[name]])) as Partial<T>
}

interface FormProps<T extends object> {
  readonly of: FormState<T>
  /** The verb on the button: "Create key". */
  readonly action: string
  readonly children: ReactNode
  /** Saving needs no change: forms that create something. */
  readonly isNew?: boolean
  readonly onCancel?: () => void
  /** Why it cannot be saved now. */
  readonly disabled?: string | undefined
  readonly isBad?: boolean
}

export function Form<T extends object>({
  of,
  action,
  children,
  isNew = false,
  onCancel,
  disabled,
  isBad,
}: FormProps<T>) {
  const t = useWords(formWords)
  const form = useRef<HTMLFormElement>(null)
  const [isHalf, setHalf] = useState(false)
  const canSave = (isNew || of.isDirty) && !of.isSaving && of.conflicts.length === 0 && disabled === undefined
  const { error } = of
  // The first field that the gateway refused gets the focus, and is shown.
  useEffect(() => {
    const field = error === undefined ? null : form.current?.querySelector<HTMLElement>('[aria-invalid=true]')
    const details = field?.closest('details')
    if (details != null) details.open = true
    field?.focus()
  }, [error])
  return (
    <form
      ref={form}
      noValidate
      className="flex flex-col gap-4"
      onSubmit={event => {
        event.preventDefault()
        const half = halfWritten(event.currentTarget)
        setHalf(half !== undefined)
        if (half !== undefined) half.focus()
        else if (canSave) void of.submit()
      }}
      onInput={() => setHalf(false)}
      onKeyDown={event => {
        if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) event.currentTarget.requestSubmit()
      }}
    >
      {children}
      <Conflicts of={of} form={form} />
      <FormError of={of} form={form} />
      {isHalf && <Notice tone="bad">{t('half')}</Notice>}
      <div className="flex flex-wrap items-center gap-2">
        <button
          type="submit"
          className={`button ${isBad ? 'button-bad' : 'button-main'}`}
          disabled={!canSave}
          title={disabled}
        >
          {action}
        </button>
        {onCancel !== undefined && (
          <button type="button" className="button" onClick={onCancel}>
            {t('cancel')}
          </button>
        )}
        {onCancel === undefined && of.isDirty && !isNew && (
          <button type="button" className="button" onClick={of.reset}>
            {t('discard')}
          </button>
        )}
      </div>
      <LeaveGuard when={of.isDirty && !of.isSaving} />
    </form>
  )
}

/**
 * The first field with something that is no value yet, such as a day without its time of day. The browser gives it as empty,
 * which would mean never, no limit, or all.
 */
const halfWritten = (form: HTMLFormElement): HTMLInputElement | undefined =>
  [...form.querySelectorAll('input')].find(({ validity }) => validity.badInput)

interface FormErrorProps<T extends object> {
  readonly of: FormState<T>
  readonly form: RefObject<HTMLFormElement | null>
}

/** The error, unless a field of the form shows it. */
function FormError<T extends object>({ of: { error, conflicts }, form }: FormErrorProps<T>) {
  const textOf = useErrorText()
  const [shown, setShown] = useState<unknown>()
  useLayoutEffect(() => {
    const isAtField = error instanceof ApiError && error.details.param !== null && hasInvalid(form.current)
    setShown(isAtField ? undefined : error)
  }, [error, form])
  if (shown === undefined || error === undefined || conflicts.length > 0) return null
  return <Notice tone="bad">{textOf(shown)}</Notice>
}

const hasInvalid = (form: HTMLFormElement | null): boolean => form?.querySelector('[aria-invalid=true]') != null

/** Whether the gateway speaks of this field: `budgets.0.max` and `price.cases[1].input` name `budgets` and `cases`. */
const isAbout = (given: string, param: string): boolean => {
  const name = given.replace(/^(change|price)\./, '')
  return name === param || name.startsWith(`${param}.`) || name.startsWith(`${param}[`)
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '–'))

/** Names each field as its label does. */
function Conflicts<T extends object>({ of, form }: FormErrorProps<T>) {
  const t = useWords(formWords)
  const [labels, setLabels] = useState<readonly string[]>([])
  useLayoutEffect(() => {
    const labelOf = (name: string): string => form.current?.querySelector(`[data-field="${name}"]`)?.textContent ?? name
    setLabels(of.conflicts.map(labelOf))
  }, [of.conflicts, form])
  if (of.theirs === undefined) return null
  if (of.conflicts.length === 0) return <Notice tone="accent">{t('merged')}</Notice>
  return (
    <Notice>
      <p>{t('conflict')}</p>
      {of.conflicts.map((name, at) => (
        <dl key={name} className="mt-3 grid grid-cols-[max-content_minmax(0,1fr)] gap-x-4 gap-y-1">
          <dt className="font-medium">{t('field')}</dt>
          <dd>{labels[at]}</dd>
          <dt>{t('theirs')}</dt>
          <dd className="flex flex-wrap items-center justify-between gap-2 break-all">
            {shown(of.theirs?.[name])}
            <button type="button" className="button" onClick={() => of.takeTheirs(name)}>
              {t('takeTheirs')}
            </button>
          </dd>
          <dt>{t('mine')}</dt>
          <dd className="flex flex-wrap items-center justify-between gap-2 break-all">
            {shown(of.values[name])}
            <button type="button" className="button" onClick={() => of.keepMine(name)}>
              {t('keepMine')}
            </button>
          </dd>
        </dl>
      ))}
    </Notice>
  )
}

/** Asks before changes are lost: by a link of the console, or by closing the tab. */
export function LeaveGuard({ when }: { readonly when: boolean }) {
  const t = useWords(formWords)
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => when && current.pathname !== next.pathname,
    enableBeforeUnload: when,
    withResolver: true,
  })
  if (blocker.status !== 'blocked') return null
  return (
    <Dialog title={t('leaveTitle')} onClose={blocker.reset}>
      <p className="mb-4 text-muted">{t('leaveText')}</p>
      <div className="flex justify-end gap-2">
        <button type="button" className="button" onClick={blocker.reset}>
          {t('stay')}
        </button>
        <button type="button" className="button button-bad" onClick={blocker.proceed}>
          {t('leave')}
        </button>
      </div>
    </Dialog>
  )
}

type NamesOf<T, V> = { [K in keyof T]-?: T[K] extends V ? K : never }[keyof T] & string

interface FieldProps<T extends object, V> {
  readonly form: FormState<T>
  readonly name: NamesOf<T, V>
  readonly label: string
  readonly hint?: ReactNode
  /** The name of the field in the API, if that is another. */
  readonly param?: string
  /** Why it cannot be changed. */
  readonly disabled?: string | undefined
}

interface FrameProps {
  readonly label: string
  /** The name of the field in its form. */
  readonly name?: string
  readonly hint?: ReactNode
  readonly error: string | undefined
  readonly disabled?: string | undefined
  readonly children: (ids: {
    readonly id: string
    readonly 'aria-describedby'?: string
    readonly 'aria-invalid'?: true
    readonly disabled: boolean
  }) => ReactNode
}

/** Label above, hint and error below, tied to the control for screen readers. */
export function FieldFrame({ label, name, hint, error, disabled, children }: FrameProps) {
  const id = useId()
  const note = disabled ?? hint
  const describedBy = [note !== undefined && `${id}-hint`, error !== undefined && `${id}-error`]
    .filter(Boolean)
    .join(' ')
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} data-field={name} className="font-medium">
        {label}
      </label>
      {children({
        id,
        disabled: disabled !== undefined,
        ...(describedBy !== '' && { 'aria-describedby': describedBy }),
        ...(error !== undefined && { 'aria-invalid': true as const }),
      })}
      <FieldError id={id} text={error} />
      {note !== undefined && (
        <p id={`${id}-hint`} className="text-muted text-xs">
          {note}
        </p>
      )}
    </div>
  )
}

/** What the gateway says against a field, by its name in the API: `errorOf('members.0')`. */
export function useFieldErrors<T extends object>({ error }: FormState<T>): (param: string) => string | undefined {
  const textOf = useErrorText()
  const given = error instanceof ApiError ? error.details.param : null
  return param => (given !== null && isAbout(given, param) ? textOf(error) : undefined)
}

type TextProps<T extends object> = FieldProps<T, string> & {
  readonly type?: 'text' | 'email' | 'password' | 'url' | 'search'
  readonly placeholder?: string
  readonly autoComplete?: string
  readonly autoFocus?: boolean
  readonly mono?: boolean
  readonly lines?: number
}

export function TextField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  lines,
  mono,
  type = 'text',
  autoComplete = 'off',
  param = name,
  ...rest
}: TextProps<T>) {
  const error = useFieldErrors(form)(param)
  const value = form.values[name] as unknown as string
  const className = `control w-full ${mono ? 'font-mono text-xs' : ''}`
  const set = (text: string): void => form.set(name, text as unknown as T[typeof name])
  return (
    <FieldFrame label={label} name={name} hint={hint} error={error} disabled={disabled}>
      {ids =>
        lines === undefined ? (
          <input
            {...ids}
            {...rest}
            type={type}
            autoComplete={autoComplete}
            className={className}
            value={value}
            onChange={event => set(event.target.value)}
          />
        ) : (
          <textarea
            {...ids}
            {...rest}
            rows={lines}
            autoComplete={autoComplete}
            className={className}
            value={value}
            onChange={event => set(event.target.value)}
          />
        )
      }
    </FieldFrame>
  )
}

/** A number, or null while the field is empty. */
export function NumberField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  placeholder,
  param = name,
}: FieldProps<T, number | null> & { readonly placeholder?: string }) {
  const error = useFieldErrors(form)(param)
  const value = form.values[name] as unknown as number | null
  return (
    <FieldFrame label={label} name={name} hint={hint} error={error} disabled={disabled}>
      {ids => (
        <input
          {...ids}
          type="number"
          inputMode="decimal"
          step="any"
          autoComplete="off"
          placeholder={placeholder}
          className="control w-full tabular-nums"
          value={value ?? ''}
          onChange={event =>
            form.set(name, (event.target.value === '' ? null : event.target.valueAsNumber) as unknown as T[typeof name])
          }
        />
      )}
    </FieldFrame>
  )
}

/** US dollars as decimal text. */
export function MoneyField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  param = name,
}: FieldProps<T, string>) {
  const t = useWords(formWords)
  const refused = useFieldErrors(form)(param)
  const value = form.values[name] as unknown as string
  const isAmount = value === '' || /^-?\d{1,9}(\.\d{1,9})?$/.test(value)
  return (
    <FieldFrame label={label} name={name} hint={hint} error={isAmount ? refused : t('noAmount')} disabled={disabled}>
      {ids => (
        <span className="flex items-center gap-2">
          <span aria-hidden="true" className="text-muted">
            $
          </span>
          <input
            {...ids}
            inputMode="decimal"
            autoComplete="off"
            className="control w-full tabular-nums"
            value={value}
            onChange={event => form.set(name, event.target.value.trim() as unknown as T[typeof name])}
          />
        </span>
      )}
    </FieldFrame>
  )
}

interface Choice<V> {
  readonly value: V
  readonly label: string
}

export function SelectField<T extends object, V extends string>({
  form,
  name,
  label,
  hint,
  disabled,
  choices,
  param = name,
}: FieldProps<T, V> & { readonly choices: readonly Choice<V>[] }) {
  const error = useFieldErrors(form)(param)
  return (
    <FieldFrame label={label} name={name} hint={hint} error={error} disabled={disabled}>
      {ids => (
        <select
          {...ids}
          className="control w-full"
          value={form.values[name] as unknown as string}
          onChange={event => form.set(name, event.target.value as unknown as T[typeof name])}
        >
          {choices.map(choice => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </FieldFrame>
  )
}

export function SwitchField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  param = name,
}: FieldProps<T, boolean>) {
  const id = useId()
  const error = useFieldErrors(form)(param)
  const note = disabled ?? hint
  const describedBy = [note !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean)
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 size-4 shrink-0 accent-accent"
        disabled={disabled !== undefined}
        aria-describedby={describedBy.join(' ') || undefined}
        aria-invalid={error === undefined ? undefined : true}
        checked={form.values[name] as unknown as boolean}
        onChange={event => form.set(name, event.target.checked as unknown as T[typeof name])}
      />
      <div className="min-w-0">
        <label htmlFor={id} data-field={name} className="font-medium">
          {label}
        </label>
        <FieldError id={id} text={error} />
        {note !== undefined && (
          <p id={`${id}-hint`} className="text-muted text-xs">
            {note}
          </p>
        )}
      </div>
    </div>
  )
}

/** A list of texts, one on each line; null while it is empty. */
export function LinesField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  placeholder,
  param = name,
}: FieldProps<T, readonly string[] | null> & { readonly placeholder?: string }) {
  const error = useFieldErrors(form)(param)
  const value = form.values[name] as unknown as readonly string[] | null
  const [text, setText] = useState((value ?? []).join('\n'))
  const linesOf = (written: string): readonly string[] | null => {
    const lines = written
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '')
    return lines.length === 0 ? null : lines
  }
  // The form was reset, or somebody else's value was taken.
  if (!isSame(linesOf(text), value)) setText((value ?? []).join('\n'))
  return (
    <FieldFrame label={label} name={name} hint={hint} error={error} disabled={disabled}>
      {ids => (
        <textarea
          {...ids}
          rows={Math.min(8, Math.max(2, text.split('\n').length))}
          placeholder={placeholder}
          className="control w-full font-mono text-xs"
          value={text}
          onChange={event => {
            setText(event.target.value)
            form.set(name, linesOf(event.target.value) as unknown as T[typeof name])
          }}
        />
      )}
    </FieldFrame>
  )
}

/** A point in time, in the zone of the viewer; null while it is empty. */
export function TimeField<T extends object>({
  form,
  name,
  label,
  hint,
  disabled,
  param = name,
}: FieldProps<T, string | null>) {
  const error = useFieldErrors(form)(param)
  const value = form.values[name] as unknown as string | null
  return (
    <FieldFrame label={label} name={name} hint={hint} error={error} disabled={disabled}>
      {ids => (
        <span className="flex items-center gap-2">
          <input
            {...ids}
            type="datetime-local"
            className="control w-full tabular-nums"
            value={fieldTime(value)}
            onChange={event => form.set(name, (timeOfField(event.target.value) ?? null) as unknown as T[typeof name])}
          />
          <span className="shrink-0 text-muted text-xs">{zoneLabel(value ?? undefined)}</span>
        </span>
      )}
    </FieldFrame>
  )
}
