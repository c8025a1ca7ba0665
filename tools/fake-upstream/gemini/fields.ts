// The names that the Gemini API knows, object by object. Any other is refused, as the real one does.

import { isRecord } from '../request.ts'
import { toCamel } from './request.ts'

/** Of what a field is made: another object of the table, or something that is not looked into. */
type Rule = string | null
type Table = Readonly<Record<string, Readonly<Record<string, Rule>>>>

const leaves = (names: string): Readonly<Record<string, Rule>> =>
  Object.fromEntries(names.split(' ').map(name => [name, null]))

const objects: Table = {
  Request: {
    ...leaves('model cachedContent labels serviceTier store continuationToken'),
    contents: 'Content',
    systemInstruction: 'Content',
    tools: 'Tool',
    toolConfig: 'ToolConfig',
    safetySettings: 'SafetySetting',
    generationConfig: 'GenerationConfig',
  },
  Content: { ...leaves('role'), parts: 'Part' },
  Part: {
    ...leaves('text thought thoughtSignature executableCode codeExecutionResult toolCall toolResponse videoMetadata'),
    ...leaves('mediaResolution partMetadata'),
    inlineData: 'Blob',
    fileData: 'FileData',
    functionCall: 'FunctionCall',
    functionResponse: 'FunctionResponse',
  },
  Blob: leaves('mimeType data displayName'),
  FileData: leaves('mimeType fileUri displayName'),
  FunctionCall: leaves('id name args partialArgs willContinue'),
  FunctionResponse: { ...leaves('id name response willContinue scheduling'), parts: 'Part' },
  Tool: {
    ...leaves('googleSearch googleSearchRetrieval urlContext codeExecution googleMaps fileSearch computerUse'),
    ...leaves('mcpServers enterpriseWebSearch retrieval'),
    functionDeclarations: 'FunctionDeclaration',
  },
  FunctionDeclaration: {
    ...leaves('name description parametersJsonSchema responseJsonSchema behavior'),
    parameters: 'Schema',
    response: 'Schema',
  },
  Schema: {
    ...leaves('type format title description nullable enum required propertyOrdering minItems maxItems minProperties'),
    ...leaves('maxProperties minimum maximum minLength maxLength pattern default example'),
    items: 'Schema',
    anyOf: 'Schema',
    properties: 'map of Schema',
  },
  ToolConfig: {
    ...leaves('retrievalConfig includeServerSideToolInvocations'),
    functionCallingConfig: 'FunctionCallingConfig',
  },
  FunctionCallingConfig: leaves('mode allowedFunctionNames streamFunctionCallArguments'),
  SafetySetting: leaves('category threshold method'),
  GenerationConfig: {
    ...leaves('temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty'),
    ...leaves('seed responseMimeType responseJsonSchema responseLogprobs logprobs responseModalities mediaResolution'),
    ...leaves('speechConfig imageConfig audioTranscriptionConfig enableEnhancedCivicAnswers'),
    responseSchema: 'Schema',
    thinkingConfig: 'ThinkingConfig',
  },
  ThinkingConfig: leaves('includeThoughts thinkingBudget thinkingLevel'),
}

/** Deeper schemas exist only to hurt. */
const depthMax = 64

/** What the API would say of the first name that it does not know. */
export function findUnknownName(body: unknown): string | undefined {
  return look(body, { rule: 'Request', path: '', depth: 0 })
}

function look(value: unknown, at: { rule: string; path: string; depth: number }): string | undefined {
  const { rule, path, depth } = at
  if (depth > depthMax) return `Invalid JSON payload received. The value at '${path}' is nested too deeply.`
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) {
      const found = look(entry, { rule, path: `${path}[${index}]`, depth: depth + 1 })
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
    const found = next === null ? undefined : look(entry, { rule: next, path: step(path, name), depth: depth + 1 })
    if (found) return found
  }
  return undefined
}

const step = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)
