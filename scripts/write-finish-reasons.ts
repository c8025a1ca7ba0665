// docs/reference/finish-reasons.md, from the table in src/protocols/neutral/finish-reasons.ts.

import type { Finish } from '../src/protocols/neutral/answer.ts'
import type { CallerDialect, FinishReasonField, FinishReasonRow } from '../src/protocols/neutral/finish-reasons.ts'
import { finishReasonRows, writtenReasons } from '../src/protocols/neutral/finish-reasons.ts'

const callers: readonly CallerDialect[] = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini']

const fieldNames: Readonly<Record<FinishReasonField, string>> = {
  'openai-chat': 'OpenAI chat, Ark and compatible vendors: `choices[].finish_reason`',
  'anthropic-messages': 'Anthropic Messages: `stop_reason`',
  'gemini': 'Gemini: `candidates[].finishReason`',
  'gemini-block': 'Gemini: `promptFeedback.blockReason`',
  'openai-responses': 'OpenAI Responses: `status`, and after the slash `incomplete_details.reason`',
}

const meanings: Readonly<Record<Finish, string>> = {
  stop: 'the model was done',
  stop_sequence: 'the model wrote a stop sequence',
  length: 'the cap on output was reached',
  context: 'the context window of the model was full',
  calls: 'the model waits for the results of tools',
  filtered: 'the model or its provider refused',
  paused: 'the model paused and wants to be called again',
  malformed: 'the model wrote a tool call that is none, or too many',
  failed: 'the upstream failed in the middle of its answer',
  other: 'an abnormal end: unknown, or no reason given',
}

function written(caller: CallerDialect, finish: Finish): string {
  if (finish === 'failed') return 'error'
  const { reason, isExact } = writtenReasons[caller][finish]
  return `\`${reason}\`${isExact ? '' : ', loss'}`
}

const meaningRow = (finish: Finish): string =>
  `| ${finish} | ${meanings[finish]} | ${callers.map(caller => written(caller, finish)).join(' | ')} |`

const reasonRow = ({ reason, finish, vendors }: FinishReasonRow): string =>
  `| \`${reason}\` | ${vendors ?? ''} | ${finish} |`

export function writeFinishReasons(): string {
  const tables = Object.entries(fieldNames).map(([field, name]) => {
    const rows = finishReasonRows.filter(row => row.field === field).map(reasonRow)
    return `### ${name}\n\n| Reason | Sent by, beside the maker | Means |\n|---|---|---|\n${rows.join('\n')}\n`
  })
  return `# Why an answer ended

From the one table in \`src/protocols/neutral/finish-reasons.ts\` (this page is generated: \`npm run docs\`). A test
sends every reason through a gateway to callers of every dialect, plain and streamed.

Where the upstream speaks the caller's dialect, its reason passes as it is. Where it does not, the reason is
read as one of the meanings below and written as the caller's dialect says it. *Loss* means that the dialect has
no word for it: the caller gets the nearest one, and the upstream's own reason is listed as
\`finish_reason.<reason>\` in \`X-Weir-Loss\` and in the record. A stream's head has left by then: its
record lists the loss and, with \`X-Weir-Comments: on\`, a comment before its last event (\`: X-Weir-Loss …\`).

**An answer that was cut never looks whole.** A reason that is not listed here, or that is missing, means
*other*, and *other* is a good end in no dialect: callers take such an answer for cut, and neither for whole nor
for forbidden. That holds for its tool calls, too: the last one may be cut. A Responses caller always gets a
reason with \`incomplete\`, because clients read \`incomplete\` without one as a good end. After \`pause_turn\`
a caller of another dialect cannot continue the provider's own tools where they stopped, so its answer is
incomplete. An answer without any content that ended *malformed* or *other* is no answer: another channel is
tried, and if none is left the caller gets a 502.

**An upstream that failed in the middle** has failed, although its status was 200. Before any content, another
channel is tried, or the caller gets a 502. After content, a caller of another dialect gets an error event; a
caller of the upstream's own dialect gets the bytes as they came. Either way the call ends as
\`upstream_failed\`: [it is billed](who-pays.md) and the channel's health is counted as such. The same holds for
\`choices[].error\`, \`x_groq.error\` and a \`base_resp\` whose status is not 0.

Names are compared without case, and what stands behind a colon is ignored (\`content_filter: RECITATION\`). The
reasons of chat are known in all dialects, because relays mix them up.

| Meaning | | OpenAI chat, Ark | OpenAI Responses | Anthropic | Gemini |
|---|---|---|---|---|---|
${(Object.keys(meanings) as Finish[]).map(meaningRow).join('\n')}

## Reasons

${tables.join('\n')}`
}
