// Reads a request into the neutral conversation.

import type { Call } from '../neutral/call.ts'
import type { Conversation, GenerationSettings, OutputFormat } from '../neutral/conversation.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCaseFields } from './field-names.ts'
import { configFields, requestFields, thinkingFields } from './fields.ts'
import { asList } from './input.ts'
import { ContentsReader, readDetail } from './read-contents.ts'
import { readToolChoice, readTools } from './read-tools.ts'
import { fromOpenApiSchema } from './schema.ts'
import { readThinking } from './thinking.ts'

const CONFIG = 'generationConfig'

export function readConversation(call: Call): Conversation {
  const json = toCamelCaseFields(call.json)
  const config = toCamelCaseFields(readOptional(json, CONFIG, 'object') ?? {}, CONFIG)
  const detail = readDetail(config.mediaResolution)
  const reader = new ContentsReader(detail, call.recall)
  if (detail === undefined && config.mediaResolution) reader.lostFields.add('generationConfig.mediaResolution')
  const { lostFields } = reader
  for (const field of findLostFields(json, requestFields)) lostFields.add(field)
  for (const field of findLostFields(config, configFields, CONFIG)) lostFields.add(field)
  const system = reader.readSystem(json.systemInstruction)
  const turns = reader.readContents(asList(json.contents))
  if (turns.length === 0) throw invalid('contents', 'must have at least one part')
  const tools = readTools(json.tools, lostFields)
  const toolChoice = readToolChoice(json.toolConfig, lostFields)
  const format = readFormat(config, lostFields)
  const thinking = toCamelCaseFields(readOptional(config, 'thinkingConfig', 'object') ?? {}, `${CONFIG}.thinkingConfig`)
  for (const field of findLostFields(thinking, thinkingFields, `${CONFIG}.thinkingConfig`)) lostFields.add(field)
  const reasoning = readThinking(thinking)
  noteModalities(config, lostFields)
  const settings = { ...readSettings(config), ...readExtras(json), stream: call.stream }
  return {
    messages: system === undefined ? turns : [system, ...turns],
    tools,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(format !== undefined && { format }),
    ...(reasoning !== undefined && { reasoning }),
    settings,
    lostFields: [...lostFields],
  }
}

function readSettings(config: Json): Omit<GenerationSettings, 'stream'> {
  const stop = asList(config.stopSequences)
  if (stop.some(text => typeof text !== 'string')) throw invalid(`${CONFIG}.stopSequences`, 'must be a list of strings')
  const wantsLogprobs = readOptional(config, 'responseLogprobs', 'boolean') === true
  const settings = {
    outputTokensMax: readOptional(config, 'maxOutputTokens', 'count'),
    choices: readOptional(config, 'candidateCount', 'choices'),
    temperature: readOptional(config, 'temperature', 'number'),
    topP: readOptional(config, 'topP', 'number'),
    topK: readOptional(config, 'topK', 'number'),
    seed: readOptional(config, 'seed', 'number'),
    frequencyPenalty: readOptional(config, 'frequencyPenalty', 'number'),
    presencePenalty: readOptional(config, 'presencePenalty', 'number'),
    stop: stop.length === 0 ? undefined : (stop as readonly string[]),
    logprobs: wantsLogprobs ? (readOptional(config, 'logprobs', 'number') ?? 0) : undefined,
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

function readExtras(json: Json): Omit<GenerationSettings, 'stream'> {
  const tier = readOptional(json, 'serviceTier', 'word')
    ?.toLowerCase()
    .replace(/^service_tier_/, '')
  const labels = readOptional(json, 'labels', 'object') ?? {}
  const labelTexts = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return {
    ...(tier !== undefined && tier !== 'unspecified' && { serviceClass: tier === 'standard' ? 'default' : tier }),
    ...(labelTexts.length > 0 && { metadata: Object.fromEntries(labelTexts) }),
  }
}

function readFormat(config: Json, unread: Set<string>): OutputFormat | undefined {
  const mime = readOptional(config, 'responseMimeType', 'text')
  const [own, subset] = [config.responseJsonSchema ?? undefined, readOptional(config, 'responseSchema', 'object')]
  const schema = own ?? (subset === undefined ? undefined : fromOpenApiSchema(subset))
  if (mime === undefined || mime === '' || mime === 'text/plain') {
    if (schema !== undefined) unread.add(`${CONFIG}.responseSchema`)
    return undefined
  }
  if (mime !== 'application/json') {
    unread.add(`${CONFIG}.responseMimeType`)
    return undefined
  }
  if (schema === undefined) return { kind: 'json' }
  if (!isObject(schema)) throw invalid(`${CONFIG}.responseJsonSchema`, 'must be a JSON schema')
  return { kind: 'schema', schema, strict: true }
}

/** Other dialects answer in text only, so all other modalities are lost. */
function noteModalities(config: Json, unread: Set<string>): void {
  const others = asList(config.responseModalities).filter(modality => modality !== 'TEXT')
  if (others.length > 0) unread.add(`${CONFIG}.responseModalities`)
}
