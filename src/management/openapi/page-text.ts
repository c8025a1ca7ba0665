// Text as HTML: everything is escaped, and the little that is marked in our own sentences is kept.

const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escaped = (text: string): string => text.replace(/[&<>"']/g, sign => signs[sign]!)

/** With `code` as code. */
export const marked = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export const paragraphs = (text: string): string =>
  text
    .split('\n\n')
    .map(part => `<p>${marked(part.replaceAll('\n', ' '))}</p>`)
    .join('\n')

/** What varies in a path is set apart, and a path may be broken after each slash. */
export const pathText = (path: string): string =>
  escaped(path)
    .replaceAll('/', '/<wbr>')
    .replace(/\{[^}]+\}/g, hole => `<i>${hole}</i>`)

export const idOf = (tag: string): string => tag.toLowerCase().replace(/[^a-z0-9]+/g, '-')
