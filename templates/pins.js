
(function () {
  "use strict";
  var judged = JSON.parse(document.getElementById("answers").textContent);
  var cudas = judged.cudas, count = cudas.length, all = count * judged.platforms.length;
  var rows = Array.from(document.querySelectorAll("tbody tr"));
  // What the judge says of a place, a CUDA version on a platform: all goes together there, not known, or it does not.
  var YES = 2, UNKNOWN = 1, NO = 0;
  // "0-5 8?9" are the places 0 to 5 and 8, and 9, where it is not known.
  var places = judged.places.map(function (text) {
    var found = new Uint8Array(all);
    text.split("?").forEach(function (spans, unknown) {
      spans.split(" ").filter(Boolean).forEach(function (span) {
        var ends = span.split("-").map(Number);
        found.fill(unknown ? UNKNOWN : YES, ends[0], ends[ends.length - 1] + 1);
      });
    });
    return found;
  });
  var answer = document.getElementById("answer");
  var svg = document.getElementById("pins");
  var boxes = svg ? Array.from(svg.querySelectorAll(".box")) : [];
  var edges = svg ? Array.from(svg.querySelectorAll(".edge")) : [];
  var chosen = null;
  function field(name) { return document.getElementById(name); }
  function written(name) { return field(name) ? field(name).value.trim() : ""; }
  function isWindows(platform) { return platform.startsWith("win"); }
  function system(place) { return isWindows(judged.platforms[Math.floor(place / count)]) ? 1 : 0; }
  function ofToolkit(driver, place) {
    var least = judged.drivers[place % count][system(place)];
    return least === null ? UNKNOWN : !least || reaches(driver, least) ? YES : NO;
  }
  function ofGpu(driver, gpu, place) {
    var bounds = gpu.drivers[system(place)], sure = bounds[0], below = bounds[1], least = bounds[2];
    if (below && reaches(driver, below)) { return NO; }
    return !sure || reaches(driver, sure) ? YES : !least || reaches(driver, least) ? UNKNOWN : NO;
  }
  function best(answers, place) { return answers.reduce(function (most, answer) { return Math.max(most, answer[place]); }, NO); }
  // The answers for packages, each for the architecture of the GPU if that matters to it.
  function ofPackages(numbers, gpu) {
    return numbers.map(function (number) {
      var answer = judged.packages[number];
      return places[gpu && gpu.sm in answer ? answer[gpu.sm] : answer[""]];
    });
  }
  function numbers(options) { return Array.from(new Set(options.map(function (option) { return Number(option.dataset.answer); }))); }
  function asked() {
    var question = { whats: [], gpus: [null], packages: [] };
    [["gpu", "gpus"], ["package", "packages"]].forEach(function (pair) {
      var text = written(pair[0]);
      if (!text) { return; }
      var options = meant(pair[1], text);
      question.whats.push(options.length ? named(options) : "“" + text + "”, which is not known here");
      if (pair[0] === "gpu") { question.gpus = numbers(options).map(function (number) { return judged.gpus[number]; }); }
      else { question.packages.push(numbers(options)); }
    });
    question.driver = written("driver");
    if (question.driver) { question.whats.push("driver " + question.driver); }
    question.cuda = written("cuda");
    if (question.cuda) { question.whats.push("CUDA " + question.cuda); }
    question.platform = written("platform");
    if (question.platform) { question.whats.push(question.platform); }
    if (chosen) {
      question.whats.push(chosen.getAttribute("aria-label"));
      question.cudas = chosen.dataset.cudas.split(" ");
      if (chosen.dataset.packages) { question.packages.push(chosen.dataset.packages.split(" ").map(Number)); }
    }
    return question;
  }
  function isAsked(question, place) {
    var platform = judged.platforms[Math.floor(place / count)], cuda = cudas[place % count];
    if (question.platform ? platform !== question.platform : question.driver && !platform.startsWith("linux")) { return false; }
    return (!question.cuda || cuda === question.cuda) && (!question.cudas || question.cudas.includes(cuda));
  }
  // For each CUDA version the best answer of its places.
  function answered(question) {
    var found = new Map(cudas.map(function (cuda) { return [cuda, question.whats.length ? NO : YES]; }));
    if (question.driver && !/^\d+(\.\d+)*$/.test(question.driver)) { return found; }
    question.gpus.forEach(function (gpu) {
      var parts = question.packages.map(function (numbers) { return ofPackages(numbers, gpu); });
      for (var place = 0; place < all; place += 1) {
        if (!isAsked(question, place)) { continue; }
        var answer = places[gpu ? gpu.places : judged.everywhere][place];
        if (question.driver) {
          answer = Math.min(answer, ofToolkit(question.driver, place), gpu ? ofGpu(question.driver, gpu, place) : YES);
        }
        parts.forEach(function (part) { answer = Math.min(answer, best(part, place)); });
        found.set(cudas[place % count], Math.max(found.get(cudas[place % count]), answer));
      }
    });
    return found;
  }
  function inWords(versions) {
    if (versions.length < 4) { return "CUDA " + versions.join(", "); }
    var first = cudas.indexOf(versions[0]), last = cudas.indexOf(versions[versions.length - 1]);
    var gaps = last - first + 1 > versions.length;
    return "CUDA " + versions[versions.length - 1] + " to " + versions[0] + (gaps ? ", not all of them," : "");
  }
  function say(question, fits, unknown) {
    answer.textContent = "";
    if (!question.whats.length) { answer.textContent = "Name what you have, or choose a box of the picture: the table keeps the CUDA versions that go with it."; return; }
    var strong = document.createElement("b"), whats = question.whats.join(" and ");
    if (!fits.length && unknown.length) {
      strong.textContent = "It is not known";
      answer.append(strong, " whether " + inWords(unknown) + (unknown.length === 1 ? " goes with " : " go with ") + whats + ".");
      return;
    }
    strong.textContent = fits.length ? inWords(fits) : "No CUDA version";
    answer.append(strong, (fits.length > 1 ? " go with " : " goes with ") + whats + ".");
    if (unknown.length) { answer.append(" Of " + inWords(unknown) + " it is not known."); }
    if (written("gpu") && fits.length) { answer.append(" Builds for an earlier CUDA run only if they contain PTX that the driver compiles."); }
  }
  function draw(isQuestion, fits, shown) {
    if (!svg) { return; }
    var set = new Set(fits), lit = new Set(), few = fits.length <= 3;
    edges.forEach(function (edge) {
      var ends = edge.dataset.of.split(" ");
      var belongs = set.has(edge.dataset.cuda) && Boolean(shown ? ends.includes(shown.dataset.box) : isQuestion);
      if (belongs) { ends.forEach(function (end) { lit.add(end); }); }
      edge.classList.toggle("lit", belongs && (Boolean(shown) || few));
    });
    var any = Boolean(shown) || isQuestion;
    boxes.forEach(function (box) {
      box.classList.toggle("lit", any && (lit.has(box.dataset.box) || box === shown));
      box.setAttribute("aria-pressed", String(box === chosen));
    });
    svg.classList.toggle("asked", any);
  }
  function apply() {
    var question = asked(), answers = answered(question);
    var fits = cudas.filter(function (cuda) { return answers.get(cuda) === YES; });
    var unknown = cudas.filter(function (cuda) { return answers.get(cuda) === UNKNOWN; });
    var kept = cudas.filter(function (cuda) { return answers.get(cuda) !== NO; });
    rows.forEach(function (row) {
      row.hidden = !kept.includes(row.dataset.cuda);
      row.classList.toggle("unknown", unknown.includes(row.dataset.cuda));
    });
    field("none").hidden = kept.length > 0;
    field("shown").textContent = kept.length === rows.length ? "" : kept.length + " of " + rows.length;
    if (field("driver")) { field("driver").parentNode.firstChild.data = "My driver, on " + (isWindows(question.platform) ? "Windows " : "Linux "); }
    say(question, fits, unknown);
    draw(question.whats.length > 0, kept, chosen);
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
      if (event.pointerType === "mouse" && !chosen && !asked().whats.length) { draw(false, cudas, box); }
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
