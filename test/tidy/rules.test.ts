// Each rule is shown what it must catch and what it must leave alone.

import { describe, expect, test } from 'bun:test'
import { findings, idleExceptions, ruleNames, rules } from './rules.ts'
import type { Files } from './samples.ts'
import { samples } from './samples.ts'
import type { Finding, Tree } from './source.ts'
import { show } from './source.ts'

const treeOf = (files: Files, errorCodes: readonly string[] = []): Tree => ({
  files: Object.entries(files).map(([path, text]) => ({ path, text })),
  errorCodes,
})

const places = (found: readonly Finding[]): readonly string[] => found.map(({ file, line }) => `${file}:${line}`).sort()

for (const name of ruleNames) {
  const { bad, good, errorCodes } = samples[name]

  describe(name, () => {
    test('has samples of both kinds', () => expect(Math.min(bad.length, good.length)).toBeGreaterThan(0))

    bad.forEach(({ files, at }, index) => {
      test(`names every place of bad sample ${index + 1}`, () => {
        const found = rules[name].check(treeOf(files, errorCodes))
        expect(places(found)).toEqual([...at].sort())
        for (const finding of found) expect(finding.message.length).toBeGreaterThan(9)
      })
    })

    good.forEach((files, index) => {
      test(`leaves good sample ${index + 1} alone`, () => {
        expect(rules[name].check(treeOf(files, errorCodes)).map(show)).toEqual([])
      })
    })
  })
}

describe('exceptions', () => {
  const tree = treeOf({ 'providers/groq.json': '{}', 'src/a.ts': "f('groq')", 'src/b.ts': "f('groq')" })
  const row = { rule: 'provider-ids', file: 'src/a.ts', reason: 'for this test' } as const

  test('excuse one file from one rule', () => {
    expect(places(findings('provider-ids', tree, [row]))).toEqual(['src/b.ts:1'])
    expect(places(findings('provider-ids', tree, [{ ...row, rule: 'any' }]))).toEqual(['src/a.ts:1', 'src/b.ts:1'])
  })

  test('excuse one word when they name it', () => {
    expect(places(findings('provider-ids', tree, [{ ...row, subject: 'groq' }]))).toEqual(['src/b.ts:1'])
    expect(places(findings('provider-ids', tree, [{ ...row, subject: 'demo' }]))).toEqual(['src/a.ts:1', 'src/b.ts:1'])
  })

  test('are named when they excuse nothing any more', () => {
    const idle = [{ ...row, file: 'src/c.ts' }, { ...row, subject: 'demo' }, { ...row, rule: 'any' as const }]
    expect(idleExceptions(tree, [row, ...idle])).toEqual(idle)
  })
})
