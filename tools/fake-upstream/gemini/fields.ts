// The field names that the Gemini API knows, object by object. All others are refused, as by the real API.

import { isRecord } from '../request.ts'
import { toCamel } from './request.ts'

/** The object type of a field, or null for a field whose content is not checked. */
type Rule = string | null
type Table = Readonly<Record<string, Readonly<Record<string, Rule>>>>

const plainFields = (names: string): Readonly<Record<string, Rule>> =>
  Object.fromEntries(names.split(' ').map(name => [name, null]))

const objects: Table = {
  Request: {
    ...plainFields('model cachedContent labels serviceTier store continuationToken'),
    contents: 'Content',
    systemInstruction: 'Content',
    tools: 'Tool',
    toolConfig: 'ToolConfig',
    safetySettings: 'SafetySetting',
    generationConfig: 'GenerationConfig',
  },
  Content: { ...plainFields('role'), parts: 'Part' },
  Part: {
    ...plainFields(
      'text thought thoughtSignature executableCode codeExecutionResult toolCall toolResponse videoMetadata',
    ),
    ...plainFields('mediaResolution partMetadata'),
    inlineData: 'Blob',
    fileData: 'FileData',
    functionCall: 'FunctionCall',
    functionResponse: 'FunctionResponse',
  },
  Blob: plainFields('mimeType data displayName'),
  FileData: plainFields('mimeType fileUri displayName'),
  FunctionCall: plainFields('id name args partialArgs willContinue'),
  FunctionResponse: { ...plainFields('id name response willContinue scheduling'), parts: 'Part' },
  Tool: {
    ...plainFields('googleSearch googleSearchRetrieval urlContext codeExecution googleMaps fileSearch computerUse'),
    ...plainFields('mcpServers enterpriseWebSearch retrieval'),
    functionDeclarations: 'FunctionDeclaration',
  },
  FunctionDeclaration: {
    ...plainFields('name description parametersJsonSchema responseJsonSchema behavior'),
    parameters: 'Schema',
    response: 'Schema',
  },
  Schema: {
    ...plainFields(
      'type format title description nullable enum required propertyOrdering minItems maxItems minProperties',
    ),
    ...plainFields('maxProperties minimum maximum minLength maxLength pattern default example'),
    items: 'Schema',
    anyOf: 'Schema',
    properties: 'map of Schema',
  },
  ToolConfig: {
    ...plainFields('retrievalConfig includeServerSideToolInvocations'),
    functionCallingConfig: 'FunctionCallingConfig',
  },
  FunctionCallingConfig: plainFields('mode allowedFunctionNames streamFunctionCallArguments'),
  SafetySetting: plainFields('category threshold method'),
  GenerationConfig: {
    ...plainFields(
      'temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty',
    ),
    ...plainFields(
      'seed responseMimeType responseJsonSchema responseLogprobs logprobs responseModalities mediaResolution',
    ),
    ...plainFields('speechConfig imageConfig audioTranscriptionConfig enableEnhancedCivicAnswers'),
    responseSchema: 'Schema',
    thinkingConfig: 'ThinkingConfig',
  },
  ThinkingConfig: plainFields('includeThoughts thinkingBudget thinkingLevel'),
}

/** No honest schema is deeper. */
const DEPTH_MAX = 64

/** The API's message about the first unknown name. */
export function findUnknownName(body: unknown): string | undefined {
  return findUnknown(body, { rule: 'Request', path: '', depth: 0 })
}

function findUnknown(value: unknown, at: { rule: string; path: string; depth: number }): string | undefined {
  const { rule, path, depth } = at
  if (depth > DEPTH_MAX) return `Invalid JSON payload received. The value at '${path}' is nested too deeply.`
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) {
      const found = findUnknown(entry, { rule, path: `${path}[${index}]`, depth: depth + 1 })
      if (found) return found
    }
    return undefined
  }
  if (!isRecord(value)) return undefined
  const ofMap = /^map of (\w+)$/.exec(rule)?.[1]
  for (const [name, entry] of Object.entries(value)) {
    const next = ofMap ?? objects[rule]![toCamel(name)]
    if (next === undefined) {
      return `Invalid JSON payload received. Unknown name "${name}" at '${path}': Cannot find field.`
    }
    const found =
      next === null ? undefined : findUnknown(entry, { rule: next, path: joinPath(path, name), depth: depth + 1 })
    if (found) return found
  }
  return undefined
}

const joinPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)
