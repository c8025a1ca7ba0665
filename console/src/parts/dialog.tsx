// Dialogs, questions before what cannot be undone, panels at the right, and menus: all native elements.

import type { ReactNode } from 'react'
import { useEffect, useId, useRef, useState } from 'react'
import { dialogWords } from '../words/en/dialog.ts'
import { useWords } from '../words/words.ts'
import type { IconName } from './icons.tsx'
import { Icon } from './icons.tsx'
import { useErrorText } from './states.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** False: Escape and the button do not close it. */
  readonly canClose?: boolean
  readonly wide?: boolean
}

/** A modal dialog. It is open while it is rendered. */
export function Dialog({ title, onClose, children, canClose = true, wide = false }: DialogProps) {
  const t = useWords(dialogWords)
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const opener = document.activeElement
    ref.current?.showModal()
    // The browser would choose the button that closes the dialog.
    ref.current?.querySelector<HTMLElement>('form input, form select, form textarea, form button')?.focus()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      className={`opens floating m-auto max-h-[92dvh] w-[calc(100%-24px)] overflow-y-auto p-5 ${wide ? 'max-w-3xl' : 'max-w-lg'}`}
      onCancel={event => {
        event.preventDefault()
        if (canClose) onClose()
      }}
      // A browser asks only once: when Escape is pressed again, it closes the dialog whatever the answer was.
      onClose={() => (canClose ? onClose() : ref.current?.showModal())}
    >
      <div className="mb-4 flex items-start justify-between gap-4">
        <h2 id={titleId} className="min-w-0 break-words text-base">
          {title}
        </h2>
        {canClose && (
          <button
            type="button"
            className="-m-1 grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken"
            aria-label={t('close')}
            onClick={onClose}
          >
            <Icon name="close" />
          </button>
        )}
      </div>
      {children}
    </dialog>
  )
}

interface Question {
  /** A question with the name of the thing: "Revoke key shop?" */
  readonly title: string
  /** What happens then, in one or two sentences. */
  readonly children?: ReactNode
  /** The verb on the button: "Revoke key". */
  readonly action: string
  /** The viewer must type this text first. */
  readonly typed?: string
  readonly isBad?: boolean
  run(): Promise<unknown>
}

