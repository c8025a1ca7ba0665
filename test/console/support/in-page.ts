// Runs in each page of the browser tests, before the scripts of the page itself. browser.ts calls it by `weirTest`.

document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  // The test reads the console of the page.
  console.error(`the policy refused ${violatedDirective} ${blockedURI} ${sample}`),
)

const HAN = /\p{Script=Han}/u
/** What shows names and data as they are. */
const RAW = 'code, pre, kbd, samp, script, style, option, [data-raw]'

function findWideElement(): string | undefined {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return undefined
  const isWide = (element: Element): boolean => element.getBoundingClientRect().right > clientWidth + 1
  const widest = [...document.body.querySelectorAll('*')].filter(isWide).at(-1)
  return `it scrolls sideways, ${scrollWidth} in ${clientWidth}: ${widest?.outerHTML.slice(0, 160)}`
}

function visibleTexts(): readonly string[] {
  const texts: string[] = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.textContent?.trim() ?? ''
    if (text !== '' && !node.parentElement?.closest(RAW)) texts.push(text)
  }
  return texts
}

/** The next frame, and then a turn of the timers: what the page has put off until after the frame is done by then. */
const nextFrame = (): Promise<void> => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))

/** The title of the page that was left. */
let left: Element | null = null

const weirTest = {
  /** Goes to another page without a load of the document. */
  move(path: string): void {
    left = document.querySelector('main h1')
    history.pushState({}, '', `/console${path}`)
  },

  /** Waits until the page is there and waits for nothing. False: it did not come in time. */
  async ready(waitMs: number): Promise<boolean> {
    const endsAt = performance.now() + waitMs
    // A page that has just come begins its reads a moment later.
    for (let frames = 0; frames < 3; ) {
      if (performance.now() > endsAt) return false
      await nextFrame()
      const heading = document.querySelector('main[data-ready] h1')
      frames = heading !== null && heading !== left ? frames + 1 : 0
    }
    await document.fonts.ready
    return true
  },

  /** Changes the theme without a load, and waits until it was painted. */
  async show(theme: string): Promise<void> {
    document.documentElement.dataset.theme = theme
    await nextFrame()
    await nextFrame()
  },

  /** What is wrong with the page, in words. */
  check(language: 'en' | 'zh'): readonly string[] {
    const texts = visibleTexts()
    const { lang } = document.documentElement
    const hasHeading = [...document.querySelectorAll('h1')].some(heading => heading.textContent?.trim() !== '')
    const hanCount = texts.filter(text => HAN.test(text)).length
    return [
      findWideElement(),
      hasHeading ? undefined : 'it has no h1',
      lang.startsWith(language) ? undefined : `its language is "${lang}"`,
      language === 'zh' && hanCount < 3 ? 'it has hardly any Chinese text' : undefined,
      ...texts.map(text => {
        if (/\{[a-zA-Z]\w*\}/.test(text)) return `a text with an empty place: ${text}`
        if (/^(?=.{7})[a-z]+([A-Z][a-z]+)+$/.test(text)) return `the key of a text: ${text}`
        // The menu of languages names each in itself.
        return language === 'en' && HAN.test(text) && text !== '简体中文' ? `Chinese text: ${text}` : undefined
      }),
    ].filter(problem => problem !== undefined)
  },
}

Object.assign(window, { weirTest })
