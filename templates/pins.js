
(function () {
  "use strict";
  var rows = Array.from(document.querySelectorAll("tbody tr"));
  var cudas = rows.map(function (row) { return row.dataset.cuda; });
  var answer = document.getElementById("answer");
  var svg = document.getElementById("pins");
  var boxes = svg ? Array.from(svg.querySelectorAll(".box")) : [];
  var edges = svg ? Array.from(svg.querySelectorAll(".edge")) : [];
  var chosen = null;
  function field(name) { return document.getElementById(name); }
  function written(name) { return field(name) ? field(name).value.trim() : ""; }
  // "0-5 8" are the rows 0 to 5 and 8.
  function fitting(spans) {
    var found = new Set();
    spans.split(" ").filter(Boolean).forEach(function (span) {
      var ends = span.split("-").map(Number);
      for (var at = ends[0]; at <= ends[ends.length - 1]; at += 1) { found.add(cudas[at]); }
    });
    return found;
  }
  function wordsOf(text) { return text.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean); }
  // What an entry of a list means: the option of this name, else all with these words at the beginning of theirs.
  function meant(list, text) {
    var options = Array.from(field(list).options);
    var same = options.filter(function (option) { return option.value.toLowerCase() === text.toLowerCase(); });
    if (same.length) { return same; }
    var words = wordsOf(text);
    // RTX 3080 is the GeForce RTX 3080, and not a Ti.
    var ending = options.filter(function (option) {
      return (" " + wordsOf(option.value.split(" (")[0]).join(" ")).endsWith(" " + words.join(" "));
    });
    if (ending.length) { return ending; }
    return options.filter(function (option) {
      var own = wordsOf(option.value);
      return words.every(function (word) {
        return own.some(function (part) { return /\d$/.test(word) ? part === word || part.startsWith(word + ".") : part.startsWith(word); });
      });
    });
  }
  function named(options) {
    var names = options.slice(0, 3).map(function (option) { return option.value; });
    return names.join(", ") + (options.length > 3 ? " and " + (options.length - 3) + " more" : "");
  }
  function atLeast(version, least) {
    var one = version.split(".").map(Number), other = least.split(".").map(Number);
    for (var at = 0; at < one.length; at += 1) {
      if (one[at] !== (other[at] || 0)) { return one[at] > (other[at] || 0); }
    }
    // Of a branch alone, 535, any release may be meant.
    return one.length === 1 || one.length >= other.length || !other.slice(one.length).some(Boolean);
  }
  function asked() {
    var conditions = [];
    [["gpu", "gpus"], ["package", "packages"]].forEach(function (pair) {
      var text = written(pair[0]);
      if (!text) { return; }
      var options = meant(pair[1], text);
      var fits = new Set();
      options.forEach(function (option) { fitting(option.dataset.cudas).forEach(function (cuda) { fits.add(cuda); }); });
      conditions.push({ what: options.length ? named(options) : "“" + text + "”, which is not known here", fits: fits });
    });
    var driver = written("driver");
    if (driver) {
      conditions.push({ what: "driver " + driver, fits: new Set(rows.filter(function (row) {
        return row.dataset.driver && /^\d+(\.\d+)*$/.test(driver) && atLeast(driver, row.dataset.driver);
      }).map(function (row) { return row.dataset.cuda; })) });
    }
    if (written("cuda")) { conditions.push({ what: "CUDA " + written("cuda"), fits: new Set([written("cuda")]) }); }
    if (written("platform")) {
      var option = field("platform").selectedOptions[0];
      conditions.push({ what: option.value, fits: fitting(option.dataset.cudas) });
    }
    if (chosen) { conditions.push({ what: chosen.getAttribute("aria-label"), fits: new Set(chosen.dataset.cudas.split(" ")) }); }
    return conditions;
  }
  function inWords(versions) {
    if (versions.length < 4) { return "CUDA " + versions.join(", "); }
    var first = cudas.indexOf(versions[0]), last = cudas.indexOf(versions[versions.length - 1]);
    var gaps = last - first + 1 > versions.length;
    return "CUDA " + versions[versions.length - 1] + " to " + versions[0] + (gaps ? ", not all of them," : "");
  }
  function say(conditions, fits) {
    answer.textContent = "";
    if (!conditions.length) { answer.textContent = "Name what you have, or choose a box of the picture: the table keeps the CUDA versions that go with it."; return; }
    var strong = document.createElement("b");
    strong.textContent = fits.length ? inWords(fits) : "No CUDA version";
    var whats = conditions.map(function (condition) { return condition.what; }).join(" and ");
    answer.append(strong, (fits.length === 1 || !fits.length ? " goes with " : " go with ") + whats + ".");
    if (written("gpu") && fits.length) { answer.append(" Builds for an earlier CUDA run only if they contain PTX that the driver compiles."); }
  }
  function draw(conditions, fits, shown) {
    if (!svg) { return; }
    var set = new Set(fits), lit = new Set(), few = fits.length <= 3;
    edges.forEach(function (edge) {
      var ends = edge.dataset.of.split(" ");
      var belongs = set.has(edge.dataset.cuda) && Boolean(shown ? ends.includes(shown.dataset.box) : conditions.length);
      if (belongs) { ends.forEach(function (end) { lit.add(end); }); }
      edge.classList.toggle("lit", belongs && (Boolean(shown) || few));
    });
    var any = Boolean(shown) || conditions.length > 0;
    boxes.forEach(function (box) {
      box.classList.toggle("lit", any && (lit.has(box.dataset.box) || box === shown));
      box.setAttribute("aria-pressed", String(box === chosen));
    });
    svg.classList.toggle("asked", any);
  }
  function apply() {
    var conditions = asked();
    var fits = cudas.filter(function (cuda) {
      return conditions.every(function (condition) { return condition.fits.has(cuda); });
    });
    rows.forEach(function (row) { row.hidden = !fits.includes(row.dataset.cuda); });
    field("none").hidden = fits.length > 0;
    field("shown").textContent = fits.length === rows.length ? "" : fits.length + " of " + rows.length;
    say(conditions, fits);
    draw(conditions, fits, chosen);
    return fits;
  }
  function choose(box) { chosen = chosen === box ? null : box; apply(); }
  function stopAt(box) { boxes.forEach(function (other) { other.setAttribute("tabindex", other === box ? "0" : "-1"); }); }
  // The next box up or down in its column, or the nearest of the next column.
  function next(box, key) {
    var here = box.getBBox();
    var aside = { ArrowLeft: -1, ArrowRight: 1 }[key], down = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (!aside && !down) { return null; }
    var order = boxes.map(function (other) { return { box: other, at: other.getBBox() }; }).filter(function (other) {
      return aside ? (other.at.x - here.x) * aside > 0 : other.at.x === here.x && (other.at.y - here.y) * down > 0;
    });
    order.sort(function (one, other) {
      return Math.abs(one.at.x - here.x) - Math.abs(other.at.x - here.x) || Math.abs(one.at.y - here.y) - Math.abs(other.at.y - here.y);
    });
    return order.length ? order[0].box : null;
  }
  boxes.forEach(function (box) {
    box.addEventListener("click", function () { stopAt(box); choose(box); });
    box.addEventListener("keydown", function (event) {
      var beside = next(box, event.key);
      if (event.key === "Enter" || event.key === " ") { choose(box); } else if (event.key === "Escape" && chosen) { choose(chosen); }
      else if (beside) { stopAt(beside); beside.focus(); } else { return; }
      event.preventDefault();
    });
    box.addEventListener("pointerenter", function (event) {
      if (event.pointerType === "mouse" && !chosen && !asked().length) { draw([], cudas, box); }
    });
    box.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse" && !chosen) { apply(); } });
  });
  if (svg) { svg.classList.add("quiet"); stopAt(boxes[0]); }
  ["gpu", "driver", "cuda", "package", "platform"].forEach(function (name) {
    if (field(name)) { field(name).addEventListener("input", apply); }
  });
  field("clear").addEventListener("click", function () {
    document.querySelectorAll(".questions input, .questions select").forEach(function (each) { each.value = ""; });
    chosen = null;
    apply();
    document.querySelector(".questions input, .questions select").focus();
  });
  // An address may name what is asked: #gpu=RTX 3080&driver=535
  new URLSearchParams(location.hash.slice(1)).forEach(function (value, name) {
    if (field(name) && field(name).closest(".questions")) { field(name).value = value; }
  });
  field("ask").hidden = false;
  apply();
}());
