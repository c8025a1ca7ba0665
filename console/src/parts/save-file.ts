// Saves a text as a file of the viewer.

export function saveFile(name: string, text: string, type = 'text/plain'): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // Some browsers read the file only after this function has returned.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
