// Tests what the auditor does with a finding: it acts once, for the right account, and again after a failure.

import { expect, test } from 'bun:test'
import { hintOf } from '../base/hints.ts'
import { buildLog } from '../base/log.ts'
import type { AuditFinding, AuditReport } from '../store/ledger-audit/findings.ts'
import { createFinding } from '../store/ledger-audit/findings.ts'
import { buildAuditor } from './auditor.ts'

const reportOf = (findings: readonly AuditFinding[]): AuditReport => ({
  findings,
  transfers: 1,
  records: 1,
  accounts: 1,
  holds: 1,
  atMs: 7,
  tookMs: 1,
})

function setUp(freeze?: (id: number) => Promise<void>) {
  const lines: string[] = []
  const frozen: number[] = []
  const auditor = buildAuditor({
    auditNew: () => Promise.reject(new Error('not asked')),
    isOurs: async () => true,
    freeze: freeze ?? (async id => void frozen.push(id)),
    everyMs: 0,
    log: buildLog('info', line => lines.push(line)),
  })
  return { auditor, lines, frozen }
}

const findingFor = (owner: bigint | undefined, key: string): AuditFinding =>
  createFinding({ check: 'balance', owner, key, hint: hintOf('found_overdrawn', { account: 'acc_x' }) })

test('a finding is acted on once, and another finding of the same account again', async () => {
  const { auditor, lines, frozen } = setUp()
  expect(auditor.state).toEqual({ drift: 0, auditedMs: null })
  await auditor.handleReport(reportOf([findingFor(9n, '5')]))
  await auditor.handleReport(reportOf([findingFor(9n, '5')]))
  expect([frozen, lines.length]).toEqual([[9], 1])
  expect(auditor.state).toEqual({ drift: 1, auditedMs: 7 })
  await auditor.handleReport(reportOf([findingFor(9n, '5'), findingFor(9n, '6')]))
  expect([frozen, lines.length]).toEqual([[9, 9], 2])
  expect(auditor.state.drift).toBe(2)
  await auditor.handleReport(reportOf([]))
  expect(auditor.state.drift).toBe(0)
})

test("a finding without an account, or of the operator's account, is reported and freezes no account", async () => {
  const { auditor, lines, frozen } = setUp()
  await auditor.handleReport(
    reportOf([findingFor(undefined, 'a'), findingFor(1n, 'b'), findingFor(4n, 'c'), findingFor(5n, 'd')]),
  )
  expect([frozen, lines.length, auditor.state.drift]).toEqual([[5], 4, 4])
})

test('freezing an account is tried again after a failure, and the failure does not stop other accounts from being frozen', async () => {
  const freezeCalls: number[] = []
  const { auditor, lines } = setUp(async id => {
    freezeCalls.push(id)
    if (id === 9 && freezeCalls.length === 1) throw new Error('storage_away')
  })
  const report = reportOf([findingFor(9n, '1'), findingFor(10n, '1')])
  await auditor.handleReport(report)
  expect(freezeCalls).toEqual([9, 10])
  expect(lines.some(line => line.includes('cannot freeze'))).toBeTrue()
  await auditor.handleReport(report)
  await auditor.handleReport(report)
  expect(freezeCalls).toEqual([9, 10, 9])
})

test('passes repeat, also after a failed one, until the auditor is closed', async () => {
  const lines: string[] = []
  const third = Promise.withResolvers<void>()
  let passes = 0
  const auditor = buildAuditor({
    async auditNew() {
      passes++
      if (passes === 1) throw new Error('busy')
      if (passes === 3) third.resolve()
      return reportOf([findingFor(9n, 'x')])
    },
    isOurs: async () => true,
    freeze: async () => {},
    everyMs: 1,
    log: buildLog('info', line => lines.push(line)),
  })
  auditor.start()
  await third.promise
  auditor.close()
  expect(lines.filter(line => line.includes('audit failed'))).toHaveLength(1)
  expect(lines.filter(line => line.includes('the ledger is inconsistent'))).toHaveLength(1)
  const passesAtClose = passes
  await new Promise(resolve => setTimeout(resolve, 20))
  expect(passes).toBe(passesAtClose)
})

test('a process makes passes only while it has the job', async () => {
  const jobs = [false, false, true]
  const passed = Promise.withResolvers<void>()
  const auditor = buildAuditor({
    async auditNew() {
      passed.resolve()
      return reportOf([])
    },
    isOurs: async () => jobs.shift() ?? false,
    freeze: async () => {},
    everyMs: 1,
    log: buildLog('info', () => {}),
  })
  auditor.start()
  await passed.promise
  expect(jobs).toEqual([])
  auditor.close()
})

test('a process without the job knows what the one with it has found, and acts on nothing', async () => {
  const looked = Promise.withResolvers<void>()
  const found = [findingFor(9n, 'x')]
  const saved: unknown[] = []
  const jobs = [true, false]
  const results = [
    { findings: [], atMs: 8 },
    { findings: found, atMs: 9 },
  ]
  const frozen: number[] = []
  const auditor = buildAuditor({
    auditNew: async () => reportOf([]),
    isOurs: async () => jobs.shift() ?? false,
    shared: {
      save: async ({ findings, atMs }) => void saved.push([findings, atMs]),
      async load() {
        if (results.length === 0) looked.resolve()
        return results.shift()
      },
    },
    freeze: async id => void frozen.push(id),
    everyMs: 1,
    log: buildLog('info', () => {}),
  })
  auditor.start()
  await looked.promise
  auditor.close()
  expect(saved).toEqual([[[], 7]])
  expect([auditor.state, auditor.findings, frozen]).toEqual([{ drift: 1, auditedMs: 9 }, found, []])
})
