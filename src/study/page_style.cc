#include "study/page_style.h"

namespace sator::study {

std::string_view page_style() {
  return R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1d2127; --soft: #59616c; --line: #e3e5e8; --grid: #eceef0; --accent: #2458c5;
  --best: #e8f0fe;
  --array: #5f97d0; --weights: #ee6677; --scales: #d9b03c; --activations: #5cb8d6; --dequantize: #d979b5;
  --rescale: #4fae60; --quantize: #ee8844; --attention: #958aec; --vector: #a3acb6; --launch: #8c96a3; --links: #d08c60; --mark: #0d1014;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1c2026; --ink: #e7eaee; --soft: #a3acb8; --line: #2e343c; --grid: #282d34; --accent: #7fa9ff;
    --best: #22304d;
    --array: #5f97d0; --weights: #f27c8b; --scales: #dcbb55; --activations: #6fc6e2; --dequantize: #d979b5;
    --rescale: #4fae60; --quantize: #f29a5e; --attention: #958aec; --vector: #a3acb6; --launch: #c3c9d1; --links: #d08c60; --mark: #0d1014;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1240px; padding: 28px 20px 56px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%;
}
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 40px 0 2px; letter-spacing: -0.005em; overflow-wrap: anywhere; }
h3 { font-size: 14px; margin: 0 0 8px; font-weight: 600; overflow-wrap: anywhere; }
h3.above { margin: 18px 0 0; }
h4 { font-size: 13px; margin: 10px 0 4px; font-weight: 600; color: var(--soft); }
p { margin: 4px 0 12px; overflow-wrap: anywhere; }
p.caption { font-size: 12.5px; margin: 8px 0 0; }
.soft, footer, .caption { color: var(--soft); }
.small { font-size: 13px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; min-width: 0; }
.grid { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); margin: 14px 0; }
.grid > .scroll { align-self: start; margin: 0; min-width: 0; }
.grid.two { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
.verdict .big { font-size: 30px; font-weight: 650; letter-spacing: -0.02em; line-height: 1.1; color: var(--accent); }
.verdict .who { font-weight: 600; overflow-wrap: anywhere; }
.verdict p { margin: 8px 0 0; font-size: 13px; color: var(--soft); }
.scroll { overflow-x: auto; margin: 12px 0; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 9px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tbody tr:last-child td, tbody tr:last-child th { border-bottom: 0; }
thead th { font-weight: 600; color: var(--soft); vertical-align: bottom; }
thead button { all: unset; cursor: pointer; display: block; width: 100%; }
thead button:hover { color: var(--accent); }
thead button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
th[aria-sort="ascending"] button::after { content: " \25B2"; font-size: 9px; }
th[aria-sort="descending"] button::after { content: " \25BC"; font-size: 9px; }
.contents ul { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 14px 0; padding: 0; list-style: none; font-size: 13.5px; }
.contents li { overflow-wrap: anywhere; min-width: 0; }
.contents a { color: var(--accent); padding: 3px 0; display: inline-block; }
h2[id] { scroll-margin-top: 12px; }
thead th small { display: block; font-weight: 400; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--card); font-weight: 600; }
tbody th { font-weight: 500; }
tr.base th, tr.base td { color: var(--soft); }
td.best { background: var(--best); font-weight: 650; }
.wide th, .wide td { padding: 6px 6.5px; }
.wide table { font-size: 12.5px; }
.phase { border-left: 1px solid var(--line); }
thead .span { text-align: center; color: var(--ink); border-left: 1px solid var(--line); }
ul.remarks { margin: 6px 0 12px; padding-left: 18px; font-size: 13px; color: var(--soft); overflow-wrap: anywhere; }
.legend li { overflow-wrap: anywhere; min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 12.5px; color: var(--soft); margin: 12px 0 0; padding: 0; list-style: none; }
.legend i { display: inline-block; min-width: 16px; height: 16px; border-radius: 3px; margin-right: 5px; color: var(--mark);
  font: 600 11px/16px system-ui, sans-serif; text-align: center; }
.legend .sign { display: inline-block; width: 15px; height: 15px; margin-right: 4px; vertical-align: -3px; }
svg { display: block; width: 100%; height: auto; max-width: 580px; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
svg text { fill: var(--ink); }
svg .tick, svg .axis, svg .pname, svg .mark { fill: var(--soft); font-size: 11px; }
svg .mark { fill: var(--mark); font-weight: 600; font-size: 11px; pointer-events: none; }
svg .pname, svg .name, svg .figure { paint-order: stroke; stroke: var(--card); stroke-width: 2.5px; stroke-linejoin: round; }
svg .figure { fill: var(--soft); }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .strong { font-weight: 650; fill: var(--ink); }
svg .grid { stroke: var(--grid); fill: none; }
svg .leader { stroke: var(--soft); stroke-width: 0.6; fill: none; }
svg .front { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 4 3; fill: none; }
svg .point { fill: var(--vector); stroke: var(--card); stroke-width: 1; }
svg .point.best { fill: var(--accent); }
svg .point.inner, svg .point.hole { fill: var(--card); stroke: var(--accent); stroke-width: 1.6; }
svg .point.hole:not(.best):not(.inner) { stroke: var(--vector); }
svg .roof { fill: none; stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 3; }
svg .roof.outer, svg .roof.ceiling { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: none; }
svg .line { fill: none; stroke-width: 1.4; }
svg .line-point { stroke: var(--card); stroke-width: 0.8; }
svg .line-point.hole { fill: var(--card); stroke-width: 1.6; }
svg .l0 { stroke: var(--array); } svg .line-point.l0:not(.hole) { fill: var(--array); }
svg .l1 { stroke: var(--weights); } svg .line-point.l1:not(.hole) { fill: var(--weights); }
svg .l2 { stroke: var(--attention); } svg .line-point.l2:not(.hole) { fill: var(--attention); }
svg .l3 { stroke: var(--scales); } svg .line-point.l3:not(.hole) { fill: var(--scales); }
svg .l4 { stroke: var(--rescale); } svg .line-point.l4:not(.hole) { fill: var(--rescale); }
svg .l5 { stroke: var(--launch); } svg .line-point.l5:not(.hole) { fill: var(--launch); }
svg .whisker { fill: none; stroke: var(--ink); stroke-width: 1.2; }
svg .s-memory { fill: var(--weights); }
svg .s-neighbour { fill: var(--activations); }
svg .s-kept { fill: var(--array); }
svg .field { fill: none; stroke: var(--line); }
svg .sum { fill: var(--ink); }
)css"
         R"css(
.c-array { fill: var(--array); background: var(--array); }
.c-weights { fill: var(--weights); background: var(--weights); }
.c-scales { fill: var(--scales); background: var(--scales); }
.c-activations { fill: var(--activations); background: var(--activations); }
.c-dequantize { fill: var(--dequantize); background: var(--dequantize); }
.c-rescale { fill: var(--rescale); background: var(--rescale); }
.c-quantize { fill: var(--quantize); background: var(--quantize); }
.c-attention { fill: var(--attention); background: var(--attention); }
.c-vector { fill: var(--vector); background: var(--vector); }
.c-launch { fill: var(--launch); background: var(--launch); }
.c-links { fill: var(--links); background: var(--links); }
details { margin: 14px 0; }
summary { cursor: pointer; font-weight: 600; padding: 4px 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; font-size: 13px; margin: 8px 0; }
dt { color: var(--ink); overflow-wrap: anywhere; }
dd { margin: 0; color: var(--soft); overflow-wrap: anywhere; }
footer { margin-top: 44px; padding-top: 14px; border-top: 1px solid var(--line); font-size: 13px; }
footer p { margin: 2px 0; }
@media (max-width: 520px) {
  body { padding: 18px 10px 40px; }
  .card { padding: 12px 10px; }
  h1 { font-size: 23px; }
  th, td { padding: 6px 7px; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: 6px; }
}
@media (min-width: 900px) {
  svg { font-size: 9px; }
  svg .tick, svg .axis, svg .pname, svg .mark { font-size: 8.5px; }
}
@media print { body { max-width: none; } .card, .scroll { break-inside: avoid; } }
)css";
}

}  // namespace sator::study
