// What a page is for a screen reader: its roles, names and order, without the data on it.

import type { Page } from 'playwright-core'

/** Their names are data, but not in the navigation. */
const DATA = /^(row|cell|listitem|definition|time)$/
/** All children of these are alike: the first stands for them. */
const ALIKE = /^(list|rowgroup|combobox)$/

interface Node {
  readonly depth: number
  readonly role: string
  readonly line: string
}

/** A line such as `  - button "Create key" [disabled]: text`; one with quotes inside is quoted itself. */
function nodeOf(line: string): Node {
  const [, indent, role] = /^( *)- '?(\w+)/.exec(line)!
  return { depth: indent!.length, role: role!, line: line.replace(/:$/, '') }
}

/** Without its name and text, but with its states. */
function bare({ depth, role, line }: Node): string {
  const states = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/\[\w+(=\w+)?\]/g) ?? []
  return `${' '.repeat(depth)}${['-', role, ...states].join(' ')}`
}

/** Numbers, lengths of time and ids in sentences differ from run to run. */
const withoutData = ({ role, line }: Node): string =>
  !/^(heading|paragraph|text)$/.test(role)
    ? line
    : line
        .replaceAll(/\b[a-z]{2,4}_[0-9a-z]{11,}\b/g, '<id>')
        .replaceAll(/(?<!level=)\d[\d.,:-]*(?: (?:ms|s|min)\b)?/g, '0')

/** The lines of a snapshot that say how a page is built. */
export function structureOf(snapshot: string): string {
  const found: string[] = []
  /** The nodes above the current one; how many children each has had. */
  const above: (Node & { children: number })[] = []
  /** What lies deeper than this is left out. */
  let skippedFrom = Number.POSITIVE_INFINITY
  const nodes = snapshot
    .split('\n')
    .filter(line => /^ *- '?\w/.test(line))
    .map(nodeOf)
  for (const node of nodes) {
    if (node.depth > skippedFrom) continue
    skippedFrom = Number.POSITIVE_INFINITY
    while (above.length > 0 && above.at(-1)!.depth >= node.depth) above.pop()
    const parent = above.at(-1)
    const isNavigation = above.some(({ role }) => role === 'navigation')
    const isRepeated = parent !== undefined && !isNavigation && ALIKE.test(parent.role) && parent.children++ > 0
    if (isRepeated) {
      skippedFrom = node.depth
      continue
    }
    const isNamed = isNavigation || node.role === 'columnheader' || above.some(({ role }) => role === 'columnheader')
    const isData = !isNamed && (DATA.test(node.role) || above.some(({ role }) => DATA.test(role)))
    if (!(isData && node.role === 'text')) found.push(isData ? bare(node) : withoutData(node))
    above.push({ ...node, children: 0 })
  }
  return found.join('\n')
}

/** The structure of an open page; of a part of it, if a selector is given. */
export const readStructure = async (page: Page, selector = 'body'): Promise<string> =>
  structureOf(await page.locator(selector).ariaSnapshot())
