
// The filter of a page: words, a platform and states choose entries; `Page.changed` hears what is left.
var Page = (function () {
  "use strict";
  var entries = Array.from(document.querySelectorAll(".entry"));
  function chips() { return Array.from(document.querySelectorAll(".chip[data-state]")); }
  var filter = document.getElementById("filter");
  var platform = document.getElementById("platform");
  var shown = document.getElementById("shown");
  var page = { changed: function () {} };
  page.apply = function () {
    var words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    var states = chips().filter(function (chip) { return chip.getAttribute("aria-pressed") === "true"; })
      .map(function (chip) { return chip.dataset.state; });
    var fitting = new Set();
    entries.forEach(function (entry) {
      var fits = words.every(function (word) { return entry.dataset.words.includes(word); }) &&
        (!platform || !platform.value || entry.dataset.platform === platform.value) &&
        (!states.length || states.some(function (state) { return entry.dataset.state.split("|").includes(state); }));
      entry.hidden = !fits;
      if (fits) { fitting.add(entry.id); }
    });
    document.querySelectorAll("[data-group]").forEach(function (group) {
      group.hidden = !group.querySelector(".entry:not([hidden])");
    });
    var left = entries.filter(function (entry) { return !entry.hidden; }).length;
    document.getElementById("none").hidden = left > 0;
    shown.value = left === entries.length ? "" : left + " of " + entries.length;
    page.changed(fitting);
  };
  page.open = function (name) {
    var entry = document.getElementById(name);
    if (!entry || !entry.classList.contains("entry")) { return; }
    entry.hidden = false;
    entry.open = true;
    entry.scrollIntoView({ block: "center" });
    entry.querySelector("summary").focus({ preventScroll: true });
  };
  filter.addEventListener("input", page.apply);
  if (platform) { platform.addEventListener("change", page.apply); }
  document.addEventListener("click", function (event) {
    var chip = event.target.closest(".chip[data-state]");
    if (!chip) { return; }
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    page.apply();
  });
  return page;
}());
