// Converts text to HTML: everything is escaped; `code` in our own sentences becomes a code element.

const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, sign => signs[sign]!)

/** Text between backticks becomes a code element. */
export const markCode = (text: string): string => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export const paragraphs = (text: string): string =>
  text
    .split('\n\n')
    .map(part => `<p>${markCode(part.replaceAll('\n', ' '))}</p>`)
    .join('\n')

/** Marks the parameters of a path, and allows a line break after each slash. */
export const pathText = (path: string): string =>
  escapeHtml(path)
    .replaceAll('/', '/<wbr>')
    .replace(/\{[^}]+\}/g, parameter => `<i>${parameter}</i>`)

export const tagAnchor = (tag: string): string => tag.toLowerCase().replace(/[^a-z0-9]+/g, '-')
