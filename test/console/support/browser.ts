// Opens pages of the console in a real browser, as any person, and finds what must never be: errors, requests to other
// hosts, violations of the policy or of accessibility, pages that scroll sideways, texts that were not translated.

import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, BrowserContextOptions, Page, Route } from 'playwright-core'
import { chromium } from 'playwright-core'
import { HUNG_MS } from '../../support/gateway.ts'
import { signedIn } from '../../support/people.ts'
import type { Role, SeededSite, SeedOptions } from './seed.ts'
import { startSeededSite } from './seed.ts'

export type Language = 'en' | 'zh'
export type Theme = 'light' | 'dark'

export interface VisitOptions {
  /** `nobody`: not signed in. `owner` by default. */
  readonly as?: Role | 'nobody'
  readonly language?: Language
  /** The time zone of the viewer; UTC by default. */
  readonly zone?: string
  /** The page is loaded once and looked at in each width and theme. */
  readonly widths?: readonly number[]
  readonly themes?: readonly Theme[]
  /** Failed requests that the test expects: `403 /api/web/limits`. */
  readonly failing?: readonly RegExp[]
  /** Whether accessibility is checked: in all states, by default, or in some. */
  readonly axe?: boolean | ((width: number, theme: Theme) => boolean)
  /** The page is reached from the page before it, without a load of the document. */
  readonly moves?: boolean
  /** What the page does before it is looked at, such as to open a dialog. */
  readonly act?: (page: Page) => Promise<void>
}

export interface Visited {
  readonly page: Page
  /** What is wrong with the page, in words. */
  readonly problems: readonly string[]
  readonly shots: readonly string[]
  /** The requests to the management API that opening the page has sent: `GET /api/web/keys`. */
  readonly requests: readonly string[]
}

const installed = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const CHROMIUM = process.env.WEIR_TEST_CHROMIUM ?? installed.find(path => existsSync(path)) ?? installed[0]!
const HEIGHT = 900
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Each script has names of its own. */
const inPage = ['in-page.ts', 'in-page-texts.ts']
  .map(name => new Bun.Transpiler({ loader: 'ts' }).transformSync(readFileSync(join(import.meta.dir, name), 'utf8')))
  .map(script => `{\n${script}\n}`)
  .join('\n')

/** The folder for screenshots; undefined: none are made. */
const shotsFolder = process.env.WEIR_TEST_SHOTS

export async function openBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) {
    throw new Error(
      `${CHROMIUM} is not installed. To install it: sudo apt-get install chromium-headless-shell fonts-wqy-microhei`,
    )
  }
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--font-render-hinting=none']
  return await chromium.launch({ executablePath: CHROMIUM, args, timeout: HUNG_MS })
}

/** A profile of the browser. Its pages are waited for as long as a test may last: a busy machine may be slow. */
export async function openContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(READY_MS)
  await context.addInitScript({ content: inPage })
  return context
}

/** Waits until the page waits for nothing and is drawn; fails if it never comes so far. */
export async function untilReady(page: Page): Promise<void> {
  if (!(await waitForReady(page))) throw new Error(`main[data-ready] was not reached: ${page.url()}`)
}

/**
 * Waits until an expression is true in the page. `page.waitForFunction` cannot do it: it evaluates the expression a second
 * time inside the page, where the content security policy of the console forbids that.
 */
