// npm run docs: writes the documents that are made from the code. A test compares them with the disk.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'
import type { ErrorCode } from '../src/base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../src/base/errors.ts'
import { chargeRules, chargeText, outcomes, whenText } from '../src/billing/who-pays.ts'
import { describedEndpoints } from '../src/management/openapi/described-endpoints.ts'
import { buildDocument } from '../src/management/openapi/document.ts'
import { errorDialects } from '../src/protocols/protocols.ts'
import { writeRoleMatrix } from '../test/management/matrix/verdicts.ts'
import { writeFailures } from './write-failures.ts'
import { writeFinishReasons } from './write-finish-reasons.ts'
import { writeMatrix } from './write-matrix.ts'
import { writeRequestBodies } from './write-request-bodies.ts'

const docs = join(import.meta.dir, '..', 'docs')
export const errorsPath = join(docs, 'reference', 'errors.md')
export const whoPaysPath = join(docs, 'reference', 'who-pays.md')
export const matrixPath = join(docs, 'reference', 'protocol-matrix.md')
export const openApiPath = join(docs, 'reference', 'openapi.json')
export const roleMatrixPath = join(docs, '..', 'test', 'management', 'matrix.json')
export const finishReasonsPath = join(docs, 'reference', 'finish-reasons.md')
export const failuresPath = join(docs, 'reference', 'failures.md')
export const requestBodiesPath = join(docs, 'reference', 'request-bodies.md')

/** What a dialect calls an error of this code: its type, and the status where it has one of its own. */
function inDialect(dialect: keyof typeof errorDialects, code: ErrorCode): string {
  const { status, body } = errorDialects[dialect].writeError(buildErrorReply(new Refusal(code, ''), 'req'))
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

export function writeWhoPays(): string {
  const lines = chargeRules.map(rule => {
    const ending = `\`${rule.outcome}\` ${whenText(rule)}`
    return `| \`${rule.id}\` | ${ending} | ${chargeText(rule)} | ${rule.why} | ${rule.onPurpose} |`
  })
  const endings = Object.entries(outcomes).map(([outcome, says]) => `| \`${outcome}\` | ${says} |`)
  return `# Who pays

What a call is charged for, by how it ended, from the one table in \`src/billing/who-pays.ts\` (this page is generated:
\`npm run docs\`). The record of each call carries its \`outcome\`, the \`rule\` that decided, and in \`usage_source\`
whether its tokens were \`reported\` by the provider, \`estimated\` by us, or \`none\`.

Content that was delivered is paid for, and so is what the model thought for it, however the call ended; unless the
upstream itself failed: its connection broke, it said that it failed, or it sent what cannot be read. A bound of the
gateway that ends an answer (an event or an answer that is too large, JSON that is nested too deeply, silence in the
middle, the time that any call may take) is no failure of the upstream.

What a model thought without showing it is told by the provider at the end of the answer. The gateway reads on to that
report when a caller leaves; where it cannot, the time in which nothing visible came is charged at the greatest known
speed of the model ([charges](../how-it-works/charges.md#hidden-reasoning)). The same holds for plain calls with tools that the
provider runs.

Of the rules of one ending, the first that fits decides. An error without output is free, with two exceptions: a call
that lets the provider run tools, and that a bound of the gateway ends before content came, pays for what was read and
for the time it took (\`over_bound_tools\`, \`too_long_tools\`), since what the model wrote to a server of the caller's
was delivered, too. If the upstream itself fails before content came, such a call is free as well (\`upstream_failed\`).
Usage that cannot be
(negative, not whole, a text, beyond any number, details that exceed their total, a later report of a stream that takes
back an earlier one) counts as not reported. An estimate takes four bytes of a request for a token, and of
an answer four letters of prose, three digits, or a Chinese character; signs, random letters and other scripts are
weighed by what common vocabularies make of them. Whatever the rule says, no call is charged more than it has held and
the account can pay.

| Rule | Ending | Charged | Why | Can a caller cause it on purpose, and what does it get for nothing? |
|---|---|---|---|---|
${lines.join('\n')}

| Outcome | Means |
|---|---|
${endings.join('\n')}
`
}

/** GET /openapi.json, with line breaks. */
export async function writeOpenApi(): Promise<string> {
  const pause = (): Promise<void> => Promise.resolve()
  const document = await buildDocument({ endpoints: describedEndpoints, version: packageJson.version, pause })
  return `${JSON.stringify(document, undefined, 1)}\n`
}

if (import.meta.main) {
  writeFileSync(errorsPath, writeErrors())
  writeFileSync(whoPaysPath, writeWhoPays())
  writeFileSync(matrixPath, writeMatrix())
  writeFileSync(finishReasonsPath, writeFinishReasons())
  writeFileSync(failuresPath, writeFailures())
  writeFileSync(requestBodiesPath, writeRequestBodies())
  writeFileSync(openApiPath, await writeOpenApi())
  writeFileSync(roleMatrixPath, writeRoleMatrix())
}
