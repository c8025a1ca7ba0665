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
  malformed: 'the model wrote an invalid tool call, or too many',
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
    return `### ${name}\n\n| Reason | Also sent by | Meaning |\n|---|---|---|\n${rows.join('\n')}\n`
  })
  return `# Finish reasons

How Weir reads and writes the reason why an answer ended, in every dialect. This page is generated from the table in
\`src/protocols/neutral/finish-reasons.ts\` (\`npm run docs\`); a test sends every reason through a gateway to callers of every
dialect, plain and streamed.

If the upstream speaks the caller's dialect, its reason passes unchanged. Otherwise the reason is read as one of the meanings
below and written in the caller's dialect. *Loss* means that the dialect has no word for it: the caller gets the nearest one,
and the upstream's reason is listed as \`finish_reason.<reason>\` in \`X-Weir-Loss\` and in the record. For a stream, whose
head has left by then, the record lists it, and with \`X-Weir-Comments: on\` a comment before the last event. Callers of
Gemini get it without asking, in \`finishMessage\` of the last event.

- **An answer that was cut off never looks complete.** A missing or unlisted reason means *other*, which no dialect writes as
  a normal end. A Responses caller always gets a reason with \`incomplete\`, because clients take \`incomplete\` without one for
  a normal end. After \`pause_turn\` a caller of another dialect cannot continue the provider's tools, so its answer is
  incomplete.
- **A tool call that was cut off cannot be run.** After *length*, *context*, *filtered*, *malformed* and *failed* the last call
  of an answer may be incomplete. If it is, a caller of another dialect gets it with arguments that are not valid JSON, or
  does not get it. A missing or unlisted reason does not say that the model was stopped: a call without arguments is
  complete then.
- **A tool call that the caller does not get** is a loss, and the answer does not look complete: if no other call is left, it
  ends as *other*. Some vendors give the reason \`tool_calls\` without any call; then the text is the answer (*stop*), and the
  reason is listed as a loss.
- **An answer without content** is passed on if the upstream reports usage for it, also if it ended *malformed* or *other*: the
  provider bills it, and another attempt would cost the same again. The caller gets an empty answer with the reason of the
  table below ([who pays](who-pays.md)). Without usage, *malformed* and *other* are failures of the upstream: another channel
  is tried, and if none is left the caller gets a 502.
- **An upstream that fails in the middle** has failed, although its status was 200. Before content, another channel is tried,
  or the caller gets a 502. After content, a caller of another dialect gets an error event, and a caller of the same dialect
  gets the bytes as they came. The outcome is \`upstream_failed\` ([who pays](who-pays.md)). The same applies to
  \`choices[].error\`, \`x_groq.error\` and a \`base_resp\` whose status is not 0.

Case is ignored, and so is everything after a colon (\`content_filter: RECITATION\`). The reasons of chat are known in all
dialects, because relays mix them up.

| Meaning | | OpenAI chat, Ark | OpenAI Responses | Anthropic | Gemini |
|---|---|---|---|---|---|
${(Object.keys(meanings) as Finish[]).map(meaningRow).join('\n')}

## Reasons

${tables.join('\n')}`
}
