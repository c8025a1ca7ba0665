// The style sheet of the page: small, with a light and a dark theme, for wide and narrow screens.

export const style = `
:root{--ink:#1b2733;--soft:#5b6b7a;--line:#dfe6ec;--page:#fff;--well:#f5f8fa;--deep:#0b5d7a;--accent:#0a7ea4;
--get:#0a7f5a;--post:#0a6ebd;--put:#8a5a00;--patch:#8a5a00;--delete:#b3261e;--code:#f0f4f7;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#dbe4ec;--soft:#91a3b3;--line:#263542;--page:#0f171e;--well:#141f28;
--deep:#7cc7e8;--accent:#5ab6dc;--get:#4cc38a;--post:#6cb6ff;--put:#e0a458;--patch:#e0a458;--delete:#ff8d85;
--code:#1a2732}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.6 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Inter","Noto Sans",sans-serif}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.875em}
code{background:var(--code);border-radius:.3em;padding:.1em .35em;overflow-wrap:anywhere}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}a code{color:inherit}
p{margin:.5rem 0}small{color:var(--soft);font-weight:400;font-size:.8em}
.frame{display:grid;grid-template-columns:15rem minmax(0,1fr);max-width:82rem;margin:0 auto}
nav{position:sticky;top:0;align-self:start;height:100vh;overflow-y:auto;padding:1.75rem 1rem 2rem 1.5rem;
font-size:.9rem;
border-right:1px solid var(--line)}
nav .brand{display:flex;align-items:center;gap:.6rem;font-weight:650;font-size:1.15rem;color:var(--ink);
margin-bottom:1.25rem}
nav .brand svg{width:1.7rem;height:1.7rem;color:var(--accent)}
nav h3{font-size:.72rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:1.25rem 0 .3rem;
font-weight:600}
nav ul{list-style:none;margin:0;padding:0}nav li a{display:flex;justify-content:space-between;padding:.16rem .5rem;
margin-left:-.5rem;border-radius:.4rem;color:var(--ink)}nav li a:hover{background:var(--well);text-decoration:none}
nav li small{font-variant-numeric:tabular-nums}
main{padding:2.25rem 2.5rem 6rem;min-width:0}
h1{font-size:2rem;line-height:1.2;letter-spacing:-.02em;margin:0 0 .75rem}h1 small{font-size:.9rem;margin-left:.5rem}
.intro{max-width:44rem;color:var(--soft)}.intro code{color:var(--ink)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:.9rem;margin:1.75rem 0 .5rem}
.cards div{border:1px solid var(--line);border-radius:.75rem;padding:.9rem 1.1rem;background:var(--well)}
.cards h2{font-size:.95rem;margin:0}.cards p{font-size:.875rem;color:var(--soft);margin:.3rem 0 0}
section{margin-top:2.75rem}section>h2{font-size:1.3rem;letter-spacing:-.01em;margin:0}
section>p{color:var(--soft);margin:.2rem 0 .9rem;max-width:44rem}
.op{border:1px solid var(--line);border-radius:.65rem;margin:.45rem 0;background:var(--page);overflow:hidden}
.op[open]{box-shadow:0 1px 12px rgb(10 60 90/.07)}
.op:target{border-color:var(--accent)}
.op>summary{display:grid;grid-template-columns:4.2rem minmax(0,auto) 1fr;gap:.75rem;align-items:baseline;
padding:.55rem .9rem;
cursor:pointer;list-style:none}.op>summary::-webkit-details-marker{display:none}
.op>summary:hover,.op[open]>summary{background:var(--well)}
.op>summary:focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
.op>summary code{background:none;padding:0;font-weight:550}.op>summary i{font-style:normal;color:var(--accent)}
.op>summary em{font-style:normal;color:var(--soft);font-size:.875rem;text-align:right}
.verb{font:650 .7rem/1.6 ui-monospace,SFMono-Regular,Menlo,monospace;letter-spacing:.03em;text-align:center;
border-radius:.35rem;
border:1px solid currentColor;padding:0 .3rem}
.get{color:var(--get)}.post{color:var(--post)}.put{color:var(--put)}.patch{color:var(--patch)}
.delete{color:var(--delete)}
.details{padding:.35rem 1.1rem 1.1rem;border-top:1px solid var(--line)}
.who{font-size:.9rem;color:var(--soft)}
h4{font-size:.82rem;margin:1.1rem 0 .35rem;font-weight:650}
dl{margin:0}.fields{border-top:1px solid var(--line);font-size:.875rem}
.fields>div{display:grid;grid-template-columns:minmax(9rem,16rem) minmax(0,1fr);gap:1rem;padding:.35rem 0;
border-bottom:1px solid var(--line)}
.fields dt b{color:var(--delete);margin-left:.15rem}.fields dd{margin:0;min-width:0}
.fields dd span{color:var(--deep);font-size:.82rem;overflow-wrap:anywhere}.fields dd p{margin:.05rem 0 0;
color:var(--soft)}
.answers>div{display:grid;grid-template-columns:3rem minmax(0,1fr);gap:.75rem;padding:.3rem 0;font-size:.875rem}
.answers>div>dt{font:600 .82rem/1.75 ui-monospace,SFMono-Regular,Menlo,monospace}.answers dd{margin:0;min-width:0}
.answers dd code{display:inline-block;margin:.05rem 0}.answers .fields{margin-top:.35rem}
.answers dd>small{margin-left:.4rem}
.s2>dt{color:var(--get)}.s3>dt{color:var(--post)}.s4>dt{color:var(--put)}.s5>dt{color:var(--delete)}
.answers details{margin-top:.2rem}.answers summary{color:var(--accent);cursor:pointer;font-size:.82rem}
pre{background:var(--code);border-radius:.55rem;padding:.75rem 1rem;overflow-x:auto;margin:.3rem 0;line-height:1.5}
pre code{background:none;padding:0;overflow-wrap:normal}
.errors{width:100%;border-collapse:collapse;font-size:.875rem}.errors th{text-align:left;color:var(--soft);
font-weight:600}
.errors td,.errors th{padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.errors code{overflow-wrap:normal;font-size:.8em}.errors tr:target{background:var(--well)}
@media (max-width:60rem){.frame{display:block}nav{position:static;height:auto;border-right:0;
border-bottom:1px solid var(--line);
padding:1rem 1.1rem}nav .brand{margin:0}nav .all{display:flex;flex-wrap:wrap;gap:0 1rem;margin-top:.6rem}
nav h3{display:none}
nav ul{display:contents}nav li{margin-right:.2rem}nav li a{padding:.15rem .3rem}nav li small{display:none}
main{padding:1.4rem 1.1rem 4rem}h1{font-size:1.6rem}
.op>summary{grid-template-columns:4.2rem minmax(0,1fr);gap:.2rem .6rem}.op>summary em{grid-column:1/-1;
text-align:left}
.details{padding:.25rem .85rem .9rem}.fields>div{grid-template-columns:minmax(7rem,42%) minmax(0,1fr);gap:.6rem}
.answers>div{grid-template-columns:2.4rem minmax(0,1fr);gap:.5rem}.errors .wide{display:none}}
@media print{nav{display:none}.op{break-inside:avoid}}
`.trim()

/** The logo: water that is held back and flows over a weir. */
export const logo =
  '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round">' +
  '<path d="M2 8c2.2-2 4.3-2 6.500 0s4.300 2 6.500 0"/><path d="M2 13c2.200-2 4.300-2 6.500 0s4.300 2 6.500 0"/>' +
  '<path d="M18 6v12"/><path d="M2 18h20"/></svg>'
