// Scripts of Redis are imported as text.

declare module '*.lua' {
  const text: string
  export = text
}
