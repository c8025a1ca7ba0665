// The dark modules of a QR code as one path: each run of a row is a rectangle of height 1.

export function qrPath(rows: readonly (readonly boolean[])[]): string {
  let path = ''
  for (const [y, row] of rows.entries()) {
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue
      const start = x
      while (row[x + 1]) x++
      const width = x - start + 1
      path += `M${start} ${y}h${width}v1h-${width}z`
    }
  }
  return path
}
