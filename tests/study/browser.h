// A page looked at in a real browser: Debian's chromium, without a window.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "temp_folder.h"

namespace sator::study {

/// The browser's command; empty if there is none. `./dev` installs it (tools/packages.txt).
inline std::string found_browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(("command -v " + std::string(name) + " > /dev/null").c_str()) == 0) return name;
  return "";
}

inline constexpr const char* kNoBrowser = "no browser here: apt-get install chromium looks at the page";

/// Looks at the page and writes what is wrong with it as JSON into #out. Everything is measured as the browser laid it out:
///   wide        pixels by which the document exceeds its window
///   outside     texts of figures that leave their figure; overlaps: pairs of texts of one figure on each other
///   unnamed     figures without a title for those who cannot see them
///   contrast    the least contrast of a text with what is behind it (WCAG 2.2), and which: at least 4.5 is readable
///   smallest    height of the smallest letters of figures, in pixels
///   requests    what the page asked of others
inline constexpr const char* kAudit = R"js(
onload = () => {
  const frame = document.getElementById('f'), inner = frame.contentDocument, view = frame.contentWindow;
  for (const d of inner.querySelectorAll('details')) d.open = true;
  frame.style.height = inner.documentElement.scrollHeight + 'px';
  const r = {wide: inner.documentElement.scrollWidth - inner.documentElement.clientWidth, figures: 0, texts: 0, outside: [],
    overlaps: [], unnamed: 0, contrast: 99, faintest: '', smallest: 99,
    dark: view.matchMedia('(prefers-color-scheme: dark)').matches, requests: view.performance.getEntriesByType('resource').length};
  const rgb = c => { const m = c.match(/[\d.]+/g); return m && !(m.length > 3 && +m[3] === 0) && c !== 'none' ? m.slice(0, 3).map(Number) : null; };
  const light = c => { const [a, b, d] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * a + 0.7152 * b + 0.0722 * d; };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(view.getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const look = (color, back, words) => {
    const [a, b] = [light(color), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < r.contrast) { r.contrast = ratio; r.faintest = words.trim().slice(0, 60); }
  };
  for (const svg of inner.querySelectorAll('svg')) {
    if (svg.getAttribute('aria-hidden') === 'true') continue;
    ++r.figures;
    if (!(svg.getAttribute('aria-label') || '').trim() || svg.getAttribute('role') !== 'img') ++r.unnamed;
    const edge = svg.getBoundingClientRect(), boxes = [];
    for (const t of svg.querySelectorAll('text')) {
      const b = t.getBoundingClientRect();
      ++r.texts;
      const scale = edge.width / svg.viewBox.baseVal.width;
      r.smallest = Math.min(r.smallest, parseFloat(view.getComputedStyle(t).fontSize) * scale);
      if (b.left < edge.left - 1 || b.right > edge.right + 1 || b.top < edge.top - 2 || b.bottom > edge.bottom + 2) r.outside.push(t.textContent);
      const own = {l: b.left + 1, r: b.right - 1, t: b.top + b.height * 0.2, b: b.bottom - b.height * 0.2, words: t.textContent};
      for (const o of boxes) if (own.l < o.r && o.l < own.r && own.t < o.b && o.t < own.b) r.overlaps.push(o.words + ' | ' + own.words);
      boxes.push(own);
      let back = behind(svg);
      if (t.classList.contains('mark')) {
        const under = inner.elementFromPoint((b.left + b.right) / 2, (b.top + b.bottom) / 2);
        if (under && under !== svg && under !== t) back = rgb(view.getComputedStyle(under).fill) || back;
      }
      look(rgb(view.getComputedStyle(t).fill), back, t.textContent);
    }
  }
  const walk = inner.createTreeWalker(inner.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (e.closest('svg') || !walk.currentNode.data.trim()) continue;
    look(rgb(view.getComputedStyle(e).color), behind(e), walk.currentNode.data);
  }
  r.outside = r.outside.slice(0, 5); r.overlapping = r.overlaps.length; r.overlaps = r.overlaps.slice(0, 5);
  document.getElementById('out').textContent = 'AUDIT' + JSON.stringify(r) + 'END';
};
)js";

