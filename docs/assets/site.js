// Names and focus that the theme leaves out, for screen readers and keyboards.
function named() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((part) => part.setAttribute("tabindex", "0"));
  document.querySelectorAll(".md-code__nav").forEach((nav, number) => nav.setAttribute("aria-label", `Example ${number + 1}`));
}
named();
document$.subscribe(named);
