// /docs: the description as one page, written here and read without a script or anything from elsewhere.

import { createHash } from 'node:crypto'
import type { OpenApi } from './document.ts'
import type { Told } from './page-operation.ts'
import { operationPart } from './page-operation.ts'
import { mark, style } from './page-style.ts'
import { escaped, idOf, marked, paragraphs } from './page-text.ts'

export interface WrittenPage {
  readonly html: string
  /** What a browser may load for it: nothing but its own style and mark. */
  readonly policy: Readonly<Record<string, string>>
}

/** `pause` is waited for between its sections: it is long, and calls are served by the same thread. */
export async function writePage(document: OpenApi, pause: () => Promise<void>): Promise<WrittenPage> {
  const told = toldOf(document)
  const sections: string[] = []
  for (const tag of document.tags) {
    sections.push(section(tag, told.get(tag.name) ?? [], document))
    await pause()
  }
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(document.info.title)} API</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<div class="frame">
${menu(document, told)}
<main>
<h1>${escaped(document.info.title)} API<small>${escaped(document.info.version)}</small></h1>
<div class="intro">${paragraphs(document.info.description)}</div>
${ways}
${sections.join('\n')}
${errorsSection(document)}
</main>
</div>
</body>
</html>
`
  const hash = createHash('sha256').update(style).digest('base64')
  const allowed = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:`
  const policy = `${allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, policy: { 'content-security-policy': policy } }
}

const picture = mark.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ').replace('currentColor', '#0a7ea4')
const icon = `data:image/svg+xml,${encodeURIComponent(picture)}`

function toldOf({ paths }: OpenApi): ReadonlyMap<string, readonly Told[]> {
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method, path, operation })),
  )
  return Map.groupBy(all, ({ operation }) => operation.tags[0])
}

const GROUPS: readonly (readonly [title: string, fits: (told: Told) => boolean])[] = [
  ['Calls', ({ operation }) => operation.security.some(way => 'key' in way)],
  ['Management', ({ path }) => path.startsWith('/api/auth/') || path.startsWith('/api/web/')],
  ['Open to all', () => true],
]

function menu({ info, tags }: OpenApi, told: ReadonlyMap<string, readonly Told[]>): string {
  const groupOf = (name: string): string => GROUPS.find(([, fits]) => told.get(name)?.some(fits))?.[0] ?? ''
  const lists = GROUPS.map(([title]) => {
    const own = tags.filter(({ name }) => groupOf(name) === title)
    const items = own.map(({ name }) => {
      const many = told.get(name)?.length ?? 0
      return `<li><a href="#${idOf(name)}">${escaped(name)}<small>${many}</small></a></li>`
    })
    return items.length === 0 ? '' : `<h3>${title}</h3><ul>${items.join('')}</ul>`
  })
  const more = [
    ['#errors', 'Errors'],
    ['/openapi.json', 'openapi.json'],
    ['/llms.txt', 'llms.txt'],
  ]
  const links = more.map(([href, name]) => `<li><a href="${href}">${name}</a></li>`).join('')
  return `<nav><a class="brand" href="#">${mark}${escaped(info.title)}</a>
<div class="all">${lists.join('\n')}<h3>More</h3><ul>${links}</ul></div></nav>`
}

const ways = `<div class="ways">
<div><h2>Call a model</h2>
<p>With an API key, as <code>Authorization: Bearer wk-…</code> or <code>x-api-key</code>.</p></div>
<div><h2>Manage</h2><p>With a token (JWT) from <code>/api/auth</code>. A key will not do.</p></div>
<div><h2>Look around</h2><p>Models, prices and status are public: <code>/api/public</code>.</p></div>
</div>`

function section({ name, description }: OpenApi['tags'][number], told: readonly Told[], document: OpenApi): string {
  const parts = told.map(one => operationPart(one, document))
  return `<section id="${idOf(name)}"><h2>${escaped(name)}</h2><p>${marked(description)}</p>
${parts.join('\n')}
</section>`
}

function errorsSection(document: OpenApi): string {
  const rows = Object.entries(document['x-weir-errors']).sort(([, a], [, b]) => a.status - b.status)
  const lines = rows.map(([code, { status, retry, message }]) => {
    const cells = [String(status), `<code>${code}</code>`, escaped(message)].map(cell => `<td>${cell}</td>`)
    return `<tr id="error-${code}">${cells.join('')}<td class="wide">${retry ? 'yes' : 'no'}</td></tr>`
  })
  return `<section id="errors"><h2>Errors</h2>
<p>Each prefix answers in its own dialect, so that official clients raise their right exception. <i>Again</i>: whether
the same request may succeed later.</p>
<table class="errors"><thead><tr><th>Status</th><th>Code</th><th>Says</th><th class="wide">Again</th></tr></thead>
<tbody>${lines.join('\n')}</tbody></table></section>`
}
