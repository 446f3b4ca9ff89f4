// What is wrong with a page, as a list of sentences: the part of WCAG 2.2 that a program can check without a library.
(() => {
  "use strict";
  const found = [];
  const tell = (what, element) => {
    const name = element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "") +
      (element.className && element.className.baseVal === undefined ? `.${element.className.split(" ").join(".")}` : "");
    const text = `${what}: ${name} "${(element.textContent || "").trim().slice(0, 30)}"`;
    if (!found.includes(text)) { found.push(text); }
  };
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    element.getClientRects().length > 0;
  const color = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, ground) => ({
    r: top.r * top.a + ground.r * (1 - top.a), g: top.g * top.a + ground.g * (1 - top.a),
    b: top.b * top.a + ground.b * (1 - top.a), a: 1,
  });
  const luminance = (c) => {
    const [r, g, b] = [c.r, c.g, c.b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = new Map();
  const groundOf = (element) => {
    if (!element) { return matchMedia("(prefers-color-scheme: dark)").matches ? color("rgb(18, 18, 18)") : color("rgb(255, 255, 255)"); }
    if (!grounds.has(element)) {
      const own = color(getComputedStyle(element).backgroundColor);
      grounds.set(element, own.a === 1 ? own : over(own, groundOf(element.parentElement)));
    }
    return grounds.get(element);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("svg, script, style, noscript, .unseen, option") || !shown(element)) { continue; }
    const style = getComputedStyle(element), ground = groundOf(element);
    const [one, other] = [luminance(over(color(style.color), ground)), luminance(ground)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const box = element.getBoundingClientRect();
    if (box.width < 2.5 * size && box.height > 8 * size) { tell("letters below each other", element); }
    if (ratio < (large ? 3 : 4.5)) { tell(`contrast ${ratio.toFixed(2)}`, element); }
  }
  const controls = "a[href], button, input, select, textarea, summary, [role=button], [tabindex]";
  for (const element of document.querySelectorAll(controls)) {
    if (!shown(element) || element.closest("[aria-hidden=true]")) { continue; }
    const name = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.title ||
      element.textContent || element.getAttribute("aria-labelledby") || "";
    if (!name.trim() && element.tagName !== "MAIN") { tell("no name", element); }
    if (element.tabIndex > 0) { tell("tab order of its own", element); }
    if (element.matches("button, a[href], summary, [role=button]") && element.parentElement.closest("button, a[href], summary, [role=button]")) {
      tell("a control in a control", element);
    }
    const box = element.getBoundingClientRect();
    const inText = getComputedStyle(element).display === "inline" || element.closest("svg");
    if (!inText && !element.matches("pre, main, [role=region], .skip") && (box.width < 24 || box.height < 24)) {
      tell(`a target of ${Math.round(box.width)} by ${Math.round(box.height)}`, element);
    }
  }
  const ids = Array.from(document.querySelectorAll("[id]"), (element) => element.id);
  ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => tell("an id that is not unique", document.getElementById(id)));
  if (!document.documentElement.lang) { tell("no language", document.documentElement); }
  if (!document.title.trim()) { tell("no title", document.documentElement); }
  if (document.querySelectorAll("h1").length !== 1) { tell("not one h1", document.body); }
  if (document.querySelectorAll("main, [role=main]").length !== 1) { tell("not one main", document.body); }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (Number(heading.tagName[1]) > level + 1) { tell("a level of headings is left out", heading); }
    level = Number(heading.tagName[1]);
  }
  document.querySelectorAll("img:not([alt])").forEach((image) => tell("a picture without a text", image));
  document.querySelectorAll("table").forEach((table) => { if (!table.querySelector("th")) { tell("a table without headings", table); } });
  document.querySelectorAll("[role=img]:not([aria-label])").forEach((image) => tell("a picture without a name", image));
  for (const element of document.querySelectorAll("body *")) {
    const style = getComputedStyle(element);
    if (/(auto|scroll)/.test(style.overflowX + style.overflowY) && shown(element) && element.tabIndex < 0 &&
      (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1) &&
      !element.querySelector("a[href], button, input, select, [tabindex='0']")) { tell("scrolls, but not with a keyboard", element); }
  }
  return found;
})()