/// Sorts the first two tables of schemes by pressing their heads' buttons, with the keyboard's way in, and writes the order of the
/// first column after each: by the second column up, down, and by the first.
inline constexpr const char* kSort = R"js(
onload = () => {
  const inner = document.getElementById('f').contentDocument, r = {buttons: 0, orders: [], sorted: [], focus: 0};
  const table = inner.querySelector('table.sortable'), heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const names = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent);
  r.buttons = heads.filter(h => h.querySelector('button')).length;
  r.columns = heads.length;
  r.orders.push(names());
  if (r.buttons) for (const column of [1, 1, 0]) {
    const button = heads[column].querySelector('button');
    button.focus();
    r.focus += inner.activeElement === button;
    button.click();
    r.orders.push(names());
    r.sorted.push(heads.map(h => h.getAttribute('aria-sort')).filter(s => s));
  }
  r.links = [...inner.querySelectorAll('nav a')].filter(a => inner.querySelector(a.getAttribute('href'))).length;
  document.getElementById('out').textContent = 'AUDIT' + JSON.stringify(r) + 'END';
};
)js";

struct Look {
  Json seen;            // what kAudit found; null if the browser did not come to an end
  std::string console;  // lines that the browser wrote to its console
};

/// Looks at a page of this width. Whatever it asks of others is refused, and the console says so.
///   audit   the script that looks, and writes what it saw into #out
///   scripts  false: those of the page do not run
inline Look look_at(const std::string& browser, std::string page, int width, bool dark, const char* audit = kAudit,
                    bool scripts = true) {
  TempFolder folder;
  const std::string guard =
      "<head><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">";
  if (const size_t head = page.find("<head>"); head != std::string::npos) page.replace(head, 6, guard);
  std::string attribute;
  for (char c : page) attribute += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  folder.write("frame.html",
               std::string("<!doctype html><html style=\"color-scheme:") + (dark ? "dark" : "light") +
                   "\"><body><iframe id=f style=\"width:" + std::to_string(width) + "px;height:900px;border:0\"" +
                   (scripts ? "" : " sandbox=\"allow-same-origin\"") + " srcdoc=\"" + attribute +
                   "\"></iframe><pre id=out></pre><script>" + audit + "</script></body></html>");
  const std::string at = folder.path().string();
  const std::string command = "timeout 60 " + browser +
                              " --headless --no-sandbox --disable-gpu --no-first-run --enable-logging=stderr"
                              " --blink-settings=preferredColorScheme=" +
                              (dark ? "0" : "1") + " --user-data-dir=" + at + "/profile --dump-dom file://" + at +
                              "/frame.html > " + at + "/dom 2> " + at + "/log";
  const int status = std::system(command.c_str());
  Look look;
  const std::string dom = read_file(fs::path(at) / "dom"), log = read_file(fs::path(at) / "log");
  for (size_t from = 0; from < log.size();) {
    const size_t to = std::min(log.find('\n', from), log.size());
    const std::string line = log.substr(from, to - from);
    if (line.find("CONSOLE") != std::string::npos) look.console += line + "\n";
    from = to + 1;
  }
  const size_t begin = dom.rfind("AUDIT{"), end = dom.rfind("}END");
  if (status != 0 || begin == std::string::npos || end == std::string::npos) return look;
  std::string json;
  for (size_t i = begin + 5; i <= end; ++i) {  // the DOM's text has entities
    if (dom.compare(i, 5, "&amp;") == 0)
      json += '&', i += 4;
    else if (dom.compare(i, 4, "&lt;") == 0)
      json += '<', i += 3;
    else if (dom.compare(i, 4, "&gt;") == 0)
      json += '>', i += 3;
    else
      json += dom[i];
  }
  look.seen = Json::parse(json, nullptr, false);
  return look;
}

}  // namespace sator::study