export async function untilTrue(page: Page, expression: string): Promise<void> {
  const endMs = performance.now() + READY_MS
  while (!(await page.evaluate<boolean>(expression))) {
    if (performance.now() > endMs) throw new Error(`still not true after ${READY_MS} ms: ${expression}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/**
 * Answers requests of an open page in place of the gateway. `page.route` alone is too early: a page whose thread is busy can
 * still send its next request past the browser's interception. So this waits until a request of the page was intercepted.
 */
export async function intercept(page: Page, url: string | RegExp, handler: (route: Route) => unknown): Promise<void> {
  await page.route(url, handler)
  const probe = '**/health/live?is-intercepted'
  await page.route(probe, route => route.fulfill({ body: 'intercepted' }))
  await untilTrue(
    page,
    `fetch('/health/live?is-intercepted').then(async answer => (await answer.text()) === 'intercepted')`,
  )
  await page.unroute(probe)
}

/** A browser for one site. Each person has a page of their own in each language, which all visits use. */
export class Visitor {
  readonly #site: SeededSite
  readonly #browser: Browser
  readonly #pages = new Map<string, WatchedPage>()
  readonly #shots: string | undefined

  private constructor(site: SeededSite, browser: Browser, shots: string | undefined) {
    this.#site = site
    this.#browser = browser
    this.#shots = shots
  }

  static async open(site: SeededSite, shots = shotsFolder): Promise<Visitor> {
    return new Visitor(site, await openBrowser(), shots)
  }

  async close(): Promise<void> {
    await this.#browser.close()
  }

  /** Opens a page; fails if anything is wrong with it. */
  async visit(path: string, options: VisitOptions = {}): Promise<Page> {
    const { page, problems } = await this.look(path, options)
    if (problems.length > 0) throw new Error(`${path} as ${options.as ?? 'owner'}:\n  ${problems.join('\n  ')}`)
    return page
  }

  /** Opens a page, and returns what is wrong with it. */
  async look(path: string, options: VisitOptions = {}): Promise<Visited> {
    const { as = 'owner', language = 'en', widths = [1280], themes = ['light'], failing = [], axe = true } = options
    const watched = await this.#pageOf(as, language, options.zone ?? 'UTC')
    const { page } = watched
    watched.begin(failing)
    await page.setViewportSize({ width: widths[0]!, height: HEIGHT })
    await watched.open(path, options.moves ?? false)
    const isReady = await waitForReady(page)
    const requests = [...watched.requests]
    if (isReady) await options.act?.(page)
    const shots: string[] = []
    for (const width of widths) {
      for (const theme of themes) {
        const state = `${language} ${width} ${theme}`
        await show(page, width, theme)
        const found = isReady ? await checkPage(page, language) : ['main[data-ready] was not reached']
        const checksAccess = typeof axe === 'function' ? axe(width, theme) : axe
        if (checksAccess && isReady) found.push(...(await checkAccess(page)))
        watched.problems.push(...found.map(problem => `${state}: ${problem}`))
        if (this.#shots !== undefined) shots.push(await shoot(page, this.#shots, `${path} ${as} ${state}`))
      }
    }
    return { page, problems: watched.end(), shots, requests }
  }

  async #pageOf(as: Role | 'nobody', language: Language, zone: string): Promise<WatchedPage> {
    const name = `${as} ${language} ${zone}`
    const known = this.#pages.get(name)
    if (known !== undefined) return known
    const { url } = this.#site.harness
    const preferences = JSON.stringify({ language, theme: 'light', zone })
    const context = await openContext(this.#browser, {
      locale: language === 'zh' ? 'zh-CN' : 'en-US',
      timezoneId: zone,
      storageState: {
        cookies: [],
        origins: [{ origin: url, localStorage: [{ name: 'weir-preferences', value: preferences }] }],
      },
    })
    if (as !== 'nobody') await signInTo(context, this.#site, as)
    const watched = new WatchedPage(await context.newPage(), url)
    this.#pages.set(name, watched)
    return watched
  }
}

interface OpenSite {
  readonly site: SeededSite
  readonly visitor: Visitor
  close(): Promise<void>
}

/** A seeded site with a browser for it. */
export async function openSite(options?: SeedOptions): Promise<OpenSite> {
  const site = await startSeededSite(options)
  const visitor = await Visitor.open(site)
  return {
    site,
    visitor,
    async close() {
      await visitor.close()
      await site.harness.stop()
    },
  }
}

/** Gives the browser the cookie that signing in gives. */
async function signInTo(context: BrowserContext, { harness, people }: SeededSite, as: Role): Promise<void> {
  const { cookie } = await signedIn(harness, people[as].email)
  const [name, value] = cookie.split('=') as [string, string]
  const { hostname } = new URL(harness.url)
  await context.addCookies([{ name, value, domain: hostname, path: '/api/auth', httpOnly: true, sameSite: 'Strict' }])
}

/** A page whose faults are noted, between `begin` and `end`. */
class WatchedPage {
  readonly page: Page
  problems: string[] = []
  requests: string[] = []
  readonly #origin: string
  #failing: readonly RegExp[] = []

  constructor(page: Page, origin: string) {
    this.page = page
    this.#origin = origin
    const isExpected = (text: string): boolean => this.#failing.some(pattern => pattern.test(text))
    page.on('console', message => {
      const { url } = message.location()
      const isFailedRequest = message.text().startsWith('Failed to load resource')
      if (!['error', 'warning'].includes(message.type()) || isFailedRequest) return
      this.problems.push(`the console says (${message.type()}): ${message.text()} ${url}`)
    })
    // A form with changes asks before it is left.
    page.on('dialog', dialog => void dialog.accept().catch(() => {}))
    page.on('pageerror', error => this.problems.push(`uncaught: ${error.stack ?? error.message}`))
    page.on('request', request => {
      if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin)
        this.problems.push(`a request to another host: ${request.url()}`)
      // The page before may ask for something until it is left.
      if (request.isNavigationRequest()) this.requests = []
      const { pathname } = new URL(request.url())
      if (pathname.startsWith('/api/web/')) this.requests.push(`${request.method()} ${pathname}`)
    })
    page.on('response', response => {
      const text = `${response.status()} ${response.url().slice(origin.length)}`
      if (response.status() >= 400 && !isExpected(text)) this.problems.push(`a failed request: ${text}`)
    })
    page.on('requestfailed', request => {
      const reason = request.failure()?.errorText ?? ''
      // A page that is left ends its requests.
      const text = `${reason} ${request.url().slice(origin.length)}`
      if (reason !== 'net::ERR_ABORTED' && !isExpected(text)) this.problems.push(`a failed request: ${text}`)
    })
  }

  async open(path: string, moves: boolean): Promise<void> {
    const isOpen = this.page.url().startsWith(`${this.#origin}/console`)
    if (moves && isOpen) return void (await this.page.evaluate(`weirTest.move(${JSON.stringify(path)})`))
    await this.page.goto(`${this.#origin}/console${path}`, { waitUntil: 'domcontentloaded' })
  }

  begin(failing: readonly RegExp[]): void {
    this.problems = []
    this.requests = []
    this.#failing = failing
  }

  end(): readonly string[] {
    const found = [...new Set(this.problems)]
    this.problems = []
    return found
  }
}

const waitForReady = (page: Page): Promise<boolean> => page.evaluate<boolean>(`weirTest.ready(${READY_MS})`)

/** No speed limit: a busy machine may be slow. */
export const READY_MS = Number(process.env.WEIR_TEST_READY_MS ?? HUNG_MS)

async function show(page: Page, width: number, theme: Theme): Promise<void> {
  await page.setViewportSize({ width, height: HEIGHT })
  await page.evaluate(`weirTest.show(${JSON.stringify(theme)})`)
}

const checkPage = async (page: Page, language: Language): Promise<string[]> => [
  ...(await page.evaluate<readonly string[]>(`weirTest.check(${JSON.stringify(language)})`)),
]

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[]
  }[]
}

async function checkAccess(page: Page): Promise<string[]> {
  // The browser's own way to run a script: the policy of the page allows no other.
  await page.evaluate(`if (!('axe' in window)) { ${axeSource} }`)
  const { violations } = await page.evaluate<AxeResult>(
    `axe.run(document, { runOnly: ${JSON.stringify(AXE_TAGS)}, resultTypes: ['violations'] })`,
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.slice(0, 3).map(({ target, failureSummary = '' }) => {
      const why = failureSummary.split('\n').slice(1, 2).join('').trim()
      return `accessibility, ${id}: ${help}: ${target.join(' ')} (${why})`
    }),
  )
}

async function shoot(page: Page, folder: string, title: string): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const name = title.replaceAll(/[^\w-]+/g, '_').replace(/^_/, '') || 'home'
  const path = join(folder, `${name}.png`)
  await page.screenshot({ path, fullPage: true })
  return path
}
