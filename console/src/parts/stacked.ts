// The heights of lines that are drawn on top of each other.

type Values = readonly (number | null)[]

/** For each line the sum of its values and of those below it. Null only where no line has a value: there is a gap. */
export function stacked(lines: readonly Values[]): (number | null)[][] {
  const [first = []] = lines
  const isGap = first.map((_, index) => lines.every(values => values[index] == null))
  const sums = first.map(() => 0)
  return lines.map(values =>
    sums.map((below, index) => {
      sums[index] = below + (values[index] ?? 0)
      return isGap[index] ? null : sums[index]
    }),
  )
}
