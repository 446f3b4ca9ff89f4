
(function () {
  "use strict";
  var bars = Array.from(document.querySelectorAll("#timeline a"));
  // One stop of the Tab key for all bars; arrow keys move between them.
  function stopAt(bar) {
    bars.forEach(function (other) { other.setAttribute("tabindex", other === bar ? "0" : "-1"); });
  }
  bars.forEach(function (bar, at) {
    bar.addEventListener("click", function (event) { event.preventDefault(); Page.open(bar.dataset.of); });
    bar.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      var next = step ? bars[at + step] : { Home: bars[0], End: bars[bars.length - 1] }[event.key];
      if (!next) { return; }
      event.preventDefault();
      stopAt(next);
      next.focus();
    });
  });
  if (bars.length) { stopAt(bars[0]); }
  Page.changed = function (fitting) {
    bars.forEach(function (bar) { bar.classList.toggle("dim", !fitting.has(bar.dataset.of)); });
  };
  if (location.hash) { Page.open(decodeURIComponent(location.hash.slice(1))); }
  Page.apply();
}());
