// Converts text to HTML: everything is escaped; `code` in our own sentences becomes a code element.

const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escaped = (text: string): string => text.replace(/[&<>"']/g, sign => signs[sign]!)

/** Text between backticks becomes a code element. */
export const marked = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export const paragraphs = (text: string): string =>
  text
    .split('\n\n')
    .map(part => `<p>${marked(part.replaceAll('\n', ' '))}</p>`)
    .join('\n')

/** Marks the parameters of a path, and allows a line break after each slash. */
export const pathText = (path: string): string =>
  escaped(path)
    .replaceAll('/', '/<wbr>')
    .replace(/\{[^}]+\}/g, parameter => `<i>${parameter}</i>`)

export const idOf = (tag: string): string => tag.toLowerCase().replace(/[^a-z0-9]+/g, '-')
