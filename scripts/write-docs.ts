// npm run docs: writes the documents that are made from the code. A test compares them with the disk.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorCode } from '../src/base/errors.ts'
import { errorRows, speakRefusal, Refusal } from '../src/base/errors.ts'
import { errorDialects } from '../src/protocols/list.ts'

export const errorsPath = join(import.meta.dir, '..', 'docs', 'errors.md')

/** What a dialect calls an error of this code: its type, and the status where it has one of its own. */
function inDialect(dialect: keyof typeof errorDialects, code: ErrorCode): string {
  const { status, body } = errorDialects[dialect].writeError(speakRefusal(new Refusal(code, ''), 'req'))
  const { error } = JSON.parse(body) as { error: { type: string; status?: string } }
  const own = status === errorRows[code].status ? '' : ` (${status})`
  return `\`${error.status ?? error.type}\`${own}`
}

export function writeErrors(): string {
  const rows = Object.entries(errorRows).sort(([, a], [, b]) => a.status - b.status)
  const lines = rows.map(([code, { status, retry, message }]) => {
    const names = (['openai-chat', 'anthropic-messages', 'gemini', 'ark'] as const).map(dialect =>
      inDialect(dialect, code as ErrorCode),
    )
    return `| \`${code}\` | ${status} | ${retry ? 'yes' : 'no'} | ${message} | ${names.join(' | ')} |`
  })
  return `# Errors

Everything Weir can refuse, from the one table in \`src/base/errors.ts\` (this page is generated: \`npm run docs\`).

Each prefix answers in its own dialect, so that each official SDK raises its right exception; the request id is in
the body and in \`x-request-id\`. *Again* says whether the same request may succeed later; where it may not and an SDK
would try all the same, the answer carries \`x-should-retry: false\`. A request that an upstream refused as bad comes
back with the upstream's own status and words (\`upstream_refused\`).

| Code | Status | Again | Text | OpenAI | Anthropic | Gemini | Ark |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}
`
}

if (import.meta.main) writeFileSync(errorsPath, writeErrors())
