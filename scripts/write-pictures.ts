// npm run console:pictures: writes docs/images/, the pictures of the console in the README and in docs/guides/console.md, of
// a gateway with sample data.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Visitor } from '../test/console/support/browser.ts'
import type { SeededSite } from '../test/console/support/seed.ts'
import { startSeededSite } from '../test/console/support/seed.ts'
import { buildFramesTo, fail, streamHead } from '../tools/fake-upstream/answers.ts'
import { formatEvent } from '../tools/fake-upstream/dialect.ts'
import type { Script, Step } from '../tools/fake-upstream/script.ts'
import { chunk, end, scripted, wait } from '../tools/fake-upstream/script.ts'
import { buildConsole } from './build-console.ts'

const folder = join(import.meta.dir, '..', 'docs', 'images')
mkdirSync(folder, { recursive: true })

if (!(await buildConsole())) process.exit(1)
const site = await startSeededSite()
const { account } = site.ids

/** Waits before the first step, as a provider does. */
const delayed = (ms: number, inner: Script): Script =>
  scripted(function* steps(request) {
    yield wait(ms)
    yield* inner.steps(request)
  })

/** A streamed answer of two seconds, with a cached prompt. */
const slowAnswer = scripted(function* steps(request): Iterable<Step> {
  const words = Array.from({ length: 60 }, (_, at) => `word ${at} `)
  const usage = { input: 6_840, cached: 6_144, output: 412 }
  yield streamHead
  for (const frame of buildFramesTo(request, words, { usage })) {
    yield chunk(formatEvent(frame))
    if (frame.kind === 'piece') yield wait(25)
  }
  yield end
})

/** A call that shows most of what the page of a call can show: one provider fails, and another one answers. */
async function makeLongCall({ harness, ids }: SeededSite): Promise<string> {
  const { manage, upstream, url } = harness
  await manage('PUT', '/api/web/routes/assistant', {
    members: [
      { model: 'anthropic/claude-sonnet-4-5', priority: 1 },
      { model: 'openai/gpt-4o', priority: 2 },
    ],
  })
  const { key } = (await manage('POST', '/api/web/keys', { account: ids.account, name: 'assistant' })) as {
    key: string
  }
  upstream.planModel('claude-sonnet-4-5', delayed(140, fail(529)))
  upstream.planModel('gpt-4o', delayed(390, slowAnswer))
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'assistant',
      max_tokens: 1_000,
      messages: [{ role: 'user', content: 'Where does the river go?' }],
      stream: true,
    }),
  })
  await answer.text()
  await harness.idle()
  return answer.headers.get('x-request-id')!
}

interface Picture {
  /** A path, or what makes the thing that is shown. */
  readonly path: string | (() => Promise<string>)
  readonly width?: number
  readonly height: number
  readonly theme?: 'dark'
  /** What is clicked before. */
  readonly button?: string
}

const pictures: Readonly<Record<string, Picture>> = {
  overview: { path: '/', height: 900 },
  records: { path: '/records', height: 640 },
  usage: { path: '/usage?split=model', height: 820 },
  playground: { path: `/playground?account=${account}`, height: 800, button: 'Send' },
  ledger: { path: '/ledger', height: 720 },
  phone: { path: '/records', width: 390, height: 700, theme: 'dark' },
  // The last one, because its call is much larger than all others in the figures of the pages above.
  call: { path: async () => `/records/${await makeLongCall(site)}`, height: 1_240 },
}

const visitor = await Visitor.open(site, undefined)
try {
  for (const [name, { path, width = 1280, height, theme = 'light', button }] of Object.entries(pictures)) {
    const page = await visitor.visit(typeof path === 'string' ? path : await path(), {
      widths: [width],
      themes: [theme],
      axe: false,
    })
    if (button !== undefined) {
      await page.getByRole('button', { name: button, exact: true }).click()
      await page.getByRole('link', { name: 'Open this call' }).last().waitFor()
    }
    await page.setViewportSize({ width, height })
    await page.screenshot({ path: join(folder, `${name}.png`) })
    console.log(`docs/images/${name}.png`)
  }
} finally {
  await visitor.close()
  await site.harness.stop()
}
process.exit(0)
