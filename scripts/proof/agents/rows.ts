// The programs that agents.ts runs: their packages and their commands. `weir connect` sets them up.

import type { ProgramCode } from '../../../src/cli/programs/program.ts'
import { programs } from '../../../src/cli/programs/programs.ts'

export interface Trial {
  /** The id of the program in `src/cli/programs/programs.ts`. */
  readonly program: string
  readonly from: 'npm' | 'pip'
  /** The package that is the program, its version, and what else must be installed. */
  readonly package: string
  readonly version: string
  readonly others?: readonly string[]
  /** For a library: which of its examples is run. */
  readonly code?: ProgramCode['language']
  /** The program and its arguments, below `node_modules` or the folder of Python's programs. */
  readonly command?: (prompt: string) => readonly string[]
  /** Settings that only isolate a run: no updates, no sandbox, no questions. */
  readonly env?: Readonly<Record<string, string>>
}

const platform = `${process.platform}-${process.arch}`

/** Platform packages have the binary, so that no install script must run. */
export const trials: readonly Trial[] = [
  {
    program: 'claude-code',
    from: 'npm',
    package: '@anthropic-ai/claude-code',
    version: '2.1.325',
    command: prompt => [
      `@anthropic-ai/claude-code-${platform}/claude`,
      ...['-p', prompt, '--permission-mode', 'acceptEdits', '--allowedTools', 'Bash,Edit,Read'],
    ],
    env: { DISABLE_AUTOUPDATER: '1' },
  },
  {
    program: 'codex',
    from: 'npm',
    package: '@openai/codex',
    version: '0.166.0',
    command: prompt => [
      '@openai/codex/bin/codex.js',
      ...['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    ],
  },
  {
    program: 'gemini-cli',
    from: 'npm',
    package: '@google/gemini-cli',
    version: '0.61.0',
    command: prompt => ['.bin/gemini', '--approval-mode', 'yolo', '--skip-trust', '--prompt', prompt],
  },
  {
    program: 'opencode',
    from: 'npm',
    package: 'opencode-ai',
    version: '1.18.33',
    command: prompt => [`opencode-${platform}/bin/opencode`, 'run', prompt],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
  },
  {
    program: 'cline',
    from: 'npm',
    package: 'cline',
    version: '3.0.65',
    command: prompt => ['.bin/cline', prompt],
  },
  {
    program: 'continue',
    from: 'npm',
    package: '@continuedev/cli',
    version: '1.5.47',
    command: prompt => ['.bin/cn', '-p', prompt, '--auto'],
  },
  {
    program: 'aider',
    from: 'pip',
    package: 'aider-chat',
    version: '0.86.2',
    command: prompt => [
      'aider',
      ...['--message', prompt, '--yes-always', '--no-git', '--no-check-update', '--analytics-disable', 'notes.txt'],
    ],
  },
  {
    program: 'langchain',
    from: 'pip',
    package: 'langchain',
    version: '1.4.7',
    others: ['langchain-openai==1.7.3'],
    code: 'python',
  },
  {
    program: 'langchain',
    from: 'npm',
    package: 'langchain',
    version: '1.5.14',
    others: ['@langchain/openai@1.6.0', 'zod@4'],
    code: 'javascript',
  },
  {
    program: 'llamaindex',
    from: 'pip',
    package: 'llama-index-core',
    version: '0.14.25',
    others: ['llama-index-llms-openai-like==0.8.1'],
    code: 'python',
  },
  {
    program: 'llamaindex',
    from: 'npm',
    package: 'llamaindex',
    version: '0.12.1',
    others: ['@llamaindex/openai@0.4.23', '@llamaindex/workflow', 'zod@4'],
    code: 'javascript',
  },
  {
    program: 'ai-sdk',
    from: 'npm',
    package: 'ai',
    version: '7.0.169',
    others: ['@ai-sdk/openai-compatible@3.0.90', 'zod@4'],
    code: 'javascript',
  },
  {
    program: 'litellm',
    from: 'pip',
    package: 'litellm',
    version: '1.106.2',
    others: ['mcp'],
    code: 'python',
  },
]

/** For example `Codex 0.166.0` or `LangChain 1.4.7 (Python)`. */
export const nameOfTrial = ({ program, version, code }: Trial): string => {
  const language = code === 'python' ? ' (Python)' : code === 'javascript' ? ' (JavaScript)' : ''
  return `${programs[program]!.title} ${version}${language}`
}
