// weir restore: audits a backup, replaces the data with it, opens the data once, and audits it again.

import { resolve } from 'node:path'
import { readConfig } from '../config.ts'
import { showAudit } from '../management/machine/books.ts'
import { restoreBackup, verifyBackup } from '../store/engine/backup.ts'
import { createFolder, restoreFolderOf } from '../store/engine/folder.ts'
import { lockFolder } from '../store/engine/lock.ts'
import type { AuditReport } from '../store/ledger-audit/findings.ts'
import type { CommandFields } from './connect.ts'
import { withoutBallast } from './connect.ts'
import { duringMigration } from './data-upgrade.ts'
import { jsonText, tableLines } from './print.ts'
import { Problem } from './problem.ts'
import { openProgress, writtenSize } from './progress.ts'
import { buildSend } from './send.ts'

type Say = (line: string) => void

export async function restore(input: CommandFields, write: Say): Promise<void> {
  // With --json only the final result is printed.
  const say: Say = input.json === true ? () => {} : write
  const backup = resolve(String(input.folder))
  const config = readConfig(process.env)
  if (config.databaseUrl !== undefined) {
    throw new Problem(
      'The data is in PostgreSQL: restore it with pg_restore or with the tools of your provider, and start all gateways ' +
        'with the secrets that belong to it.',
    )
  }
  const during = openProgress(input.progress === true)

  const report = await during({ label: 'auditing the backup' }, () =>
    verifyBackup(backup, { data: config.dataFolder, env: config.env }),
  )
  if (report === undefined)
    say('The backup was made by a version of Weir without a ledger. It is audited after its migration.')
  else if (!printReport(report, say) && input['despite-findings'] !== true) {
    throw new Problem('The audit of this backup found contradictions. To restore it anyway, add --despite-findings.')
  }
  const data = createFolder(config.dataFolder)
  const lock = lockFolder(data)
  if (lock === undefined) throw new Problem(`Weir is running on ${data}. Stop it first.`)
  let aside: string | undefined
  try {
    const copying = { label: 'copying the backup', detail: () => writtenSize(restoreFolderOf(data), backup) }
    aside = await during(copying, () => restoreBackup(backup, data))
    if (aside !== undefined) say(`The previous data is now in ${aside}`)
  } finally {
    lock.release()
  }
  const { openStore } = await import('../boot/open-store.ts')
  const givesUp = input['despite-findings'] === true
  const open = () => openStore(withoutBallast(config), { writeLog: () => {} }, { ignoresLostSecrets: givesUp })
  const store = await duringMigration(data, open, during)
  try {
    const audit = await during({ label: 'auditing the restored data' }, () => buildSend(store.manage).machine('audit'))
    const records = audit.records === null ? 'records not counted' : `${audit.records} records`
    say(`Restored to ${data}: ${audit.accounts} accounts, ${audit.transfers} transfers, ${records}.`)
    for (const line of tableLines(audit.findings as CommandFields[])) say(line)
    if (input.json === true) write(jsonText({ folder: data, before: aside ?? null, ...audit }))
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
