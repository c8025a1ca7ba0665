import { expect, test } from 'bun:test'
import { editFile } from './edit-file.ts'
import type { FileFields, FileFormat, ProgramFile } from './program.ts'
import { programs } from './programs.ts'

const fileOf = (format: FileFormat, fields: FileFields): ProgramFile => ({
  folder: ['', ''],
  names: ['settings'],
  format,
  fields,
})

const edited = (format: FileFormat, text: string, fields: FileFields): string =>
  editFile(fileOf(format, fields), text, 'settings').text

const kept: readonly (readonly [string, FileFormat, string, FileFields, string])[] = [
  [
    'comments, order and a trailing comma of JSON',
    'json',
    '// mine\n{\n  "theme": "dark", // at night\n  "env": {\n    "A": "1"\n  }, // two\n}\n',
    { env: { A: '2', B: '3' }, model: 'm' },
    '// mine\n{\n  "theme": "dark", // at night\n  "env": {\n    "A": "2",\n    "B": "3"\n  }, // two\n  "model": "m"\n}\n',
  ],
  [
    'a comment behind the last field of JSON',
    'json',
    '{\n  "a": 1 // one\n}\n',
    { b: 2 },
    '{\n  "a": 1, // one\n  "b": 2\n}\n',
  ],
  ['JSON in one line', 'json', '{"a":{"b":1}}', { a: { c: 'x' }, d: true }, '{"a":{"b":1, "c": "x"}, "d": true}'],
  ['empty objects', 'json', '{ "a": {} }', { a: { b: 'x' } }, '{ "a": {\n  "b": "x"\n} }'],
  [
    'other entries of a list',
    'json',
    '{\n  "models": [\n    { "name": "a" }, /* first */\n    { "name": "b", "max": 1 }\n  ]\n}\n',
    { models: [{ name: 'b', max: 2 }, { name: 'c' }] },
    '{\n  "models": [\n    { "name": "a" }, /* first */\n    { "name": "b", "max": 2 },\n    {\n      "name": "c"\n    }\n  ]\n}\n',
  ],
  ['of two fields with one name, the one that counts', 'json', '{"a": 1, "a": 2}', { a: 3 }, '{"a": 1, "a": 3}'],
  [
    'comments and entries of YAML',
    'yaml',
    '# mine\nname: Mine # yes\nmodels:\n  # first\n  - name: a\n    model: x\n',
    { models: [{ name: 'Weir', model: 'm' }] },
    '# mine\nname: Mine # yes\nmodels:\n  # first\n  - name: a\n    model: x\n  - name: Weir\n    model: m\n',
  ],
  [
    'comments and tables of TOML',
    'toml',
    '# mine\nmodel = "old" # note\n\n[tools]\nx = 1\n\n[providers.weir]\nname = "Old"\n\n[z]\ny = 2\n',
    { model: 'm', kind: 'k', providers: { weir: { name: 'Weir', url: 'u' } } },
    '# mine\nmodel = "m" # note\nkind = "k"\n\n[tools]\nx = 1\n\n[providers.weir]\nname = "Weir"\nurl = "u"\n\n[z]\ny = 2\n',
  ],
  ['TOML that begins with a table', 'toml', '[a]\nx = 1\n', { model: 'm' }, 'model = "m"\n\n[a]\nx = 1\n'],
  [
    'the comment above a table of TOML',
    'toml',
    '[a]\nx = 1\n\n# about b\n[b]\ny = 2',
    { a: { z: 'q' }, b: { y: 'r' } },
    '[a]\nx = 1\nz = "q"\n\n# about b\n[b]\ny = "r"',
  ],
  [
    'other variables',
    'env',
    '# mine\nexport A="1" # one\nB=2\n',
    { A: '3', C: '4' },
    '# mine\nexport A=3 # one\nB=2\nC=4\n',
  ],
  ['a line of a value of several lines', 'env', 'PEM="BEGIN\nA=1\nEND"\n', { A: '2' }, 'PEM="BEGIN\nA=1\nEND"\nA=2\n'],
  ['no old value of a variable', 'env', 'A=1\nB=2\nA=3\n', { A: '4' }, 'A=4\nB=2\nA=4\n'],
  [
    'the text of numbers in YAML',
    'yaml',
    'a: 12345678901234567890\nb: 010\nc: 1.23456789012345678901\nd: 0x1F\nmodel:   x   # mine\ne: +5',
    { model: 'y', z: 'w' },
    'a: 12345678901234567890\nb: 010\nc: 1.23456789012345678901\nd: 0x1F\nmodel:   y   # mine\ne: +5\nz: w\n',
  ],
  [
    'indentation, folded texts, lists in one line and comments of YAML',
    'yaml',
    '# top\n\nlist: [a,   b]\nfold: >\n    abc\n    def\n\nmodels:\n    - name:  Weir\n      model:\n    # next\n\n# end\n',
    { models: [{ name: 'Weir', model: 'm', url: 'u' }, { name: 'b' }] },
    '# top\n\nlist: [a,   b]\nfold: >\n    abc\n    def\n\nmodels:\n    - name:  Weir\n      model: m\n      url: u\n    - name: b\n    # next\n\n# end\n',
  ],
  [
    'YAML in one line',
    'yaml',
    '{model: a, x: [1,2], models: []}\n',
    { model: 'b', z: 'c', models: [{ name: 'n' }] },
    '{model: b, x: [1,2], models: [{"name":"n"}], "z": "c"}\n',
  ],
  [
    'a comment and the lack of fields in YAML',
    'yaml',
    '# model: x',
    { models: [{ name: 'n' }], a: { b: 'c' } },
    '# model: x\nmodels:\n  - name: n\na:\n  b: c\n',
  ],
]

