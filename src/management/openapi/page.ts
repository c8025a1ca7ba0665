// Writes /docs: the description as one HTML page, without scripts and without anything from other servers.

import { createHash } from 'node:crypto'
import type { OpenApi } from './document.ts'
import type { PageOperation } from './page-operation.ts'
import { operationPart } from './page-operation.ts'
import { logo, style } from './page-style.ts'
import { escapeHtml, markCode, paragraphs, tagAnchor } from './page-text.ts'

export interface WrittenPage {
  readonly html: string
  /** The content security policy: the browser may only load the page's own style and logo. */
  readonly policy: Readonly<Record<string, string>>
}

/** `pause` is awaited between the sections: the page is long, and the same thread serves calls. */
export async function writePage(document: OpenApi, pause: () => Promise<void>): Promise<WrittenPage> {
  const operations = operationsByTag(document)
  const sections: string[] = []
  for (const tag of document.tags) {
    sections.push(section(tag, operations.get(tag.name) ?? [], document))
    await pause()
  }
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(document.info.title)} API</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<div class="frame">
${menu(document, operations)}
<main>
<h1>${escapeHtml(document.info.title)} API<small>${escapeHtml(document.info.version)}</small></h1>
<div class="intro">${paragraphs(document.info.description)}</div>
${introCards}
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

const picture = logo.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ').replace('currentColor', '#0a7ea4')
const icon = `data:image/svg+xml,${encodeURIComponent(picture)}`

function operationsByTag({ paths }: OpenApi): ReadonlyMap<string, readonly PageOperation[]> {
  const all = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method, path, operation })),
  )
  return Map.groupBy(all, ({ operation }) => operation.tags[0])
}

const GROUPS: readonly (readonly [title: string, fits: (operation: PageOperation) => boolean])[] = [
  ['Calls', ({ operation }) => operation.security.some(scheme => 'key' in scheme)],
  ['Management', ({ path }) => path.startsWith('/api/auth/') || path.startsWith('/api/web/')],
  ['Public', () => true],
]

function menu({ info, tags }: OpenApi, operations: ReadonlyMap<string, readonly PageOperation[]>): string {
  const groupOf = (name: string): string => GROUPS.find(([, fits]) => operations.get(name)?.some(fits))?.[0] ?? ''
  const lists = GROUPS.map(([title]) => {
    const tagsOfGroup = tags.filter(({ name }) => groupOf(name) === title)
    const items = tagsOfGroup.map(({ name }) => {
      const count = operations.get(name)?.length ?? 0
      return `<li><a href="#${tagAnchor(name)}">${escapeHtml(name)}<small>${count}</small></a></li>`
    })
    return items.length === 0 ? '' : `<h3>${title}</h3><ul>${items.join('')}</ul>`
  })
  const more = [
    ['#errors', 'Errors'],
    ['/openapi.json', 'openapi.json'],
    ['/llms.txt', 'llms.txt'],
  ]
  const links = more.map(([href, name]) => `<li><a href="${href}">${name}</a></li>`).join('')
  return `<nav><a class="brand" href="#">${logo}${escapeHtml(info.title)}</a>
<div class="all">${lists.join('\n')}<h3>More</h3><ul>${links}</ul></div></nav>`
}

const introCards = `<div class="cards">
<div><h2>Call a model</h2>
<p>With an API key, as <code>Authorization: Bearer wk-…</code> or <code>x-api-key</code>.</p></div>
<div><h2>Manage</h2><p>With a token (JWT) from <code>/api/auth</code>,
or a service token (<code>wst-…</code>). An API key is not accepted.</p></div>
<div><h2>Public data</h2><p>Models, prices and status are public: <code>/api/public</code>.</p></div>
</div>`

function section(
  { name, description }: OpenApi['tags'][number],
  operations: readonly PageOperation[],
  document: OpenApi,
): string {
  const parts = operations.map(operation => operationPart(operation, document))
  return `<section id="${tagAnchor(name)}"><h2>${escapeHtml(name)}</h2><p>${markCode(description)}</p>
${parts.join('\n')}
</section>`
}

function errorsSection(document: OpenApi): string {
  const rows = Object.entries(document['x-weir-errors']).sort(([, a], [, b]) => a.status - b.status)
  const lines = rows.map(([code, { status, retry, message }]) => {
    const cells = [String(status), `<code>${code}</code>`, escapeHtml(message)].map(cell => `<td>${cell}</td>`)
    return `<tr id="error-${code}">${cells.join('')}<td class="wide">${retry ? 'yes' : 'no'}</td></tr>`
  })
  return `<section id="errors"><h2>Errors</h2>
<p>Each path prefix answers in its own dialect, so that official clients raise the right exception. <i>Retry</i>: the
same request may succeed later.</p>
<table class="errors"><thead><tr><th>Status</th><th>Code</th><th>Message</th><th class="wide">Retry</th></tr></thead>
<tbody>${lines.join('\n')}</tbody></table></section>`
}
