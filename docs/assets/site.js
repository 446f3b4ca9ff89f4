// Names and focus that the theme leaves out, for screen readers and keyboards.
function named() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((part) => part.setAttribute("tabindex", "0"));
  document.querySelectorAll(".md-code__nav").forEach((nav, number) => nav.setAttribute("aria-label", `Example ${number + 1}`));
}

// A table of three or more columns is a list of cards on a phone (site.css); roles keep it a table for a screen reader.
function carded(table) {
  const heads = Array.from(table.querySelectorAll("thead th"), (head) => head.textContent.trim());
  if (heads.length < 3) { return; }
  table.dataset.cards = heads.length;
  const roles = { thead: "rowgroup", tbody: "rowgroup", tr: "row", th: "columnheader", td: "cell" };
  table.setAttribute("role", "table");
  for (const [name, role] of Object.entries(roles)) {
    table.querySelectorAll(name).forEach((part) => part.setAttribute("role", role));
  }
  table.querySelectorAll("tbody tr").forEach((row) => {
    Array.from(row.cells).forEach((cell, at) => { cell.dataset.label = heads[at] || ""; });
  });
}

function made() {
  named();
  document.querySelectorAll(".md-typeset table:not([class])").forEach(carded);
}
made();
document$.subscribe(made);