test.each(kept.map(row => [...row]))('editing keeps %s', (_what, format, text, fields, wanted) => {
  const result = edited(format, text, fields)
  expect(result).toBe(wanted)
  expect(edited(format, result, fields)).toBe(result)
})

// Without a line break, there is nothing that tells how lines end.
const withLines = kept.filter(([, , text]) => text.includes('\n')).map(row => [...row] as const)

test.each(withLines)('editing with CR LF and a byte order mark keeps %s', (_what, format, text, fields, wanted) => {
  const windows = (lines: string): string => `\ufeff${lines.replaceAll('\n', '\r\n')}`
  expect(edited(format, windows(text), fields)).toBe(windows(wanted))
})

test('a file that has the fields already is unchanged to the byte', () => {
  const text = '{"b": 1,\n\n\t"a" :{ "x": "y"}}'
  const { text: result, changes } = editFile(fileOf('json', { a: { x: 'y' } }), text, 'settings')
  expect([result, changes]).toEqual([text, []])
})

test.each([
  ['json', '{"a": ', 'cannot be read'],
  ['json', '[1]', 'must have fields with names'],
  ['json', '{"a": "text"}', 'a in settings must be an object'],
  ['json', '{"list": {}}', 'list in settings must be a list'],
  ['yaml', 'a: [1', 'cannot be read'],
  ['yaml', 'just text', 'must have fields with names'],
  ['toml', 'a = ', 'cannot be read'],
  // The second line looks like a table and is not one: a line inside of a text must not be changed.
  ['toml', 'text = """\n[a]\nb = 1\n"""\n', 'cannot be changed without risk'],
  ['toml', 'a.b = """\n"""\n', 'cannot be changed without risk'],
  ['yaml', 'x: &x\n  c: 1\na: *x\n', 'cannot be changed without risk'],
  ['yaml', 'a:\n  b: |\n    text\n', 'cannot be changed without risk'],
  ['env', 'C="open\n', 'cannot be changed without risk'],
  // A table in one line cannot get a second place.
  ['toml', 'a = { c = 1 }\n', 'cannot be changed without risk'],
] as const)('a file of %s that cannot be edited is refused: %s', (format, text, message) => {
  const fields = { a: { b: 'x' }, ...(text.includes('list') && { list: [{ name: 'x' }] }) }
  expect(() => edited(format, text, text.includes('list') ? { list: [{ name: 'x' }] } : fields)).toThrow(message)
})

const connection = { url: 'http://127.0.0.1:8080', key: 'wk-0123456789', model: 'p/m.1:x@y' }
const files = Object.entries(programs).flatMap(([id, { setUp }]) =>
  (setUp(connection).files ?? []).map(file => [`${id} ${file.names[0]}`, file] as const),
)

test.each(files)('%s can be created, and changes nothing the second time', (_name, file) => {
  const { text, changes } = editFile(file, undefined, 'settings')
  expect(changes.length).toBeGreaterThan(0)
  expect(editFile(file, text, 'settings')).toEqual({ text, changes: [] })
})
