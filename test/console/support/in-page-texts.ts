// Runs in each page of the browser tests, beside in-page.ts: writes texts into forms, and finds what texts of people do to a
// page. worst-texts.test.ts calls it by `weirTexts`.

type Field = HTMLInputElement | HTMLTextAreaElement

const FREE_TEXTS =
  'textarea, input:is(:not([type]), [type=text], [type=search], [type=url], [type=email], [type=password])'

const isShown = (element: Element): boolean => element.checkVisibility({ visibilityProperty: true })

/** What can be reached: the dialog or panel that is on top, or else the page. */
const topmost = (): Element =>
  [...document.querySelectorAll('dialog[open]')].at(-1) ??
  document.querySelector('aside[aria-labelledby]') ??
  document.querySelector('main') ??
  document.body

const labelOf = (field: Element): string =>
  field.getAttribute('aria-label') ?? (field as Field).labels?.[0]?.textContent?.trim() ?? ''

/** The form with this button; without one, the form that has no button. */
const findForm = (submit: string | undefined): HTMLFormElement | undefined =>
  [...topmost().querySelectorAll('form')].find(
    form => form.querySelector('button[type=submit]')?.textContent?.trim() === submit,
  )

function formOf(submit: string | undefined): HTMLFormElement {
  const found = findForm(submit)
  if (found === undefined) throw new Error(`there is no form with the button "${submit}"`)
  return found
}

const frame = (): Promise<void> => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))

/** As typing does, for React: its own setter notes the value, so the one of the browser is called. */
function setValue(field: Field, text: string): void {
  const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value')!
  set!.call(field, text)
  field.dispatchEvent(new Event('input', { bubbles: true }))
}

const isFilled = (field: Element): boolean => isShown(field) && !(field as Field).disabled && !(field as Field).readOnly

/** Formatting characters of which our own texts have none. */
const BIDI = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069]/

const ISOLATES = /[\u2066-\u2069]/g

/** The text with what isolates it from its surroundings, and without an end that would end this. */
function isolated(text: string): string {
  let depth = 0
  const kept = Array.from(text).filter(sign => {
    if (/[\u2066-\u2068]/.test(sign)) depth++
    return sign !== '\u2069' || (depth > 0 && depth-- > 0)
  })
  return `\u2068${kept.join('').toWellFormed()}\u2069`
}

/** Without what nobody sees and what pages may leave out. */
const plain = (text: string): string => text.replaceAll(ISOLATES, '').replaceAll(/\s+/g, ' ').trim().toWellFormed()

/** Whether a text of people is between other words, which it could turn. */
function isMixed(whole: string, text: string): boolean {
  const rest = plain(whole.toWellFormed().replaceAll(isolated(text), ''))
  return rest.includes(plain(text)) && rest.replaceAll(plain(text), '').trim() !== ''
}

/** An element whose texts are ordered apart from the texts around it. */
function isIsolating(element: Element): boolean {
  const { display, unicodeBidi } = getComputedStyle(element)
  return !/^(inline|contents)$/.test(display) || /isolate|plaintext/.test(unicodeBidi)
}

const textNodes = (under: Element): readonly Text[] => {
  const walker = document.createTreeWalker(under, NodeFilter.SHOW_TEXT)
  const found: Text[] = []
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) found.push(node as Text)
  return found
}

const nameOf = (element: Element): string => element.outerHTML.replaceAll(/\s+/g, ' ').slice(0, 200)

/** Texts that would turn the order of our own words beside them. */
function mixedTexts(text: string): readonly string[] {
  if (!BIDI.test(text)) return []
  const inTexts = textNodes(document.body)
    .filter(
      node =>
        plain(node.data).includes(plain(text)) && node.parentElement!.closest('script, style, textarea, pre') === null,
    )
    .flatMap(node => {
      let around = node.parentElement!
      while (!isIsolating(around)) around = around.parentElement!
      return isShown(around) && isMixed(around.textContent ?? '', text)
        ? [`mixed with our words: ${nameOf(around)}`]
        : []
    })
  const attributes = ['title', 'aria-label', 'placeholder']
  const inAttributes = attributes.flatMap(name =>
    [...document.querySelectorAll(`[${name}]`)]
      .filter(element => isMixed(element.getAttribute(name)!, text))
      .map(element => `mixed with our words in ${name}: ${nameOf(element)}`),
  )
  return [
    ...inTexts,
    ...inAttributes,
    ...(isMixed(document.title, text) ? [`mixed with our words: ${document.title}`] : []),
  ]
}

/** Texts that are cut, with no way to see the whole: neither a title nor a page that the row leads to. */
function cutTexts(text: string): readonly string[] {
  return textNodes(document.body)
    .filter(node => plain(node.data).includes(plain(text)) && isShown(node.parentElement!))
    .flatMap(node => {
      let around: Element | null = node.parentElement
      while (around !== null && getComputedStyle(around).textOverflow !== 'ellipsis') around = around.parentElement
      if (around === null || around.scrollWidth <= around.clientWidth) return []
      const titled = [...around.querySelectorAll('[title]'), ...ancestorsOf(around)]
      if (titled.some(element => plain(element.getAttribute('title') ?? '').includes(plain(text)))) return []
      const row = around.closest('[data-row], [role=option], li, tr')
      const leads = around.closest('a[href]') ?? row?.querySelector('a[href]') ?? row?.matches('[role=option]')
      return leads ? [] : [`cut, with no way to see the whole: ${nameOf(around)}`]
    })
}

