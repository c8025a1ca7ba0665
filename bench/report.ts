// Writes the report of a run as Markdown, which is also readable in a terminal.

import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { figure } from './measures/figures.ts'
import type { Section } from './measures/measure.ts'
import type { Peers } from './subjects/peers.ts'
import { versionOf } from './subjects/peers.ts'
import { subjectDuties } from './subjects/subject.ts'
import { NGINX } from './system/nginx.ts'
import { cpuModel } from './system/proc.ts'
import { LOAD_CORE, read, SUBJECT_CORE } from './system/workbench.ts'

/** Reasons for missed targets. The page is written by hand, so it has no measured figures. */
const REASONS = join(import.meta.dir, 'reasons.md')

export function writeTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  // Names are aligned to the left, figures to the right.
  const pad = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)
  const line = (row: readonly string[]): string => `| ${row.map(pad).join(' | ')} |`
  const rule = widths.map((width, column) => '-'.repeat(width + 1) + (column === 0 ? '-' : ':'))
  return [line(rows[0]!), `|${rule.join('|')}|`, ...rows.slice(1).map(line)].join('\n')
}

const writeSection = ({ title, about, table }: Section): string => `## ${title}\n\n${about}\n\n${writeTable(table)}\n`

function writeTargets(sections: readonly Section[]): string {
  const rows = sections
    .flatMap(section => section.targets)
    .map(({ what, most, unit, measured }) => [
      what,
      `${most}${unit}`,
      `${figure(measured)}${unit}`,
      measured <= most ? 'yes' : 'NO',
    ])
  return `## Targets\n\n${writeTable([['what', 'at most', 'measured', 'met'], ...rows])}\n`
}

/** What each subject does besides forwarding a call; its figures mean nothing without this. */
export function describeSubjects({ found, missing }: Peers): string {
  const head = ['subject', 'version', 'bills', 'keeps a record', 'durable']
  const own = Object.entries(subjectDuties).map(([name, { bills, records, durable }]) => [
    name,
    '',
    bills,
    records,
    durable,
  ])
  const peers = found.map(one => {
    const { name, bills, records, durable } = one.peer
    return [name, versionOf(one), bills, records, durable]
  })
  const about = [
    'Weir also authenticates each call, limits its rate, chooses a channel for it and watches its answer; nginx passes ' +
      'bytes, and bun-proxy parses the body once. A peer is set up with the least that it needs to forward a call.',
    ...(found.length + missing.length === 0 ? ['No peers were measured in this run.'] : []),
    ...(missing.length > 0 ? [`No program was there for: ${missing.map(peer => peer.name).join('; ')}.`] : []),
  ]
  return `## Subjects\n\n${about.join(' ')}\n\n${writeTable([head, ...own, ...peers])}\n`
}

/** The machine and the versions. Read before the run, so that the load average is not that of the run. */
export function describeMachine(): string {
  const changed =
    read(['git', 'status', '--porcelain', '--', 'src', 'tools', 'bin', 'providers', 'package-lock.json']) !== ''
  const commit = read(['git', 'rev-parse', '--short', 'HEAD'])
  const rows = [
    ['date', `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`],
    ['commit', `${commit}${changed ? ', with changes that are not committed' : ''}`],
    ['processor', `${cpuModel()}, ${cpus().length} cores seen`],
    ['Bun', Bun.version],
    ['nginx', read([NGINX, '-v']).replace(/^.*nginx\//, '')],
    ['load average before', loadavg().map(figure).join(', ')],
  ]
  return writeTable([['', ''], ...rows])
}

export interface Report {
  readonly machine: string
  readonly subjects: string
  readonly sections: readonly Section[]
}

export function writeReport({ machine, subjects, sections }: Report): string {
  return [
    '# Benchmark results\n',
    `Written by \`npm run bench\`. Each subject has one core for itself (core ${SUBJECT_CORE}); the load generator ` +
      `and the upstream share another (core ${LOAD_CORE}). CPU is user and system time of all threads of it. ` +
      'Weir bills every call, durably. Compare figures only inside one run.\n',
    `${machine}\n`,
    writeTargets(sections),
    subjects,
    ...sections.map(writeSection),
    readFileSync(REASONS, 'utf8'),
  ].join('\n')
}
