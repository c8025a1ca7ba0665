// Sets theme and language before the first paint, by what src/preferences.ts has stored. It is a file of its own, because
// the page allows no inline script.
try {
  const { theme, language } = JSON.parse(localStorage.getItem('weir-preferences') ?? '{}')
  const isDark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
  if (language === 'zh') document.documentElement.lang = 'zh-CN'
} catch {
  // Storage may be blocked; src/preferences.ts sets what it can.
}