function ancestorsOf(element: Element): readonly Element[] {
  const found: Element[] = []
  for (let at: Element | null = element; at !== null; at = at.parentElement) found.push(at)
  return found
}

/** What may be wider than its place: code, fields, the tabs of a page, and tables with many columns. */
const MAY_SCROLL = 'section:has(> pre), pre, textarea, input, select, nav, div:has(> table)'

function sidewaysScrolls(): readonly string[] {
  const { scrollWidth, clientWidth } = document.documentElement
  const inside = [...document.body.querySelectorAll('*')].filter(element => {
    if (element.scrollWidth <= element.clientWidth + 1 || element.closest(MAY_SCROLL) !== null) return false
    return /auto|scroll/.test(getComputedStyle(element).overflowX) && isShown(element)
  })
  return [
    ...(scrollWidth > clientWidth ? [`the page scrolls sideways, ${scrollWidth} in ${clientWidth}`] : []),
    ...inside.map(element => `scrolls sideways, ${element.scrollWidth} in ${element.clientWidth}: ${nameOf(element)}`),
  ]
}

/** Buttons and links that something covers, or that are outside of the window. */
function unreachable(): readonly string[] {
  const before = scrollY
  const controls = [...topmost().querySelectorAll('button:not(:disabled), a[href], select, input')].filter(
    element => isShown(element) && !element.matches('.sr-only, [type=file]'),
  )
  const problems = controls.flatMap(element => {
    element.scrollIntoView({ block: 'center', inline: 'nearest' })
    const [box] = element.getClientRects()
    if (box === undefined || box.width === 0) return [`has no size: ${nameOf(element)}`]
    const hit = document.elementFromPoint(box.left + Math.min(box.width / 2, 10), box.top + box.height / 2)
    return hit !== null && (element.contains(hit) || hit.contains(element)) ? [] : [`out of reach: ${nameOf(element)}`]
  })
  scrollTo({ top: before })
  return problems
}

function missingNow(texts: readonly string[]): readonly string[] {
  const shown = textNodes(document.body).filter(node => isShown(node.parentElement!))
  const values = [...document.querySelectorAll<Field>(FREE_TEXTS)].filter(isShown)
  const all = [...shown.map(({ data }) => plain(data)), ...values.map(({ value }) => plain(value))]
  return texts.filter(text => !all.some(one => one.includes(plain(text))))
}

const weirTexts = {
  /** Writes into the fields of a form: what `fields` says by their labels, and `text` into all other free texts. */
  async fill({ submit, fields, text }: { submit?: string; fields: Record<string, string>; text: string }) {
    // Some dialogs are loaded when they are opened.
    const endsAt = performance.now() + 60_000
    while (findForm(submit) === undefined && performance.now() < endsAt) await frame()
    const form = formOf(submit)
    for (const details of form.querySelectorAll('details')) details.open = true
    await frame()
    const free = [...form.querySelectorAll<Field>(FREE_TEXTS)].filter(isFilled)
    const named = [...form.querySelectorAll<Field>('input, textarea')].filter(
      field => isFilled(field) && labelOf(field) in fields,
    )
    for (const field of new Set([...free, ...named])) setValue(field, fields[labelOf(field)] ?? text)
    await frame()
    const button = form.querySelector<HTMLButtonElement>('button[type=submit]')
    return {
      labels: free.map(labelOf),
      unknown: Object.keys(fields).filter(label => !named.some(field => labelOf(field) === label)),
      isDisabled: button?.disabled ?? false,
    }
  },

  /** Writes into the first filter of a list. */
  filter(text: string): void {
    setValue(document.querySelector<HTMLInputElement>('[data-filter]')!, text)
  },

  submit(submit: string | undefined): void {
    formOf(submit).requestSubmit()
  },

  /** What the form says against what was written. */
  messages(): readonly string[] {
    const top = topmost()
    const described = [...top.querySelectorAll('[aria-invalid=true]')].map(field => {
      const ids = field.getAttribute('aria-describedby')?.split(' ') ?? []
      return ids.map(id => (id.endsWith('-error') ? document.getElementById(id)?.textContent : '')).join('')
    })
    const alerts = Array.from(top.querySelectorAll('[role=alert]'), alert => alert.textContent)
    const reasons = Array.from(top.querySelectorAll('button[type=submit]:disabled'), button =>
      button.getAttribute('title'),
    )
    return [...described, ...alerts, ...reasons].filter(text => text !== null && text !== '') as string[]
  },

  async settled(): Promise<void> {
    for (let frames = 0; frames < 2; frames++) await frame()
  },

  /** Waits for a message of the form. */
  async message(waitMs: number): Promise<readonly string[]> {
    const endsAt = performance.now() + waitMs
    while (weirTexts.messages().length === 0 && performance.now() < endsAt) await frame()
    return weirTexts.messages()
  },

  /** Which of the texts the page shows neither as text nor in a field, even after waiting. */
  async missing(texts: readonly string[], waitMs: number): Promise<readonly string[]> {
    const endsAt = performance.now() + waitMs
    while (missingNow(texts).length > 0 && performance.now() < endsAt) await frame()
    return missingNow(texts)
  },

  /** What the texts have done to the page, in words. */
  check(texts: readonly string[], reaches: boolean): readonly string[] {
    return [
      ...sidewaysScrolls(),
      ...(reaches ? unreachable() : []),
      ...texts.flatMap(text => [...mixedTexts(text), ...cutTexts(text)]),
      ...('weirHacked' in window ? ['a text was run as a script'] : []),
    ]
  },
}

Object.assign(window, { weirTexts })
