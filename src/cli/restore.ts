// weir restore: judges a backup, puts it in place, opens it once, and judges it again where it now is.

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../config.ts'
import { showAudit } from '../management/commands/books.ts'
import { judgeBackup, putInPlace } from '../store/engine/backup.ts'
import { makeFolder, restoringIn } from '../store/engine/folder.ts'
import { lockFolder } from '../store/engine/lock.ts'
import type { AuditReport } from '../store/ledger-audit/findings.ts'
import type { Fields } from './connect.ts'
import { briefly, Problem, UsageProblem } from './connect.ts'
import { jsonText, tableLines } from './print.ts'
import { openProgress, writtenTo } from './progress.ts'

type Say = (line: string) => void

export const restoreUsage = 'restore <backup folder> [--despite-findings] [--progress]'

export async function restore(args: readonly string[], write: Say): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { 'despite-findings': { type: 'boolean' }, 'progress': { type: 'boolean' }, 'json': { type: 'boolean' } },
  })
  if (positionals.length !== 1) throw new UsageProblem(`Usage: weir ${restoreUsage}`)
  // As JSON, only the end of it is told.
  const say: Say = values.json === true ? () => {} : write
  const backup = resolve(positionals[0]!)
  const config = readConfig(process.env)
  const during = openProgress(values.progress === true)
  const place = { data: config.dataFolder, env: config.env }
  const before = await during({ doing: 'auditing the backup' }, () => judgeBackup(backup, place))
  if (before === undefined) say('The backup is from before the ledger: it is audited once it is up to date.')
  else if (!tell(before, say) && values['despite-findings'] !== true) {
    throw new Problem('The books of this backup do not agree. To restore it all the same, say --despite-findings.')
  }
  const data = makeFolder(config.dataFolder)
  const lock = lockFolder(data)
  if (lock === undefined) throw new Problem(`Weir is running on ${data}. Stop it first.`)
  let aside: string | undefined
  try {
    const copying = { doing: 'putting it in place', more: () => writtenTo(restoringIn(data)) }
    aside = await during(copying, () => putInPlace(backup, data))
    if (aside !== undefined) say(`What was there is now in ${aside}`)
  } finally {
    lock.release()
  }
  const { openStore } = await import('../boot/open-store.ts')
  const givesUp = values['despite-findings'] === true
  const store = await openStore(briefly(config), { writeLog: () => {} }, { givesUp })
  try {
    const seen = await during({ doing: 'auditing what was restored' }, () => store.operator.audit!({}))
    say(`Restored to ${data}: ${seen.accounts} accounts, ${seen.transfers} transfers, ${seen.records} records.`)
    for (const line of tableLines(seen.findings as Fields[])) say(line)
    if (values.json === true) write(jsonText({ folder: data, before: aside ?? null, ...seen }))
    if ((seen.findings as Fields[]).length > 0) process.exitCode = 1
  } finally {
    await store.close()
  }
}

/** Whether the books agree. */
function tell(report: AuditReport, say: Say): boolean {
  const findings = showAudit(report).findings as Fields[]
  for (const line of tableLines(findings)) say(line)
  return findings.length === 0
}
