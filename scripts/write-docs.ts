// npm run docs: writes the files that are generated from the code: pages of docs/ and types for the console. Tests
// compare the output with the files.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import packageJson from '../package.json'
import type { ErrorCode } from '../src/base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../src/base/errors.ts'
import { chargeRules, chargeText, outcomes, whenText } from '../src/billing/who-pays.ts'
import { describedEndpoints } from '../src/management/openapi/described-endpoints.ts'
import { buildDocument } from '../src/management/openapi/document.ts'
import { errorDialects } from '../src/protocols/protocols.ts'
import { writeRoleMatrix } from '../test/management/matrix/verdicts.ts'
import { writeCli } from './write-cli.ts'
import { writeConfigFile, writeConfigSchema } from './write-config-file.ts'
import { consoleTypesPath, writeConsoleTypes } from './write-console-types.ts'
import { writeFailures } from './write-failures.ts'
import { writeFinishReasons } from './write-finish-reasons.ts'
import { writeMatrix, writeMatrixData } from './write-matrix.ts'
import { writeAgents, writeLibraries } from './write-programs.ts'
import { writeRequestBodies } from './write-request-bodies.ts'
import { writeSettings } from './write-settings.ts'

const docs = join(import.meta.dir, '..', 'docs')
export const openApiPath = join(docs, 'reference', 'openapi.json')
export const roleMatrixPath = join(docs, '..', 'test', 'management', 'matrix.json')

const dialectTitles = {
  'openai-chat': 'OpenAI',
  'anthropic-messages': 'Anthropic',
  'gemini': 'Gemini',
  'ark': 'Ark',
} as const
const shownDialects = Object.keys(dialectTitles) as (keyof typeof dialectTitles)[]

interface WrittenError {
  readonly status: number
  readonly error: { readonly type: string; readonly status?: string; readonly code?: string }
}

function writtenError(dialect: keyof typeof dialectTitles, code: ErrorCode): WrittenError {
  const { status, body } = errorDialects[dialect].writeError(buildErrorReply(new Refusal(code, ''), 'req'))
  return { status, error: (JSON.parse(body) as Pick<WrittenError, 'error'>).error }
}

/** The error types of a code in all dialects, which follow from its kind. A status is shown where it differs. */
function kindRow(code: ErrorCode): string {
  const types = shownDialects.map(dialect => {
    const { status, error } = writtenError(dialect, code)
    return `\`${error.status ?? error.type}\`${status === errorRows[code].status ? '' : ` (${status})`}`
  })
  return `| ${errorRows[code].kind} | ${types.join(' | ')} |`
}

function codeRow(code: ErrorCode): string {
  const { status, kind, retry, message } = errorRows[code]
  const { code: openaiCode } = writtenError('openai-chat', code).error
  const shown = openaiCode === code ? '' : `\`${openaiCode}\``
  return `| \`${code}\` | ${status} | ${kind} | ${retry ? 'yes' : 'no'} | ${message.replaceAll('<', '\\<')} | ${shown} |`
}

function writeErrors(): string {
  const codes = (Object.keys(errorRows) as ErrorCode[]).sort((a, b) => errorRows[a].status - errorRows[b].status)
  const kinds = [...new Set(codes.map(kindRow))]
  return `# Errors

Every error that Weir itself can return. This page is generated from the table in \`src/base/errors.ts\`
(\`npm run docs\`).

\`\`\`json
{
  "error": {"message": "There is no such model.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"},
  "request_id": "req_06dnh97yr00"
}
\`\`\`

- Each path answers in its own dialect, so that official SDKs raise the right exception. The error type follows from the
  *kind* of the error.
- In OpenAI's dialect \`error.code\` is the code below, or the one in the last column, which OpenAI itself uses. In Gemini's
  dialect \`error.type\` is the code below. Records and metrics always have the code below.
- The request id is in the body and in \`x-request-id\`; \`weir record <id>\` shows the call.
- *Retry* says whether the same request may succeed later. If it says no and an SDK would retry by itself, the answer has
  \`x-should-retry: false\`.
- A hint may follow the message, such as the limit that was reached.
- A request that an upstream refuses as invalid comes back with the upstream's own status and message (\`upstream_refused\`).

## Kinds

| Kind | ${shownDialects.map(dialect => dialectTitles[dialect]).join(' | ')} |
|---|---|---|---|---|
${kinds.join('\n')}

## Codes

| Code | Status | Kind | Retry | Message | OpenAI's code |
|---|---|---|---|---|---|
${codes.map(codeRow).join('\n')}
`
}