function QuestionDialog({ question, onClose }: { readonly question: Question; readonly onClose: () => void }) {
  const t = useWords(dialogWords)
  const textOf = useErrorText()
  const [typed, setTyped] = useState('')
  const [error, setError] = useState<unknown>()
  const [isRunning, setRunning] = useState(false)
  const inputId = useId()
  const { title, children, action, isBad = true, typed: wanted } = question
  const run = async (): Promise<void> => {
    setRunning(true)
    setError(undefined)
    try {
      await question.run()
      onClose()
    } catch (caught) {
      setError(caught)
      setRunning(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={event => {
          event.preventDefault()
          void run()
        }}
      >
        {children !== undefined && <div className="break-words text-muted">{children}</div>}
        {wanted !== undefined && (
          <label htmlFor={inputId} className="flex flex-col gap-1">
            <span>{t.rich('typeToConfirm', { text: <strong className="break-all">{wanted}</strong> })}</span>
            <input
              id={inputId}
              className="control"
              autoComplete="off"
              value={typed}
              onChange={event => setTyped(event.target.value)}
            />
          </label>
        )}
        {error !== undefined && (
          <p role="alert" className="break-words text-bad">
            {textOf(error)}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button
            type="submit"
            className={`button ${isBad ? 'button-bad' : 'button-main'}`}
            disabled={isRunning || (wanted !== undefined && typed !== wanted)}
          >
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** `const [ask, dialog] = useQuestion()`: render `dialog`, and call `ask({...})` before what cannot be undone. */
export function useQuestion(): readonly [ask: (question: Question) => void, dialog: ReactNode] {
  const [question, setQuestion] = useState<Question>()
  const dialog = question && <QuestionDialog question={question} onClose={() => setQuestion(undefined)} />
  return [setQuestion, dialog]
}

interface PanelProps {
  readonly title: ReactNode
  readonly onClose: () => void
  readonly children: ReactNode
  readonly actions?: ReactNode
}

/** A panel at the right, over the list; on a phone it fills the screen down to the bar at the bottom. Escape closes it. */
export function Panel({ title, onClose, children, actions }: PanelProps) {
  const t = useWords(dialogWords)
  const ref = useRef<HTMLElement>(null)
  const titleId = useId()
  useEffect(() => {
    const opener = document.activeElement
    ref.current?.focus()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && document.querySelector('dialog[open], [popover]:popover-open') === null) onClose()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [onClose])
  return (
    <aside
      ref={ref}
      tabIndex={-1}
      aria-labelledby={titleId}
      className="opens fixed inset-y-0 right-0 z-30 max-md:bottom-14 flex w-full flex-col overflow-hidden border-line border-l bg-surface side-shadow outline-none md:w-[min(720px,60vw)]"
    >
      <div className="flex items-center justify-between gap-3 border-line border-b px-4 py-2.5">
        <h2 id={titleId} className="min-w-0 flex-1 truncate text-sm">
          {title}
        </h2>
        {actions}
        <button
          type="button"
          className="grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken"
          aria-label={t('close')}
          onClick={onClose}
        >
          <Icon name="close" />
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
      <section className="min-h-0 flex-1 overflow-y-auto px-4 py-4" tabIndex={0} aria-labelledby={titleId}>
        {children}
      </section>
    </aside>
  )
}

export interface MenuItem {
  readonly label: string
  readonly icon?: IconName
  readonly isBad?: boolean
  /** Why it cannot be used now. */
  readonly disabled?: string | undefined
  run(): void
}

/** Puts a popover below its button, inside the window. */
function place(button: HTMLElement, popover: HTMLElement): void {
  const box = button.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = popover
  const left = Math.max(8, Math.min(box.right - width, innerWidth - width - 8))
  const isBelow = box.bottom + height + 12 < innerHeight || box.top < height
  popover.style.left = `${left}px`
  popover.style.top = `${isBelow ? box.bottom + 4 : box.top - height - 4}px`
}

interface MenuProps {
  readonly label: string
  readonly items: readonly (MenuItem | false | undefined)[]
  /** What the button shows; default: three points. */
  readonly children?: ReactNode
  readonly className?: string
}

/** A button with a menu. Arrows move, Escape closes. */
export function Menu({ label, items, children, className }: MenuProps) {
  const button = useRef<HTMLButtonElement>(null)
  const popover = useRef<HTMLDivElement>(null)
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const shown = items.filter(item => item !== false && item !== undefined)
  const focusItem = (step: 1 | -1): void => {
    const all = [...(popover.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
    const at = all.indexOf(document.activeElement as HTMLElement)
    all[(at + step + all.length) % all.length]?.focus()
  }
  if (shown.length === 0) return null
  return (
    <>
      <button
        ref={button}
        type="button"
        popoverTarget={id}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={children === undefined ? label : undefined}
        title={children === undefined ? label : undefined}
        className={className ?? 'grid size-7 place-items-center rounded-sm text-muted hover:bg-sunken hover:text-text'}
        onClick={event => event.stopPropagation()}
      >
        {children ?? <Icon name="more" />}
      </button>
      <div
        ref={popover}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        className="opens floating min-w-44 p-1"
        onToggle={event => {
          const isNowOpen = event.newState === 'open'
          setOpen(isNowOpen)
          if (!isNowOpen || button.current === null || popover.current === null) return
          place(button.current, popover.current)
          focusItem(1)
        }}
        onKeyDown={event => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault()
            focusItem(event.key === 'ArrowDown' ? 1 : -1)
          }
        }}
      >
        {shown.map(item => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            aria-disabled={item.disabled !== undefined}
            title={item.disabled}
            className={`flex min-h-8 w-full items-center gap-2 rounded-sm px-2 text-left hover:bg-sunken focus-visible:bg-sunken ${item.isBad ? 'text-bad' : ''} ${item.disabled === undefined ? '' : 'text-muted'}`}
            onClick={event => {
              event.stopPropagation()
              if (item.disabled !== undefined) return
              popover.current?.hidePopover()
              item.run()
            }}
          >
            {item.icon !== undefined && <Icon name={item.icon} size={14} />}
            {item.label}
          </button>
        ))}
      </div>
    </>
  )
}
