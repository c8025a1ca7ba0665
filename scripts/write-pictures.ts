// npm run console:pictures: writes docs/images/, the pictures of the console in the README and in docs/guides/console.md, of
// a gateway with sample data.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Visitor } from '../test/console/support/browser.ts'
import { startSeededSite } from '../test/console/support/seed.ts'
import { buildConsole } from './build-console.ts'

const folder = join(import.meta.dir, '..', 'docs', 'images')
mkdirSync(folder, { recursive: true })

if (!(await buildConsole())) process.exit(1)
const site = await startSeededSite()
const { account, calls } = site.ids

interface Picture {
  readonly path: string
  readonly width?: number
  readonly height: number
  readonly theme?: 'dark'
  /** What is clicked before. */
  readonly button?: string
}

const pictures: Readonly<Record<string, Picture>> = {
  overview: { path: '/', height: 900 },
  records: { path: '/records', height: 640 },
  call: { path: `/records/${calls.streamed}`, height: 860 },
  usage: { path: '/usage?split=model', height: 820 },
  playground: { path: `/playground?account=${account}`, height: 800, button: 'Send' },
  ledger: { path: '/ledger', height: 720 },
  phone: { path: '/records', width: 390, height: 700, theme: 'dark' },
}

const visitor = await Visitor.open(site, undefined)
try {
  for (const [name, { path, width = 1280, height, theme = 'light', button }] of Object.entries(pictures)) {
    const page = await visitor.visit(path, { widths: [width], themes: [theme], axe: false })
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
