(function () {
  "use strict";
  var judged = JSON.parse(document.getElementById("answers").textContent);
  var FIELDS = ["gpu", "driver", "system", "framework", "manager"];
  var HOW = { native: "natively", ptx: "after the driver has compiled its PTX, at first start", no: "not at all", cpu: "on the CPU only", unknown: "not known" };
  var answer = document.getElementById("answer"), wheels = document.getElementById("wheels");
  function field(name) { return document.getElementById(name); }
  function element(name, text) { var made = document.createElement(name); made.textContent = text; return made; }
  // Whether the driver knows the GPU: true, false, or null where that is not known; and the bound that it misses.
  function knows(bounds, driver) {
    var sure = bounds[0], below = bounds[1], none = bounds[2];
    if (below && reaches(driver, below)) { return [false, "drivers from " + below + " on no longer know this GPU"]; }
    if (!sure || reaches(driver, sure)) { return [true, ""]; }
    if (none && !reaches(driver, none)) { return [false, "this GPU needs " + none + " or later"]; }
    return [null, "it is certain from " + sure + " on only that drivers know " + (none ? "each chip of this name" : "this GPU")];
  }
  // The judge's answer for a release, unless the driver is beyond a bound of it.
  function verdict(release, gpu, question) {
    var found = judged.answers[judged.rows[release.on[question.subdir]][gpu.capability]];
    if (!found.least || !question.driver) { return { how: found.how, by: found.by, why: found.why, least: found.least }; }
    var known = knows(gpu.drivers[question.windows], question.driver), least = found.least[question.windows];
    if (known[0] === false) { return { how: "no", by: null, why: "Driver " + question.driver + ": " + known[1] + "." }; }
    if (!least || !reaches(question.driver, least)) {
      return { how: "no", by: null, why: "Driver " + question.driver + " is too old: it needs " + (least ? least + " or later" : "a newer one than is known") + "." };
    }
    if (known[0] === null) { return { how: "unknown", by: found.by, why: "Driver " + question.driver + ": " + known[1] + "." }; }
    return { how: found.how, by: found.by, why: found.why, least: found.least };
  }
  function asked(gpu) {
    var system = judged.systems.find(function (each) { return each[0] === field("system").value; });
    var arm = gpu.arm ? judged.systems.find(function (each) { return each[1] === "linux-aarch64"; }) : system;
    return { subdir: arm[1], windows: arm[2] ? 1 : 0, driver: field("driver").value.trim(), framework: field("framework").value };
  }
  function because(found, question) {
    var least = found.least && found.least[question.windows];
    return found.why + (least ? " It needs driver " + least + " or later." : "");
  }
  function ofItsDrivers(gpu, question) {
    var bounds = gpu.drivers[question.windows];
    return (bounds[0] ? " The GPU itself needs " + bounds[0] + " or later" + (bounds[1] ? ", before " + bounds[1] : "") + "." : "");
  }
  // The newest release that runs, in the order of how well.
  function best(answers) {
    return ["native", "ptx", "unknown"].map(function (how) {
      return answers.find(function (each) { return each.found.how === how; });
    }).find(Boolean);
  }
  function run(chosen, gpu, question) {
    answer.append(element("b", chosen.release.what + ": " + HOW[chosen.found.how]), element("code", chosen.release.lines[question.subdir]));
    answer.append(because(chosen.found, question) + ofItsDrivers(gpu, question) + (chosen.release.python ? " " + chosen.release.python + "." : ""));
  }
  function byConda(question, answers, gpu) {
    var line = (judged.conda[question.framework] || {})[question.subdir], chosen = best(answers);
    if (chosen) { run(chosen, gpu, question); return; }
    if (answers.length) {
      answer.append(element("b", "No build of conda-forge"), " of " + question.framework + " runs on it, on " + question.subdir + ". " + answers[0].found.why);
      return;
    }
    answer.append(element("b", line ? "Not known" : "None is known"));
    if (!line) { answer.append(": no GPU build of " + question.framework + " on conda-forge for " + question.subdir + "."); return; }
    answer.append(": no list of GPUs was found in the recipe of conda-forge's builds.", element("code", line));
  }
  function byPip(question, answers, gpu) {
    var chosen = best(answers), elsewhere = answers.find(function (each) { return each.found.how === "cpu" && each.release.lines[question.subdir]; });
    if (chosen) { run(chosen, gpu, question); return; }
    answer.append(element("b", "No wheel on PyPI"), " of " + question.framework + " runs on it, on " + question.subdir + ". " + answers[0].found.why);
    if (elsewhere) {
      answer.append(" Its makers' own index has wheels with GPU code; for which GPUs was not read:", element("code", elsewhere.release.lines[question.subdir]));
    }
  }
  function row(first, last, question) {
    var made = document.createElement("tr"), name = first.release.what.split(" ");
    var same = first.release === last.release;
    made.dataset.how = first.found.how;
    var head = element("th", same ? first.release.what : name[0] + " " + last.release.what.split(" ")[1] + " to " + name[1]);
    head.scope = "row";
    head.setAttribute("role", "rowheader");
    made.append(head);
    [["run", HOW[first.found.how] + (first.found.by ? " (" + first.found.by + ")" : "")], ["reason", because(first.found, question)]].forEach(function (pair) {
      var cell = element("td", pair[1]);
      cell.dataset.label = pair[0];
      cell.setAttribute("role", "cell");
      made.append(cell);
    });
    made.setAttribute("role", "row");
    return made;
  }
  function list(question, answers) {
    var alike = [];
    answers.forEach(function (each) {
      var last = alike[alike.length - 1];
      var joins = last && because(last[0].found, question) === because(each.found, question) && last[0].found.by === each.found.by &&
        last[0].release.what.split(" ")[0] === each.release.what.split(" ")[0];
      if (joins) { last[1] = each; } else { alike.push([each, each]); }
    });
    alike.forEach(function (pair) { wheels.append(row(pair[0], pair[1], question)); });
  }
  function apply() {
    answer.textContent = "";
    wheels.textContent = "";
    var said = new URLSearchParams();
    FIELDS.forEach(function (name) { if (field(name).value.trim()) { said.set(name, field(name).value.trim()); } });
    history.replaceState(null, "", "#" + said);
    var text = field("gpu").value.trim(), options = text ? meant("gpus", text) : [];
    if (!options.length) { answer.textContent = text ? "“" + text + "” is not known here." : "Name your GPU."; return; }
    if (field("driver").value.trim() && !/^\d+(\.\d+)*$/.test(field("driver").value.trim())) { answer.textContent = "Write the driver as 535.183."; return; }
    var numbers = Array.from(new Set(options.map(function (option) { return option.dataset.answer; })));
    numbers.forEach(function (number) {
      var gpu = judged.gpus[Number(number)], question = asked(gpu);
      var own = options.filter(function (option) { return option.dataset.answer === number; });
      answer.append(element("p", named(own)));
      var byBuilds = field("manager").value === "conda";
      var releases = (byBuilds ? judged.builds : judged.releases)[question.framework].filter(function (release) { return question.subdir in release.on; });
      var answers = releases.map(function (release) { return { release: release, found: verdict(release, gpu, question) }; });
      (byBuilds ? byConda : byPip)(question, answers, gpu);
      list(question, answers);
    });
  }
  // An address may name what is asked: #gpu=RTX 3080&framework=torch
  new URLSearchParams(location.hash.slice(1)).forEach(function (value, name) {
    if (FIELDS.includes(name)) { field(name).value = value; }
  });
  FIELDS.forEach(function (name) { field(name).addEventListener("input", apply); });
  field("ask").hidden = false;
  apply();
}());
