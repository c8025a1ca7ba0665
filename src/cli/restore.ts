// weir restore: audits a backup, replaces the data with it, opens the data once, and audits it again.

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../config.ts'
import { showAudit } from '../management/machine/books.ts'
import { restoreBackup, verifyBackup } from '../store/engine/backup.ts'
import { createFolder, restoreFolderOf } from '../store/engine/folder.ts'
import { lockFolder } from '../store/engine/lock.ts'
import type { AuditReport } from '../store/ledger-audit/findings.ts'
import type { CommandFields } from './connect.ts'
import { Problem, UsageProblem, withoutBallast } from './connect.ts'
import { jsonText, tableLines } from './print.ts'
import { openProgress, writtenSize } from './progress.ts'
import { buildSend } from './send.ts'

type Say = (line: string) => void

export const restoreUsage = 'restore <backup folder> [--despite-findings] [--progress]'

export async function restore(args: readonly string[], write: Say): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { 'despite-findings': { type: 'boolean' }, 'progress': { type: 'boolean' }, 'json': { type: 'boolean' } },
  })
  if (positionals.length !== 1) throw new UsageProblem(`Usage: weir ${restoreUsage}`)
  // With --json only the final result is printed.
  const say: Say = values.json === true ? () => {} : write
  const backup = resolve(positionals[0]!)
  const config = readConfig(process.env)
  const during = openProgress(values.progress === true)

  const report = await during({ label: 'auditing the backup' }, () =>
    verifyBackup(backup, { data: config.dataFolder, env: config.env }),
  )
  if (report === undefined) say('The backup is older than the ledger. It is audited after its migration.')
  else if (!printReport(report, say) && values['despite-findings'] !== true) {
    throw new Problem('The audit of this backup found contradictions. To restore it anyway, add --despite-findings.')
  }
  const data = createFolder(config.dataFolder)
  const lock = lockFolder(data)
  if (lock === undefined) throw new Problem(`Weir is running on ${data}. Stop it first.`)
  let aside: string | undefined
  try {
    const copying = { label: 'copying the backup', detail: () => writtenSize(restoreFolderOf(data)) }
    aside = await during(copying, () => restoreBackup(backup, data))
    if (aside !== undefined) say(`The previous data is now in ${aside}`)
  } finally {
    lock.release()
  }
  const { openStore } = await import('../boot/open-store.ts')
  const givesUp = values['despite-findings'] === true
  const store = await openStore(withoutBallast(config), { writeLog: () => {} }, { ignoresLostSecrets: givesUp })
  try {
    const audit = await during({ label: 'auditing the restored data' }, () => buildSend(store.manage).machine('audit'))
    say(`Restored to ${data}: ${audit.accounts} accounts, ${audit.transfers} transfers, ${audit.records} records.`)
    for (const line of tableLines(audit.findings as CommandFields[])) say(line)
    if (values.json === true) write(jsonText({ folder: data, before: aside ?? null, ...audit }))
    if ((audit.findings as CommandFields[]).length > 0) process.exitCode = 1
  } finally {
    await store.close()
  }
}

/** Prints the findings of an audit. Returns true if there are none. */
function printReport(report: AuditReport, say: Say): boolean {
  const findings = showAudit(report).findings as CommandFields[]
  for (const line of tableLines(findings)) say(line)
  return findings.length === 0
}
