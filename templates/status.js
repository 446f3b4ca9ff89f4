
(function () {
  "use strict";
  var entries = Array.from(document.querySelectorAll(".configuration"));
  var chips = Array.from(document.querySelectorAll(".chip"));
  var bars = Array.from(document.querySelectorAll("#timeline a"));
  var filter = document.getElementById("filter");
  var platform = document.getElementById("platform");
  var shown = document.getElementById("shown");
  function apply() {
    var words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    var states = chips.filter(function (chip) { return chip.getAttribute("aria-pressed") === "true"; })
      .map(function (chip) { return chip.dataset.state; });
    var fitting = new Set();
    entries.forEach(function (entry) {
      var fits = words.every(function (word) { return entry.dataset.words.includes(word); }) &&
        (!platform.value || entry.dataset.platform === platform.value) &&
        (!states.length || states.includes(entry.dataset.state));
      entry.hidden = !fits;
      if (fits) { fitting.add(entry.id); }
    });
    bars.forEach(function (bar) { bar.classList.toggle("dim", !fitting.has(bar.dataset.of)); });
    document.getElementById("none").hidden = fitting.size > 0;
    shown.value = fitting.size === entries.length ? "" : fitting.size + " of " + entries.length;
  }
  function open(name) {
    var entry = document.getElementById(name);
    if (!entry || !entry.classList.contains("configuration")) { return; }
    entry.hidden = false;
    entry.open = true;
    entry.scrollIntoView({ block: "center" });
  }
  filter.addEventListener("input", apply);
  platform.addEventListener("change", apply);
  chips.forEach(function (chip) {
    chip.addEventListener("click", function () {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  });
  bars.forEach(function (bar) {
    bar.addEventListener("click", function () { open(bar.dataset.of); });
  });
  if (location.hash) { open(decodeURIComponent(location.hash.slice(1))); }
  apply();
}());
