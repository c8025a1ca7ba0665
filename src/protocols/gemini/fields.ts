// Lists every field of Google's request and answer types, and whether a translation carries it.

import type { FieldTable } from '../request/fields.ts'

export const requestFields: FieldTable = {
  model: 'moot', // the path names the model
  contents: 'read',
  systemInstruction: 'read',
  tools: 'read',
  toolConfig: 'read',
  generationConfig: 'read',
  serviceTier: 'read',
  labels: 'read',
  safetySettings: { unless: [] }, // one of Google's SDKs sends an empty list with every call
  cachedContent: 'lost',
  continuationToken: 'lost',
  modelArmorConfig: 'lost',
  outputConfig: 'lost',
  store: 'lost',
}

export const configFields: FieldTable = {
  temperature: 'read',
  topP: 'read',
  topK: 'read',
  candidateCount: 'read',
  maxOutputTokens: 'read',
  stopSequences: 'read',
  presencePenalty: 'read',
  frequencyPenalty: 'read',
  seed: 'read',
  responseMimeType: 'read',
  responseSchema: 'read',
  responseJsonSchema: 'read',
  responseLogprobs: 'read',
  logprobs: 'read',
  responseModalities: 'read',
  mediaResolution: 'read',
  thinkingConfig: 'read',
  speechConfig: 'lost',
  imageConfig: 'lost',
  audioTimestamp: { unless: false },
  audioTranscriptionConfig: 'lost',
  enableAffectiveDialog: { unless: false },
  enableEnhancedCivicAnswers: { unless: false },
  modelConfig: 'moot', // refused, like the other two fields that choose a model
  modelSelectionConfig: 'moot',
  responseFormat: 'lost',
  routingConfig: 'moot',
  translationConfig: 'lost',
}

export const thinkingFields: FieldTable = {
  includeThoughts: 'read',
  thinkingBudget: 'read',
  thinkingLevel: 'read',
}

export const toolConfigFields: FieldTable = {
  functionCallingConfig: 'read',
  retrievalConfig: 'lost',
  includeServerSideToolInvocations: { unless: false },
}

export const functionCallingFields: FieldTable = {
  mode: 'read',
  allowedFunctionNames: 'read',
  streamFunctionCallArguments: 'moot', // changes only how arguments arrive
}

export const functionFields: FieldTable = {
  name: 'read',
  description: 'read',
  parameters: 'read',
  parametersJsonSchema: 'read',
  behavior: { unless: 'BLOCKING' },
  response: 'lost',
  responseJsonSchema: 'lost',
}

export const searchFields: FieldTable = {
  blockingConfidence: 'lost',
  excludeDomains: 'lost',
  searchTypes: 'lost',
  timeRangeFilter: 'lost',
  dynamicRetrievalConfig: 'lost',
}

/** Kinds of content; a part holds one of them. No other dialect knows the `native` kinds. */
export const partKinds = {
  text: 'read',
  inlineData: 'read',
  fileData: 'read',
  functionCall: 'read',
  functionResponse: 'read',
  executableCode: 'native',
  codeExecutionResult: 'native',
  toolCall: 'native',
  toolResponse: 'native',
  audioTranscription: 'native',
} as const

export type PartKind = keyof typeof partKinds

export const partFields: FieldTable = {
  text: 'read',
  inlineData: 'read',
  fileData: 'read',
  functionCall: 'read',
  functionResponse: 'read',
  executableCode: 'read',
  codeExecutionResult: 'read',
  toolCall: 'read',
  toolResponse: 'read',
  audioTranscription: 'read',
  thought: 'read',
  thoughtSignature: 'read',
  mediaResolution: 'read',
  videoMetadata: 'lost',
  partMetadata: 'lost',
  mediaProcessing: 'lost',
  speechMetadata: 'lost',
}

export const callFields: FieldTable = {
  id: 'read',
  name: 'read',
  args: 'read',
  partialArgs: 'lost',
  willContinue: { unless: false },
}

export const resultFields: FieldTable = {
  id: 'read',
  name: 'read',
  response: 'read',
  parts: 'read',
  scheduling: 'lost',
  willContinue: { unless: false },
}

export const contentFields: FieldTable = { role: 'read', parts: 'read' }

export const mediaFields: FieldTable = { mimeType: 'read', data: 'read', fileUri: 'read', displayName: 'read' }
