
// The picture of builds: a bar opens its configuration.
(function () {
  "use strict";
  function bars() { return Array.from(document.querySelectorAll("#timeline a")); }
  // One stop of the Tab key for all bars; arrow keys move between them.
  function stopAt(bar) {
    bars().forEach(function (other) { other.setAttribute("tabindex", other === bar ? "0" : "-1"); });
  }
  document.addEventListener("click", function (event) {
    var bar = event.target.closest("#timeline a");
    if (!bar) { return; }
    event.preventDefault();
    Page.open(bar.dataset.of);
  });
  document.addEventListener("keydown", function (event) {
    var bar = event.target.closest && event.target.closest("#timeline a"), all = bar ? bars() : [];
    var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    var next = step ? all[all.indexOf(bar) + step] : { Home: all[0], End: all[all.length - 1] }[event.key];
    if (!next) { return; }
    event.preventDefault();
    stopAt(next);
    next.focus();
  });
  // What went wrong is at the end of a log.
  document.addEventListener("toggle", function (event) {
    if (event.target.open) { event.target.querySelectorAll("pre.log").forEach(function (log) { log.scrollTop = log.scrollHeight; }); }
  }, true);
  Page.changed = function (fitting) {
    var all = bars();
    all.forEach(function (bar) { bar.classList.toggle("dim", !fitting.has(bar.dataset.of)); });
    if (all.length && !document.querySelector("#timeline a[tabindex='0']")) { stopAt(all[0]); }
  };
  if (location.hash) { Page.open(decodeURIComponent(location.hash.slice(1))); }
  Page.apply();
}());
