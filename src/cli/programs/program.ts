// What `weir connect` knows about a program: the files and variables that point it at the gateway.

/** What the set-up of a program is made from. */
export interface GatewayAccess {
  /** Of the gateway, without a path. */
  readonly url: string
  readonly key: string
  readonly model: string
}

export type FileFormat = 'json' | 'yaml' | 'toml' | 'env'

export type FileFields = { readonly [name: string]: FileValue }
export type FileValue = string | number | boolean | FileFields | readonly FileFields[]

/** A configuration file of a program, and the fields of it that are set. All other fields of the file are kept. */
export interface ProgramFile {
  /** A variable that moves the folder, and the folder below the home folder without that variable. */
  readonly folder: readonly [variable: string, otherwise: string]
  /** Below the folder. If none of these files exists, the first one is created. */
  readonly names: readonly [string, ...string[]]
  readonly format: FileFormat
  readonly fields: FileFields
  /** A new file needs these fields, too; an existing file keeps its own. */
  readonly fieldsOfNewFile?: FileFields
  /** Fields with which the program does not use the set-up. The user gets a warning. */
  readonly overriding?: readonly { readonly path: readonly string[]; readonly effect: string }[]
  /** A file in the same folder that the program no longer reads once this one exists, and what to do about it. */
  readonly hides?: { readonly name: string; readonly remedy: string }
}

export interface ProgramCode {
  readonly language: 'python' | 'javascript'
  /** What to install first. */
  readonly install: string
  readonly text: string
}

/** How a program is pointed at the gateway. It has at least one of these. */
export interface SetUp {
  readonly files?: readonly ProgramFile[]
  /** Variables for the shell that starts the program. */
  readonly variables?: Readonly<Record<string, string>>
  /** What to enter in the windows of the program. */
  readonly steps?: readonly string[]
  /** Commands that set the program up. */
  readonly commands?: readonly string[]
  readonly code?: readonly ProgramCode[]
  /** The command that starts the program afterwards. */
  readonly start?: string
}

export interface Program {
  readonly title: string
  /** What the program is, in a few words. */
  readonly about: string
  readonly kind: 'agent' | 'editor' | 'library'
  /** The dialect in which the program speaks to the gateway. */
  readonly speaks: 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'gemini'
  /** Other names that people type. */
  readonly aliases?: readonly string[]
  /** The model if the user names none. */
  readonly model: string
  /** `namesModel`: the user has named the model, so it exists already. */
  readonly setUp: (connection: GatewayAccess, namesModel?: boolean) => SetUp
  /** What else the user must know, a sentence or two each. */
  readonly notes?: readonly string[]
}