function writeWhoPays(): string {
  const lines = chargeRules.map(rule => {
    const ending = `\`${rule.outcome}\` ${whenText(rule)}`
    return `| \`${rule.id}\` | ${ending} | ${chargeText(rule)} | ${rule.why} | ${rule.onPurpose} |`
  })
  const endings = Object.entries(outcomes).map(([outcome, says]) => `| \`${outcome}\` | ${says} |`)
  return `# Who pays

What a call is charged for, by how it ended. This page is generated from the table in \`src/billing/who-pays.ts\`
(\`npm run docs\`). The record of a call has its \`outcome\`, the \`rule\` that decided, and \`usageSource\`: its tokens
were \`reported\` by the provider, \`estimated\` by Weir, or \`none\`.

- **Delivered content is charged**, with the reasoning for it, however the call ended, unless the upstream itself failed:
  its connection broke, it reported a failure, or its answer is unreadable. A bound of the gateway (an answer that is too
  large, too deeply nested, silent for too long or too slow as a whole) is not a failure of the upstream.
- **An empty answer is charged as reported**, in every dialect: the model reasoned up to its token limit, wrote an invalid
  tool call, or was stopped by a filter, and the provider bills it. No other channel is tried, which would cost the same
  again. Without a report it is free.
- **An error without output is free**, except where the money is used up (\`out_of_funds_*\`) or the key ends
  (\`revoked_waiting\`), and with one more exception: a call that lets the provider run tools pays for its input and its
  time, because the model may have sent text to a tool server of the caller. This applies if a bound of the gateway ends
  the call (\`over_bound_tools\`, \`too_long_tools\`), and if the upstream refuses or fails more than a second after the
  request was sent (\`refused_tools\`, \`upstream_failed_tools\`). A sooner refusal or failure is free, and so is a later
  one of a call whose only tool is the provider's search: no server of the caller takes part in a search. A bound of the
  gateway that ends such a call is charged.
- **Reasoning that the model does not show** is known only from the provider's report at the end. If a caller leaves, the
  gateway reads on to that report. If it cannot, the time without visible output is charged at the model's greatest known
  speed ([ledger](../how-it-works/ledger.md#reasoning-that-nobody-sees)).
- **Input that is not in the request** (what tools of the provider read, a conversation that the provider sums up, files,
  stored turns) is known only from the report at the end, too. If a caller leaves, the gateway reads on to that report.
  If none comes after content has arrived, the input counts as what was held for it: the model's context. So a caller
  gains nothing by leaving, or by a tool server of its own that hangs or fails. A plain answer shows no content before its
  end, so the same applies to a plain call with tools that may reach a server of the caller, if it is left or ended by the
  gateway more than a second after the request was sent (rules \`left_waiting\`, \`revoked_waiting\`, \`over_bound_tools\`,
  \`too_long_tools\`). The input is only estimated if no caller can be the cause: the operator stops the gateway, or the
  upstream fails or is silent and no tool but a search takes part (rules \`drained_delivered\`, \`upstream_broke_off_tools\`,
  \`over_bound_answered\`). In Anthropic's dialect, the report at the start of a stream counts until the stream shows a tool
  of the provider or a summary.
- **Implausible usage** counts as not reported: negative, not whole, not a number, details that exceed their total, a
  later report that is lower than an earlier one, or far more than the call can have used: more than ten times its largest
  [size](../how-it-works/ledger.md#how-much-is-held), where a size below 32,768 tokens or 100 units counts as that. If the
  provider runs tools, each of which reads the input again, it is a hundred times.
- **An estimate** counts four bytes of a request as one token, unless its tokens were counted for the hold; media count by
  the rules of the model. Of an answer it counts four letters of prose, three digits
  or one Chinese character; other characters are weighted by what common vocabularies make of them.
  Images and audio count at their own rates ([ledger](../how-it-works/ledger.md#images-and-audio-without-a-report)).
- **Images that were being made** when a caller leaves a stream of images are charged as well, because the provider may
  bill them, at most as many as were requested. Before the first image none is charged.
- **What a model rejects of a prediction** (\`prediction\` of a chat) is billed as output, and only the final report tells
  how much it is. If a caller leaves, the gateway reads on to that report. If none comes, the whole prediction counts.
- **No call is charged more** than the account can pay. A believed report above the hold takes from the balance and the
  budgets what they have left; the rest is booked to \`shortfall\`.

Of the rules of one outcome, the first that applies decides.

| Rule | Outcome | Charged | Why | Can a caller cause it on purpose, and what does it get for free? |
|---|---|---|---|---|
${lines.join('\n')}

| Outcome | Meaning |
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

const writers: Readonly<Record<string, () => string>> = {
  'guides/agents.md': writeAgents,
  'guides/libraries.md': writeLibraries,
  'reference/cli.md': writeCli,
  'reference/config-file.md': writeConfigFile,
  'reference/errors.md': writeErrors,
  'reference/failures.md': writeFailures,
  'reference/finish-reasons.md': writeFinishReasons,
  'reference/protocol-matrix.md': writeMatrix,
  'reference/request-bodies.md': writeRequestBodies,
  'reference/settings.md': writeSettings,
  'reference/weir.schema.json': writeConfigSchema,
  'reference/who-pays.md': writeWhoPays,
}

const root = join(docs, '..')
const files = {
  ...Object.fromEntries(Object.entries(writers).map(([name, write]) => [`docs/${name}`, write])),
  'console/generated/protocol-matrix.json': writeMatrixData,
}

export const generatedPages = Object.entries(files).map(([name, write]) => ({ name, path: join(root, name), write }))

if (import.meta.main) {
  for (const { path, write } of generatedPages) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, write())
  }
  const openApi = await writeOpenApi()
  writeFileSync(openApiPath, openApi)
  writeFileSync(consoleTypesPath, writeConsoleTypes(openApi))
  writeFileSync(roleMatrixPath, writeRoleMatrix())
}
