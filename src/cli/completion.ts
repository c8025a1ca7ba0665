// weir completion: the script with which a shell completes the words of a weir command. It is generated from the table
// of commands and contains all words, because to start weir at each press of a key would be slow.

import type { CliCommand } from './commands/command.ts'
import { optionsOf } from './commands/command.ts'

type CommandTable = Readonly<Record<string, CliCommand>>

/**
 * The words that may follow. The name of a row is what stands before them: `keys` has the second words of commands,
 * `keys list --` the options of a command, `keys list --state` the values of an option, and `budgets set <2>` the
 * values of its second argument. A row without words: a value that only the user knows.
 */
type CompletionRows = ReadonlyMap<string, readonly string[]>

export function completionRows(commands: CommandTable): CompletionRows {
  const rows = new Map<string, readonly string[]>()
  const add = (name: string, words: readonly string[]): void =>
    void rows.set(name, [...new Set([...(rows.get(name) ?? []), ...words])])
  for (const [name, command] of Object.entries(commands)) {
    const [first, second] = name.split(' ') as [string, string | undefined]
    for (const before of ['', 'help']) add(before, [first])
    add(first, second === undefined ? [] : [second])
    add(name, [])
    const { values = {}, positionals = [] } = command
    const { texts, flags } = optionsOf(command)
    add(
      `${name} --`,
      [...texts, ...flags, 'help'].map(option => `--${option}`),
    )
    for (const option of texts) add(`${name} --${option}`, values[option] ?? [])
    positionals.forEach((place, at) => add(`${name} <${at + 1}>`, values[place.replace(/[?…]$/, '')] ?? []))
  }
  add('', ['help'])
  return rows
}

/** One branch for each row: a command that prints the words, one per line. */
const printWords = (words: readonly string[]): string =>
  words.length === 0 ? 'true' : `printf '%s\\n' ${words.join(' ')}`

/** Functions for bash and zsh. `_weir_next` gets the word at the cursor, then the words before it. */
const shFunctions = (rows: CompletionRows): string => `_weir_words() {
  case "$1" in
${[...rows].map(([name, words]) => `    '${name}') ${printWords(words)} ;;`).join('\n')}
    *) return 1 ;;
  esac
}

_weir_next() {
  local current="$1" name='' option='' count=0 word=''
  shift
  for word in "$@"; do
    if [ -z "$word" ]; then continue; fi
    if [ -n "$option" ]; then option=''; continue; fi
    case "$word" in
      --*)
        if _weir_words "$name $word" > /dev/null; then option="$word"; fi
        continue
        ;;
    esac
    if [ "$count" = 0 ] && _weir_words "\${name:+$name }$word" > /dev/null; then
      name="\${name:+$name }$word"
    else
      count=$((count + 1))
    fi
  done
  if [ -n "$option" ]; then _weir_words "$name $option"; return; fi
  if [ "$count" = 0 ]; then _weir_words "$name"; fi
  case "$current" in
    -*) _weir_words "$name --" ;;
    *) _weir_words "$name <$((count + 1))>" || _weir_words "$name --" ;;
  esac
}
`

const bashScript = (rows: CompletionRows): string => `${shFunctions(rows)}
_weir() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(compgen -W "$(_weir_next "$current" "\${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "$current"))
}
complete -o default -F _weir weir`

const zshScript = (rows: CompletionRows): string => `#compdef weir
${shFunctions(rows)}
_weir() {
  local -a next
  next=($(_weir_next "\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}"))
  if (( $#next )); then compadd -- $next; else _files; fi
}
if [ "\${funcstack[1]}" = _weir ]; then _weir "$@"; else compdef _weir weir; fi`

const fishScript = (rows: CompletionRows): string => `function __weir_words
  switch "$argv[1]"
${[...rows].map(([name, words]) => `    case '${name}'\n      ${printWords(words)}`).join('\n')}
    case '*'
      return 1
  end
end

function __weir_next
  set -l before (commandline -opc)
  set -e before[1]
  set -l name ''
  set -l option ''
  set -l count 0
  for word in $before
    set -l longer (string trim -- "$name $word")
    if test -n "$option"
      set option ''
    else if string match -q -- '--*' "$word"
      if __weir_words "$name $word" > /dev/null
        set option "$word"
      end
    else if test "$count" = 0; and __weir_words "$longer" > /dev/null
      set name "$longer"
    else
      set count (math $count + 1)
    end
  end
  if test -n "$option"
    __weir_words "$name $option"
    return
  end
  if test "$count" = 0
    __weir_words "$name"
  end
  set -l place "$name <"(math $count + 1)">"
  if string match -q -- '-*' (commandline -ct); or not __weir_words "$place"
    __weir_words "$name --"
  end
end

complete -c weir -n '__weir_next | string length -q' -f -a '(__weir_next)'`

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }

export const shells: readonly string[] = Object.keys(scripts)

export const completionScript = (shell: string, commands: CommandTable): string =>
  scripts[shell as keyof typeof scripts](completionRows(commands))
